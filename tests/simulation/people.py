"""People and agents: who interferes at random times, and who helps when a run waits for somebody.

All that they do goes through control or dispatch, like anybody's command, and without a lease."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Final

from handrail.domain.journal.event import How
from handrail.domain.run.command import CompleteStep, HandOutStep, RefuseOutput, SetVars
from handrail.domain.run.legal_controls import Action
from handrail.domain.run.status import RunStatus, StepStatus
from simulation.adversary import misbehave, replayed_answer
from simulation.endings import waits_for
from simulation.story import Story

if TYPE_CHECKING:
    from simulation.day import Place, Simulation

ACTOR: Final = "person:ada"
OFTEN: Final = (Action.PAUSE, Action.RESUME, Action.RESUME, Action.RETRY, Action.SKIP, Action.ACCEPT, Action.APPROVE)
SELDOM: Final = (Action.CANCEL, Action.COMPENSATE, Action.REJECT, Action.FORK)


async def interfere(simulation: Simulation, place: Place) -> None:
    """Ask something of some run, legal or not."""
    random = simulation.random
    stories = list(simulation.witness.stories.values())
    if not stories:
        return
    story = random.choice(stories)
    if random.random() < 0.3:
        await simulation.within(place, _agents_turn(simulation, place, story))
        return
    if random.random() < 0.25:
        again = replayed_answer(simulation, place, story)
        await (simulation.within(place, again) if again is not None else misbehave(simulation, place, story))
        return
    action = random.choice(OFTEN if random.random() < 0.75 else SELDOM)
    if action is Action.FORK and (len(stories) > 3 or random.random() < 0.5):
        return
    step = random.choice(list(story.run.steps) or [""]) if random.random() < 0.7 else ""
    if action in {Action.PAUSE, Action.RESUME, Action.CANCEL, Action.COMPENSATE}:
        step = ""
    if action is Action.FORK:
        step = random.choice(story.definition.steps).id
    simulation.witness.tell(f"{place.process.name:4} {story.id[-3:]}     is asked to {action.value} {step}")
    await simulation.within(place, place.control.act(story.id, action, actor=ACTOR, reason="why not", step=step))


async def _agents_turn(simulation: Simulation, place: Place, story: Story) -> None:
    """An agent takes a step, hands something in, or leaves values."""
    random = simulation.random
    steps = [path for word, path in waits_for(story) if word == "agent"]
    if not steps or random.random() < 0.1:
        await place.dispatch.grant(story.id, SetVars(vars={"v": random.randint(0, 9)}), actor="agent:bo")
        return
    path = random.choice(steps)
    if story.run.step(path).status is not StepStatus.WAITING:
        until = simulation.wall() + 2_000 if random.random() < 0.5 else None
        await place.dispatch.grant(story.id, HandOutStep(step=path, agent="bo", until=until), actor="agent:bo")
    elif random.random() < 0.3:
        await place.dispatch.grant(story.id, RefuseOutput(step=path, findings=({"m": "no"},)), actor="agent:bo")
    else:
        await place.dispatch.grant(story.id, CompleteStep(step=path, output={"n": 1}), actor="agent:bo")


async def help_out(simulation: Simulation, place: Place) -> bool:
    """Do what every waiting run waits for; whether any did."""
    helped = False
    for story in list(simulation.witness.stories.values()):
        waits = waits_for(story) if story.run.status.value in OPEN else []
        if waits:
            helped = True
            word, path = simulation.random.choice(waits)
            simulation.witness.tell(f"{place.process.name:4} {story.id[-3:]}     somebody helps: {word} {path}")
            if simulation.random.random() < 0.6:
                await misbehave(simulation, place, story, path)
            await simulation.within(place, _helped(simulation, place, story, word, path))
    return helped


OPEN: Final = frozenset({"running", "paused", "compensating", "compensation_failed"})


def _helped(simulation: Simulation, place: Place, story: Story, word: str, path: str) -> Coroutine[Any, Any, Any]:
    random, control = simulation.random, place.control

    def act(action: Action, step: str = "") -> Coroutine[Any, Any, Any]:
        return control.act(story.id, action, actor=ACTOR, reason="it has to go on", step=step)

    match word:
        case "paused":
            return act(Action.RESUME)
        case "approval":
            return act(random.choice((Action.APPROVE, Action.APPROVE, Action.REJECT)), path)
        case "agent":
            return _done_by_agent(place, story, path)
        case "undo":
            return _recorded(place, story, path, How.BY_AGENT)
        case "uncertain undo":
            return _undo_decided(simulation, place, act, story, path)
        case "decision":
            return _decided(simulation, act, story, path)
        case _:
            return _compensation_mended(simulation, place, act, story)


async def _done_by_agent(place: Place, story: Story, path: str) -> None:
    if story.run.step(path).status is not StepStatus.WAITING:
        await place.dispatch.grant(story.id, HandOutStep(step=path), actor="agent:bo")
    await place.dispatch.grant(story.id, CompleteStep(step=path, output={"n": 1}), actor="agent:bo")


async def _recorded(place: Place, story: Story, path: str, how: How) -> None:
    await place.control.record_compensation(story.id, path, how=how, description="by hand", actor=ACTOR, details={})


def _decided(simulation: Simulation, act: Any, story: Story, path: str) -> Coroutine[Any, Any, Any]:
    random, state = simulation.random, story.run.step(path)
    choices = [Action.SKIP, Action.SKIP]
    if state.attempts < 6:
        choices.append(Action.RETRY)
    if state.status is StepStatus.UNCERTAIN:
        choices.append(Action.ACCEPT)
    if story.run.status is RunStatus.RUNNING and random.random() < 0.15:
        result: Coroutine[Any, Any, Any] = act(Action.COMPENSATE)
        return result
    chosen: Coroutine[Any, Any, Any] = act(random.choice(choices), path)
    return chosen


def _undo_decided(simulation: Simulation, place: Place, act: Any, story: Story, path: str) -> Coroutine[Any, Any, Any]:
    choice = simulation.random.random()
    if choice < 0.4:
        return _recorded(place, story, path, How.RECORDED)
    action = Action.RETRY if choice < 0.8 and story.run.step(path).undo_attempts < 8 else Action.SKIP
    result: Coroutine[Any, Any, Any] = act(action, path)
    return result


def _compensation_mended(simulation: Simulation, place: Place, act: Any, story: Story) -> Coroutine[Any, Any, Any]:
    failed = [path for path, state in story.run.steps.items() if state.status is StepStatus.COMPENSATION_FAILED]
    if not failed:  # what failed was recorded or given up, and held others back
        rest: Coroutine[Any, Any, Any] = act(Action.COMPENSATE)
        return rest
    path, choice = simulation.random.choice(failed), simulation.random.random()
    if choice < 0.4:
        return _recorded(place, story, path, How.RECORDED)
    action = Action.RETRY if choice < 0.6 and story.run.step(path).undo_attempts < 8 else Action.SKIP
    result: Coroutine[Any, Any, Any] = act(action, path)
    return result
