"""Views of a project that are thrown away: commands work in them as usual, by every way, and leave nothing behind."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from handrail.domain.definition.model import Category
from handrail.engine.sandbox import Bounds, Job, Ran
from outside.debian import bubblewrap
from rules.on_project import committed
from tools.calls import Fails
from tools.sandbox.tree_state import tree_state
from tools.test_bubblewrap import named, until

if not sys.platform.startswith("linux"):
    pytest.skip("the sandbox was not tried: it needs Linux", allow_module_level=True)

from handrail.tools.sandbox import bubblewrap as sandboxes
from handrail.tools.sandbox import bubblewrap_view, overlay, project_copy, shown_sockets, throw_away, wanted_files
from handrail.tools.sandbox.bubblewrap import Bubblewrap
from handrail.tools.sandbox.overlay import NoOverlay, mounted_in, overlays_of
from handrail.tools.sandbox.throw_away import ViewKind, way_here

PYTHON = str(Path(sys.executable).resolve())
CONNECT = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])"
FILES = {
    "Makefile": "all:\n\ttrue\n",
    "src/main.c": "int main(void) { return 0; }\n",
    ".handrail/config.toml": "",
    ".venv/bin/tool": "#!/bin/sh\necho tool\n",
    "node_modules/left/index.js": "",
    ".mcp.json": "{}",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    project = committed(tmp_path / "project", FILES)
    (project / ".venv/bin/tool").chmod(0o755)
    (project / "link").symlink_to("src")
    return project


@pytest.fixture(params=[*ViewKind, "user"])
def sandbox(request: pytest.FixtureRequest, project: Path, monkeypatch: pytest.MonkeyPatch) -> Bubblewrap:
    """By every way; also with overlays that the superuser makes as any other user would."""
    if request.param == "user":
        monkeypatch.setattr(sandboxes, "overlays_of", lambda *a, **k: overlays_of(*a, **k, as_user=True))
    way = ViewKind.MEMORY if request.param == "user" else request.param
    return sandbox_of(project, way)


def sandbox_of(project: Path, way: ViewKind | None, **more: Any) -> Bubblewrap:
    read = [Path(sys.base_prefix), *more.pop("read", ())]
    return Bubblewrap(project, program=str(bubblewrap()), read=read, way=way, **more)


async def sh(sandbox: Bubblewrap, code: str, *, wanted: tuple[str, ...] = (), **bounds: Any) -> Ran:
    return await sandbox.run(Job(argv=("sh", "-c", code), bounds=Bounds(**bounds), wanted=wanted))


@contextmanager
def listening(place: Path) -> Iterator[socket.socket]:
    """Somebody who answers at a socket that everybody may use."""
    with socket.socket(socket.AF_UNIX) as door:
        handle = os.open(place.parent, os.O_RDONLY)
        door.bind(f"/proc/self/fd/{handle}/{place.name}")
        os.close(handle)
        place.chmod(0o777)
        door.listen()
        yield door


async def test_a_command_changes_its_view_and_not_the_project(sandbox: Bubblewrap, project: Path) -> None:
    before = tree_state(project)
    code = """
