"""Pending approvals as the person sees them who is asked: what a yes lets happen, what is done already, and whether
they may answer.

Async only because runs are read. Who may answer is decided in domain/policy/, what follows in domain/preview/."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from handrail.domain.definition.effect import effect_of
from handrail.domain.definition.model import Definition, Effect, Tool, title_of
from handrail.domain.errors import NotFound, OtherProject
from handrail.domain.instant import instant_text
from handrail.domain.journal.codec import entry_of
from handrail.domain.journal.event import ApprovalGiven, ApprovalRequested
from handrail.domain.preview.control_preview import ControlAsked
from handrail.domain.preview.values import CallAhead, ControlPreview
from handrail.domain.run.legal_controls import Action
from handrail.domain.run.state import Run
from handrail.domain.run.status import RUN_SHOWN_ASKING, StepStatus
from handrail.domain.run.step_path import is_in_undo, locate
from handrail.domain.scheduling.compensation import has_undo, lasting_effect
from handrail.engine.reading.control_previews import ControlPreviews
from handrail.engine.reading.run_view import ProjectView, Status, WaitingFor, WaitingKind
from handrail.engine.reading.step_view import Shown
from handrail.engine.stream_pages import pages_of


class ApprovalSoFar(Shown, frozen=True):
    """The yes of one of several people."""

    by: str
    at: str
    n: int
    reason: str = ""
    channel: str = ""
    behalf: str = ""


class EffectDone(Shown, frozen=True):
    """An effect that the run has had already."""

    step: str
    title: str = ""
    tool: str = ""
    effect: Effect | None = None
    can_be_undone: bool = False
    by: str = ""


class PendingApproval(Shown, frozen=True):
    """What a person is asked, and whether this one may answer."""

    run: str
    step: str
    workflow: str
    asked: WaitingFor
    may_answer: bool
    goal: str = ""
    why_not: str = ""
    who_may: str = ""
    passphrase: bool = False
    ahead: tuple[CallAhead, ...] = ()
    """The steps that a yes lets start, in order, each with its call as far as it is known."""
    ahead_unshown: int = 0
    done: tuple[EffectDone, ...] = ()
    answers: tuple[ApprovalSoFar, ...] = ()
    project: ProjectView | None = None


@dataclass(frozen=True)
class Approvals:
    """Reads pending approvals."""

    previews: ControlPreviews

    async def pending(
        self, *, actor: str, channel: str = "", limit: int = 200, project: str = "", all_projects: bool = False
    ) -> list[PendingApproval]:
        """All that waits for an answer in at most so many runs, as this actor sees it."""
        reader = self.previews.reader
        rows = await reader.runs(status=RUN_SHOWN_ASKING, limit=limit, project=project, all_projects=all_projects)
        asked = [(row, one) for row in rows for one in row.waiting_for if one.kind is WaitingKind.APPROVAL]
        found = []
        # One by one: each is read from the cache of the list above, and a long list must not fill the event loop.
        for row, one in asked:
            try:
                seen = await self.one(row.run, one.step, actor=actor, channel=channel)
            except NotFound:  # answered meanwhile
                continue
            found.append(replace(seen, project=row.project) if row.project is not None else seen)
        return found

    async def one(self, run_id: str, step: str, *, actor: str, channel: str = "") -> PendingApproval:
        """One pending approval; NotFound if the step does not wait for an answer."""
        reader = self.previews.reader
        status = await reader.status(run_id)
        asked = _asked(status, step)
        run = await reader.run(run_id)
        seen = await self._preview(run, ControlAsked(action=Action.APPROVE, actor=actor, step=step, channel=channel))
        return PendingApproval(
            run=run_id,
            step=step,
            workflow=status.workflow,
            goal=status.goal,
            asked=asked,
            may_answer=seen.allowed and seen.legal,
            why_not=seen.why or seen.message,
            who_may=seen.who_may or seen.hint,
            passphrase=seen.passphrase,
            ahead=seen.calls,
            ahead_unshown=seen.unshown,
            done=effects_done(run, await reader.definition(run)),
            answers=await self._answers(run, step) if asked.approved_by else (),
            project=status.project,
        )

    async def _preview(self, run: Run, asked: ControlAsked) -> ControlPreview:
        """What a yes would do; of a run of another project only that it can't be answered here."""
        try:
            return await self.previews.of(run.id, asked)
        except OtherProject as error:
            return ControlPreview(
                run=run.id,
                action=asked.action,
                at=run.n,
                was=run.status,
                legal=False,
                allowed=False,
                why=str(error),
                who_may=error.hint,
            )

    async def _answers(self, run: Run, step: str) -> tuple[ApprovalSoFar, ...]:
        """The answers to what is asked now."""
        found: list[ApprovalSoFar] = []
        async for page in pages_of(self.previews.reader.store, run.id):
            for record in page:
                if record.step != step or not record.kind.startswith("approval_"):
                    continue
                entry = entry_of(record)
                if isinstance(entry.event, ApprovalRequested):
                    found.clear()
                elif isinstance(entry.event, ApprovalGiven):
                    found.append(
                        ApprovalSoFar(
                            by=entry.actor,
                            at=instant_text(entry.at),
                            n=entry.n,
                            reason=entry.event.reason,
                            channel=entry.event.channel,
                            behalf=entry.event.behalf,
                        )
                    )
        return tuple(found)


def _asked(status: Status, step: str) -> WaitingFor:
    asked = next((one for one in status.waiting_for if one.step == step and one.digest), None)
    if asked is None:
        raise NotFound(f"step {step!r} of {status.run} does not wait for an approval", hint="list what waits")
    return asked


def effects_done(run: Run, definition: Definition) -> tuple[EffectDone, ...]:
    """The effects that a run has had and that are not undone, in the order of its journal."""
    done = (
        (path, state)
        for path, state in run.steps.items()
        if state.status is StepStatus.COMPLETED and not is_in_undo(path)
    )
    found: Sequence[EffectDone] = [
        EffectDone(
            step=path,
            title=title_of(place.step),
            tool=place.step.work.tool if isinstance(place.step.work, Tool) else "",
            effect=state.effect if state.effect is not None else effect_of(place.step),
            can_be_undone=has_undo(place, state),
            by=state.actor,
        )
        for path, state in done
        if lasting_effect(place := locate(definition, path), state)
    ]
    return tuple(found)
