"""What is offered, as values: tools, resources and prompts, before any protocol speaks of them.

Values only. What a call of them does is the handlers' work; how a protocol words them is the shell's."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct

JSON_TYPE: Final = "application/json"
MARKDOWN_TYPE: Final = "text/markdown"


class Toolset(StrEnum):
    """Tools that belong together, and are chosen together."""

    GUIDE = "guide"
    RUN = "run"
    JOURNAL = "journal"


class Hints(Struct, frozen=True, kw_only=True):
    """What a client may expect of a tool, before it calls it."""

    read_only: bool = False
    destructive: bool = False
    idempotent: bool = False


class Tool(Struct, frozen=True, kw_only=True):
    """A tool as a model sees it."""

    name: str
    description: str
    input: Mapping[str, Any]
    output: Mapping[str, Any] | None = None
    hints: Hints = Hints()
    toolset: Toolset | None = None


class Resource(Struct, frozen=True, kw_only=True):
    """Something that can be read by its address."""

    uri: str
    name: str
    description: str = ""
    type: str = JSON_TYPE


class ResourceTemplate(Struct, frozen=True, kw_only=True):
    """Addresses of one pattern."""

    pattern: str
    name: str
    description: str = ""
    type: str = JSON_TYPE


class Content(Struct, frozen=True, kw_only=True):
    """What stands at an address: a text, or bytes."""

    text: str = ""
    blob: bytes | None = None
    type: str = JSON_TYPE


class PromptArgument(Struct, frozen=True, kw_only=True):
    """A blank in a prompt."""

    name: str
    description: str = ""
    required: bool = False


class Prompt(Struct, frozen=True, kw_only=True):
    """A text that a person can choose to send, with blanks to fill in."""

    name: str
    title: str = ""
    description: str = ""
    arguments: tuple[PromptArgument, ...] = ()
