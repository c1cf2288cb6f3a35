"""The sandbox at its ordinary work: what a command sees and leaves behind, its bounds, its end, the trial before."""

from __future__ import annotations

import asyncio
import os
import platform
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from handrail.domain.definition.model import Category
from handrail.engine.sandbox import Bounds, Job, Ran, Sandbox
from outside.debian import bubblewrap
from tools.calls import Fails

if not sys.platform.startswith("linux"):
    pytest.skip("the sandbox was not tried: it needs Linux", allow_module_level=True)

from handrail.tools.sandbox import bubblewrap as sandboxes
from handrail.tools.sandbox import bubblewrap_trial, bubblewrap_view, bubblewrap_watch
from handrail.tools.sandbox.bubblewrap import Bubblewrap
from handrail.tools.sandbox.bubblewrap_view import SandboxView, require_own_project
from handrail.tools.sandbox.process_limit import limit_tasks

PYTHON = str(Path(sys.executable).resolve())
PATIENCE_S = 10.0
MIB = 1_048_576
Run = Callable[..., Any]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


@pytest.fixture
def sandbox(project: Path) -> Bubblewrap:
    return Bubblewrap(project, program=str(bubblewrap()), read=[Path(sys.base_prefix)])


async def sh(sandbox: Bubblewrap, code: str, **bounds: Any) -> Ran:
    return await sandbox.run(Job(argv=("sh", "-c", code), bounds=Bounds(**bounds), kept=True))


async def python(sandbox: Bubblewrap, code: str, **bounds: Any) -> Ran:
    return await sandbox.run(Job(argv=(PYTHON, "-I", "-S", "-c", code), bounds=Bounds(**bounds), kept=True))


def named(marker: str) -> list[int]:
    """The processes of this machine that carry a word of ours."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and marker.encode() in entry.joinpath("cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:  # it ended meanwhile
            continue
    return found


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not holds():
            await asyncio.sleep(0.01)


async def test_a_command_works_in_the_project_and_says_what_came_of_it(sandbox: Bubblewrap, project: Path) -> None:
    (project / "sub").mkdir()
    job = Job(
        argv=("sh", "-c", "cat; pwd; echo $WORD > made; echo no >&2; exit 3"),
        cwd="sub",
        env={"WORD": "é x"},
        stdin="in\n",
        kept=True,
    )
    ran = await sandbox.run(job)
    assert (ran.exit, ran.stdout, ran.stderr, ran.stopped) == (3, f"in\n{project / 'sub'}\n", "no\n", "")
    assert (project / "sub" / "made").read_text() == "é x\n"
    assert 0 < ran.took_ms < PATIENCE_S * 1_000


async def test_words_are_never_options_of_the_sandbox(sandbox: Bubblewrap) -> None:
    with Fails(Category.NOT_FOUND, "there is no program --bind"):
        await sandbox.run(Job(argv=("--bind", "/", "/mnt", "ls")))
    ran = await sandbox.run(Job(argv=("echo", "--", "--share-net", "--bind")))
    assert ran.stdout == "-- --share-net --bind\n"
    for job in (Job(argv=("true",), env={"A": "x\0--share-net"}), Job(argv=("true", "\0"))):
        with Fails(Category.INVALID_INPUT, "NUL"):
            await sandbox.run(job)


async def test_an_environment_for_the_command_does_not_reach_bubblewrap_itself(sandbox: Bubblewrap) -> None:
    ran = await sandbox.run(Job(argv=("true",), env={"LD_DEBUG": "libs"}))
    assert "libc.so" in ran.stderr
    assert "libcap" not in ran.stderr


async def test_a_program_or_folder_that_is_not_there_is_said_in_words(sandbox: Bubblewrap) -> None:
    with Fails(Category.NOT_FOUND, "there is no program nowhere"):
        await sandbox.run(Job(argv=("nowhere",)))
    with Fails(Category.NOT_FOUND, "there is no folder sub"):
        await sandbox.run(Job(argv=("true",), cwd="sub"))


@pytest.mark.parametrize("words", ["bwrap: mine", "bwrap: execvp sh: No such file", "bwrap: Can't chdir to sub: x", ""])
async def test_a_command_that_speaks_like_bubblewrap_has_failed_by_itself(sandbox: Bubblewrap, words: str) -> None:
    ran = await sandbox.run(Job(argv=("sh", "-c", 'echo "$1" >&2; exit 1', "sh", words)))
    assert (ran.exit, ran.stderr) == (1, f"{words}\n")
    sealed = await sandbox.run(Job(argv=("sh", "-c", "ls /proc/self/fd; exit 1")))
    assert sealed.stdout.split() == ["0", "1", "2", "3"], "what bubblewrap reports to is not open in the sandbox"


async def test_a_project_that_may_only_be_read_is_not_changed(sandbox: Bubblewrap, project: Path) -> None:
    ran = await sandbox.run(Job(argv=("touch", "made"), writable=False))
    assert ran.exit != 0
    assert not (project / "made").exists()


async def test_the_network_is_there_when_it_is_allowed(sandbox: Bubblewrap) -> None:
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    code = f"import socket; socket.create_connection(('127.0.0.1', {port}), 1)"
    assert (await python(sandbox, code)).exit == 1
    assert (await python(sandbox, code, network=True)).exit == 0
    server.close()


async def is_held() -> bool:
    """Whether the kernel itself bounds the processes of a sandbox here: it does not for a superuser without groups."""
    if os.geteuid() != 0:
        return True
    child = subprocess.Popen(["sleep", "60"])
    group = limit_tasks(child.pid, 10)
    child.kill()
    child.wait()
    if group is not None:
        await group.remove()
    return group is not None


async def test_a_fork_bomb_ends_and_nothing_is_left(sandbox: Bubblewrap) -> None:
    if not await is_held():
        pytest.skip("not tried: the kernel does not hold the superuser to a number of processes here")
    marker = f"bomb-{os.getpid()}"
    ran = await sh(sandbox, f"f(){{ : {marker}; f | f & }}; f; sleep 60")
    assert ran.stopped == "processes"
    assert named(marker) == []


async def test_many_threads_are_many_processes(sandbox: Bubblewrap) -> None:
    code = "import threading, time\nfor _ in range(60): threading.Thread(target=time.sleep, args=(60,)).start()"
    ran = await python(sandbox, code, processes=4)
    # The kernel says no, or else whoever watches.
    assert ran.stopped == "processes" or "can't start new thread" in ran.stderr


async def test_memory_without_end_is_ended(sandbox: Bubblewrap) -> None:
    ran = await python(sandbox, "a = []\nwhile True: a.append(bytearray(1 << 20))", memory_bytes=128 * MIB)
    assert ran.stopped == "memory"


async def test_memory_that_is_not_counted_is_refused(sandbox: Bubblewrap) -> None:
    ran = await python(sandbox, "import os; os.memfd_create('x')")
    assert "Function not implemented" in ran.stderr
    shared = "import ctypes; libc = ctypes.CDLL(None); print(libc.shmget(0, {}, 0o1600) >= 0)"
    assert (await python(sandbox, shared.format(1 << 20))).stdout == "False\n"
    assert (await python(sandbox, shared.format(1 << 33))).stdout == "False\n"
    assert (await python(sandbox, shared.format(56))).stdout == "True\n"


async def test_forks_that_share_their_memory_are_not_counted_twice(sandbox: Bubblewrap) -> None:
    code = """
