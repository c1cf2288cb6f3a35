"""The settings of a worker, and what its attempts get of them. No I/O."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from handrail.domain.scheduling.step_start import InputCheck
from handrail.engine.dispatch import Dispatch
from handrail.engine.fleet.limits import FleetLimits
from handrail.engine.fleet.node import LocalNode
from handrail.engine.measuring.measures import NO_MEASURES, Measures
from handrail.engine.passed_in import Clock
from handrail.engine.running.calls.attempt import AttemptServices, ResultJudge, SchemaCheck
from handrail.engine.running.calls.breakers import Breakers
from handrail.engine.running.calls.throttle import CALLS_MAX, Throttle
from handrail.engine.tool import Toolbox

LEASE_S_DEFAULT: Final = 10.0


@dataclass(frozen=True)
class WorkerSettings:
    """The settings of a worker: its name, clock, checks, length of a lease, and number of parallel calls."""

    owner: str
    actor: str
    clock: Clock
    check: InputCheck
    fits: SchemaCheck
    judge: ResultJudge | None = None
    lease_s: float = LEASE_S_DEFAULT
    calls_max: int = CALLS_MAX
    node: LocalNode | None = None
    """Whose slots it shares; None: it takes what there is."""
    labels: frozenset[str] = frozenset()
    """What this machine has."""
    runs_on: frozenset[str] = frozenset()
    """What a node must have to execute runs of this project."""
    is_shared: bool = False
    """Whether other machines work on the same store."""
    limits: FleetLimits | None = None
    """Counts calls with those of all other nodes, on a shared store."""
    picks_up: bool = True
    """Whether it also takes over runs that it was not asked to execute."""
    measures: Measures = NO_MEASURES


class WorkerLoad(NamedTuple):
    """How much a worker does."""

    runs: int
    calls: int
    calls_max: int
    queued: int
    """Calls that wait for a limit, a breaker or a node."""


def services_of(
    settings: WorkerSettings, dispatch: Dispatch, toolbox: Toolbox, wake: Callable[[str], None]
) -> AttemptServices:
    """What every attempt of a worker shares; `wake` is called with a run that may start another call."""
    return AttemptServices(
        dispatch=dispatch,
        toolbox=toolbox,
        throttle=Throttle(wake, calls_max=settings.calls_max, fleet=settings.limits),
        breakers=Breakers(dispatch.journal, dispatch.record_writer, settings.actor, dispatch.project),
        clock=settings.clock,
        entropy=dispatch.record_writer.entropy,
        actor=settings.actor,
        check=settings.check,
        fits=settings.fits,
        judge=settings.judge,
        labels=settings.labels,
        is_shared=settings.is_shared,
        measures=settings.measures,
    )
