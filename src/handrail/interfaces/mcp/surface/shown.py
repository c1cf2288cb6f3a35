"""The protocol between a surface and a shell: all that a server of ours shows, whatever carries it.

Protocols only. Ours is handrail_surface.py; tests bring others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct

from handrail.interfaces.mcp.surface.caller import Answered, Caller, Reply, TaskView
from handrail.interfaces.mcp.surface.offer import Content, Prompt, Resource, ResourceTemplate, Tool


class About(Struct, frozen=True, kw_only=True):
    """Whose server it is: what a client shows of it."""

    name: str
    title: str
    version: str
    instructions: str
    description: str = ""


class Change(Struct, frozen=True, kw_only=True):
    """Something that clients may have subscribed to has changed: an address, or a list."""

    uri: str = ""
    lists: tuple[str, ...] = ()
    """Of `tools`, `prompts`, `resources`."""


class Feed(Protocol):
    """Tells of changes."""

    def subscribe(self, listener: Callable[[Change], None]) -> Callable[[], None]:
        """Tell this listener of every change, until what is returned is called."""
        ...


class TaskBook(Protocol):
    """Calls that go on after their answer, by id; an id that nobody knows is Unknown."""

    async def get(self, task: str, caller: Caller) -> TaskView:
        """Where a task stands."""
        ...

    async def answer(self, task: str, answers: Mapping[str, Answered], caller: Caller) -> None:
        """Hand in what people answered to the task's questions."""
        ...

    async def cancel(self, task: str, caller: Caller) -> None:
        """End a task."""
        ...


class Surface(Protocol):
    """All that a server shows."""

    @property
    def about(self) -> About:
        """Whose server it is."""
        ...

    @property
    def feed(self) -> Feed:
        """Changes of what it shows."""
        ...

    @property
    def tasks(self) -> TaskBook | None:
        """Its calls that go on after their answer, if it has any."""
        ...

    def tools(self) -> Sequence[Tool]:
        """The tools, in an order that never changes."""
        ...

    async def call(self, name: str, arguments: Mapping[str, Any], caller: Caller) -> Reply | TaskView:
        """Call a tool; Unknown if there is none of that name."""
        ...

    async def resources(self) -> Sequence[Resource]:
        """What can be read."""
        ...

    def templates(self) -> Sequence[ResourceTemplate]:
        """Patterns of addresses that can be read."""
        ...

    async def read(self, uri: str, caller: Caller) -> Content:
        """What stands at an address; Unknown if nothing does."""
        ...

    async def prompts(self) -> Sequence[Prompt]:
        """The prompts."""
        ...

    async def prompt(self, name: str, arguments: Mapping[str, str], caller: Caller) -> str:
        """A prompt with its blanks filled in; Unknown if there is none of that name."""
        ...

    async def complete(self, about: str, argument: str, value: str) -> Sequence[str]:
        """What a half-typed value may become; `about` is a prompt's name or an address pattern."""
        ...