import os, time
held = bytes(range(256)) * 200_000
children = []
for _ in range(8):
    pid = os.fork()
    if pid == 0:
        time.sleep(0.3)
        os._exit(0)
    children.append(pid)
print([os.waitpid(pid, 0)[1] for pid in children])
"""
    ran = await python(sandbox, code, memory_bytes=128 * MIB)
    assert (ran.stopped, ran.stdout) == ("", f"{[0] * 8}\n")


async def test_output_without_end_is_cut_off_and_what_was_said_is_kept(sandbox: Bubblewrap) -> None:
    said: list[str] = []
    job = Job(argv=("sh", "-c", "yes >&2 & yes"), bounds=Bounds(output_bytes=10_000))
    ran = await sandbox.run(job, progress=said.append)
    assert ran.stopped == "output"
    assert max(len(ran.stdout), len(ran.stderr)) == 10_000
    assert said[0].endswith("bytes of output")
    fits = await sandbox.run(Job(argv=("printf", "x" * 1_000), bounds=Bounds(output_bytes=1_000)))
    assert (fits.stopped, len(fits.stdout)) == ("", 1_000)


async def test_time_ends_it_with_all_its_children(sandbox: Bubblewrap) -> None:
    marker = f"late-{os.getpid()}"
    ran = await sh(sandbox, f"(sleep 60; : {marker}) & sleep 60; : {marker}", time_ms=200)
    assert (ran.stopped, ran.exit) == ("time", 137)
    assert named(marker) == []


async def test_a_disk_is_not_filled(sandbox: Bubblewrap, project: Path) -> None:
    ran = await sh(sandbox, "head -c 3000000 /dev/zero > big", file_bytes=MIB)
    assert ran.exit != 0
    assert (project / "big").stat().st_size == MIB
    for folder in ("/tmp", "/dev/shm"):
        ran = await sh(sandbox, f"head -c 100000000 /dev/zero > {folder}/big", memory_bytes=32 * MIB)
        assert "No space left" in ran.stderr


async def test_a_command_need_not_read_what_it_is_given(sandbox: Bubblewrap) -> None:
    ran = await sandbox.run(Job(argv=("true",), stdin="x" * 1_000_000))
    assert ran.exit == 0


async def test_what_is_cancelled_is_gone_with_all_its_children(sandbox: Bubblewrap, project: Path) -> None:
    marker = f"cancelled-{os.getpid()}"
    code = f"(setsid sh -c 'touch begun; sleep 60; : {marker}' &) ; sleep 60; : {marker}"
    running = asyncio.create_task(sh(sandbox, code))
    await until((project / "begun").exists)
    assert named(marker)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert named(marker) == []


async def test_what_is_cancelled_before_it_began_is_gone_too(
    sandbox: Bubblewrap, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(_: int) -> int:
        await asyncio.sleep(3_600)
        return 0

    monkeypatch.setattr(sandboxes, "_first_pid", never)
    marker = f"early-{os.getpid()}"
    running = asyncio.create_task(sh(sandbox, f": {marker}; touch begun"))
    await until(lambda: bool(named(marker)))
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await until(lambda: not named(marker))
    assert not (project / "begun").exists()


async def test_killing_handrail_kills_its_commands(project: Path) -> None:
    marker = f"orphan-{os.getpid()}"
    code = f"""
