"""The file tools: what they do, that repeating does it once, and that undo brings back exactly what was there."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import stat
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handrail.domain.definition.model import Category
from handrail.domain.secrets.redaction import redact_body
from handrail.engine.tool import PlanTool
from handrail.tools.files import file as file_family
from handrail.tools.files.content_store import ContentStore
from handrail.tools.files.file_content import part_name
from handrail.tools.files.rooted import Root
from handrail.tools.registry import Registry
from tools.calls import Fails, call_of, captured, registry

CALLS: Mapping[str, Mapping[str, Any]] = {
    "write": {"path": "there.txt", "text": "new"},
    "write-new": {"path": "new.txt", "text": "new"},
    "append": {"path": "there.txt", "text": " and more"},
    "append-new": {"path": "new.txt", "text": "first"},
    "move": {"source": "there.txt", "target": "folder/moved.txt"},
    "move-folder": {"source": "folder", "target": "renamed"},
    "delete": {"path": "there.txt"},
    "delete-folder": {"path": "empty"},
    "mkdir": {"path": "one/two/three"},
    "mkdir-there": {"path": "folder"},
}
posix_only = pytest.mark.skipif(sys.platform == "win32", reason="modes and pipes are POSIX's")


@pytest.fixture
def tools(tmp_path: Path) -> Registry:
    made = registry(tmp_path)
    project = tmp_path / "project"
    (project / "there.txt").write_bytes(b"old\r\ncontent \xff")
    (project / "folder").mkdir()
    (project / "folder" / "inside.txt").write_text("inside")
    (project / "empty").mkdir()
    return made


def tool_of(tools: Registry, case: str) -> PlanTool:
    return tools.find(f"file.{case.partition('-')[0]}")


def world(project: Path) -> dict[str, Any]:
    """Everything in the project: names, contents, modes."""
    found = {}
    for path in sorted(project.rglob("*")):
        content = path.read_bytes() if path.is_file() else None
        found[path.relative_to(project).as_posix()] = (content, stat.S_IMODE(path.lstat().st_mode))
    return found


@pytest.mark.parametrize("case", CALLS)
async def test_a_call_repeated_after_a_crash_has_its_effect_once(tools: Registry, case: str, tmp_path: Path) -> None:
    tool, project = tool_of(tools, case), tmp_path / "project"
    call = await captured(tool, CALLS[case])
    first = await tool.call(call)
    after = world(project)
    assert await tool.call(call) == first
    assert world(project) == after


@pytest.mark.parametrize("case", CALLS)
@pytest.mark.parametrize("times", [1, 2])
async def test_undo_brings_back_what_was_there(tools: Registry, case: str, times: int, tmp_path: Path) -> None:
    tool, project = tool_of(tools, case), tmp_path / "project"
    (project / "there.txt").chmod(0o640)
    (project / "empty").chmod(0o750)
    before = world(project)
    call = await captured(tool, CALLS[case])
    await tool.call(call)
    assert case == "mkdir-there" or world(project) != before
    for _ in range(times):
        await tool.undo(call)
        assert world(project) == before
    await tool.call(call)  # and it can be done again


@pytest.mark.parametrize("case", CALLS)
async def test_undo_of_a_call_that_never_happened_changes_nothing(tools: Registry, case: str, tmp_path: Path) -> None:
    tool = tool_of(tools, case)
    before = world(tmp_path / "project")
    await tool.undo(await captured(tool, CALLS[case]))
    assert world(tmp_path / "project") == before


@pytest.mark.parametrize("case", ["write", "write-new", "append", "append-new"])
async def test_a_third_partys_work_is_never_overwritten(tools: Registry, case: str, tmp_path: Path) -> None:
    tool, file = tool_of(tools, case), tmp_path / "project" / CALLS[case]["path"]
    call = await captured(tool, CALLS[case])
    file.write_text("somebody else's")
    with Fails(Category.CONFLICT, "something else"):
        await tool.call(call)
    with Fails(Category.CONFLICT, "something else"):
        await tool.undo(call)
    assert file.read_text() == "somebody else's"


async def test_a_deleted_file_that_something_else_made_again_stays(tools: Registry, tmp_path: Path) -> None:
    tool, file = tools.find("file.delete"), tmp_path / "project" / "there.txt"
    call = await captured(tool, CALLS["delete"])
    await tool.call(call)
    file.write_text("somebody else's")
    with Fails(Category.CONFLICT):
        await tool.undo(call)
    with Fails(Category.CONFLICT):
        await tool.call(call)
    assert file.read_text() == "somebody else's"


async def test_a_move_never_replaces_what_is_at_its_target(tools: Registry, tmp_path: Path) -> None:
    tool, project = tools.find("file.move"), tmp_path / "project"
    before = world(project)
    call = await captured(tool, {"source": "there.txt", "target": "folder/inside.txt"})
    with Fails(Category.CONFLICT, "already exists"):
        await tool.call(call)
    await tool.undo(call)
    assert world(project) == before


async def test_a_target_that_appears_after_the_capture_is_left_alone(tools: Registry, tmp_path: Path) -> None:
    tool, project = tools.find("file.move"), tmp_path / "project"
    call = await captured(tool, CALLS["move"])
    (project / "folder" / "moved.txt").write_text("somebody else's")
    for deed in (tool.call, tool.undo):
        with Fails(Category.CONFLICT):
            await deed(call)
    assert (project / "folder" / "moved.txt").read_text() == "somebody else's"


@posix_only
async def test_a_move_that_was_cut_off_between_its_two_names_is_finished(tools: Registry, tmp_path: Path) -> None:
    tool, project = tools.find("file.move"), tmp_path / "project"
    call = await captured(tool, CALLS["move"])
    os.link(project / "there.txt", project / "folder" / "moved.txt")
    await tool.call(call)
    assert not (project / "there.txt").exists()
    os.link(project / "folder" / "moved.txt", project / "there.txt")
    await tool.undo(call)
    assert (project / "there.txt").exists()
    assert not (project / "folder" / "moved.txt").exists()


@posix_only
@pytest.mark.parametrize("refusal", [1, 95])
async def test_where_links_are_impossible_files_are_renamed(
    tools: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refusal: int
) -> None:
    def no_links(*_: Any, **__: Any) -> None:
        raise OSError(refusal, "no links here")

    monkeypatch.setattr(os, "link", no_links)
    await test_undo_brings_back_what_was_there(tools, "move", 2, tmp_path)
    await tools.find("file.write").call(call_of("file.write", CALLS["write-new"]))
    assert (tmp_path / "project" / "new.txt").read_text() == "new"


async def test_a_folder_that_was_filled_since_is_not_removed(tools: Registry, tmp_path: Path) -> None:
    tool, project = tools.find("file.mkdir"), tmp_path / "project"
    call = await captured(tool, CALLS["mkdir"])
    await tool.call(call)
    (project / "one/two/three/somebody").write_text("else")
    with Fails(Category.CONFLICT, "not empty"):
        await tool.undo(call)
    assert (project / "one/two/three/somebody").exists()


async def test_a_folder_that_became_a_file_is_not_removed(tools: Registry, tmp_path: Path) -> None:
    tool = tools.find("file.mkdir")
    call = await captured(tool, {"path": "one"})
    (tmp_path / "project" / "one").write_text("somebody else's")
    for deed in (tool.call, tool.undo):
        with Fails(Category.CONFLICT, "is not a folder"):
            await deed(call)
    assert (tmp_path / "project" / "one").read_text() == "somebody else's"


async def test_folders_that_two_steps_made_together_go_with_the_last_of_them(tools: Registry, tmp_path: Path) -> None:
    tool = tools.find("file.mkdir")
    calls = [await captured(tool, {"path": f"one/{name}"}, step=name) for name in ("a", "b")]
    await asyncio.gather(*(tool.call(call) for call in calls))
    await tool.undo(calls[0])
    assert [path.name for path in (tmp_path / "project" / "one").iterdir()] == ["b"]
    await tool.undo(calls[1])
    assert not (tmp_path / "project" / "one").exists()


async def test_undo_is_content_when_the_whole_folder_is_gone(tools: Registry, tmp_path: Path) -> None:
    write, mkdir = tools.find("file.write"), tools.find("file.mkdir")
    inner = await captured(write, {"path": "folder/new.txt", "text": "new"})
    deep = await captured(mkdir, {"path": "folder/deep/deeper"})
    await write.call(inner)
    shutil.rmtree(tmp_path / "project" / "folder")
    await write.undo(inner)
    await mkdir.undo(deep)


@pytest.mark.parametrize(
    ("tool", "args", "category"),
    [
        ("file.read", {"path": "missing.txt"}, Category.NOT_FOUND),
        ("file.read", {"path": "folder"}, Category.INVALID_INPUT),
        ("file.read", {"path": "there.txt"}, Category.INVALID_INPUT),  # not UTF-8
        ("file.read", {"path": "there.txt/inside"}, Category.PERMISSION),
        ("file.write", {"path": "missing/new.txt", "text": ""}, Category.NOT_FOUND),
        ("file.write", {"path": "folder", "text": ""}, Category.INVALID_INPUT),
        ("file.delete", {"path": "missing.txt"}, Category.NOT_FOUND),
        ("file.delete", {"path": "folder"}, Category.CONFLICT),  # not empty
        ("file.move", {"source": "missing.txt", "target": "new.txt"}, Category.NOT_FOUND),
        ("file.move", {"source": "folder", "target": "folder/inside"}, Category.INVALID_INPUT),
        ("file.mkdir", {"path": "there.txt"}, Category.CONFLICT),
        ("file.mkdir", {"path": "there.txt/deeper"}, Category.CONFLICT),
        ("file.write", {"path": "new.txt", "text": "é" * 500_001}, Category.INVALID_INPUT),
        ("file.write", {"path": "new.txt"}, Category.INVALID_INPUT),
        ("file.write", {"path": "new.txt", "text": "", "mode": 1}, Category.INVALID_INPUT),
        ("file.write", {"path": "x" * 300, "text": ""}, Category.INVALID_INPUT),
    ],
)
async def test_what_can_not_be_done_is_reported_in_its_category(
    tools: Registry, tool: str, args: Mapping[str, Any], category: Category, tmp_path: Path
) -> None:
    before = world(tmp_path / "project")
    with Fails(category):
        await tools.find(tool).call(call_of(tool, args))
    assert world(tmp_path / "project") == before


async def test_the_outputs_are_those_of_the_surface(tools: Registry, tmp_path: Path) -> None:
    async def output(tool: str, **args: Any) -> Any:
        return await tools.find(tool).call(call_of(tool, args))

    assert await output("file.write", path="a.txt", text="é\r\n") == {"path": "a.txt", "bytes": 4}
    assert await output("file.append", path="a.txt", text="b") == {"path": "a.txt", "bytes": 1}
    assert await output("file.read", path="a.txt") == {"text": "é\r\nb"}
    assert await output("file.mkdir", path="f/g") == {"path": "f/g"}
    assert await output("file.move", source="a.txt", target="f/g/b.txt") == {"target": "f/g/b.txt"}
    assert await output("file.delete", path="f/g/b.txt") == {"path": "f/g/b.txt"}
    assert (tmp_path / "project" / "f" / "g").is_dir()


async def test_a_file_larger_than_the_limit_is_not_read(tools: Registry, tmp_path: Path) -> None:
    (tmp_path / "project" / "large.txt").write_bytes(b"x" * 1_000_000)
    large = call_of("file.read", {"path": "large.txt"})
    assert len((await tools.find("file.read").call(large))["text"]) == 1_000_000
    (tmp_path / "project" / "large.txt").write_bytes(b"x" * 1_000_001)
    with Fails(Category.INVALID_INPUT, "larger than"):
        await tools.find("file.read").call(large)


@posix_only
async def test_a_written_file_keeps_its_mode_and_leaves_no_parts(tools: Registry, tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "there.txt").chmod(0o751)
    call = await captured(tools.find("file.write"), CALLS["write"])
    await tools.find("file.write").call(call)
    assert stat.S_IMODE((project / "there.txt").stat().st_mode) == 0o751
    assert not list(project.glob(".handrail-*"))


async def test_a_part_that_a_crash_left_behind_is_cleared_away(tools: Registry, tmp_path: Path) -> None:
    tool, project = tools.find("file.write"), tmp_path / "project"
    call = await captured(tool, CALLS["write"])
    (project / part_name(call)).write_text("half of i")
    await tool.call(call)
    assert (project / "there.txt").read_text() == "new"
    (project / part_name(call)).write_text("half of i")
    await tool.undo(call)
    assert not list(project.glob(".handrail-*"))


async def test_captures_are_small_and_survive_redaction_and_hold_no_contents(tools: Registry, tmp_path: Path) -> None:
    secret = b"password=hunter2hunter2 " * 1_000
    (tmp_path / "project" / "there.txt").write_bytes(secret)
    for case in ("write", "delete", "append", "move", "mkdir"):
        call = await captured(tool_of(tools, case), CALLS[case])
        body = msgspec.json.encode({"capture": call.capture})
        assert len(body) < 600
        assert b"hunter2" not in body
        assert redact_body(body) == body


@posix_only
async def test_what_is_kept_is_for_the_owner_only_and_goes_with_the_run(tools: Registry, tmp_path: Path) -> None:
    kept = tmp_path / "home" / "kept"
    call = await captured(tools.find("file.delete"), CALLS["delete"])
    (file,) = [path for path in kept.rglob("*") if path.is_file()]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [stat.S_IMODE(folder.stat().st_mode) for folder in (file.parent, kept)] == [0o700, 0o700]
    assert file.parent.name == call.run
    await tools.forget(call.run)
    await tools.forget(call.run)
    assert list(kept.iterdir()) == []


async def test_an_undo_without_what_was_kept_says_so(tools: Registry, tmp_path: Path) -> None:
    tool = tools.find("file.delete")
    call = await captured(tool, CALLS["delete"])
    await tool.call(call)
    (file,) = [path for path in (tmp_path / "home" / "kept").rglob("*") if path.is_file()]
    file.write_bytes(b"forged")
    with Fails(Category.CONFLICT, "was changed"):
        await tool.undo(call)
    file.unlink()
    with Fails(Category.NOT_FOUND, "is missing"):
        await tool.undo(call)
    stray = {**call.capture, "kept": "../../../etc/passwd"}
    with Fails(Category.NOT_FOUND, "is missing"):
        await tool.undo(msgspec.structs.replace(call, capture=stray))


async def test_an_undo_without_a_valid_capture_touches_nothing(tools: Registry, tmp_path: Path) -> None:
    before = world(tmp_path / "project")
    for case in ("write", "move", "mkdir"):
        for capture in (None, {"path": 1}):
            with Fails(Category.INTERNAL, "capture"):
                await tool_of(tools, case).undo(call_of(f"file.{case}", CALLS[case], capture=capture))
    assert world(tmp_path / "project") == before


async def test_a_call_with_other_arguments_than_its_capture_is_refused(tools: Registry) -> None:
    call = await captured(tools.find("file.write"), CALLS["write"])
    other = msgspec.structs.replace(call, args={"path": "there.txt", "text": "[redacted]"})
    with Fails(Category.INVALID_INPUT, "do not match the capture"):
        await tools.find("file.write").call(other)


async def test_an_undo_whose_prefix_is_not_what_it_was_restores_nothing(tools: Registry) -> None:
    tool = tools.find("file.append")
    call = await captured(tool, CALLS["append"])
    await tool.call(call)
    forged = {**call.capture, "sha256": "0" * 64}
    with Fails(Category.NOT_FOUND, "was not kept"):
        await tool.undo(msgspec.structs.replace(call, capture=forged))


async def test_a_cancelled_call_is_over_before_its_caller_goes_on(
    tools: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else an undo could find nothing to undo, and the write come after it."""
    started, release = asyncio.Event(), asyncio.Event()
    told: Callable[..., Any] = file_family._translated
    loop = asyncio.get_running_loop()

    def slow(work: Any, call: Any) -> Any:
        loop.call_soon_threadsafe(started.set)
        asyncio.run_coroutine_threadsafe(release.wait(), loop).result()
        return told(work, call)

    tool = tools.find("file.write")
    call = await captured(tool, CALLS["write"])
    monkeypatch.setattr(file_family, "_translated", slow)
    task = asyncio.ensure_future(tool.call(call))
    await started.wait()
    task.cancel()
    await asyncio.sleep(0)
    assert not task.done()
    release.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (tmp_path / "project" / "there.txt").read_text() == "new"


