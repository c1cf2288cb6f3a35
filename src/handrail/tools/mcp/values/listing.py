"""The tools that an MCP server lists, within limits. Only values; session.py requests the list.

The list is untrusted: names that can't be called, and entries that are too large, are left out."""

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
        self.left_out = 0

    def add(self, tool: types.Tool) -> None:
        """Add one tool; the first of a name is kept."""
        if len(self._tools) >= TOOLS_MAX or not _name.fullmatch(tool.name) or tool.name in self._tools:
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
        return len(self._tools) >= TOOLS_MAX

    @property
    def tools(self) -> tuple[ListedTool, ...]:
        """The tools that were added, in the server's order."""
        return tuple(self._tools.values())
