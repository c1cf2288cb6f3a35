"""An agent that tries to get past everything: skip, approve, accept, resume, fork, and answer what was asked before.

All by the calls that agents have, and by commands straight to dispatch. What must not come of it is in authority.py."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Final

from handrail.domain.definition.model import Approve
from handrail.domain.journal.event import ApprovalRequested, Outcome
from handrail.domain.run.command import (
    AcceptStep,
    Command,
    CompleteStep,
    FinishRun,
    GiveApproval,
    RecordAction,
    ResumeRun,
    SkipStep,
    StartAttempt,
)
from handrail.domain.run.legal_controls import Action
from handrail.domain.run.status import StepStatus
from simulation.plan_order import step_at
from simulation.story import Story

if TYPE_CHECKING:
    from simulation.day import Place, Simulation

EVE: Final = "agent:eve"
ASKED: Final = (Action.SKIP, Action.SKIP, Action.APPROVE, Action.ACCEPT, Action.RESUME, Action.FORK)


async def misbehave(simulation: Simulation, place: Place, story: Story, path: str = "") -> None:
    """Try to get past a gate of some run, by any call there is."""
    random = simulation.random
    path = (
        path
        if path in story.run.steps
        else random.choice(_tempting(story) or list(story.run.steps) or [story.definition.steps[0].id])
    )
    simulation.witness.tell(f"{place.process.name:4} {story.id[-3:]}     eve has a go at {path}")
    for _ in range(4):
        await simulation.within(place, _attempt(simulation, place, story, path))


def _tempting(story: Story) -> list[str]:
    """Steps that wait for a person, or for a decision."""
    open_states = {StepStatus.WAITING, StepStatus.FAILED, StepStatus.UNCERTAIN}
    return [path for path, state in story.run.steps.items() if state.status in open_states]


def _attempt(simulation: Simulation, place: Place, story: Story, path: str) -> Coroutine[Any, Any, Any]:
    random = simulation.random
    if random.random() < 0.5:
        action = random.choice(ASKED)
        if action is Action.FORK and len(simulation.witness.stories) > 4:
            action = Action.SKIP
        step = {Action.FORK: random.choice(story.definition.steps).id, Action.RESUME: ""}.get(action, path)
        return place.control.act(story.id, action, actor=EVE, reason="nobody looks", step=step)
    commands: list[Command] = [
        SkipStep(step=path, reason="nobody looks"),
        SkipStep(step=path, reason="`when: false` is false", is_condition=True),
        AcceptStep(step=path, reason="it did happen"),
        ResumeRun(reason="on we go"),
        GiveApproval(step=path, digest=_some_digest(simulation, story, path), reason="sure", at=simulation.wall()),
        RecordAction(description="done", step=path, outcome=random.choice((Outcome.DONE, Outcome.SKIPPED))),
        StartAttempt(step=path),
        FinishRun(),
        *([CompleteStep(step=path)] if isinstance(step_at(story.definition, path).work, Approve) else []),
    ]
    return place.dispatch.grant(story.id, random.choice(commands), actor=EVE)


def _some_digest(simulation: Simulation, story: Story, path: str) -> str:
    """What the step asks, or what it or another step asked before."""
    asked = [entry.event.digest for entry in story.entries if isinstance(entry.event, ApprovalRequested)]
    return simulation.random.choice([story.run.step(path).digest, *asked])


def replayed_answer(simulation: Simulation, place: Place, story: Story) -> Coroutine[Any, Any, Any] | None:
    """A person's answer to something that was asked before, sent once more."""
    asked = [entry.event for entry in story.entries if isinstance(entry.event, ApprovalRequested)]
    waiting = [path for path, state in story.run.steps.items() if state.status is StepStatus.WAITING and state.digest]
    if len(asked) < 2 or not waiting:
        return None
    old, path = simulation.random.choice(asked), simulation.random.choice(waiting)
    command = GiveApproval(step=path, digest=old.digest, reason="once more", at=simulation.wall())
    return place.dispatch.grant(story.id, command, actor="person:ada")
