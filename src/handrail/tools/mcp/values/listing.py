"""The tools that an MCP server lists, within limits. Only values; session.py requests the list.

The list is untrusted: names that can't be called, entries that are too large, and all entries of a name that is listed
twice (one would be shown to a person, and the other called) are left out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct

if TYPE_CHECKING:
    import mcp_types as types

TOOLS_MAX: Final = 1_000
PAGES_MAX: Final = 100
CARD_BYTES_MAX: Final = 200_000

_name = re.compile(r"[A-Za-z0-9_./-]{1,128}")


class ListedTool(Struct, frozen=True):
    """One tool, as its server describes it, with the protocol's defaults."""

    name: str
    description: str
    args: Mapping[str, Any]
    read_only: bool = False
    idempotent: bool = False
    destructive: bool = True
    output_schema: Any = None


class ToolListing:
    """The tools of one server, added page by page."""

    def __init__(self) -> None:
        self._tools: dict[str, ListedTool] = {}
        self._twice: dict[str, None] = {}
        self.left_out = 0

    def add(self, tool: types.Tool) -> None:
        """Add one tool; if its name was listed before, neither is kept."""
        if tool.name in self._tools or tool.name in self._twice:
            self._tools.pop(tool.name, None)
            self._twice[tool.name] = None
            return
        if self.is_full or not _name.fullmatch(tool.name):
            self.left_out += 1
            return
        hints = tool.annotations
        listed = ListedTool(
            name=tool.name,
            description=tool.description or "",
            args=tool.input_schema,
            read_only=bool(hints and hints.read_only_hint),
            idempotent=bool(hints and hints.idempotent_hint),
            destructive=not (hints and hints.destructive_hint is False),
            output_schema=tool.output_schema,
        )
        if len(msgspec.json.encode(listed)) > CARD_BYTES_MAX:
            self.left_out += 1
            return
        self._tools[tool.name] = listed

    @property
    def is_full(self) -> bool:
        """Whether no more tools can be added."""
        return len(self._tools) + len(self._twice) >= TOOLS_MAX

    @property
    def twice(self) -> tuple[str, ...]:
        """The names that were listed more than once."""
        return tuple(self._twice)

    @property
    def tools(self) -> tuple[ListedTool, ...]:
        """The tools that were added, in the server's order."""
        return tuple(self._tools.values())
