"""The guard of the file tools: whatever a path looks like and whatever links lie about, nothing outside is touched."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.domain.definition.model import Category
from handrail.engine.tool import ToolFailed
from handrail.foundation import rooted as foundation
from handrail.foundation.rooted import HAS_HANDLES, EntryKind
from handrail.interfaces.clients.client import CLIENTS
from handrail.tools.files.rooted import Root, path_parts
from tools.calls import Fails, call_of, registry

HOSTILE = [
    "",
    ".",
    "./.",
    "/etc/passwd",
    "//server/share",
    "..",
    "../outside.txt",
    "folder/../../outside.txt",
    "folder/..",
    "./../outside.txt",
    "C:\\Windows\\win.ini",
    "C:/Windows/win.ini",
    "c:relative.txt",
    "\\\\server\\share\\x",
    "folder\\..\\..\\outside.txt",
    "..\\outside.txt",
    "nul\x00byte.txt",
    "line\nend.txt",
    "lone\ud800surrogate",
    "x" * 2_000,
    "é" * 200,
]
LINKS = ["link.txt", "link-folder/secret.txt", "folder/up/secret.txt", "dangling.txt", "link-folder"]
posix_only = pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there, pipes don't exist")


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Path]:
    outside, project = tmp_path / "outside", tmp_path / "project"
    outside.mkdir()
    (outside / "secret.txt").write_text("secret")
    (project / "folder").mkdir(parents=True)
    if sys.platform != "win32":
        (project / "link.txt").symlink_to(outside / "secret.txt")
        (project / "link-folder").symlink_to(outside)
        (project / "folder" / "up").symlink_to("../../outside")
        (project / "dangling.txt").symlink_to(outside / "made-by-handrail.txt")
        os.mkfifo(project / "pipe")
    yield project
    assert [path.name for path in outside.iterdir()] == ["secret.txt"]
    assert (outside / "secret.txt").read_text() == "secret"


def calls_at(path: str) -> Iterator[tuple[str, dict[str, str]]]:
    yield "file.read", {"path": path}
    yield "file.write", {"path": path, "text": "mine"}
    yield "file.append", {"path": path, "text": "mine"}
    yield "file.delete", {"path": path}
    yield "file.mkdir", {"path": path}
    yield "file.move", {"source": path, "target": "fresh"}
    yield "file.move", {"source": "folder", "target": path}


@pytest.mark.parametrize("path", HOSTILE)
def test_a_path_that_leads_out_is_refused_before_the_disk_is_asked(path: str) -> None:
    with Fails(Category.INVALID_INPUT):
        path_parts(path)


@pytest.mark.parametrize("path", HOSTILE)
async def test_no_tool_takes_a_hostile_path(path: str, project: Path) -> None:
    tools = registry(project.parent)
    before = sorted(project.rglob("*"))
    for name, args in calls_at(path):
        with Fails(Category.INVALID_INPUT):
            await tools.find(name).call(call_of(name, args))
    assert sorted(project.rglob("*")) == before


@posix_only
@pytest.mark.parametrize("by_handle", [True, False])
@pytest.mark.parametrize("path", LINKS)
async def test_no_tool_follows_a_link(
    path: str, by_handle: bool, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Root.__init__, "__kwdefaults__", {"private": (), "by_handle": by_handle})
    tools = registry(project.parent)
    before = sorted(project.rglob("*"))
    for name, args in calls_at(path):
        with pytest.raises(ToolFailed) as failed:
            await tools.find(name).call(call_of(name, args))
        assert failed.value.category in {Category.PERMISSION, Category.INVALID_INPUT, Category.CONFLICT}
    assert sorted(project.rglob("*")) == before


@posix_only
@pytest.mark.parametrize("name", ["file.read", "file.write", "file.append", "file.delete", "file.move"])
async def test_a_pipe_is_not_touched_and_nothing_waits_for_it(name: str, project: Path) -> None:
    args = {"source": "pipe", "target": "elsewhere"} if name == "file.move" else {"path": "pipe", "text": "x"}
    args = {key: args[key] for key in registry(project.parent).find(name).spec.args["properties"]}
    with Fails(Category.INVALID_INPUT):
        await registry(project.parent).find(name).call(call_of(name, args))


@pytest.mark.skipif(not HAS_HANDLES, reason="only folders with handles can be held")
def test_a_link_swapped_in_for_a_folder_on_the_way_leads_nowhere(project: Path) -> None:
    root = Root(project)
    with root.place("folder/new.txt", writing=True) as place:
        (project / "folder").rename(project / "elsewhere")
        (project / "folder").symlink_to(project.parent / "outside")
        place.write(b"mine", mode=None, part=".part", is_new=True)
    assert (project / "elsewhere" / "new.txt").read_bytes() == b"mine"
    with Fails(Category.PERMISSION, "links are not followed"), root.place("folder/new.txt", writing=True):
        pass


@posix_only
def test_a_link_swapped_in_for_a_file_while_it_is_opened_is_not_read(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "plain.txt").write_text("mine")
    opened = os.open

    def swapping(name: Any, *rest: Any, **named: Any) -> int:
        if str(name).endswith("plain.txt"):
            (project / "plain.txt").unlink()
            (project / "plain.txt").symlink_to(project.parent / "outside" / "secret.txt")
        return opened(name, *rest, **named)

    with Root(project).place("plain.txt", writing=False) as place:
        monkeypatch.setattr(os, "open", swapping)
        with pytest.raises(OSError, match="symbolic link"):
            place.read(bytes_max=100)
        monkeypatch.setattr(os, "open", opened)
    (project / "plain.txt").unlink()
    (project / "plain.txt").write_text("mine")
    # Where a system can't be told not to follow, the file that was opened is compared with the one that was seen.
    monkeypatch.setattr(foundation, "NO_FOLLOW", 0)
    with Root(project).place("plain.txt", writing=False) as place:
        monkeypatch.setattr(os, "open", swapping)
        with Fails(Category.CONFLICT, "was replaced"):
            place.read(bytes_max=100)


@pytest.mark.parametrize("path", [".handrail/config.toml", ".Handrail/config.toml", "./.HANDRAIL//x", ".handrail"])
async def test_handrails_own_folder_is_read_but_never_changed(path: str, project: Path) -> None:
    (project / ".handrail").mkdir()
    (project / ".handrail" / "config.toml").write_text("")
    tools = registry(project.parent)
    for name, args in calls_at(path):
        if name != "file.read":
            with Fails(Category.PERMISSION, "belongs to handrail"):
                await tools.find(name).call(call_of(name, args))
    read = call_of("file.read", {"path": ".handrail/config.toml"})
    assert await tools.find("file.read").call(read) == {"text": ""}


@pytest.mark.parametrize("by_handle", [HAS_HANDLES, False])
def test_a_private_folder_is_neither_read_nor_changed_nor_moved_with_its_parent(by_handle: bool, project: Path) -> None:
    home = project / "state" / "home"
    home.mkdir(parents=True)
    (home / "key").write_text("k")
    root = Root(project, private=[home], by_handle=by_handle)
    for writing in (True, False):
        for path in ("state/home/key", "state/home"):
            with Fails(Category.PERMISSION), root.place(path, writing=writing):
                pass
    with root.place("state", writing=True) as place, Fails(Category.PERMISSION):
        root.require_movable(place)
    with root.place("folder", writing=True) as place:
        root.require_movable(place)


@pytest.mark.skipif(sys.platform == "win32" or getattr(os, "geteuid", lambda: 1)() == 0, reason="root may enter all")
def test_a_folder_that_may_not_be_entered_keeps_the_systems_own_error(project: Path) -> None:
    (project / "locked" / "inner").mkdir(parents=True)
    (project / "locked").chmod(0o000)
    try:
        with pytest.raises(PermissionError), Root(project).place("locked/inner/x", writing=False) as place:
            place.status()
    finally:
        (project / "locked").chmod(0o700)


def test_without_handles_the_same_work_is_done(project: Path) -> None:
    root = Root(project, by_handle=False)
    with Fails(Category.NOT_FOUND, "file.mkdir"), root.place("missing/x", writing=False):
        pass
    with root.place("folder/new.txt", writing=True) as place, root.place("moved.txt", writing=True) as target:
        place.write(b"one", mode=None, part=".part", is_new=True)
        place.write(b"two", mode=0o600, part=".part", is_new=False)
        assert place.read(bytes_max=10) == b"two"
        place.move_to(target)
        assert (place.what(), target.what()) == (EntryKind.NOTHING, EntryKind.FILE)
        target.remove()
        target.make_folder()
        assert target.what() is EntryKind.FOLDER


@pytest.mark.parametrize("name", ["con", "NUL.txt", "a:b", "stream.txt:hidden", "dot.", "space ", "com1", "LPT9.log"])
def test_names_that_are_traps_on_windows_are_refused_there(name: str) -> None:
    with Fails(Category.INVALID_INPUT):
        path_parts(f"folder/{name}", windows=True)
    assert path_parts(f"folder/{name}", windows=False)[1] == name


@given(st.lists(st.sampled_from(["..", ".", "", "a", "b c", "…", "~", "...", ".a"]), min_size=1, max_size=6))
def test_whatever_is_accepted_stays_below_the_root(parts: list[str]) -> None:
    path = "/".join(parts)
    try:
        accepted = path_parts(path)
    except ToolFailed:
        assert path.startswith("/") or ".." in parts or not set(parts) - {"", "."}
    else:
        assert accepted == tuple(part for part in parts if part not in {"", "."})
        assert os.path.normpath(f"/project/{path}").startswith("/project/")


STARTING = [
    *(".git/hooks/pre-commit", ".git/config", ".git", "folder/.git/config", ".GIT/config", ".mcp.json", ".Mcp.JSON"),
    *("folder/.mcp.json", ".envrc", ".cursor/mcp.json", "folder/.vscode/mcp.json", ".codex/config.toml"),
    *(".gemini/settings.json", ".\uff47it/config", ".claude/settings.json", ".claude/settings.local.json"),
    *(".vscode/tasks.json", "folder/.vscode/settings.json", ".cursor/hooks.json", ".devcontainer/devcontainer.json"),
    *(".kiro/settings/mcp.json", "folder/.zed/tasks.json", ".roo/mcp.json", ".codex/hooks.json", ".vs/mcp.json"),
    *(file for client in CLIENTS.values() for file in client.project),
]


@pytest.mark.parametrize("path", STARTING)
async def test_what_other_programs_start_commands_from_is_read_but_never_changed(tmp_path: Path, path: str) -> None:
    tools, project = registry(tmp_path), tmp_path / "project"
    (project / path).parent.mkdir(parents=True, exist_ok=True)
    (project / path).write_text("as it was")
    (project / "other.txt").write_text("other")
    moves = ({"source": "other.txt", "target": path}, {"source": path, "target": "taken"})
    changes = [
        ("write", {"path": path, "text": "x"}),
        ("append", {"path": path, "text": "x"}),
        ("delete", {"path": path}),
    ]
    for name, args in [*changes, *(("move", move) for move in moves), ("mkdir", {"path": path})]:
        with Fails(Category.PERMISSION, "start commands"):
            await tools.find(f"file.{name}").call(call_of(f"file.{name}", args))
    assert (project / path).read_text() == "as it was"
    assert (project / "other.txt").read_text() == "other"


async def test_a_folder_is_not_given_a_name_that_makes_a_file_in_it_start_programs(tmp_path: Path) -> None:
    tools, project = registry(tmp_path), tmp_path / "project"
    (project / "plain").mkdir()
    (project / "plain" / "mcp.json").write_text("{}")
    with Fails(Category.PERMISSION, "start commands"):
        await tools.find("file.move").call(call_of("file.move", {"source": "plain", "target": ".vscode"}))
    await tools.find("file.mkdir").call(call_of("file.mkdir", {"path": ".vscode"}))
    with Fails(Category.PERMISSION, "start commands"):
        await tools.find("file.move").call(
            call_of("file.move", {"source": "plain/mcp.json", "target": ".vscode/mcp.json"})
        )
    await tools.find("file.write").call(call_of("file.write", {"path": ".vscode/extensions.json", "text": "{}"}))


@pytest.mark.parametrize("place", [".kiro/settings", "folder/.junie/mcp", ".Kiro/Settings"])
async def test_nor_the_folder_in_the_folder_that_they_read(tmp_path: Path, place: str) -> None:
    tools, project = registry(tmp_path), tmp_path / "project"
    (project / "plain").mkdir(parents=True)
    (project / "plain" / "mcp.json").write_text("{}")
    await tools.find("file.mkdir").call(call_of("file.mkdir", {"path": place.rpartition("/")[0]}))
    with Fails(Category.PERMISSION, "start commands"):
        await tools.find("file.move").call(call_of("file.move", {"source": "plain", "target": place}))
    assert not (project / place).exists()


@pytest.mark.parametrize("folder", [".vscode", ".kiro", ".kiro/settings", "folder/.Claude"])
async def test_a_folder_of_such_a_file_keeps_its_name_since_an_undo_would_give_it_back(
    tmp_path: Path, folder: str
) -> None:
    tools, project = registry(tmp_path), tmp_path / "project"
    (project / folder).mkdir(parents=True)
    with Fails(Category.PERMISSION, "start commands"):
        await tools.find("file.move").call(call_of("file.move", {"source": folder, "target": "plain"}))
    assert (project / folder).is_dir()


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("write", {"path": "below/.handrail/workflows/ship.yaml", "text": "x"}),
        ("write", {"path": "below/.Handrail/config.toml", "text": "x"}),
        ("append", {"path": "below/.handrail/config.toml", "text": "x"}),
        ("delete", {"path": "below/.handrail/config.toml"}),
        ("mkdir", {"path": "other/.handrail"}),
        ("move", {"source": "below/.handrail", "target": "plain"}),
        ("move", {"source": "other", "target": "below/deep/.handrail"}),
    ],
)
async def test_what_a_folder_below_says_to_handrail_is_not_changed_either(
    tmp_path: Path, name: str, args: dict[str, str]
) -> None:
    tools, project = registry(tmp_path), tmp_path / "project"
    for folder in ("below/.handrail/workflows", "below/deep", "other"):
        (project / folder).mkdir(parents=True)
    (project / "below/.handrail/config.toml").write_text("as it was")
    with Fails(Category.PERMISSION, "belongs to handrail itself"):
        await tools.find(f"file.{name}").call(call_of(f"file.{name}", args))
    assert (project / "below/.handrail/config.toml").read_text() == "as it was"


@pytest.mark.parametrize("private", [".", "..", "../.."])
async def test_a_project_inside_a_private_folder_has_no_place_for_a_plan(private: str, project: Path) -> None:
    root = Root(project / "folder", private=[project / "folder" / private])
    for writing in (False, True):
        with Fails(Category.PERMISSION, "belongs to handrail itself"), root.place("config.toml", writing=writing):
            pass
