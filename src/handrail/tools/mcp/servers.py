"""All declared MCP servers: found by name, connected when they are needed, closed together.

A server that can't be reached does not affect the others. They are declared in tools.json (declaration.py)."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from handrail.domain.definition.duration import duration_ms
from handrail.domain.suggestion import did_you_mean
from handrail.engine.tool import ToolFailed, ToolSpec
from handrail.tools.configuration import ToolConfiguration
from handrail.tools.files.content_store import ContentStore
from handrail.tools.mcp.connection import ServerConnection, ServerStatus
from handrail.tools.mcp.declaration import Declared
from handrail.tools.mcp.server_tool import ServerTool
from handrail.tools.mcp.tool_server import ToolServer
from handrail.tools.mcp.transport.era_memory import EraCache
from handrail.tools.mcp.values.listing_cache import ListingCache
from handrail.tools.mcp.values.result import Results
from handrail.tools.mcp.working_folder import ServerPlaces
from handrail.tools.vault import Vault

CONNECTING_MAX: Final = 16
"""How many servers are started at once."""
CONNECT_GRACE_S: Final = 2.0
"""How much longer than its start timeout to wait for a server; after that it is stopped in the background."""


class Recalled(Struct, frozen=True, kw_only=True):
    """What is known of the tools of some servers without asking them."""

    specs: tuple[ToolSpec, ...] = ()
    unasked: frozenset[str] = frozenset()
    """Servers that never said what their tools are."""
    remembered: frozenset[str] = frozenset()
    """Servers that said it at an earlier time."""
    off: frozenset[str] = frozenset()
    """Servers that are not started, because the project that declares them is not trusted."""


class Servers:
    """The declared servers."""

    def __init__(
        self,
        declared: Mapping[str, Declared],
        *,
        places: ServerPlaces,
        logs: Path,
        cache: Path,
        kept: ContentStore,
        vault: Vault,
        configuration: ToolConfiguration,
    ) -> None:
        """`logs` is the folder for the servers' stderr; `cache` is a file that may be deleted."""
        eras = EraCache(cache)
        listings = ListingCache(cache.parent / "server-tools")
        results = Results(kept, vault.scrubbed, lambda content: vault.known.scrubber().content(content))
        self._servers = {
            name: ToolServer(
                one,
                ServerConnection(
                    one,
                    places=places,
                    log=logs / f"{name}.log",
                    fill=partial(vault.text, server=name),
                    remembered=eras,
                    scrub=vault.scrubbed,
                ),
                results=results,
                vault=vault,
                configuration=configuration,
                cache=listings,
            )
            for name, one in sorted(declared.items())
        }
        self._connecting = asyncio.Semaphore(CONNECTING_MAX)

    def names(self) -> Collection[str]:
        """The names of the declared servers."""
        return self._servers.keys()

    def off(self) -> Mapping[str, str]:
        """The servers that are not started, each with the reason."""
        return {name: server.declared.off for name, server in self._servers.items() if server.declared.off}

    def shadowed(self) -> Mapping[str, Sequence[str]]:
        """The files whose entry for a server does not count, because another file has one of that name."""
        return {name: server.declared.shadows for name, server in self._servers.items() if server.declared.shadows}

    def server(self, name: str) -> ToolServer:
        """One server, by its name."""
        return self._servers[name]

    def find(self, name: str) -> ServerTool | None:
        """The tool `<server>.<tool>` of a declared server, connected or not; None if that server is not declared."""
        server, dot, tool = name.partition(".")
        return ServerTool(self._servers[server], tool) if dot and server in self._servers else None

    def specs(self) -> Sequence[ToolSpec]:
        """The specs of the tools of all servers that were connected so far, by name."""
        found = [server.spec(tool) for server in self._servers.values() for tool in server.tools()]
        return sorted(found, key=lambda spec: spec.name)

    def recalled(self, servers: Collection[str]) -> Recalled:
        """What is known of the tools of these servers without asking any of them."""
        off = frozenset(self.off()) & frozenset(servers)
        named = {name: self._servers[name] for name in servers if name in self._servers and name not in off}
        past = {name: found for name, server in named.items() if (found := server.recalled()) is not None}
        return Recalled(
            specs=tuple(server.spec(tool) for server in past.values() for tool in server.tools()),
            unasked=frozenset(named.keys() - past.keys()),
            remembered=frozenset(name for name in past if not named[name].was_met),
            off=off,
        )

    async def connect(self, servers: Collection[str]) -> Mapping[str, str]:
        """Connect to these servers in parallel and list their tools; those that can't be reached, with the reason."""
        names = sorted(set(servers))
        reasons = await asyncio.gather(*map(self._connect_one, names))
        return {name: reason for name, reason in zip(names, reasons, strict=True) if reason}

    def status(self) -> Mapping[str, ServerStatus]:
        """The status of each server."""
        return {name: self._status_of(server) for name, server in self._servers.items()}

    async def close(self) -> None:
        """Stop all servers that were started, even if stopping one fails."""
        closing = (server.connection.close() for server in self._servers.values())
        for outcome in await asyncio.gather(*closing, return_exceptions=True):
            if isinstance(outcome, BaseException):
                raise outcome

    def _status_of(self, server: ToolServer) -> ServerStatus:
        status, clean = server.connection.status, server.vault.scrubbed
        named = {name: clean(getattr(status, name)) for name in ("error", "server", "version")}
        return replace(status, **named, listed_twice=tuple(map(clean, status.listed_twice)))

    async def _connect_one(self, name: str) -> str:
        """Why a server can't be reached; empty if it can."""
        server = self._servers.get(name)
        if server is None:
            return f"no server `{name[:100]}` is declared; {did_you_mean(name, self._servers)}".removesuffix("; ")
        limit_s = duration_ms(server.declared.start_timeout) / 1_000 + CONNECT_GRACE_S
        try:
            async with self._connecting, asyncio.timeout(limit_s):
                await server.connect()
        except ToolFailed as failed:
            return str(server.vault.scrubbed(failed.message))
        except TimeoutError:
            return f"it did not list its tools within {limit_s:g} s; its log is {server.connection.status.log}"
        return ""
