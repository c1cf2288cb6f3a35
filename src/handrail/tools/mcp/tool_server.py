"""An MCP server and the specs of its tools: what the server reports, overridden by what a person wrote.

tools.json overrides the server's annotations, config.toml overrides both. The connection is in connection.py, a single
tool in server_tool.py."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final

import msgspec
from msgspec import Struct

from handrail.domain.definition.model import Category, Effect
from handrail.domain.definition.tool_pin import ANNOTATIONS
from handrail.domain.suggestion import did_you_mean
from handrail.engine.tool import CallLimits, ToolFailed, ToolSpec
from handrail.tools.configuration import ToolConfiguration, configured, merged_retry
from handrail.tools.mcp.connection import ServerConnection
from handrail.tools.mcp.declaration import Declared, ToolRule
from handrail.tools.mcp.values.listing import ListedTool
from handrail.tools.mcp.values.listing_cache import ListingCache
from handrail.tools.mcp.values.result import Results
from handrail.tools.mcp.values.schema import ServerSchema
from handrail.tools.vault import Vault

NO_RULE: Final = ToolRule()

_callable_name = re.compile(r"[A-Za-z0-9_./-]{1,128}")


class ReportedTool(Struct, frozen=True):
    """What the server reported about a tool, and what follows from it."""

    listed: ListedTool
    card: Mapping[str, Any]
    schema: ServerSchema


class ToolServer:
    """One declared server, connected or not."""

    def __init__(
        self,
        declared: Declared,
        connection: ServerConnection,
        *,
        results: Results,
        vault: Vault,
        configuration: ToolConfiguration,
        cache: ListingCache,
    ) -> None:
        self.declared = declared
        self.connection = connection
        self.results = results
        self.vault = vault
        self._configuration = configuration
        self._cache = cache
        self._listing: Sequence[ListedTool] | None = None
        self._reported: Mapping[str, ReportedTool] = {}
        self._specs: dict[str, ToolSpec] = {}

    @property
    def name(self) -> str:
        """The part of a tool's name before the dot."""
        return self.declared.name

    async def connect(self) -> None:
        """Connect and list its tools; ToolFailed says why that failed."""
        listing = await self.connection.listing()
        if listing is self._listing:
            return
        self._hear(listing)
        clean = [self._scrubbed(one) for one in listing]
        await asyncio.to_thread(self._cache.keep, self.declared, clean)

    def _hear(self, listing: Sequence[ListedTool]) -> None:
        # Descriptions are shown to agents: the secrets that the server was started with must not be in them.
        self._reported = {one.name: self._report_of(one) for one in listing if _callable_name.fullmatch(one.name)}
        self._specs = {}
        self._listing = listing

    @property
    def was_met(self) -> bool:
        """Whether this process has asked the server for its tools."""
        return self._listing is not None

    def recalled(self) -> ToolServer | None:
        """The server with the tools that it has, or had when it was last asked; None if it never was. Not to be called
        on: what was remembered may be outdated."""
        if self.was_met:
            return self
        listing = self._cache.find(self.declared)
        if listing is None:
            return None
        past = ToolServer(
            self.declared,
            self.connection,
            results=self.results,
            vault=self.vault,
            configuration=self._configuration,
            cache=self._cache,
        )
        past._hear(listing)
        return past

    def reported(self, tool: str) -> ReportedTool | None:
        """What it reported about a tool; None if it has none of that name, or is not connected yet."""
        return self._reported.get(tool)

    def tools(self) -> Sequence[str]:
        """The reported tools that may be called."""
        return [tool for tool in self._reported if self._is_allowed(tool)]

    def rule(self, tool: str) -> ToolRule:
        """The settings of a tool in tools.json."""
        return self.declared.tools.get(tool, NO_RULE)

    def require_allowed(self, tool: str) -> None:
        """ToolFailed if `allow` or `deny` forbids the tool."""
        if not self._is_allowed(tool):
            message = f"{self.name}.{tool} may not be called: the person who declared the server has excluded it"
            raise ToolFailed(Category.PERMISSION, message)

    def require_reported(self, tool: str) -> None:
        """ToolFailed if the server has no such tool."""
        if tool in self.connection.status.listed_twice:
            message = f"the server `{self.name}` lists `{tool[:100]}` twice: which one it means is not known"
            raise ToolFailed(Category.PERMISSION, f"{message}; its author must fix that")
        if tool not in self._reported:
            near = did_you_mean(f"{self.name}.{tool}", [f"{self.name}.{one}" for one in self.tools()])
            message = f"the server `{self.name}` has no tool `{tool[:100]}`"
            raise ToolFailed(Category.NOT_FOUND, f"{message}; {near}" if near else message)

    def spec(self, tool: str) -> ToolSpec:
        """The spec of a tool, from a person's settings, then from the server's report."""
        if tool not in self._specs:
            spec = self._spec(tool)
            if tool not in self._reported:
                return spec  # not cached: there could be any number of unknown names
            self._specs[tool] = spec
        return self._specs[tool]

    def _spec(self, tool: str) -> ToolSpec:
        reported, rule, all_ = self.reported(tool), self.rule(tool), self.declared.rule
        is_limited = all_.concurrency is not None or all_.rate is not None
        spec = ToolSpec(
            name=f"{self.name}.{tool}",
            description=reported.card["description"] if reported else "",
            effect=self._effect(tool),
            args=reported.card["args"] if reported else {},
            output=reported.listed.output_schema if reported else None,
            idempotent=self._is_idempotent(tool),
            retry=merged_retry(rule.retry, all_.retry),
            timeout=rule.timeout or all_.timeout,
            concurrency=rule.concurrency,
            rate=rule.rate,
            server=self.name,
            shared=CallLimits(name=self.name, concurrency=all_.concurrency, rate=all_.rate) if is_limited else None,
            runs_on=tuple(sorted({*rule.runs_on, *all_.runs_on})),
            undo=f"{self.name}.{rule.undo.tool}" if rule.undo else "",
            undo_idempotent=self._is_undo_idempotent(tool),
        )
        return configured(spec, self._configuration)

    def _effect(self, tool: str) -> Effect:
        rule, reported = self.rule(tool), self.reported(tool)
        undoable = Effect.COMPENSATABLE if rule.undo else None
        said = next((word for word in (rule.effect, undoable, self.declared.rule.effect) if word is not None), None)
        if said is not None:
            return said
        if reported is None:
            return Effect.IRREVERSIBLE  # a server that is not connected yet could do anything
        if reported.listed.read_only:
            return Effect.NONE
        return (
            Effect.IRREVERSIBLE if reported.listed.destructive else Effect.COMPENSATABLE
        )  # what only adds can be removed

    def _is_idempotent(self, tool: str) -> bool:
        for word in (self.rule(tool).idempotent, self.declared.rule.idempotent):
            if word is not None:
                return word
        reported = self.reported(tool)
        return reported is not None and (reported.listed.idempotent or reported.listed.read_only)

    def _is_undo_idempotent(self, tool: str) -> bool:
        undo = self.rule(tool).undo
        return undo is None or undo.idempotent is not False

    def _is_allowed(self, tool: str) -> bool:
        """Whether the lists of the declaration let a tool be called. Which list forbids it is shown to people only, by
        `tools check`: the caller may be an agent, which must not learn what to change."""
        mine = self.declared
        is_listed = not mine.allow or any(fnmatchcase(tool, pattern) for pattern in mine.allow)
        return is_listed and not any(fnmatchcase(tool, pattern) for pattern in mine.deny)

    def _scrubbed(self, listed: ListedTool) -> ListedTool:
        return msgspec.convert(self.vault.scrubbed(msgspec.to_builtins(listed)), ListedTool)

    def _report_of(self, listed: ListedTool) -> ReportedTool:
        hints = {"read_only": listed.read_only, "idempotent": listed.idempotent, "destructive": listed.destructive}
        card = {"name": listed.name, "description": listed.description, "args": listed.args, ANNOTATIONS: hints}
        return ReportedTool(listed=listed, card=self.vault.scrubbed(card), schema=ServerSchema(listed.args))
