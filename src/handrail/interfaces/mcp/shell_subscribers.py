"""Subscriptions: sends the changes of the surface's feed to subscribed clients, in either protocol era.

Part of the shell. A notification says only that a resource has changed; changes that wait to be sent are merged."""

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
ENDS: Final = "handrail:subscriptions-end"
"""Marks a connection whose subscriptions end with it."""

LISTS: Final[Mapping[str, ServerEvent]] = {
    "tools": ToolsListChanged(),
    "prompts": PromptsListChanged(),
    "resources": ResourcesListChanged(),
}

log = logging.getLogger(__name__)

Context = ServerRequestContext[Any, Any]


@dataclass(frozen=True)
class FeedBus:
    """The feed as the SDK's event bus, for `subscriptions/listen` streams."""

    feed: Feed

    async def publish(self, event: ServerEvent) -> None:
        """Not supported: changes come only from the feed."""
        raise NotImplementedError(f"{event} does not come from the feed")

    def subscribe(self, listener: Callable[[ServerEvent], None]) -> Callable[[], None]:
        """Pass every change to the listener; returns how to unsubscribe."""

        def on_change(change: SurfaceChange) -> None:
            for event in _events(change):
                listener(event)

        return self.feed.subscribe(on_change)


def _events(change: SurfaceChange) -> list[ServerEvent]:
    events: list[ServerEvent] = [LISTS[name] for name in change.lists]
    return [*events, ResourceUpdated(uri=change.uri)] if change.uri else events


@dataclass
class _Subscriber:
    """One client of the handshake era, with the URIs it has subscribed to."""

    session: ServerSession
    uris: set[str] = field(default_factory=set)
    unsent: set[str] = field(default_factory=set)
    """A set, so that a slow client gets one notification for many changes, and memory stays bounded."""
    sending: asyncio.Task[None] | None = None
    leave: Callable[[], None] = lambda: None

    def on_change(self, change: SurfaceChange) -> None:
        """Note a change, and send it soon."""
        if change.uri in self.uris:
            self.unsent.add(change.uri)
            if self.sending is None or self.sending.done():
                self.sending = asyncio.get_running_loop().create_task(self._send())

    async def _send(self) -> None:
        while self.unsent:
            uri = self.unsent.pop()
            try:
                await self.session.send_resource_updated(uri)
            except Exception as error:  # any error means that the connection has ended
                log.debug("a subscriber is gone: %s", error)
                self.leave()
                return


@dataclass
class Subscribers:
    """The clients that have subscribed with `resources/subscribe`."""

    feed: Feed
    _by_connection: dict[int, _Subscriber] = field(default_factory=dict)

    async def subscribe(self, ctx: Context, params: mt.SubscribeRequestParams) -> mt.EmptyResult:
        """Notify this client of changes to a resource."""
        key = _connection(ctx)
        subscriber = self._by_connection.get(key)
        if subscriber is None:
            if len(self._by_connection) >= SUBSCRIBED_MAX:
                raise MCPError(mt.INTERNAL_ERROR, "too many clients have subscribed")
            subscriber = self._by_connection[key] = _Subscriber(ctx.session)
            end = self.feed.subscribe(subscriber.on_change)
            subscriber.leave = lambda: self._leave(key, end)
            self._leave_with(ctx, key)
        if len(subscriber.uris) >= SUBSCRIBED_MAX:
            raise MCPError(mt.INTERNAL_ERROR, f"a client may subscribe to at most {SUBSCRIBED_MAX} resources")
        subscriber.uris.add(str(params.uri))
        return mt.EmptyResult()

    async def unsubscribe(self, ctx: Context, params: mt.UnsubscribeRequestParams) -> mt.EmptyResult:
        """Stop notifying this client of changes to a resource."""
        subscriber = self._by_connection.get(_connection(ctx))
        if subscriber is not None:
            subscriber.uris.discard(str(params.uri))
            if not subscriber.uris:
                subscriber.leave()
        return mt.EmptyResult()

    def _leave_with(self, ctx: Context, key: int) -> None:
        """Forget a client when its connection ends: what is sent to one that has ended is dropped without an error."""
        connection = ctx.session._connection  # handlers have no other way to it
        if ENDS not in connection.state:  # once for a connection, however often it subscribes again
            connection.state[ENDS] = True
            connection.exit_stack.callback(self._connection_ended, key)

    def _connection_ended(self, key: int) -> None:
        if key in self._by_connection:
            self._by_connection[key].leave()

    def _leave(self, key: int, end: Callable[[], None]) -> None:
        end()
        self._by_connection.pop(key, None)


def _connection(ctx: Context) -> int:
    """Identifies a connection: all its requests share one object, the parameters of its handshake."""
    return id(ctx.session.client_params)