set -e
echo changed >> Makefile; mkdir -p build/deep; echo made > build/deep/out; rm src/main.c; mv .mcp.json moved.json
rm -rf .venv; mkdir .venv; echo x > .venv/new; chmod 700 Makefile; ln -sf Makefile link
echo evil > .git/hooks/pre-commit; echo x > .handrail/config.toml; rm -rf node_modules
cat build/deep/out; ls -A .venv; tail -1 Makefile
"""
    ran = await sh(sandbox, code)
    assert (ran.exit, ran.stdout) == (0, "made\nnew\nchanged\n"), ran.stderr
    assert tree_state(project) == before


async def test_honest_work_sees_the_whole_project(sandbox: Bubblewrap, project: Path) -> None:
    (project / "src" / "main.c").write_text("int other;\n")
    code = ".venv/bin/tool; ls node_modules; git status --short src; git add -A; git stash -q 2>&1; readlink link"
    job = Job(argv=("sh", "-c", code), env={"GIT_CONFIG_GLOBAL": "/dev/null", "EMAIL": "a@example.com"})
    before = tree_state(project)
    ran = await sandbox.run(job)
    assert ran.stdout.splitlines()[:3] == ["tool", "left", " M src/main.c"], ran
    assert tree_state(project) == before


async def test_what_one_command_writes_the_next_does_not_see(sandbox: Bubblewrap) -> None:
    assert (await sh(sandbox, "echo 1 > mine; echo 1 > /tmp/mine; echo 1 > /dev/shm/mine")).exit == 0
    assert (await sh(sandbox, "ls mine /tmp/mine /dev/shm/mine")).stdout == ""


async def test_sockets_in_the_project_are_out_of_reach(sandbox: Bubblewrap, project: Path) -> None:
    with listening(project / "door") as door:
        for job in (
            Job(argv=(PYTHON, "-I", "-S", "-c", CONNECT, "door")),
            Job(argv=(PYTHON, "-I", "-S", "-c", CONNECT, "door"), writable=False),
        ):
            ran = await sandbox.run(job)
            assert "ConnectionRefusedError" in ran.stderr or "FileNotFoundError" in ran.stderr
        door.setblocking(False)
        with pytest.raises(BlockingIOError):
            door.accept()
        # The same from a command whose changes are kept gets through: the socket does answer.
        kept = await sandbox.run(Job(argv=(PYTHON, "-I", "-S", "-c", CONNECT, "door"), kept=True))
        assert (kept.exit, kept.stderr) == (0, "")


@pytest.fixture(params=[*ViewKind, "no overlay of what is only read"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ViewKind:
    """Every way, and the first one where folders outside of the project can have no overlay."""
    if request.param in list(ViewKind):
        return request.param  # type: ignore[no-any-return]
    monkeypatch.setattr(sandboxes, "START", overlay.START.replace("lowerdir=%s:%s%s", "none=%s:%s%s"))
    return ViewKind.MEMORY


@pytest.fixture
def opt(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of the system, as /opt is, where only the superuser may write; not in /tmp, which no command sees."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        for module in (overlay, sandboxes):
            monkeypatch.setattr(module, "LISTENING", Path(folder))
        monkeypatch.setattr(bubblewrap_view, "SYSTEM", (*bubblewrap_view.SYSTEM, folder))
        yield Path(folder)


async def test_sockets_elsewhere_are_out_of_reach(way: ViewKind, project: Path, tmp_path: Path, opt: Path) -> None:
    for folder in (tmp_path / "shelf", opt / "inner"):
        folder.mkdir()
        (folder / "book").write_text(folder.name)
    sandbox = sandbox_of(project, way, read=[tmp_path / "shelf"])
    doors = [tmp_path / "shelf" / "door", tmp_path / "door", opt / "inner" / "door"]
    with listening(doors[0]), listening(doors[1]), listening(doors[2]):
        for door in doors:
            job = Job(argv=(PYTHON, "-I", "-S", "-c", CONNECT, str(door)))
            ran = await sandbox.run(job)
            assert "ConnectionRefusedError" in ran.stderr or "FileNotFoundError" in ran.stderr, door
        assert (await sandbox.run(replace(job, kept=True))).exit == 0, "nobody listens"
    ran = await sh(sandbox, f"cat {tmp_path}/shelf/book {opt}/inner/book; echo x > {tmp_path}/shelf/book")
    assert ran.stdout == "shelfinner"
    assert "Read-only file system" in ran.stderr


async def test_folders_with_too_much_to_look_for_sockets_are_refused(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shown_sockets, "ENTRIES_MAX", 3)
    with Fails(Category.PERMISSION, "too many to look for sockets"):
        await sh(sandbox_of(project, ViewKind.COPY), "true")


async def test_private_folders_in_the_project_stay_hidden(project: Path) -> None:
    (project / "state" / "home").mkdir(parents=True)
    (project / "state" / "home" / "key").write_text("secret")
    for way in ViewKind:
        sandbox = sandbox_of(project, way, private=[project / "state" / "home"])
        ran = await sh(sandbox, "ls state/home; mv state other; ls other/home; echo x > state/home/key")
        assert "key" not in ran.stdout, way
        assert (project / "state" / "home" / "key").read_text() == "secret"


async def test_files_that_are_wanted_are_read_before_the_view_is_dropped(sandbox: Bubblewrap, project: Path) -> None:
    (project / "old").write_text("as it was")
    code = (
        "mkdir out; echo report > out/report; ln -s /etc/passwd out/link; ln -s / out/up; mkfifo out/pipe; date > new"
    )
    names = ("out/report", "old", "out/link", "out/up/etc/passwd", "out/pipe", "out", "../outside", "none", ".")
    ran = await sh(sandbox, code, wanted=names)
    assert ran.files == {"out/report": b"report\n", "old": b"as it was"}
    assert ran.written_ns["old"] == (project / "old").stat().st_mtime_ns
    assert not (project / "out").exists()


async def test_a_file_that_is_too_large_is_not_read(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wanted_files, "WANTED_BYTES_MAX", 10)
    ran = await sh(sandbox_of(project, ViewKind.MEMORY), "echo 123456789 > a; echo 1234567890 > b", wanted=("a", "b"))
    assert list(ran.files) == ["a"]


async def test_what_it_writes_is_bounded_all_together(project: Path) -> None:
    code = "for place in . /tmp /dev/shm; do head -c 30000000 /dev/zero > $place/big; done"
    ran = await sh(sandbox_of(project, ViewKind.MEMORY), code, memory_bytes=50_000_000)
    assert "No space left" in ran.stderr


@pytest.mark.parametrize("way", [ViewKind.DISK, ViewKind.COPY])
async def test_no_folder_is_left_whatever_is_in_it(way: ViewKind, project: Path, scratch: Path) -> None:
    deep = "import os\nfor _ in range(1500): os.mkdir('d' * 50); os.chdir('d' * 50)"
    sandbox = sandbox_of(project, way)
    ran = await sandbox.run(Job(argv=(PYTHON, "-I", "-S", "-c", deep)))
    assert ran.exit == 0, ran.stderr
    await sh(sandbox, "mkdir -p shut/inner; touch shut/inner/file; chmod 0 shut/inner shut")
    assert list(scratch.iterdir()) == []


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary folders are made."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    return tmp_path / "temporary"


async def test_what_a_killed_process_left_is_removed_by_the_next(project: Path, scratch: Path) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    (scratch / f"{project_copy.PREFIX}{ended.pid}-x" / "project").mkdir(parents=True)
    ours = scratch / f"{project_copy.PREFIX}{os.getpid()}-x"
    ours.mkdir()
    await sh(sandbox_of(project, ViewKind.COPY), "true")
    assert list(scratch.iterdir()) == [ours]


@pytest.mark.parametrize("way", [ViewKind.DISK, ViewKind.COPY])
async def test_a_cancelled_command_leaves_no_folder(way: ViewKind, project: Path, scratch: Path) -> None:
    running = asyncio.create_task(sh(sandbox_of(project, way), "sleep 60"))
    async with asyncio.timeout(10):
        while not list(scratch.iterdir()):
            await asyncio.sleep(0.01)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert list(scratch.iterdir()) == []


async def test_a_command_that_is_cancelled_before_it_has_its_folder_leaves_none(
    project: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, is_made = project_copy._new_folder, threading.Event()

    def slowly() -> Path:
        folder = made()
        is_made.set()
        time.sleep(0.2)
        return folder

    monkeypatch.setattr(project_copy, "_new_folder", slowly)
    running = asyncio.create_task(sh(sandbox_of(project, ViewKind.COPY), "sleep 60"))
    assert await asyncio.to_thread(is_made.wait, 10)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert list(scratch.iterdir()) == []


def _name(pid: int) -> str:
    try:
        return Path("/proc", str(pid), "comm").read_text().strip()
    except OSError:  # it ended meanwhile
        return ""


async def test_killing_handrail_kills_its_command_and_leaves_nothing(project: Path) -> None:
    marker = f"orphan-view-{os.getpid()}"
    code = f"""
