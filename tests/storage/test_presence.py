"""Who is there: a lock that ends with its process, however that ends; asked of real processes."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from handrail.domain.errors import Conflict, Invalid, Unavailable
from handrail.storage import presence as presence_module
from handrail.storage.file_lock import locked
from handrail.storage.presence import LOOK_FILE, ProcessPresence, is_alive

PRESENT = Path(__file__).parent / "present.py"
POSIX = pytest.mark.skipif(sys.platform == "win32", reason="signals and forks are a matter of POSIX")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "home" / "workers"


@contextlib.contextmanager
def present(folder: Path, owner: str, what: str = "") -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A process that is there, and the process that it made, if it was to make one."""
    command = [sys.executable, str(PRESENT), str(folder), owner, what]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        child = int(process.stdout.readline())
        try:
            yield process, child
        finally:
            process.kill()
            if child:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)


def test_a_process_that_entered_is_alive_until_it_leaves(folder: Path) -> None:
    here = ProcessPresence.enter(folder, "worker-1")
    assert here.is_alive("worker-1")
    assert is_alive(folder, "worker-1")
    here.leave()
    assert not here.is_alive("worker-1")
    assert not (folder / "worker-1.lock").exists()
    here.leave()
    ProcessPresence.enter(folder, "worker-1").leave()


def test_a_process_that_never_entered_is_not_alive(folder: Path) -> None:
    assert not is_alive(folder, "worker-1")
    assert not folder.exists()
    here = ProcessPresence.enter(folder, "worker-1")
    assert not here.is_alive("worker-2")
    here.leave()


def test_a_file_without_an_owner_is_removed_and_means_dead(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "worker-1.lock").touch()
    assert not is_alive(folder, "worker-1")
    assert not (folder / "worker-1.lock").exists()


def test_two_can_not_be_there_under_one_name(folder: Path) -> None:
    here = ProcessPresence.enter(folder, "worker-1")
    with pytest.raises(Conflict, match="another process"):
        ProcessPresence.enter(folder, "worker-1")
    assert is_alive(folder, "worker-1")
    here.leave()


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../x", "a/b", "a\\b", "A", "a b", "a.lock", "a\n", "ä", "a\0", "a" * 101]
)
def test_a_name_that_could_be_a_path_is_refused(folder: Path, name: str) -> None:
    with pytest.raises(Invalid):
        ProcessPresence.enter(folder, name)
    with pytest.raises(Invalid):
        is_alive(folder, name)
    assert not folder.exists()


@POSIX
def test_what_it_leaves_on_the_disk_is_private(folder: Path) -> None:
    before = os.umask(0)
    try:
        here = ProcessPresence.enter(folder, "worker-1")
    finally:
        os.umask(before)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()} == {0o600}
    here.leave()


@POSIX
def test_a_file_that_leads_elsewhere_is_not_followed(folder: Path, tmp_path: Path) -> None:
    folder.mkdir(parents=True)
    (tmp_path / "precious").touch()
    (folder / "worker-1.lock").symlink_to(tmp_path / "precious")
    with pytest.raises(Unavailable):
        is_alive(folder, "worker-1")
    with pytest.raises(Unavailable):
        ProcessPresence.enter(folder, "worker-1")
    assert (tmp_path / "precious").exists()


def test_a_folder_that_is_none_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Unavailable, match="can't tell whether"):
        ProcessPresence.enter(tmp_path / "file", "worker-1")


def test_while_others_look_for_too_long_nothing_is_known_and_that_counts_as_alive(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(presence_module, "LOOK_WAIT_S", 0.01)
    folder.mkdir(parents=True)
    (folder / "worker-1.lock").touch()
    with locked(folder / LOOK_FILE):
        assert is_alive(folder, "worker-1")
        with pytest.raises(Unavailable):
            ProcessPresence.enter(folder, "worker-2")
    assert not is_alive(folder, "worker-1")


@POSIX
def test_a_killed_process_is_dead_at_once_and_a_stopped_one_alive(folder: Path) -> None:
    with present(folder, "worker-1") as (process, _):
        assert is_alive(folder, "worker-1")
        with pytest.raises(Conflict):
            ProcessPresence.enter(folder, "worker-1")
        os.kill(process.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
        assert is_alive(folder, "worker-1")
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        assert not is_alive(folder, "worker-1")
        assert not (folder / "worker-1.lock").exists()


@POSIX
@pytest.mark.parametrize("what", ["forks", "starts"])
def test_a_child_does_not_keep_its_dead_parent_alive(folder: Path, what: str) -> None:
    with present(folder, "worker-1", what) as (process, child):
        assert is_alive(folder, "worker-1")
        process.kill()
        process.wait()
        os.kill(child, 0)  # it is still there
        assert not is_alive(folder, "worker-1")


@POSIX
def test_a_forked_child_that_ends_or_leaves_does_not_end_its_parent(folder: Path) -> None:
    here = ProcessPresence.enter(folder, "worker-1")
    child = multiprocessing.get_context("fork").Process(target=here.leave)
    child.start()
    child.join()
    assert child.exitcode == 0
    assert is_alive(folder, "worker-1")
    here.leave()


def test_many_who_look_at_the_same_dead_owner_at_once_all_find_it_dead(folder: Path) -> None:
    """None takes another who looks for the owner, and none trips over what another has removed."""
    folder.mkdir(parents=True)
    everyone = threading.Barrier(8)

    def look(number: int) -> bool:
        everyone.wait(10)
        return is_alive(folder, f"worker-{number}")

    with ThreadPoolExecutor(8) as pool:
        for number in range(50):
            (folder / f"worker-{number}.lock").touch()
            assert not any(pool.map(look, [number] * 8))


def test_looking_never_drives_away_who_enters_meanwhile(folder: Path) -> None:
    folder.mkdir(parents=True)
    is_over = threading.Event()

    def look() -> None:
        while not is_over.is_set():
            is_alive(folder, "worker-1")

    with ThreadPoolExecutor(4) as pool:
        looking = [pool.submit(look) for _ in range(4)]
        for _ in range(50):
            here = ProcessPresence.enter(folder, "worker-1")
            assert is_alive(folder, "worker-1")
            assert (folder / "worker-1.lock").exists()
            here.leave()
        is_over.set()
        for one in looking:
            one.result()
