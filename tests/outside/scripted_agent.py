"""A scripted agent: it does what a workflow's own test says, and behaves badly on purpose, from a seed.

It submits garbage, skips ahead, repeats itself, never asks the user, loses answers, sends calls twice at once, and
forgets everything; in the end it does what the answers say. What is true of every answer is asserted here; what must be
true of the whole run is asserted in the tests. What it has to do is in parts.py."""

from __future__ import annotations

import asyncio
import random
import shlex
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from enum import Enum
from typing import Any, Final, Protocol, TypeAlias

from handrail.domain.run.step_path import UNDO
from outside.parts import Part, cast_of_play

ENDED: Final = frozenset({"completed", "failed", "compensated", "compensation_failed", "cancelled"})
TURNS_MAX: Final = 2_000
PAUSE_S: Final = 0.01
AHEAD_MAX: Final = 5
OLD_MAX: Final = 5

Data: TypeAlias = dict[str, Any]


class Line(Protocol):
    """A client's connection: it can call tools, and errors are answers, too."""

    async def ask(self, tool: str, arguments: Mapping[str, Any]) -> Data:
        """What the tool answers."""


Connect: TypeAlias = Callable[[], AbstractAsyncContextManager[Line]]
Decide: TypeAlias = Callable[[str, str, bool], Awaitable[None]]
Person: TypeAlias = Callable[..., Awaitable[bytes]]
"""Runs a command as a person does, in a shell."""
"""A person: gets a run, a step, and the answer that the script wants from them."""


class Mood(Enum):
    """What an agent is up to in a turn."""

    PLAIN = "follows instructions"
    RUBBISH = "submits garbage"
    AHEAD = "submits a later step"
    AGAIN = "submits again what was accepted"
    OTHERWISE = "submits something else for what was accepted"
    TWICE = "submits twice at the same time"
    LOST = "submits, and loses the answer"
    FORGET = "forgets everything"


WEIGHTS: Final = {
    Mood.PLAIN: 11,
    Mood.RUBBISH: 2,
    Mood.AHEAD: 2,
    Mood.AGAIN: 1,
    Mood.OTHERWISE: 1,
    Mood.TWICE: 1,
    Mood.LOST: 1,
    Mood.FORGET: 1,
}


class Whims:
    """The moods of an agent, by a seed."""

    def __init__(self, seed: str) -> None:
        self.chance = random.Random(seed)
        self.had: Counter[Mood] = Counter()

    def mood(self) -> Mood:
        (mood,) = self.chance.choices(list(WEIGHTS), weights=list(WEIGHTS.values()))
        self.had[mood] += 1
        return mood


class ScriptedAgent:
    """One agent in one run; `name` is what it calls itself, if anything."""

    def __init__(
        self,
        part: Part,
        whims: Whims,
        connect: Connect,
        decide: Decide,
        person: Person,
        *,
        name: str = "",
        is_alone: bool = True,
    ) -> None:
        self.part, self.whims, self.connect, self.decide, self.person = part, whims, connect, decide, person
        self.named = {"agent": name} if name else {}
        self.is_alone = is_alone
        self.turns = 0
        self.refused = 0
        """How many of its submissions were refused, or recognized as a repetition."""
        self.worked: Counter[str] = Counter()
        """The steps that it was given and has done, by its own account."""

    async def start(self) -> str:
        """Begin a run: its id."""
        async with self.connect() as line:
            asked = {"workflow": self.part.workflow, "inputs": dict(self.part.script.inputs), "goal": "as in its test"}
            answer = await line.ask("workflow_next", asked)
        assert "code" not in answer, answer
        return str(answer["run"])

    async def work(self, run: str) -> None:
        """Go on until the run has ended, in as many chats as it takes; of each chat only the run's id is known."""
        is_over = False
        while not is_over:
            async with self.connect() as line:
                is_over = await _Chat(self, line, run).held()