import asyncio
from pathlib import Path
from handrail.engine.sandbox import Job
from handrail.tools.sandbox.bubblewrap import Bubblewrap
from handrail.tools.sandbox.throw_away import ViewKind
sandbox = Bubblewrap(Path({str(project)!r}), program={str(bubblewrap())!r}, way=ViewKind.MEMORY)
asyncio.run(sandbox.run(Job(argv=("sh", "-c", "echo evil > .mcp.json; sleep 60; : {marker}"))))
"""
    before = tree_state(project)
    with subprocess.Popen([sys.executable, "-c", code]) as process:
        await until(lambda: any(_name(pid) == "sh" for pid in named(marker)))
        process.kill()
    await until(lambda: not named(marker))
    assert tree_state(project) == before


def starter(plan: Path, *words: str) -> list[str]:
    """A shell that starts the program which makes overlays, and becomes it: so its parent is ours."""
    code = f'exec 3< {plan}; exec {sys.executable} -I -S -B -c "$0" 3 "$@"'
    return ["sh", "-c", code, overlay.START, *words]


async def test_killing_handrail_before_the_sandbox_has_started_leaves_nothing(project: Path, tmp_path: Path) -> None:
    """What makes the overlays ends with its parent, and so does what it becomes."""
    marker = f"orphan-starter-{os.getpid()}"
    code = f"""
