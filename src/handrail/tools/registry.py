"""The registry: all tools that plans can call (built-in, from plugins, on MCP servers), with their configuration.

Each family of tools has its own file; the engine decides when a tool is called."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace as with_

from handrail.domain.analysis.local import KnownTool, LocalTools
from handrail.domain.definition.effect import BUILT_IN_EFFECTS
from handrail.domain.definition.model import Effect
from handrail.domain.definition.tool_pin import Card
from handrail.domain.errors import Forbidden, NotFound, Unavailable
from handrail.domain.suggestion import did_you_mean
from handrail.domain.trust.decision import ASK_A_PERSON
from handrail.engine.known_secrets import KnownSecrets
from handrail.engine.tool import OWN, PlanTool, ToolSpec
from handrail.tools.configuration import ToolConfiguration, configured
from handrail.tools.files.content_store import ContentStore
from handrail.tools.files.file import file_tools
from handrail.tools.files.rooted import Root
from handrail.tools.mcp.servers import Recalled, Servers
from handrail.tools.python.function_tool import FunctionTool
from handrail.tools.python.plugin import Plugins, discover
from handrail.tools.python.python_tool import built
from handrail.tools.sdk import PythonTool
from handrail.tools.value import value_tools
from handrail.tools.vault import Vault
from handrail.tools.wait import wait_tools
from handrail.tools.web.http import HttpTools

JSON_TYPES: Final = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})


class Registry:
    """The toolbox of a project."""

    def __init__(
        self,
        *,
        project: Path,
        kept: ContentStore | Path,
        private: Sequence[Path] = (),
        configuration: ToolConfiguration | None = None,
        own: Sequence[PythonTool] = (),
        more: Sequence[FunctionTool] = (),
        servers: Servers | None = None,
        vault: Vault | None = None,
        off: Mapping[str, str] | None = None,
        discovering: Callable[[Collection[str]], Plugins] = discover,
    ) -> None:
        """`kept` is the folder for contents that an undo needs; `private` are folders that no plan may read or change;
        `own` are tools of the calling program, `more` are tools that need more than the project. `off` are those of
        them that a setting switches off, and why."""
        self._off = off or {}
        self.servers = servers
        self._vault = vault
        self._configuration = configuration or ToolConfiguration()
        self._discovering = discovering
        self._kept = kept if isinstance(kept, ContentStore) else ContentStore(kept)
        self._http = HttpTools(self._configuration.allow, withheld=self._configuration.withheld)
        root = Root(project, private=(*private, self._kept.folder))
        ours = (file_tools(root, self._kept), self._http.tools(), wait_tools(), value_tools(), more)
        families = (*ours, map(built, own))
        self._built_in = self._named(tool for family in families for tool in family)

    @property
    def secrets(self) -> KnownSecrets | None:
        """The values that the tools may not leave anywhere; None if no secrets are filled in."""
        return self._vault.known if self._vault is not None else None

    def find(self, name: str) -> PlanTool:
        """The tool of that name; NotFound with the nearest names."""
        # Built-in tools first: plugins are looked for only when somebody asks for what is not built in.
        found: PlanTool | None = self._built_in.get(name)
        if found is None and self.servers is not None:
            found = self.servers.find(name)
        found = found or self._tools.get(name)
        if found is None:
            known = [spec.name for spec in self.specs()]
            raise NotFound(f"there is no tool `{name}`", hint=did_you_mean(name, known))
        return found

    def specs(self) -> Sequence[ToolSpec]:
        """The specs of all tools, by name; only of servers that are connected."""
        from_servers = self.servers.specs() if self.servers is not None else ()
        return sorted((*(tool.spec for tool in self._tools.values()), *from_servers), key=lambda spec: spec.name)

    def overview(self) -> Recalled:
        """All tools that are known without starting anything, by name: ours, and those that each server had when it was
        last asked; with the servers of which nothing is known."""
        servers = self.servers
        recalled = servers.recalled(servers.names()) if servers is not None else Recalled()
        ours = (tool.spec for tool in self._tools.values())
        return with_(recalled, specs=tuple(sorted((*ours, *recalled.specs), key=lambda spec: spec.name)))

    async def connect(self, names: Collection[str]) -> Mapping[str, Card]:
        """Connect to the servers of these tools; what they report of each tool. Unavailable if one can't be reached,
        Forbidden if the project that declares it is not trusted."""
        if self.servers is None:
            return {}
        known = self.servers.names()
        wanted = {server for name in names if (server := name.partition(".")[0]) in known}
        if not wanted:
            return {}
        # Before any server is started: what a project declares may not run until a person has trusted it.
        for server, reason in self.servers.off().items():
            if server in wanted:
                raise Forbidden(reason, hint=f"{ASK_A_PERSON}; nothing was changed")
        for server, reason in (await self.servers.connect(wanted)).items():
            raise Unavailable(
                f"the tool server `{server}` can't be reached: {reason}",
                hint=f"`handrail tools check {server}` shows more; nothing was changed",
            )
        tools = [found for name in names if (found := self.servers.find(name)) is not None]
        # The tools that undo them are pinned as well: an undo by a tool that has changed is as dangerous as a call.
        undos = [found for tool in tools if (found := self.servers.find(tool.spec.undo)) is not None]
        return {tool.spec.name: card for tool in (*tools, *undos) if (card := tool.card) is not None}

    def cards(self) -> Mapping[str, Card]:
        """What the servers that were asked say of their tools; none is asked for it."""
        servers = self.servers
        if servers is None:
            return {}
        names = (spec.name for spec in servers.recalled(servers.names()).specs)
        found = {name: tool.card for name in names if (tool := servers.find(name)) is not None}
        return {name: card for name, card in found.items() if card is not None}

    def server_names(self) -> tuple[str, ...]:
        """The tool servers that can be started or reached from this machine."""
        if self.servers is None:
            return ()
        off = self.servers.off()
        return tuple(sorted(name for name in self.servers.names() if name not in off))

    def effects(self) -> Mapping[str, Effect]:
        """What the calls of each tool do to the world, at most; what brings its own undo counts as reversible."""
        return {spec.name: _effect_at_most(spec) for spec in self.specs()}

    def known(self, names: Collection[str]) -> LocalTools:
        """What can be relied on of the tools of these names. No server is started, and plugins are looked for only if
        a name is neither built in nor on a configured server."""
        servers = frozenset(self.servers.names() if self.servers is not None else ())
        asked = {name.partition(".")[0] for name in names} & servers
        recalled = self.servers.recalled(asked) if self.servers is not None else Recalled()
        # Looking for plugins imports packages of strangers; most plans need none of them.
        is_all_found = all(name in self._built_in or name.partition(".")[0] in servers for name in names)
        ours = self._built_in if is_all_found else self._tools
        specs = {spec.name: spec for spec in (*recalled.specs, *(tool.spec for tool in ours.values()))}
        return LocalTools(
            tools={name: _as_known(specs[name]) for name in names if name in specs},
            names=tuple(sorted(specs)),
            families=frozenset(name.partition(".")[0] for name in (*specs, *servers)),
            unasked=recalled.unasked,
            untrusted=recalled.off,
            remembered=recalled.remembered,
            off={name: why for name, why in self._off.items() if name in names},
        )

    async def status(self, url: str, within_s: float) -> int:
        """The status of a GET of a URL, through the address guard of http.request."""
        return await self._http.status(url, within_s)

    @property
    def broken(self) -> Mapping[str, str]:
        """The plugins that can't be used, each with the reason."""
        return self._plugins.broken

    async def forget(self, run: str) -> None:
        """Delete everything stored for undoing this run."""
        if self._kept.has(run):  # a thread is expensive, and most runs store nothing
            await asyncio.to_thread(self._kept.forget, run)

    async def close(self) -> None:
        """Close connections and servers."""
        await self._http.close()
        if self.servers is not None:
            await self.servers.close()

    @cached_property
    def _plugins(self) -> Plugins:
        return self._discovering(frozenset(BUILT_IN_EFFECTS))

    @cached_property
    def _tools(self) -> Mapping[str, FunctionTool]:
        # Ours last, so that no plugin can put itself in the place of a built-in tool.
        return {**self._named(self._plugins.tools.values()), **self._built_in}

    def _named(self, tools: Iterable[FunctionTool]) -> dict[str, FunctionTool]:
        specs = ((tool, configured(_with_undo(tool), self._configuration)) for tool in tools)
        return {spec.name: replace(tool, spec=spec, vault=self._vault) for tool, spec in specs}


