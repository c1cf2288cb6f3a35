"""A saved plan: numbered versions, and a retirement mark instead of deletion.

Pure: the replay of a plan's stream, the decision on its commands, and its projection row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import assert_never

from msgspec import Struct, field
from msgspec.structs import replace

from handrail.domain.errors import Conflict, NotFound
from handrail.domain.journal.chain import GENESIS, receipt
from handrail.domain.journal.event import Entry
from handrail.domain.journal.fact import granted
from handrail.domain.journal.projection import Change, PlanRow
from handrail.domain.journal.store_event import PlanEvent, PlanRetired, PlanSaved
from handrail.domain.run.command import PlanCommand, RetirePlan, SavePlan


class PlanVersion(Struct, frozen=True, kw_only=True):
    """One saved version of a plan."""

    number: int
    definition: str
    name: str
    steps: int
    note: str
    saved: int
    actor: str
    pins: Mapping[str, str] = field(default_factory=dict)


class Plan(Struct, frozen=True, kw_only=True):
    """The state of a plan: the result of replaying its events."""

    id: str
    project: str = ""
    versions: tuple[PlanVersion, ...] = ()
    retired: int | None = None
    n: int = 0
    head: bytes = GENESIS

    @property
    def receipt(self) -> str:
        """What a caller keeps as proof of the plan's current last event."""
        return receipt(self.n, self.head)

    @property
    def newest(self) -> PlanVersion:
        """The version that was saved last."""
        if not self.versions:
            raise NotFound(f"there is no plan {self.id!r}", hint="`handrail plan list` shows the saved ones")
        return self.versions[-1]


def decide_plan(plan: Plan, command: PlanCommand) -> list[PlanEvent]:
    """The events that the command causes; none if the same text is saved twice in a row."""
    match command:
        case SavePlan():
            if plan.versions and plan.retired is None and _is_same(plan.newest, command):
                return []
            return [granted(PlanSaved, command, version=len(plan.versions) + 1)]
        case RetirePlan():
            newest = plan.newest
            if plan.retired is not None:
                raise Conflict(f"plan {newest.name!r} is retired already", hint="save it again to restore it")
            return [granted(PlanRetired, command)]
        case _:
            assert_never(command)


def _is_same(version: PlanVersion, command: SavePlan) -> bool:
    return (version.definition, version.pins) == (command.definition, command.pins)


def replay_plan(entries: Iterable[Entry], start: Plan) -> Plan:
    """The plan after these entries."""
    plan = start
    for entry in entries:
        if isinstance(entry.event, PlanEvent):
            plan = replace(_apply(plan, entry.event, entry), n=entry.n, head=entry.hash)
    return plan


def _apply(plan: Plan, event: PlanEvent, entry: Entry) -> Plan:
    match event:
        case PlanSaved():
            version = PlanVersion(
                number=event.version,
                definition=event.definition,
                name=event.name,
                steps=event.steps,
                note=event.note,
                saved=entry.at,
                actor=entry.actor,
                pins=event.pins,
            )
            return replace(plan, versions=(*plan.versions, version), retired=None)
        case PlanRetired():
            return replace(plan, retired=entry.at)
        case _:
            assert_never(event)


def project_plan(plan: Plan) -> Change:
    """The projection row of a plan."""
    newest = plan.newest
    row = PlanRow(
        id=plan.id,
        project=plan.project,
        version=newest.number,
        definition=newest.definition,
        name=newest.name,
        steps=newest.steps,
        saved=newest.saved,
        retired=plan.retired,
        n=plan.n,
        head=plan.head,
    )
    return Change(plan=row)