import os, subprocess
from pathlib import Path
from handrail.tools.sandbox.overlay import overlays_of
Path({str(tmp_path / "plan")!r}).write_bytes(overlays_of(Path({str(project)!r}), []).plan(10_000_000))
subprocess.run({starter(tmp_path / "plan", "/bin/sh", "-c", f"sleep 60; : {marker}")!r}, start_new_session=True)
"""
    with subprocess.Popen([sys.executable, "-c", code]) as process:
        await until(lambda: any(_name(pid) == "sh" and b"/bin/sh" in _words(pid)[:1] for pid in named(marker)))
        process.kill()
    await until(lambda: not [pid for pid in named(marker) if b"/bin/sh" in _words(pid)[:1]])


def _words(pid: int) -> list[bytes]:
    try:
        return Path("/proc", str(pid), "cmdline").read_bytes().split(b"\0")
    except OSError:  # it ended meanwhile
        return []


def test_a_starter_whose_parent_is_gone_starts_nothing(project: Path, tmp_path: Path) -> None:
    for parent, exit_ in ((os.getpid(), 0), (1, 1)):
        plan = msgspec.json.decode(overlays_of(project, []).plan(10_000_000))
        (tmp_path / "plan").write_bytes(msgspec.json.encode({**plan, "parent": parent}))
        ran = subprocess.run(starter(tmp_path / "plan", "/bin/echo", "it ran"), capture_output=True, check=False)
        assert (ran.returncode, ran.stdout) == (exit_, b"" if exit_ else b"it ran\n"), ran.stderr


@pytest.mark.parametrize(("limit", "most"), [("FILES_MAX", 3), ("BYTES_MAX", 30)])
async def test_a_project_that_is_too_large_to_copy_is_refused(
    limit: str, most: int, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(project_copy, limit, most)
    with Fails(Category.PERMISSION, "too much to copy"):
        await sh(sandbox_of(project, ViewKind.COPY), "true")


async def test_a_copy_has_the_times_and_modes_of_the_project(project: Path) -> None:
    os.utime(project / "Makefile", (1_000_000_000, 1_000_000_000))
    os.utime(project / "src", (1_000_000_000, 1_000_000_000))
    (project / "unreadable").write_text("")
    ran = await sh(sandbox_of(project, ViewKind.COPY), "stat -c '%Y %a' Makefile src .venv/bin/tool")
    wanted = [f"{int(path.stat().st_mtime)} {path.stat().st_mode & 0o777:o}" for path in (
        project / "Makefile", project / "src", project / ".venv/bin/tool"
    )]  # fmt: skip
    assert ran.stdout.splitlines() == wanted


async def test_content_is_copied_where_the_kernel_can_not(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any) -> int:
        raise OSError(18, "between two file systems")

    monkeypatch.setattr(os, "copy_file_range", refused)
    assert (await sh(sandbox_of(project, ViewKind.COPY), "cat src/main.c")).stdout == FILES["src/main.c"]


async def test_a_project_that_can_not_be_copied_is_said_in_words(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(project_copy, "_copy_content", full)
    with Fails(Category.PERMISSION, "must not change it: [Errno 28] No space left"):
        await sh(sandbox_of(project, ViewKind.COPY), "true")


async def test_a_project_without_overlay_is_copied(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The trial found that overlays work, but not for this project's file system."""
    monkeypatch.setattr(throw_away, "_chosen", {})
    sandbox = sandbox_of(project, None)
    assert (await sh(sandbox, "true")).exit == 0
    monkeypatch.setattr(sandboxes, "START", overlay.START.replace('own, "overlay"', 'own, "no-such-kind"'))
    before = tree_state(project)
    ran = await sh(sandbox, "echo x > .mcp.json; cat .mcp.json")
    assert ran.stdout == "x\n"
    assert tree_state(project) == before
    with Fails(Category.PERMISSION, "there is no overlay here: no overlay of"):
        await sh(sandbox_of(project, ViewKind.MEMORY), "true")