def _with_undo(tool: FunctionTool) -> ToolSpec:
    return with_(tool.spec, undo=OWN) if tool.undo_with is not None else tool.spec


def _effect_at_most(spec: ToolSpec) -> Effect:
    return Effect.REVERSIBLE if spec.undo else spec.effect


def _as_known(spec: ToolSpec) -> KnownTool:
    args = _plain_schema(spec.args) if spec.server else spec.args
    return KnownTool(effect=_effect_at_most(spec), args=args, output=spec.output)


def _plain_schema(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """The names and plain types in a server's schema; the rest comes from outside, may be costly to apply, and is
    applied within limits when the tool is called."""
    given = schema.get("properties")
    properties = given if isinstance(given, Mapping) else {}
    is_closed = schema.get("additionalProperties") is False and "patternProperties" not in schema
    required = schema.get("required")
    return {
        "type": "object",
        "properties": {str(name): _plain_type(part) for name, part in properties.items()},
        "required": [name for name in required if isinstance(name, str)] if isinstance(required, list) else [],
        "additionalProperties": not is_closed,
    }


def _plain_type(schema: Any) -> Mapping[str, Any]:
    words = schema.get("type") if isinstance(schema, Mapping) else None
    named = [words] if isinstance(words, str) else words
    is_plain = isinstance(named, list) and named and all(isinstance(one, str) and one in JSON_TYPES for one in named)
    return {"type": words} if is_plain else {}
