"""Copies for commands without a sandbox: they work there as in the project, and nothing of it comes back."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from handrail.domain.definition.model import Category
from handrail.engine.sandbox import Bounds, Job, Ran
from handrail.tools.sandbox import project_copy
from handrail.tools.sandbox.replaced_files import write_replaced
from handrail.tools.sandbox.unconfined import Unconfined
from rules.on_project import committed, git
from tools.calls import Fails
from tools.sandbox.tree_state import tree_state

if os.name != "posix":
    pytest.skip("these commands are for POSIX", allow_module_level=True)

FILES = {
    "main.c": "int main(void) { return 0; }\n",
    ".gitignore": "ignored/\n.venv/\nnode_modules/\n",
    "packages/own/index.js": "here\n",
    "packages/own/folder/deep.txt": "deep\n",
}
WAIT_S = 10.0


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where copies are made: nobody else's."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def project(tmp_path: Path, scratch: Path) -> Path:
    project = committed(tmp_path / "work" / "shop", FILES)
    for name, text in {
        "ignored/made.py": "made = 1\n",
        ".venv/pyvenv.cfg": "",
        ".venv/bin/tool": "#!/bin/sh\necho tool of $0\n",
        "node_modules/left/index.js": "left\n",
        "node_modules/@scope/right/index.js": "right\n",
        "node_modules/.cache/old": "",
    }.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)
    (project / ".venv/bin/tool").chmod(0o755)
    (project / "node_modules/own").symlink_to("../packages/own")
    (project / "absolute").symlink_to(project / "packages" / "own")
    (project.parent / "beside").mkdir()
    (project.parent / "beside" / "shared.txt").write_text("shared\n")
    (project / "out").symlink_to("../beside")
    return project


async def sh(project: Path, code: str, *, replaced: Mapping[str, bytes | None] | None = None, **more: Any) -> Ran:
    job = Job(argv=("sh", "-c", code), apart=True, replaced=replaced or {}, bounds=Bounds(**more))
    return await Unconfined(project).run(job)


def _state(project: Path) -> Any:
    """Its files, and the objects of its history without their times: git renews those of objects that it needs."""
    every = tree_state(project)
    objects = {name: kept[2] for name, kept in every.items() if name.startswith(".git/objects")}
    return objects, {name: kept for name, kept in every.items() if name not in objects}


async def test_a_command_works_in_the_copy_as_in_the_project(project: Path) -> None:
    """All that it finds at other paths is there; what it says names the project."""
    tool = f"{project}/.venv/bin/tool"
    code = f"pwd; cat ignored/made.py; {tool}; cat node_modules/left/index.js node_modules/@scope/right/index.js"
    ran = await sh(
        project, f"{code}; cat out/shared.txt; ls node_modules/.cache; git log --format=%s; git status --short"
    )
    lines = ran.stdout.splitlines()
    assert lines[:7] == [str(project), "made = 1", f"tool of {tool}", "left", "right", "shared", "first"], ran
    assert lines[7:] == ["?? absolute", "?? out"], "its files are those that are committed"


async def test_nothing_that_is_done_in_the_copy_reaches_the_project(project: Path) -> None:
    before, beside = _state(project), tree_state(project.parent / "beside")
    code = """
set -e
echo other > main.c; rm -rf packages/own; mkdir made; echo x > ignored/made.py; rm absolute
mkdir -p node_modules/.cache; echo x > node_modules/.cache/new
git -c user.name=a -c user.email=a@example.com commit -qam second; git branch other; git log --format=%s
"""
    ran = await sh(project, code)
    assert (ran.exit, ran.stdout.split()) == (0, ["second", "first"]), ran
    assert _state(project) == before
    assert tree_state(project.parent / "beside") == beside
    assert git(project, "log", "--format=%s") == "first"


async def test_a_package_of_the_workspace_is_that_of_the_copy(project: Path) -> None:
    replaced = {"packages/own/index.js": b"then\n"}
    ran = await sh(project, "cat node_modules/own/index.js absolute/index.js", replaced=replaced)
    assert ran.stdout == "then\nthen\n"


async def test_files_are_found_as_they_were(project: Path) -> None:
    replaced = {
        "main.c": b"old\n",
        "run": b"#!/bin/sh\necho runs\n",
        "packages/own/index.js": None,
        "packages/own/folder": b"it was a file\n",
        "never/there.txt": None,
    }
    before = tree_state(project)
    ran = await sh(project, "cat main.c packages/own/folder; ./run; ls packages/own; ls never", replaced=replaced)
    assert ran.stdout == "old\nit was a file\nruns\nfolder\n"
    assert tree_state(project) == before


def test_a_file_is_not_written_through_a_link_that_leads_out(tmp_path: Path) -> None:
    copy, outside = tmp_path / "copy", tmp_path / "outside"
    (outside / "deep").mkdir(parents=True)
    (outside / "deep" / "file").write_text("kept\n")
    copy.mkdir()
    (copy / "link").symlink_to(outside)
    write_replaced(copy, {"link/deep/file": None})
    assert (outside / "deep" / "file").read_text() == "kept\n"
    write_replaced(copy, {"link/deep/file": b"written\n"})
    assert (copy / "link" / "deep" / "file").read_bytes() == b"written\n"
    assert (outside / "deep" / "file").read_text() == "kept\n"
    for path in ("../outside/file", "", "a/../../b"):
        with pytest.raises(ValueError, match="not a path in the project"):
            write_replaced(copy, {path: b"x"})


async def test_the_copy_is_gone_however_the_command_ends(project: Path, scratch: Path) -> None:
    assert (await sh(project, "chmod 500 packages; exit 3")).exit == 3
    assert (await sh(project, "sleep 60", time_ms=200)).stopped == "time"
    running = asyncio.ensure_future(sh(project, "sleep 60"))
    async with asyncio.timeout(WAIT_S):
        while not list(scratch.glob(f"{project_copy.PREFIX}*/shop/main.c")):
            await asyncio.sleep(0.01)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert list(scratch.iterdir()) == []


async def test_the_copy_of_a_process_that_was_killed_is_removed_by_the_next_one(project: Path, scratch: Path) -> None:
    code = f"""
import asyncio, pathlib, tempfile
from handrail.engine.sandbox import Job
from handrail.tools.sandbox.unconfined import Unconfined
tempfile.tempdir = {str(scratch)!r}
job = Job(argv=("sh", "-c", "echo > ready; exec sleep 5"), apart=True)
asyncio.run(Unconfined(pathlib.Path({str(project)!r})).run(job))
"""
    with subprocess.Popen([sys.executable, "-c", code]) as process:
        async with asyncio.timeout(WAIT_S):
            while not list(scratch.glob(f"{project_copy.PREFIX}*/shop/ready")):
                await asyncio.sleep(0.02)
        process.send_signal(signal.SIGKILL)
    assert list(scratch.glob(f"{project_copy.PREFIX}*"))
    assert (await sh(project, "true")).exit == 0
    assert not list(scratch.glob(f"{project_copy.PREFIX}*"))


async def test_a_project_that_is_too_large_to_copy_is_refused(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(project_copy, "FILES_MAX", 3)
    with Fails(Category.PERMISSION, "too much to copy"):
        await sh(project, "true")
