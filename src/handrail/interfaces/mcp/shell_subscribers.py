"""Subscriptions: changes that the surface's feed tells, sent to whoever listens, in either era.

Part of the shell. Delivery is by level: "this changed, read it if you care"; what is behind is told once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import mcp_types as mt
from mcp.server.context import ServerRequestContext
from mcp.server.session import ServerSession
from mcp.server.subscriptions import (
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPError

from handrail.interfaces.mcp.surface.surface_protocol import Feed, SurfaceChange

SUBSCRIBED_MAX: Final = 1_000

LISTS: Final[Mapping[str, ServerEvent]] = {
    "tools": ToolsListChanged(),
    "prompts": PromptsListChanged(),
    "resources": ResourcesListChanged(),
}

log = logging.getLogger(__name__)

Context = ServerRequestContext[Any, Any]


@dataclass(frozen=True)
class FeedBus:
    """A feed as the SDK's bus, for streams of `subscriptions/listen`."""

    feed: Feed

    async def publish(self, event: ServerEvent) -> None:
        """Nobody publishes here: changes come from the feed alone."""
        raise NotImplementedError(f"{event} does not come from the feed")

    def subscribe(self, listener: Callable[[ServerEvent], None]) -> Callable[[], None]:
        """Hand every change on."""

        def told(change: SurfaceChange) -> None:
            for event in _events(change):
                listener(event)

        return self.feed.subscribe(told)


def _events(change: SurfaceChange) -> list[ServerEvent]:
    events: list[ServerEvent] = [LISTS[name] for name in change.lists]
    return [*events, ResourceUpdated(uri=change.uri)] if change.uri else events


@dataclass
class _Subscriber:
    """One client of the handshake era, with the addresses it wants to hear of."""

    session: ServerSession
    uris: set[str] = field(default_factory=set)
    behind: set[str] = field(default_factory=set)
    sending: asyncio.Task[None] | None = None
    leave: Callable[[], None] = lambda: None

    def told(self, change: SurfaceChange) -> None:
        """Note a change, and send it soon."""
        if change.uri in self.uris:
            self.behind.add(change.uri)
            if self.sending is None or self.sending.done():
                self.sending = asyncio.get_running_loop().create_task(self._send())

    async def _send(self) -> None:
        while self.behind:
            uri = self.behind.pop()
            try:
                await self.session.send_resource_updated(uri)
            except Exception as error:  # whatever ended the connection, there is nobody to tell any more
                log.debug("a subscriber is gone: %s", error)
                self.leave()
                return


@dataclass
class Subscribers:
    """The clients that have subscribed by `resources/subscribe`."""

    feed: Feed
    _known: dict[int, _Subscriber] = field(default_factory=dict)

    async def subscribe(self, ctx: Context, params: mt.SubscribeRequestParams) -> mt.EmptyResult:
        """Tell this client of changes at an address."""
        key = _connection(ctx)
        subscriber = self._known.get(key)
        if subscriber is None:
            if len(self._known) >= SUBSCRIBED_MAX:
                raise MCPError(mt.INTERNAL_ERROR, "too many clients have subscribed")
            subscriber = self._known[key] = _Subscriber(ctx.session)
            end = self.feed.subscribe(subscriber.told)
            subscriber.leave = lambda: self._leave(key, end)
        if len(subscriber.uris) >= SUBSCRIBED_MAX:
            raise MCPError(mt.INTERNAL_ERROR, f"a client may subscribe to {SUBSCRIBED_MAX} addresses at most")
        subscriber.uris.add(str(params.uri))
        return mt.EmptyResult()

    async def unsubscribe(self, ctx: Context, params: mt.UnsubscribeRequestParams) -> mt.EmptyResult:
        """Tell this client no more of an address."""
        subscriber = self._known.get(_connection(ctx))
        if subscriber is not None:
            subscriber.uris.discard(str(params.uri))
            if not subscriber.uris:
                subscriber.leave()
        return mt.EmptyResult()

    def _leave(self, key: int, end: Callable[[], None]) -> None:
        end()
        self._known.pop(key, None)


def _connection(ctx: Context) -> int:
    """What all requests of one connection share: the very parameters that its handshake brought."""
    return id(ctx.session.client_params)
