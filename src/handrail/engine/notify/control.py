"""What people do with channels: disable and enable them, send dead letters again or discard them, if they may."""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Final

from handrail.domain.errors import NotFound
from handrail.domain.journal.mark import Mark
from handrail.domain.policy.act import Act
from handrail.domain.policy.table import may
from handrail.domain.policy.verdict import require_allowed
from handrail.domain.suggestion import did_you_mean
from handrail.engine.notify.outbox import ChannelSwitch, KeptChannel, Outbox

NO_CHANNEL: Final = "name one in [notify.channels] of config.toml in HANDRAIL_HOME"

log = logging.getLogger(__name__)


class Channels:
    """The channels of a store, for people who change them."""

    def __init__(self, outbox: Outbox, configured: Collection[str]) -> None:
        self._outbox, self._configured = outbox, configured

    async def disable(self, name: str, *, actor: str, at: int, reason: str) -> KeptChannel:
        """Send nothing to a channel any more, until somebody enables it; the channel as it is then."""
        await self._require(name, actor)
        await self._outbox.switch(name, ChannelSwitch(by=actor, at=at, reason=reason))
        log.info("%s disabled the channel %s: %s", actor, name, reason)
        return (await self._kept())[name]

    async def enable(self, name: str, *, actor: str, end: Mark | None = None) -> KeptChannel:
        """Send again, from where it stopped; or from the end of the journal: then what waits is left out as well."""
        await self._require(name, actor)
        # Skipped while it is still disabled: else some of it could be sent in between.
        if end is not None:
            await self._outbox.skip(name, end.text)
        await self._outbox.switch(name, None)
        log.info("%s enabled the channel %s%s", actor, name, ", without what happened meanwhile" if end else "")
        return (await self._kept())[name]

    async def resend(self, name: str, ids: Collection[str], *, actor: str) -> int:
        """Try dead letters again: those with these ids, or all; how many there were."""
        await self._require(name, actor)
        count = await self._outbox.revive(name, ids)
        log.info("%s lets %d dead letters to %s be sent again", actor, count, name)
        return count

    async def discard(self, name: str, ids: Collection[str], *, actor: str) -> int:
        """Remove dead letters: those with these ids, or all; how many there were."""
        await self._require(name, actor)
        count = await self._outbox.discard(name, ids)
        log.info("%s discarded %d dead letters to %s", actor, count, name)
        return count

    async def _require(self, name: str, actor: str) -> None:
        """Refuse who may not, and what is no channel; one that was never served yet is kept from now on."""
        require_allowed(may(actor, Act.NOTIFY))
        known = {*self._configured, *await self._kept()}
        if name not in known:
            raise NotFound(f"there is no channel {name!r}", hint=did_you_mean(name, sorted(known)) or NO_CHANNEL)
        if name not in await self._kept():
            # So that it can be disabled before anything was ever sent to it.
            await self._outbox.claim(name, actor, ttl_ms=1_000)
            await self._outbox.release(actor)

    async def _kept(self) -> dict[str, KeptChannel]:
        return {one.name: one for one in await self._outbox.channels()}