@posix_only
async def test_the_systems_own_refusals_have_their_categories(tools: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    call = await captured(tools.find("file.write"), CALLS["write"])
    for number, category in {28: Category.TRANSIENT, 13: Category.PERMISSION, 22: Category.INVALID_INPUT}.items():
        monkeypatch.setattr(os, "fsync", lambda _, number=number: (_ for _ in ()).throw(OSError(number, "no")))
        with Fails(category):
            await tools.find("file.write").call(call)


def test_a_file_is_never_moved_onto_another_not_even_in_a_race(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).write_text(name)
    root = Root(tmp_path)
    with root.place("one", writing=True) as one, root.place("two", writing=True) as two, pytest.raises(FileExistsError):
        one.move_to(two)
    assert [(tmp_path / name).read_text() for name in ("one", "two")] == ["one", "two"]


def test_a_name_that_is_not_ours_is_not_looked_for_among_the_kept(tmp_path: Path) -> None:
    kept = ContentStore(tmp_path / "kept")
    name = kept.put("run_a", "step", b"content")
    sha256 = hashlib.sha256(b"content").hexdigest()
    assert kept.get("run_a", name, sha256=sha256) == b"content"
    assert kept.put("run_a", "step", b"content") == name
    for stray in (f"../run_a/{name}", f"{name}.part", f"./{name}"):
        with Fails(Category.NOT_FOUND):
            kept.get("run_a", stray, sha256=sha256)
    kept.put("../..", "step", b"content")
    kept.forget("../..")
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["run_a"]


@posix_only
async def test_a_file_that_something_else_makes_at_the_last_moment_is_not_replaced(
    tools: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool, project = tools.find("file.write"), tmp_path / "project"
    call = await captured(tool, CALLS["write-new"])
    synced = os.fsync

    def meanwhile(file: int) -> None:
        (project / "new.txt").write_text("somebody else's")
        synced(file)

    monkeypatch.setattr(os, "fsync", meanwhile)
    with Fails(Category.CONFLICT):
        await tool.call(call)
    assert (project / "new.txt").read_text() == "somebody else's"
    assert not list(project.glob(".handrail-*"))


@settings(deadline=None, max_examples=30)
@given(before=st.none() | st.binary(max_size=40), text=st.text(max_size=20), crash=st.booleans())
def test_any_content_written_or_appended_comes_back(
    before: bytes | None, text: str, crash: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("any")
    tools, file = registry(folder), folder / "project" / "f"
    if before is not None:
        file.write_bytes(before)

    async def there_and_back(name: str) -> None:
        tool = tools.find(name)
        call = await captured(tool, {"path": "f", "text": text})
        await tool.call(call)
        if crash:
            await tool.call(call)
        wanted = text.encode() if name == "file.write" else (before or b"") + text.encode()
        assert file.read_bytes() == wanted
        await tool.undo(call)
        assert (file.read_bytes() if file.exists() else None) == before

    for name in ("file.write", "file.append"):
        asyncio.run(there_and_back(name))
