"""Walks: a worker follows a built-in workflow and does what it says, and a twin of it lies.

The real surface by the official client, the default settings, the real checks in the sandbox, a real repository. A walk
is a table: for each step (`build.code`; rounds of loops are left out) a function that does the work and returns the
output. A lie is a function too: it leaves the world as a liar would and returns the output that a liar submits."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
import mcp_types as mt
from mcp.client import ClientRequestContext
from msgspec import Struct, field

from handrail.domain.rehearsal.script import plain
from interfaces.mcp.surface.agent import Agent, data_of, joined, text_of
from outside.walks.workplace import Workplace

Data = dict[str, Any]
CALL_S_MAX = 240.0
CALLS_MAX = 120


class Skipped(Struct, frozen=True):
    """Returned for a step that the worker skips, with the reason."""

    note: str


class Hands(Struct):
    """What a function of a walk gets: the workplace, the step as it was shown, and what was submitted so far."""

    work: Workplace
    step: Data
    said: Mapping[str, Any]
    """The last output of each step, by its name without rounds."""

    @property
    def prompt(self) -> str:
        return str(self.step["prompt"])


Do = Callable[[Hands], Any]


class Lie(Struct, frozen=True, kw_only=True):
    """What is submitted instead of work, and the rule that must notice."""

    step: str
    name: str
    tell: Do
    noticed_by: str


class Walk(Struct, frozen=True, kw_only=True):
    """One way through a workflow."""

    workflow: str
    files: Mapping[str, str]
    """The project before the run."""
    steps: Mapping[str, Do]
    inputs: Mapping[str, Any] = {}
    goal: str = ""
    prepared: Callable[[Workplace], None] = lambda _: None
    """What else is done to the project before the run."""
    approved: frozenset[str] = frozenset()
    """The approvals that a person is expected to be asked for; each is given."""
    lies: tuple[Lie, ...] = ()


class Cost(Struct):
    """What a walk costs its worker, in characters."""

    calls: int = 0
    written: int = 0
    """Arguments of calls."""
    read: int = 0
    """Answers: the longer one of text and data, since clients show either."""
    frame: int = 0
    """What of the answers is neither prompt, shape, guidance, question, finding nor output."""

    def add(self, arguments: Mapping[str, Any], result: mt.CallToolResult) -> None:
        data = data_of(result)
        words = max(len(text_of(result)), size_of(data))
        self.calls += 1
        self.written += size_of(arguments)
        self.read += words
        step = data.get("step", {})
        own = [step.get(key) for key in ("prompt", "output", "guidance", "role", "checks", "model_hint", "title")]
        own += [data.get(key) for key in ("guidance", "findings", "preconditions", "clarify", "outputs")]
        own += [one.get("text") for one in data.get("waiting_for", ())]
        self.frame += words - sum(size_of(one) for one in own if one)

    @property
    def tokens(self) -> int:
        return round((self.written + self.read) / 4)


def size_of(value: Any) -> int:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return len(text)


class Worker:
    """Follows one walk at one server."""

    def __init__(self, walk: Walk, work: Workplace, agent: Agent, server: Any) -> None:
        self.walk, self.work, self.agent, self.server = walk, work, agent, server
        self.cost = Cost()
        self.said: dict[str, Any] = {}
        self.path: list[str] = []
        self.answers: list[Data] = []
        self.run = ""
        self.unheard = Counter(lie.step for lie in walk.lies)

    async def ask(self, tool: str, **arguments: Any) -> Data:
        """The answer to a call, error or not."""
        with anyio.fail_after(CALL_S_MAX):
            # A check runs tests of a project: on a machine with much to do that takes longer than other calls.
            result = await self.agent.client.call_tool(tool, arguments, read_timeout_seconds=CALL_S_MAX)
        self.agent.check(tool, result)
        self.cost.add(arguments, result)
        self.answers.append(data_of(result))
        return self.answers[-1]

    async def start(self) -> Data:
        goal = {"goal": self.walk.goal} if self.walk.goal else {}
        answer = await self.ask("workflow_next", workflow=self.walk.workflow, inputs=dict(self.walk.inputs), **goal)
        assert "run" in answer, answer
        self.run = answer["run"]
        return answer

    async def follow(self, *, lying: bool = False, to_the_end: bool = True) -> Data:
        """Work until nothing is left to do, or until every lie was told; the last answer."""
        answer = await self.start()
        for _ in range(CALLS_MAX):
            if answer["status"] != "waiting" or not (to_the_end or self.unheard.total()):
                return answer
            if "step" in answer:
                answer = await self.do(answer["step"], lying=lying, to_the_end=to_the_end)
            else:
                answer = await self.be_approved(answer)
        raise AssertionError(f"after {CALLS_MAX} calls: {self.path}")

    async def do(self, step: Data, *, lying: bool, to_the_end: bool = True) -> Data:
        name = plain(step["id"])
        hands = Hands(self.work, step, self.said)
        if lying and self.unheard[name]:
            for lie in self.walk.lies:
                if lie.step == name:
                    await self.tell(lie, hands)
            self.unheard[name] = 0
            if not to_the_end and not self.unheard.total():
                return {"status": "waiting"}
        assert name in self.walk.steps, f"{name} is not in the walk: {step}"
        output = self.walk.steps[name](hands)
        if isinstance(output, Skipped):
            answer = await self.ask("workflow_next", run=self.run, step=step["id"], outcome="skipped", note=output.note)
        else:
            answer = await self.submit(step, output)
        assert answer.get("accepted", True), (step["id"], output, answer.get("findings", answer))
        assert "code" not in answer, (step["id"], output, answer)
        self.path.append(step["id"])
        self.said[name] = output
        return answer

    async def submit(self, step: Data, output: Any) -> Data:
        agreed = {"confirmed": True} if step.get("confirm") else {}
        return await self.ask("workflow_next", run=self.run, step=step["id"], output=output, **agreed)

    async def tell(self, lie: Lie, hands: Hands) -> None:
        """Lie once: it is refused, and the project is afterwards as it was."""
        with self.work.aside():
            output = lie.tell(hands)
            answer = await self.submit(hands.step, output)
        assert answer.get("accepted") is False, (lie.step, lie.name, output, answer)
        rules = {finding["rule"] for finding in answer["findings"]}
        assert lie.noticed_by in rules, (lie.step, lie.name, answer["findings"])

    async def be_approved(self, answer: Data) -> Data:
        """A person says yes to what they are asked, by their own client."""
        [asked] = [one for one in answer["waiting_for"] if one["kind"] == "approval"]
        assert plain(asked["step"]) in self.walk.approved, asked

        async def yes(_: ClientRequestContext, __: mt.ElicitRequestParams) -> mt.ElicitResult:
            return mt.ElicitResult(action="accept", content={"answer": "approve"})

        async with joined(self.server, name="person", elicitation_callback=yes) as person:
            arguments = {"run": self.run, "action": "approve", "step": asked["step"], "reason": "I looked at it"}
            await person.answer("control", arguments)
        self.path.append(asked["step"])
        return await self.ask("workflow_next", run=self.run)


class Walked(Struct):
    """What came of a walk."""

    end: Data
    path: list[str]
    cost: Cost
    answers: list[Data] = field(default_factory=list)


@asynccontextmanager
async def at_work(walk: Walk, work: Workplace) -> AsyncIterator[Worker]:
    """A worker with a server of its own, over the files of a workplace."""
    async with work.serving() as server, joined(server, name="worker") as agent:
        yield Worker(walk, work, agent, server)


async def walked_honestly(walk: Walk, work: Workplace) -> Walked:
    """The worker does all that it is told: the run must be completed, and no submission refused."""
    return await _walked(walk, work, lying=False)


async def walked_after_lying(walk: Walk, work: Workplace) -> Walked:
    """The twin tells every lie where it can, is refused each time, and then does the work after all: only by that the
    run is completed."""
    assert walk.lies
    return await _walked(walk, work, lying=True)


async def _walked(walk: Walk, work: Workplace, *, lying: bool) -> Walked:
    walk.prepared(work)
    async with at_work(walk, work) as worker:
        end = await worker.follow(lying=lying)
        assert end["status"] == "completed", end
        assert not (lying and worker.unheard.total()), f"never came to {+worker.unheard}"
        totals = [answer["progress"]["total"] for answer in worker.answers if "progress" in answer]
        assert totals == sorted(totals, reverse=True), f"progress grew while it was worked: {totals}"
        verified = (await worker.agent.call("query_ledger", run=worker.run, verify=True, limit=1))["verified"]
        assert verified["ok"], verified
        return Walked(end, worker.path, worker.cost, worker.answers)


async def walked_lying(walk: Walk, work: Workplace) -> None:
    """The twin works until it can lie, tells every lie of the step, and works on to the next one: all are refused."""
    assert walk.lies
    walk.prepared(work)
    async with at_work(walk, work) as worker:
        await worker.follow(lying=True, to_the_end=False)
        assert not worker.unheard.total(), f"never came to {+worker.unheard}"
        seen = await worker.agent.call("status", run=worker.run)
        assert seen["status"] == "waiting", seen


async def walked_stubbornly(walk: Walk, work: Workplace) -> None:
    """The twin repeats its first lie until nobody listens any more: it can't skip the step, and never completes."""
    walk.prepared(work)
    lie = walk.lies[0]
    async with at_work(walk, work) as worker:
        answer = await worker.start()
        while plain(answer["step"]["id"]) != lie.step:
            answer = await worker.do(answer["step"], lying=False)
        step = answer["step"]
        for _ in range(CALLS_MAX):
            with work.aside():
                answer = await worker.submit(step, lie.tell(Hands(work, step, worker.said)))
            if "code" in answer:
                break
            assert answer["accepted"] is False, answer
        assert answer["name"] == "forbidden", answer
        skip = {"run": worker.run, "action": "skip", "step": step["id"], "reason": "it is done, trust me"}
        assert (await worker.ask("control", **skip))["name"] in {"forbidden", "conflict"}
        assert (await worker.agent.call("status", run=worker.run))["status"] == "waiting"
