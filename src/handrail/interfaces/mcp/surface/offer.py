"""Tools, resources and prompts as plain values, independent of any protocol library.

Values only. The handlers are in *_tools.py; shell.py translates these values into the SDK's types."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct

JSON_TYPE: Final = "application/json"
MARKDOWN_TYPE: Final = "text/markdown"


class Toolset(StrEnum):
    """Tools that are enabled together (`handrail mcp --toolsets`)."""

    GUIDE = "guide"
    RUN = "run"
    JOURNAL = "journal"


class Hints(Struct, frozen=True, kw_only=True):
    """Tool annotations: what a client may know about a tool before calling it."""

    read_only: bool = False
    destructive: bool = False
    idempotent: bool = False


class ToolOffer(Struct, frozen=True, kw_only=True):
    """A tool as a model sees it."""

    name: str
    description: str
    input: Mapping[str, Any]
    output: Mapping[str, Any] | None = None
    hints: Hints = Hints()
    toolset: Toolset | None = None
    app: str = ""
    """The page that shows its answers, in clients that show pages."""
    app_input: Mapping[str, Any] | None = None
    """Its input with what only that page sends; None if there is no such argument."""


class Resource(Struct, frozen=True, kw_only=True):
    """Content that can be read by its URI."""

    uri: str
    name: str
    description: str = ""
    type: str = JSON_TYPE
    meta: Mapping[str, Any] | None = None
    """How a client has to show it."""


class ResourceTemplate(Struct, frozen=True, kw_only=True):
    """A family of resources whose URIs follow a pattern."""

    pattern: str
    name: str
    description: str = ""
    type: str = JSON_TYPE


class Content(Struct, frozen=True, kw_only=True):
    """The content of a resource: a string, or bytes."""

    text: str = ""
    blob: bytes | None = None
    type: str = JSON_TYPE
    meta: Mapping[str, Any] | None = None


class PromptArgument(Struct, frozen=True, kw_only=True):
    """An argument of a prompt."""

    name: str
    description: str = ""
    required: bool = False


class PromptOffer(Struct, frozen=True, kw_only=True):
    """A message that a user can choose in the client, with arguments to fill in."""

    name: str
    title: str = ""
    description: str = ""
    arguments: tuple[PromptArgument, ...] = ()
