"""The wheel as people get it: it has every file of the console, and serves every page without Node."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import httpx
import pytest

from handrail.interfaces.http.contract.routes import PAGES_ONLY, ROUTES
from handrail.interfaces.http.edge.static_files import read_static_files
from interfaces.http.live_console import PATIENCE_S
from interfaces.shell import Process
from outside.console_build import BUILT, ROOT
from outside.nodejs import NotInstalled, do, filled, left_out

PACKAGED = "handrail/interfaces/http"
ENVIRONMENT = ROOT / "build" / "empty"
"""What a wheel asks for, at the versions of requirements.lock, and nothing else: installed once."""


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
    python = empty_environment()
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


def empty_environment() -> Path:
    """A Python with what the wheel depends on; the test is left out, or fails, where that can't be installed."""
    try:
        folder = filled(ENVIRONMENT, [ROOT / "requirements.lock", ROOT / "pyproject.toml"], _fill)
    except NotInstalled as error:
        left_out("an empty environment", error)
    return program(folder)


def program(folder: Path) -> Path:
    return folder / "venv" / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def _fill(folder: Path) -> None:
    do([sys.executable, "-m", "venv", "--without-pip", "venv"], folder)
    (folder / "needed.lock").write_text(needed_of((ROOT / "requirements.lock").read_text(encoding="utf-8")))
    pip = [sys.executable, "-m", "pip", "--python", str(program(folder)), "install", "--quiet"]
    do([*pip, "--disable-pip-version-check", "--require-hashes", "-r", "needed.lock"], folder)


def needed_of(lock: str) -> str:
    """The part of the lock that handrail itself asks for, directly or by others, with its hashes."""
    blocks = {block.partition("==")[0]: block for block in re.split(r"^(?=\w)", lock, flags=re.MULTILINE) if block}
    asked_by = {name: set(re.findall(r"# (?:  |via )(\S.*)$", block, re.MULTILINE)) for name, block in blocks.items()}
    needed = {"handrail (pyproject.toml)"}
    while more := {name for name, by in asked_by.items() if by & needed} - needed:
        needed |= more
    return "".join(block for name, block in blocks.items() if name in needed)