class _Chat:
    """What an agent does between two times of forgetting everything."""

    def __init__(self, agent: ScriptedAgent, line: Line, run: str) -> None:
        self.agent, self.line, self.run, self.part = agent, line, run, agent.part
        self.latest: Data = {}
        self.accepted: list[tuple[str, Data]] = []
        self.tries: Counter[str] = Counter()
        self.unasked: set[str] = set()

    async def held(self) -> bool:
        """Talk until the run has ended, or all is forgotten; whether it has ended."""
        self.latest = await self.next()
        assert "recap" in self.latest, self.latest
        while self.latest.get("status") not in ENDED:
            self.agent.turns += 1
            assert self.agent.turns < TURNS_MAX, self.latest
            if "code" in self.latest:
                self.latest = await self.next()
            elif "step" not in self.latest:
                await self.wait()
            elif await self.turn(self.agent.whims.mood(), self.latest["step"]["id"]):
                return False
        return True

    async def turn(self, mood: Mood, step: str) -> bool:
        """Do something about a step, or something else; whether all is forgotten now."""
        match mood:
            case Mood.FORGET:
                return True
            case Mood.LOST:
                await self.do(step)
                return True
            case Mood.RUBBISH:
                await self.rubbish(step)
            case Mood.AHEAD:
                await self.ahead(step)
            case Mood.AGAIN | Mood.OTHERWISE:
                await self.again(step, is_same=mood is Mood.AGAIN)
            case Mood.TWICE:
                await self.do(step, times=2)
            case Mood.PLAIN:
                await self.do(step)
        return False

    # --- calls --------------------------------------------------------------------------------------

    async def next(self, **arguments: Any) -> Data:
        """What workflow_next answers; an error must be one that an agent can act on."""
        answer = await self.line.ask("workflow_next", {"run": self.run, **self.agent.named, **arguments})
        if "code" in answer:
            assert answer["name"] in {"conflict", "forbidden", "invalid", "not_found"}, answer
            assert answer["hint"], answer
        if "code" in answer or not answer.get("accepted", True) or answer.get("repeated"):
            self.agent.refused += 1
        return answer

    async def wait(self) -> None:
        """Nothing to do now: have a person decide, or let the other agent go on."""
        if "failure" in self.latest:
            await self.another_go(self.latest["failure"])
        for one in self.latest.get("waiting_for", ()):
            if one["kind"] == "approval":
                await self.agent.decide(self.run, one["step"], self.part.is_approved(one["step"]))
        await asyncio.sleep(0 if self.agent.is_alone else PAUSE_S)
        self.latest = await self.next()

    async def another_go(self, failure: Data) -> None:
        """After too much rubbish a person has to decide: the agent may not, and says which command does it."""
        assert "was refused" in failure["message"], failure
        (again,) = (one for one in failure["options"] if one["action"] == "retry")
        assert again["by"] == "person", again
        mine = {"run": self.run, "action": "retry", "step": failure["step"], "reason": "let me"}
        assert (await self.line.ask("control", mine)).get("name") in {"forbidden", "conflict", None}
        _, *words = shlex.split(again["command"])
        await self.agent.person(*words, "--reason", "it was only rubbish", "--detach")

    # --- what it does -------------------------------------------------------------------------------

    async def do(self, step: str, *, times: int = 1) -> None:
        """Do a step and hand it in, first as the script says that it is refused, then better."""
        given = self.given(step)
        tries = self.part.tries(step)
        if self.tries[step] == 0:
            self.agent.worked[step] += 1
        if self.tries[step] < len(tries) - 1:
            given["output"] = tries[self.tries[step]]
            self.latest = await self.refusal(given)
            self.tries[step] += 1
            return
        if self.latest["step"].get("confirm") and step not in self.unasked:
            self.unasked.add(step)
            self.latest = await self.refusal(given, rule="confirm")
            return
        answers = await asyncio.gather(*(self.next(**given, confirmed=True) for _ in range(times)))
        self.latest = answers[-1]
        if any(answer.get("name") == "forbidden" for answer in answers):
            return  # it was refused too often: a person has to decide now
        for answer in answers:
            assert answer.get("accepted") or not self.agent.is_alone, answer
        if times > 1 and self.agent.is_alone:
            assert sorted(bool(answer.get("repeated")) for answer in answers) == [False, True], answers
        if all(answer.get("accepted") for answer in answers):
            self.accepted.append((step, given))

    def given(self, step: str) -> Data:
        """The valid submission of a step."""
        output, outcome = self.part.tries(step)[-1], self.part.outcome(step)
        given: Data = {"step": step, "outcome": outcome}
        if outcome == "done" and output is not None:
            given["output"] = output
        if variables := self.part.left(step):
            given["vars"] = variables
        return given

    async def refusal(self, given: Data, rule: str = "") -> Data:
        """The answer to what must not be accepted, with what is wrong with it."""
        answer = await self.next(**given)
        if "code" in answer:  # an undo is refused as an error; the other agent may have been quicker
            is_over = answer["name"] == "forbidden"  # it was refused too often: a person has to decide now
            assert is_over or given["step"].endswith(UNDO) or not self.agent.is_alone, answer
            return answer
        if not self.agent.is_alone and answer.get("accepted"):
            assert answer.get("repeated"), answer
            return answer
        assert answer["accepted"] is False, (given, answer)
        assert answer["findings"], answer
        assert answer["step"]["id"] == given["step"], answer
        assert not rule or [one["rule"] for one in answer["findings"]] == [rule], answer
        return {**answer, "step": {**self.latest["step"], **answer["step"]}}

    async def rubbish(self, step: str) -> None:
        """Hand in what has not the shape that was asked for."""
        schema, good = self.part.schema(step), self.part.tries(step)[-1]
        bad = [one for one in _spoilt(good) if schema is not None and cast_of_play().rule_set.fits(schema, one)]
        if bad:
            self.latest = await self.refusal({"step": step, "output": self.agent.whims.chance.choice(bad)})
        else:
            await self.do(step)

    async def ahead(self, step: str) -> None:
        """Hand in a step that comes later, as if all before it were done."""
        paths = self.part.for_agent
        later = paths[paths.index(step) + 1 :][:AHEAD_MAX] if step in paths else ()
        if not later:
            return
        chosen = self.agent.whims.chance.choice(later)
        ready = self.latest.get("ready", ())
        answer = await self.next(**self.given(chosen))
        if answer.get("accepted") and not answer.get("repeated") and self.agent.is_alone:
            assert chosen in ready, (chosen, ready, answer)
        self.latest = answer if "code" not in answer else await self.next()

    async def again(self, step: str, *, is_same: bool) -> None:
        """Submit again what was accepted, unchanged or changed."""
        old = [one for one in self.accepted if one[0] != step][-OLD_MAX:]
        if not old:
            return
        chosen, given = self.agent.whims.chance.choice(old)
        # While things are undone, something else for a step could be meant for its undo.
        is_undoing = self.latest["status"] == "compensating" or chosen.endswith(UNDO)
        is_same = is_same or given["outcome"] != "done" or is_undoing
        answer = await self.next(**(given if is_same else {**given, "output": {"quite": "otherwise"}}))
        if is_same:
            assert answer.get("repeated") or (is_undoing and "code" in answer), (chosen, answer)
        else:
            assert "code" in answer, (chosen, answer)
        self.latest = answer if "code" not in answer else await self.next()


def _spoilt(good: Any) -> list[Any]:
    """An output in other shapes: of wrong types, empty, or with a key that is missing or holds something else."""
    bad: list[Any] = [7, "all done, trust me", [], {}, True, None]
    if isinstance(good, dict):
        bad += [{name: value for name, value in good.items() if name != key} for key in good]
        bad += [{**good, key: {"what": "ever"}} for key in good]
    return bad
