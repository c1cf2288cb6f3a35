"""The file tools against paths and worlds that lead out of the project: none may read, change or make a thing outside.

One list of attempts; each is judged by the world: a secret that must not be seen, and folders that must stay as they
are. Some run against a thread that swaps a folder for a link all the while."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import stat
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from handrail.engine.tool import ToolFailed
from handrail.tools.registry import Registry
from tools.calls import captured

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there")

SECRET = "the-secret-of-the-neighbour"
SWAPS = 60


@dataclass(frozen=True)
class Site:
    folder: Path

    @property
    def project(self) -> Path:
        return self.folder / "project"

    @property
    def outside(self) -> Path:
        return self.folder / "outside"

    def tools(self) -> Registry:
        home = self.project / "state" / "home"
        return Registry(project=self.project, kept=self.folder / "kept", private=[home])

    async def all_at(self, path: str) -> list[Any]:
        """Every tool, at that path; what came of it."""
        calls = [
            ("file.read", {"path": path}),
            ("file.write", {"path": path, "text": "mine"}),
            ("file.append", {"path": path, "text": "mine"}),
            ("file.mkdir", {"path": path}),
            ("file.move", {"source": path, "target": "fresh"}),
            ("file.move", {"source": "plain.txt", "target": path}),
            ("file.delete", {"path": path}),
        ]
        return [await self.do(name, args) for name, args in calls]

    async def do(self, name: str, args: dict[str, Any]) -> Any:
        try:
            tool = self.tools().find(name)
            return await tool.call(await captured(tool, args))
        except ToolFailed as error:
            return error.message


Attempt = Callable[[Site], Awaitable[Any]]


def at(path: str) -> Attempt:
    return lambda site: site.all_at(path)


def below(path: str) -> Attempt:
    return lambda site: site.all_at(f"{site.folder}/{path}")


def with_link(target: str, path: str) -> Attempt:
    """All tools, at a path behind a link that leads to `target`."""

    async def attempt(site: Site) -> Any:
        (site.project / "way").symlink_to(target.format(folder=site.folder))
        return await site.all_at(path)

    return attempt


async def by_a_chain(site: Site) -> Any:
    for number in range(5):
        (site.project / f"link{number}").symlink_to(f"link{number + 1}")
    (site.project / "link5").symlink_to(site.outside)
    return await site.all_at("link0/secret.txt")


async def by_a_dangling_link(site: Site) -> Any:
    (site.project / "new").symlink_to(site.outside / "made")
    return await site.all_at("new")


async def by_a_hard_link(site: Site) -> Any:
    """Who could make it could read the file already; but a write must not reach the other name."""
    (site.project / "hard").hardlink_to(site.outside / "open.txt")
    return [
        await site.do("file.write", {"path": "hard", "text": "x"}),
        await site.do("file.append", {"path": "hard", "text": "x"}),
    ]


async def by_a_pipe(site: Site) -> Any:
    os.mkfifo(site.project / "pipe")
    return await site.all_at("pipe")


async def by_a_socket(site: Site) -> Any:
    with socket.socket(socket.AF_UNIX) as door:
        here = Path.cwd()
        os.chdir(site.project)
        try:
            door.bind("door")
        finally:
            os.chdir(here)
        return await site.all_at("door")


async def by_a_folder_that_is_a_link_to_the_root(site: Site) -> Any:
    (site.project / "all").symlink_to("/")
    return await site.all_at(f"all{site.outside}/secret.txt")


async def into_the_private_folder(site: Site) -> Any:
    return await site.all_at("state/home/key")


async def by_moving_what_holds_the_private_folder(site: Site) -> Any:
    return await site.do("file.move", {"source": "state", "target": "elsewhere"})


async def by_moving_what_holds_a_private_folder_that_is_named_by_a_link(site: Site) -> Any:
    (site.folder / "home-link").symlink_to(site.project / "state" / "home")
    tools = Registry(project=site.project, kept=site.folder / "kept", private=[site.folder / "home-link"])
    move = tools.find("file.move")
    with pytest.raises(ToolFailed):
        await move.call(await captured(move, {"source": "state", "target": "elsewhere"}))
    (site.folder / "home-link").unlink()
    return "refused"


async def by_deleting_the_project(site: Site) -> Any:
    return [await site.do("file.delete", {"path": path}) for path in (".", "", "./", "sub/..")]


async def by_deleting_a_folder_behind_a_link(site: Site) -> Any:
    (site.project / "way").symlink_to(site.outside / "empty")
    return [await site.do("file.delete", {"path": path}) for path in ("way/", "way/.")]


async def by_moving_out_and_in(site: Site) -> Any:
    return [
        await site.do("file.move", {"source": "plain.txt", "target": "../outside/taken"}),
        await site.do("file.move", {"source": "../outside/secret.txt", "target": "taken"}),
        await site.do("file.move", {"source": "plain.txt", "target": f"{site.outside}/taken"}),
    ]


async def by_an_undo_after_a_swap(site: Site) -> Any:
    tools = site.tools()
    said = []
    for name, args in (
        ("file.write", {"path": "sub/secret.txt", "text": "x"}),
        ("file.delete", {"path": "sub/open.txt"}),
        ("file.mkdir", {"path": "sub/empty"}),
    ):
        tool = tools.find(name)
        call = await captured(tool, args)
        await tool.call(call)
        (site.project / "sub").rename(site.project / "aside")
        (site.project / "sub").symlink_to(site.outside)
        try:
            said.append(await tool.undo(call))
        except ToolFailed as error:
            said.append(error.message)
        (site.project / "sub").unlink()
        (site.project / "aside").rename(site.project / "sub")
    return said


def racing(name: str, args: dict[str, Any]) -> Attempt:
    """One tool over and over, while a thread swaps the folder on its way for a link and back."""

    async def attempt(site: Site) -> Any:
        with swapping(site):
            return [await site.do(name, args) for _ in range(SWAPS)]

    return attempt


@contextmanager
def swapping(site: Site) -> Iterator[None]:
    ended = threading.Event()
    real, aside = site.project / "sub", site.project / "aside"

    def swap() -> None:
        while not ended.is_set():
            with suppress(OSError):  # a tool made the folder while it was away
                real.rename(aside)
                real.symlink_to(site.outside)
                real.unlink()
                aside.rename(real)
                continue
            shutil.rmtree(real, ignore_errors=True)
            with suppress(OSError):
                aside.rename(real)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


ATTEMPTS: dict[str, Attempt] = {
    "up": at("../outside/secret.txt"),
    "up by way of a folder": at("sub/../../outside/secret.txt"),
    "up behind dots": at("./.././outside/secret.txt"),
    "up from a folder that was not found": at("none/../../outside/secret.txt"),
    "absolute": below("outside/secret.txt"),
    "absolute with two slashes": lambda site: site.all_at(f"/{site.outside}/secret.txt"),
    "absolute inside the project": below("project/plain.txt"),
    "by the folder of the process": at("/proc/self/cwd/../outside/secret.txt"),
    "by the root of the process": lambda site: site.all_at(f"/proc/self/root{site.outside}/secret.txt"),
    "home of the person": at("~/secret.txt"),
    "home of somebody": at("~root/.profile"),
    "a variable": at("$HOME/secret.txt"),
    "the end of a text": at("plain.txt\0/../../outside/secret.txt"),
    "a line end": at("plain.txt\n../outside/secret.txt"),
    "a very long way": at("../" * 400 + "outside/secret.txt"),
    "a very long name": at("x" * 300),
    "a drive": at("C:/outside/secret.txt"),
    "a drive without a slash": at("C:secret.txt"),
    "backslashes": at("..\\outside\\secret.txt"),
    "a share": at("\\\\host\\share\\secret.txt"),
    "percent": at("%2e%2e/outside/secret.txt"),
    "dots of another script": at("\uff0e\uff0e/outside/secret.txt"),
    "a slash of another script": at("..\u2215outside\u2215secret.txt"),
    "three dots": at(".../outside/secret.txt"),
    "a link to a file": with_link("{folder}/outside/secret.txt", "way"),
    "a link to a folder": with_link("{folder}/outside", "way/secret.txt"),
    "a link to a folder, to make one in it": with_link("{folder}/outside", "way/made/deep"),
    "a link upwards": with_link("..", "way/outside/secret.txt"),
    "a link to the process": with_link("/proc/self", "way/environ"),
    "a link to a device": with_link("/dev/zero", "way"),
    "a chain of links": by_a_chain,
    "a link to nothing": by_a_dangling_link,
    "a link to the root": by_a_folder_that_is_a_link_to_the_root,
    "a hard link": by_a_hard_link,
    "a pipe": by_a_pipe,
    "a socket": by_a_socket,
    "the private folder": into_the_private_folder,
    "the private folder in another case": at("state/HOME/key"),
    "the folder around the private one": by_moving_what_holds_the_private_folder,
    "the folder around the private one, by a link": by_moving_what_holds_a_private_folder_that_is_named_by_a_link,
    "handrail's own folder": at(".handrail/config.toml"),
    "handrail's own folder in another case": at(".HandRail/config.toml"),
    "handrail's own folder in another script": at(".\uff48andrail/config.toml"),
    "a link to handrail's own folder": with_link(".handrail", "way/config.toml"),
    "the project itself": by_deleting_the_project,
    "a folder behind a link": by_deleting_a_folder_behind_a_link,
    "moves out and in": by_moving_out_and_in,
    "an undo after a swap": by_an_undo_after_a_swap,
    "a race to read": racing("file.read", {"path": "sub/secret.txt"}),
    "a race to write": racing("file.write", {"path": "sub/secret.txt", "text": "mine"}),
    "a race to append": racing("file.append", {"path": "sub/open.txt", "text": "mine"}),
    "a race to make": racing("file.mkdir", {"path": "sub/made/deep"}),
    "a race to delete": racing("file.delete", {"path": "sub/open.txt"}),
}


@pytest.fixture
def site(tmp_path: Path) -> Site:
    found = Site(tmp_path)
    for name in ("outside/empty", "project/sub", "project/state/home", "project/.handrail", "kept"):
        (tmp_path / name).mkdir(parents=True)
    (found.outside / "secret.txt").write_text(SECRET)
    (found.outside / "open.txt").write_text(SECRET)
    (found.project / "plain.txt").write_text("plain")
    for name in ("secret.txt", "open.txt"):
        (found.project / "sub" / name).write_text("the project's own")
    (found.project / ".handrail" / "config.toml").write_text("allow = false")
    (found.project / "state" / "home" / "key").write_text(SECRET)
    return found


def world(site: Site) -> dict[str, Any]:
    """Everything that must stay as it is."""
    places = [site.outside, site.project / "state" / "home", site.project / ".handrail"]
    found: dict[str, Any] = {
        "project": site.project.is_dir(),
        "beside": sorted(path.name for path in site.folder.iterdir()),
    }
    for place in places:
        for path in (place, *sorted(place.rglob("*"))):
            status = path.lstat()
            found[str(path)] = status.st_mode, path.read_bytes() if stat.S_ISREG(status.st_mode) else None
    return found


def test_there_are_at_least_thirty_attempts() -> None:
    assert len(ATTEMPTS) >= 30


@pytest.mark.parametrize("name", ATTEMPTS)
async def test_nothing_outside_the_project_is_reached(name: str, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(site.outside))
    before = world(site)
    async with asyncio.timeout(20):  # nobody waits for a pipe or a device
        said = await ATTEMPTS[name](site)
    assert world(site) == before
    assert SECRET not in str(said)
    assert said
