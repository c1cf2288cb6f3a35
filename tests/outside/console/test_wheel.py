"""The wheel as people get it: it has every file of the console, and serves every page without Node."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from importlib.metadata import distribution, distributions
from pathlib import Path

import httpx
import pytest

from handrail.interfaces.http.contract.routes import PAGES_ONLY, ROUTES
from handrail.interfaces.http.edge.static_files import read_static_files
from interfaces.http.live_console import PATIENCE_S
from interfaces.shell import Process
from outside.console_build import BUILT, ROOT

PACKAGED = "handrail/interfaces/http"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


def test_the_wheel_has_every_file_of_the_console_and_nothing_of_its_source(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        for file in (path for path in BUILT.rglob("*") if path.is_file()):
            assert archive.read(f"{PACKAGED}/static/{file.relative_to(BUILT).as_posix()}") == file.read_bytes()
    assert f"{PACKAGED}/openapi.json" in names
    assert not [name for name in names if re.search(r"\.tsx?$|node_modules|package\.json$|/tests/", name)]


def test_the_wheel_alone_serves_every_page(wheel: Path, tmp_path: Path) -> None:
    python = empty_environment(tmp_path / "empty")
    installed = tmp_path / "installed"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(installed)
    home, folder = tmp_path / "home", tmp_path / "project"
    folder.mkdir()
    # No program is found by its name: neither Node nor anything else.
    environment = {"PYTHONPATH": str(installed), "PATH": str(folder), "HANDRAIL_HOME": str(home), "HOME": str(tmp_path)}
    command = [str(python), "-m", "handrail", "serve", "--port", "0", "--json"]
    with Process(command, folder, environment) as server:
        line = server.line()
        assert line, server.end()
        url = json.loads(line)["console"].rstrip("/")
        key = (home / "console-key").read_text(encoding="utf-8").strip()
        headers = {"authorization": f"Bearer {key}"}
        with httpx.Client(base_url=url, headers=headers, trust_env=False, timeout=PATIENCE_S) as client:
            about = client.get("/api/v1/about").json()
            assert about["project"]["folder"] == str(folder)
            for page in (*PAGES_ONLY, *(route.page for route in ROUTES if route.page)):
                answer = client.get(re.sub(r"{\w+(:\w+)?}", "1", page), headers={"accept": "text/html"})
                assert (answer.status_code, '<div id="app">' in answer.text) == (200, True), page
            for path, file in read_static_files().files.items():
                assert client.get(path).content == file.content, path


def empty_environment(folder: Path) -> Path:
    """A Python with what the wheel depends on and nothing else: the files of those packages from the present one."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    packages = Path(sysconfig.get_path("purelib", "venv", {"base": str(folder), "platbase": str(folder)}))
    for name in needed_of((ROOT / "requirements.lock").read_text(encoding="utf-8")):
        for file in distribution(name).files or ():
            if ".." in file.parts:
                continue  # a script
            (packages / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file.locate(), packages / file)
    return folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def needed_of(lock: str) -> set[str]:
    """What handrail itself asks for, directly or by others, on this platform."""
    blocks = {block.partition("==")[0]: block for block in re.split(r"^(?=\w)", lock, flags=re.MULTILINE) if block}
    asked_by = {name: set(re.findall(r"# (?:  |via )(\S.*)$", block, re.MULTILINE)) for name, block in blocks.items()}
    asks = {"handrail (pyproject.toml)"}
    while more := {name for name, by in asked_by.items() if by & asks} - asks:
        asks |= more
    installed = {one.name.lower().replace("_", "-") for one in distributions()}
    # A line with a condition is left out where that does not hold.
    return {name for name in asks & set(blocks) if " ; " not in blocks[name].partition("\\")[0] or name in installed}
