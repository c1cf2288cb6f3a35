"""Plans: save a version, retire, look up. Works like dispatch for runs: read, replay, decide, append.

Async; uses only the journal's protocol. domain/plan.py decides what is granted."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import msgspec
from msgspec.structs import replace

from handrail.domain.definition.authoring import definition_data, definition_from
from handrail.domain.definition.model import Definition
from handrail.domain.definition.tool_pin import NO_CARDS, Card, pins_of, texts_of
from handrail.domain.errors import IntegrityBroken, JournalConflict, NotFound
from handrail.domain.journal.chain import Head
from handrail.domain.json import canonical_bytes, digest
from handrail.domain.plan import Plan, PlanVersion, decide_plan, project_plan, replay_plan
from handrail.domain.policy.act import act_of_plan
from handrail.domain.policy.table import may
from handrail.domain.policy.verdict import require_allowed
from handrail.domain.project import NO_PROJECT, plan_stream, require_plain
from handrail.domain.run.command import PlanCommand, RetirePlan, SavePlan
from handrail.engine.journal import Journal
from handrail.engine.record_writer import RecordWriter
from handrail.engine.stream_pages import entries_of

CONFLICTS_MAX: Final = 50

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Plans:
    """The plans of a project. Plans that were saved before there were projects are everyone's, until a project saves
    its own."""

    journal: Journal
    record_writer: RecordWriter
    project: str = NO_PROJECT

    async def save(
        self, definition: Definition, *, actor: str, note: str = "", cards: Mapping[str, Card] = NO_CARDS
    ) -> Plan:
        """Save a version of a plan, pinned to the descriptions of its tools (`cards`); the same twice in a row is one
        version."""
        require_plain(definition.id)
        data = definition_data(definition)
        content_hash = digest(data)
        steps, pins = len(definition.steps), pins_of(cards)
        command = SavePlan(
            definition=content_hash, name=definition.name, steps=steps, note=note, pins=pins, project=self.project
        )
        text = canonical_bytes(data)
        self.record_writer.secrets.require_absent(text, "the plan")
        texts = ((content_hash, text), *texts_of(cards))
        return await self._grant(definition.id, self.project, command, actor=actor, texts=texts)

    async def retire(self, plan_id: str, *, reason: str, actor: str) -> Plan:
        """Stop offering a plan; nothing is deleted."""
        plan = await self.get(plan_id)
        return await self._grant(plan_id, plan.project, RetirePlan(reason=reason), actor=actor)

    async def get(self, plan_id: str) -> Plan:
        """A plan with all its versions; without any if it was never saved."""
        require_plain(plan_id)
        own = await self._read(plan_id, self.project)
        if own.versions or not self.project:
            return own
        older = await self._read(plan_id, NO_PROJECT)
        return older if older.versions else own

    async def _read(self, plan_id: str, project: str) -> Plan:
        entries = await entries_of(self.journal, plan_stream(project, plan_id))
        return replay_plan(entries, Plan(id=plan_id, project=project))

    async def newest(self, plan_id: str) -> tuple[Definition, Mapping[str, str]]:
        """A plan's newest version, and what its tools are pinned to; NotFound if there is none, or it is retired."""
        plan = await self.get(plan_id)
        if not plan.versions or plan.retired is not None:
            raise NotFound(f"there is no plan {plan_id!r}", hint="list the plans, or save one first")
        return await self.definition(plan.newest), plan.newest.pins

    async def definition(self, version: PlanVersion) -> Definition:
        """The text of one version."""
        text = await self.journal.definition(version.definition)
        if text is None:
            raise IntegrityBroken(f"the definition {version.definition} is not in the store")
        return definition_from(msgspec.json.decode(text))

    async def _grant(
        self, plan_id: str, project: str, command: PlanCommand, *, actor: str, texts: tuple[tuple[str, bytes], ...] = ()
    ) -> Plan:
        for _ in range(CONFLICTS_MAX):
            plan = await self._read(plan_id, project)
            require_allowed(may(actor, act_of_plan(command)))
            events = decide_plan(plan, command)
            if not events:
                return plan
            records, entries = self.record_writer.write(
                Head(plan_stream(project, plan_id), plan.n, plan.head), events, actor=actor
            )
            after = replay_plan(entries, plan)
            try:
                await self.journal.append(records, replace(project_plan(after), definitions=texts))
            except JournalConflict:
                continue  # another writer saved in the meantime: decide again on the new state
            log.info("%s %s, version %d", records[-1].kind, plan_id, after.newest.number)
            return after
        raise JournalConflict(f"too many writers save plan {plan_id!r} at once")


def version_of(plan: Plan, number: int | None) -> PlanVersion:
    """The version with this number, or the newest."""
    if number is None:
        return plan.newest
    if not 1 <= number <= len(plan.versions):
        raise NotFound(f"plan {plan.id!r} has no version {number}", hint=f"it has versions 1 to {len(plan.versions)}")
    return plan.versions[number - 1]