@pytest.mark.parametrize(
    ("broken", "found"),
    [
        ((), ViewKind.MEMORY),
        ((ViewKind.MEMORY,), ViewKind.DISK),
        ((ViewKind.MEMORY, ViewKind.DISK), ViewKind.COPY),
    ],
)
async def test_the_first_way_that_holds_is_used(
    broken: tuple[ViewKind, ...], found: ViewKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(throw_away, "_chosen", {})

    def around(root: Path, way: ViewKind) -> Bubblewrap:
        return Bubblewrap(root, program="/nowhere/bwrap") if way in broken else sandbox_of(root, way)

    assert await way_here("a program", around) is found
    assert await way_here("a program", lambda *_: pytest.fail("it is tried once")) is found


class Kept(Bubblewrap):
    """A sandbox that throws nothing away."""

    async def run(self, job: Job, **more: Any) -> Ran:
        return await super().run(Job(argv=job.argv, bounds=job.bounds, kept=True), **more)


async def test_a_way_that_keeps_changes_or_reaches_sockets_does_not_hold() -> None:
    read = [Path(sys.base_prefix)]
    assert not await throw_away.holds(lambda root, _: Kept(root, program=str(bubblewrap()), read=read), ViewKind.MEMORY)
    assert await throw_away.holds(lambda root, _: sandbox_of(root, ViewKind.COPY), ViewKind.COPY)


@pytest.mark.skipif(os.geteuid() != 0, reason="only the superuser can mount a folder in the project")
async def test_what_is_mounted_in_the_project_is_seen_and_not_changed(project: Path) -> None:
    inner = project / "with space"
    inner.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "none", str(inner)], check=True)
    try:
        (inner / "file").write_text("inner")
        assert list(mounted_in(project)) == [inner]
        ran = await sh(
            sandbox_of(project, ViewKind.MEMORY), "cat 'with space/file'; echo x > 'with space/file'; cat w*/file"
        )
        assert ran.stdout == "innerx\n"
        assert (inner / "file").read_text() == "inner"
    finally:
        subprocess.run(["umount", str(inner)], check=True)


def test_files_of_another_group_are_copied_for_plain_users(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert overlays_of(project, []).changeable == (project,)
    status = project.stat()
    monkeypatch.setattr(os, "geteuid", lambda: status.st_uid or 0)
    monkeypatch.setattr(os, "getegid", lambda: status.st_gid + 1)
    if status.st_uid == 0:  # the superuser can change the group of any file, so only others must copy
        assert overlays_of(project, []).changeable == (project,)
        os.chown(project / "Makefile", 65_534, status.st_gid)
        monkeypatch.setattr(os, "geteuid", lambda: 65_534)
    with pytest.raises(NoOverlay, match="another group"):
        overlays_of(project, [])


def test_without_a_list_of_mounts_nothing_is_mounted(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overlay, "MOUNTS", project / "none")
    assert list(mounted_in(Path("/"))) == []


async def test_bubblewrap_is_never_taken_from_the_project_or_a_relative_folder(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = tmp_path / "bin" / "bwrap"
    for place in (project / "bin" / "bwrap", real):
        place.parent.mkdir()
        place.write_text(f'#!/bin/sh\ntouch {tmp_path}/ran-{place.parent.parent.name}\nexec {bubblewrap()} "$@"\n')
        place.chmod(0o755)
    (tmp_path / "to-project").symlink_to(project / "bin")
    monkeypatch.chdir(project)
    monkeypatch.setenv("PATH", f"bin:.:{project}/bin:{tmp_path}/to-project::{tmp_path}/bin:/usr/bin:/bin")
    assert (await Bubblewrap(project).run(Job(argv=("true",), kept=True))).exit == 0
    assert (tmp_path / f"ran-{tmp_path.name}").exists()
    assert not (tmp_path / "ran-project").exists()
    monkeypatch.setenv("PATH", "bin:.")
    with Fails(Category.PERMISSION, "bubblewrap was not found"):
        await Bubblewrap(project).run(Job(argv=("true",)))
    with Fails(Category.PERMISSION, "bin/bwrap was not found"):
        await Bubblewrap(project, program="bin/bwrap").run(Job(argv=("true",)))
