"""Hosts: the one that the settings name, which places runs on nodes.

Part of the only place that knows which parts the program is made of; nothing is decided here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from handrail.assembly.stores import is_shared, postgres_store
from handrail.domain.definition.duration import duration_ms
from handrail.domain.errors import HandrailError, Invalid, Unavailable
from handrail.engine.clock import system_clock
from handrail.engine.proving.projection_repair import WholeStore
from handrail.engine.running.host import Host, HostState
from handrail.settings import Settings

if TYPE_CHECKING:
    from handrail.hosts.temporal import TemporalHost
    from handrail.storage.postgres.store import PostgresStore

LOCAL: Final = "local"
ABSURD: Final = "absurd"
TEMPORAL: Final = "temporal://"


def host_of(settings: Settings, store: WholeStore, *, project: str, node: str) -> Host | None:
    """The host for the worker of one project; None if every worker takes what is free."""
    named = named_host(settings)
    heartbeat_s = duration_ms(settings.choices.lease) / 1_000
    if named == LOCAL:
        return None
    if named != ABSURD:
        return _temporal(named, project, heartbeat_s)
    # Late: only who asks for a host pays for its import.
    from handrail.hosts.absurd import AbsurdHost
    from handrail.storage.postgres.store import PostgresStore

    if not isinstance(store, PostgresStore):
        raise _needs_postgres()
    return AbsurdHost(store, system_clock, project=project, node=node, heartbeat_s=heartbeat_s)


def named_host(settings: Settings) -> str:
    """What HANDRAIL_HOST names; Invalid if there is no such host."""
    named = settings.choices.host or LOCAL
    if named == ABSURD and not is_shared(settings):
        raise _needs_postgres()
    if named not in (LOCAL, ABSURD) and not named.startswith(TEMPORAL):
        raise Invalid(
            f"HANDRAIL_HOST is {named!r}: no such host is known",
            hint="write local, absurd, or temporal://host:7233/namespace",
        )
    return named


async def host_state(settings: Settings) -> HostState | None:
    """Whether the host that the settings name answers; None if there is none to ask."""
    named = named_host(settings)
    if named == LOCAL:
        return None
    if named != ABSURD:
        host = _temporal(named, "", duration_ms(settings.choices.lease) / 1_000)
        try:
            return await host.state()
        finally:
            await host.close()
    try:
        async with postgres_store(settings) as store:
            return await _absurd_state(store)
    except HandrailError as error:
        return HostState(name=named, problem=f"{error}; {error.hint}")


async def _absurd_state(store: PostgresStore) -> HostState:
    from handrail.hosts.absurd import AbsurdHost  # late, as above

    return await AbsurdHost(store, system_clock, project="", node="", heartbeat_s=1).state()


def _temporal(address: str, project: str, heartbeat_s: float) -> TemporalHost:
    try:
        from handrail.hosts.temporal import TemporalHost  # late: it takes half a second, and is an extra
    except ImportError as error:
        raise Unavailable(
            "the host Temporal needs its library, which is not installed",
            hint="install it: `pip install 'handrail[temporal]'`",
        ) from error
    return TemporalHost(address, project=project, heartbeat_s=heartbeat_s)


def _needs_postgres() -> Invalid:
    return Invalid(
        "the host `absurd` needs a store in PostgreSQL",
        hint="set HANDRAIL_STORE to its address, or leave HANDRAIL_HOST empty",
    )