import asyncio
from pathlib import Path
from handrail.engine.sandbox import Job
from handrail.tools.sandbox.bubblewrap import Bubblewrap
sandbox = Bubblewrap(Path({str(project)!r}), program={str(bubblewrap())!r})
asyncio.run(sandbox.run(Job(argv=("sh", "-c", "touch begun; sleep 60; : {marker}"), kept=True)))
"""
    with subprocess.Popen([sys.executable, "-c", code]) as process:
        await until((project / "begun").exists)
        process.kill()
    await until(lambda: not named(marker))


async def test_where_namespaces_can_not_be_made_the_words_say_so(project: Path, tmp_path: Path) -> None:
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho bwrap: No permissions to create new namespace >&2\nexit 1\n")
    broken.chmod(0o755)
    sandbox = Bubblewrap(project, program=str(broken))
    with Fails(Category.PERMISSION, "No permissions to create new namespace"):
        await sandbox.run(Job(argv=("true",)))
    verdict = await sandbox.trial()
    assert "user namespaces must be allowed" in verdict
    broken.write_text("no program at all")
    with Fails(Category.PERMISSION, "can't be started"):
        await sandbox.run(Job(argv=("true",)))


async def test_a_sandbox_that_can_not_be_laid_out_is_not_used(project: Path, tmp_path: Path) -> None:
    sandbox = Bubblewrap(project, program=str(bubblewrap()), private=[tmp_path])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SandboxView, "options", lambda *_: ["--ro-bind", "/nowhere", "/nowhere"])
        with Fails(Category.PERMISSION, "could not be created"):
            await sandbox.run(Job(argv=("true",)))


async def test_what_can_not_be_watched_is_ended(sandbox: Bubblewrap, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bubblewrap_watch, "READY_LOOKS", 0)
    with Fails(Category.PERMISSION, "can't be monitored: it did not start"):
        await sh(sandbox, "sleep 60")


async def test_the_trial_finds_nothing_and_is_held_once(sandbox: Bubblewrap, monkeypatch: pytest.MonkeyPatch) -> None:
    real, held = bubblewrap_trial._verdict, []

    async def counted(around: Callable[[bubblewrap_trial.Scene], Sandbox]) -> str:
        held.append(around)
        return await real(around)

    monkeypatch.setattr(bubblewrap_trial, "_verdicts", {})
    monkeypatch.setattr(bubblewrap_trial, "_verdict", counted)
    assert [await sandbox.trial() for _ in range(20)] == [""] * 20
    assert len(held) == 1


@pytest.mark.parametrize(
    ("missing", "words"),
    [
        ("--unshare-all", "network"),
        ("--unshare-user", "could not be created"),
        ("view", "reads files outside"),
    ],
)
async def test_the_trial_sees_a_wall_that_is_missing(
    missing: str, words: str, sandbox: Bubblewrap, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bubblewrap_trial, "_verdicts", {})
    left = [option for option in sandboxes.NAMESPACES if option not in {missing, "--hostname", "sandbox"}]
    if missing == "view":
        monkeypatch.setattr(SandboxView, "options", lambda *_: ["--bind", "/", "/"])
    elif missing == "--unshare-all":
        left.append("--unshare-pid")
    monkeypatch.setattr(sandboxes, "NAMESPACES", left)
    verdict = await sandbox.trial()
    assert words in verdict


async def test_a_probe_that_says_nothing_has_not_tried(sandbox: Bubblewrap, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bubblewrap_trial, "_verdicts", {})
    monkeypatch.setattr(bubblewrap_trial, "PROBE", "raise SystemExit('no such thing')")
    assert "the trial could not run (exit 1 ): no such thing" in await sandbox.trial()


async def test_without_bubblewrap_the_words_say_how_to_get_it(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(project))
    assert "apt install bubblewrap" in await Bubblewrap(project).trial()
    assert "/nowhere/bwrap was not found" in await Bubblewrap(project, program="/nowhere/bwrap").trial()
    mine = project / "bwrap"
    mine.write_text("#!/bin/sh\n")
    mine.chmod(0o755)
    assert "is in the project" in await Bubblewrap(project).trial()
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    assert "not riscv64" in await Bubblewrap(project).trial()
    monkeypatch.setattr(sys, "platform", "darwin")
    assert "needs Linux" in await Bubblewrap(project).trial()


def test_a_project_that_is_more_than_a_project_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    for root in (Path("/"), Path("/usr"), Path("/etc"), tmp_path, tmp_path / "person"):
        with Fails(Category.PERMISSION, "contains more than a project"):
            require_own_project(root)
    require_own_project(tmp_path / "person" / "project")
    monkeypatch.setenv("HOME", "/")
    require_own_project(tmp_path)


def test_an_unknown_user_has_no_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown() -> Path:
        raise RuntimeError("no home")

    monkeypatch.setattr(Path, "home", unknown)
    require_own_project(tmp_path)


@pytest.mark.parametrize("kind", ["link", "file"])
async def test_handrails_folder_must_be_a_folder(kind: str, sandbox: Bubblewrap, project: Path) -> None:
    own = project / ".handrail"
    own.symlink_to("elsewhere") if kind == "link" else own.write_text("")
    with Fails(Category.PERMISSION, "make it a folder"):
        await sh(sandbox, "true")


async def test_folders_that_may_be_read_are_seen_but_not_changed_and_private_ones_in_them_are_hidden(
    project: Path, tmp_path: Path
) -> None:
    (tmp_path / "shelf" / "home").mkdir(parents=True)
    (tmp_path / "shelf" / "book").write_text("words")
    (tmp_path / "shelf" / "home" / "key").write_text("key")
    sandbox = Bubblewrap(
        project, program=str(bubblewrap()), private=[tmp_path / "shelf" / "home"], read=[tmp_path / "shelf"]
    )
    ran = await sh(sandbox, f"cd {tmp_path}/shelf; cat book; ls home; echo x > book; echo x > home/y")
    assert ran.stdout == "words"
    assert ran.stderr.count("Read-only file system") == 2
    assert (tmp_path / "shelf" / "book").read_text() == "words"


async def test_a_home_among_the_systems_folders_is_hidden(
    sandbox: Bubblewrap, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = tmp_path / "system" / "person"
    (person / "tools").mkdir(parents=True)
    (person / "secret").write_text("s")
    monkeypatch.setattr(bubblewrap_view, "SYSTEM", (*bubblewrap_view.SYSTEM, str(tmp_path / "system")))
    monkeypatch.setenv("HOME", str(person))
    shelved = Bubblewrap(project, program=str(bubblewrap()), read=[person / "tools", project])
    ran = await sh(shelved, f"ls {person}")
    assert ran.stdout == "tools\n"


async def test_handrails_folder_is_made_before_a_command_could(sandbox: Bubblewrap, project: Path) -> None:
    ran = await sh(sandbox, "mkdir -p .handrail; echo '[shell]' > .handrail/config.toml")
    assert "Read-only file system" in ran.stderr
    assert list((project / ".handrail").iterdir()) == []


async def test_where_it_can_not_be_made_a_command_can_not_make_it_either(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: Any, **__: Any) -> None:
        raise PermissionError("read-only")

    monkeypatch.setattr(Path, "mkdir", refused)
    assert ".handrail" not in " ".join(SandboxView(project).options(Job(argv=("true",), kept=True)))


@pytest.mark.parametrize(("release", "counts"), [("5.13.0", False), ("5.14.1-x", True), ("6.1", True), ("odd", False)])
def test_old_kernels_count_all_processes_of_a_person_together(release: str, counts: bool) -> None:
    assert bubblewrap_watch._counts_by_namespace(release) is counts
