"""The interface between a surface and the shell: everything an MCP server offers, independent of the transport.

Protocols and values only. Handrail's surface is handrail_surface.py; tests have others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct

from handrail.interfaces.mcp.surface.caller import Caller, TaskView, ToolReply, UserAnswer
from handrail.interfaces.mcp.surface.offer import Content, PromptOffer, Resource, ResourceTemplate, ToolOffer


class ServerInfo(Struct, frozen=True, kw_only=True):
    """What a client shows about the server."""

    name: str
    title: str
    version: str
    instructions: str
    description: str = ""


class SurfaceChange(Struct, frozen=True, kw_only=True):
    """A change that clients may have subscribed to: of a resource, or of lists."""

    uri: str = ""
    lists: tuple[str, ...] = ()
    """Any of `tools`, `prompts`, `resources`."""


class Feed(Protocol):
    """Notifies listeners of changes."""

    def subscribe(self, listener: Callable[[SurfaceChange], None]) -> Callable[[], None]:
        """Call the listener on every change; the returned function unsubscribes."""
        ...


class TaskBook(Protocol):
    """Calls that continue after their answer, by id; Unknown for an id that does not exist."""

    async def get(self, task: str, caller: Caller) -> TaskView:
        """The status of a task."""
        ...

    async def answer(self, task: str, answers: Mapping[str, UserAnswer], caller: Caller) -> None:
        """Pass on the user's answers to the task's questions."""
        ...

    async def cancel(self, task: str, caller: Caller) -> None:
        """Cancel a task."""
        ...


class Surface(Protocol):
    """Everything a server offers."""

    @property
    def about(self) -> ServerInfo:
        """The name, version and instructions of the server."""
        ...

    @property
    def feed(self) -> Feed:
        """Changes of what it offers."""
        ...

    @property
    def tasks(self) -> TaskBook | None:
        """Its tasks, if it has any."""
        ...

    def tools(self) -> Sequence[ToolOffer]:
        """The tools, in an order that never changes."""
        ...

    async def call(self, name: str, arguments: Mapping[str, Any], caller: Caller) -> ToolReply | TaskView:
        """Call a tool; Unknown if there is none with that name."""
        ...

    async def resources(self, caller: Caller) -> Sequence[Resource]:
        """The resources that can be listed; pages only for a client that shows them."""
        ...

    def templates(self) -> Sequence[ResourceTemplate]:
        """The URI templates of resources."""
        ...

    async def read(self, uri: str, caller: Caller) -> Content:
        """The content of a resource; Unknown if there is none with that URI."""
        ...

    async def prompts(self) -> Sequence[PromptOffer]:
        """The prompts."""
        ...

    async def prompt(self, name: str, arguments: Mapping[str, str], caller: Caller) -> str:
        """A prompt with its arguments filled in; Unknown if there is none with that name."""
        ...

    async def complete(self, about: str, argument: str, value: str) -> Sequence[str]:
        """Completions for a partly typed argument; `about` is a prompt's name or a URI template."""
        ...
