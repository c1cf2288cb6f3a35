"""A stage for runs: a worker over a store in memory, with tools that do as they are told, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace as with_

from handrail.domain.definition.authoring import definition_from
from handrail.domain.definition.model import Category, Definition, Effect
from handrail.domain.errors import NotFound
from handrail.domain.journal.codec import entry_of
from handrail.domain.journal.event import Event
from handrail.domain.policy.answering import AnswerRules
from handrail.domain.policy.table import DEFAULT_POLICY, OwnerPolicy
from handrail.domain.run.command import StartRun
from handrail.domain.run.state import Run
from handrail.engine.dispatch import Dispatch
from handrail.engine.record_writer import RecordWriter
from handrail.engine.running.answers import ApprovalAnswers
from handrail.engine.running.control import Control
from handrail.engine.running.host import Host
from handrail.engine.running.worker import Worker
from handrail.engine.running.worker_settings import WorkerSettings
from handrail.engine.tool import Later, ToolCall, ToolFailed, ToolSpec
from handrail.library.inputs import check_inputs
from handrail.storage.memory import MemoryStore
from support import START, seeded_entropy

Deed = Callable[[ToolCall], Awaitable[Any]]
ADA = "person:ada"


async def at_hand() -> None:
    """Nothing has to be started."""


@dataclass
class Puppet:
    """A tool that does as it is told, and remembers its calls."""

    spec: ToolSpec
    deed: Deed
    reach: str = ""
    kept: Any = None
    told: Mapping[str, Any] | None = None
    """What its server says of it."""
    prepares: Callable[[], Awaitable[None]] = at_hand
    calls: list[ToolCall] = field(default_factory=list)
    undone: list[ToolCall] = field(default_factory=list)

    @property
    def card(self) -> Mapping[str, Any] | None:
        return self.told

    async def ready(self) -> None:
        await self.prepares()

    def effect(self, args: Mapping[str, Any]) -> Effect:
        return self.spec.effect

    def server(self, args: Mapping[str, Any]) -> str:
        return self.reach

    def misfits(self, args: Mapping[str, Any]) -> Sequence[str]:
        return ["bad: it is there"] if "bad" in args else []

    async def capture(self, call: ToolCall) -> Any:
        return self.kept

    async def call(self, call: ToolCall) -> Any:
        self.calls.append(call)
        return await self.deed(call)

    async def undo(self, call: ToolCall) -> Any:
        self.undone.append(call)
        return await self.deed(call)


async def done(call: ToolCall) -> Any:
    return {"did": call.step}


def failing(*categories: Category | None, retry_after_ms: int | None = None) -> Deed:
    """Fails in this way, call after call; None succeeds, and so does what comes behind."""
    answers = list(categories)

    async def deed(call: ToolCall) -> Any:
        category = answers.pop(0) if answers else None
        if category is not None:
            raise ToolFailed(category, f"it is {category.value}", retry_after_ms=retry_after_ms)
        return {"did": call.step}

    return deed


def always(category: Category) -> Deed:
    async def deed(call: ToolCall) -> Any:
        raise ToolFailed(category, f"it is {category.value}")

    return deed


def taking(seconds: float, *, beats: int = 0) -> Deed:
    """Takes its time, and says so that often."""

    async def deed(call: ToolCall) -> Any:
        for _ in range(beats):
            await asyncio.sleep(seconds / (beats + 1))
            call.progress("at work")
        await asyncio.sleep(seconds / (beats + 1))
        return {"did": call.step}

    return deed


async def value_of(call: ToolCall) -> Any:
    return call.args.get("value")


async def waiting(call: ToolCall) -> Any:
    return None if call.deferred else Later(60_000)


def puppet(name: str, deed: Deed = done, effect: Effect = Effect.COMPENSATABLE, **more: Any) -> Puppet:
    own = {key: more.pop(key) for key in ("reach", "kept", "told", "prepares") if key in more}
    spec = ToolSpec(name=name, description="", effect=effect, **more)
    return Puppet(spec, deed, **own)


@dataclass
class Box:
    """A toolbox of puppets."""

    tools: dict[str, Puppet]
    forgotten: list[str] = field(default_factory=list)

    def find(self, name: str) -> Puppet:
        if name not in self.tools:
            raise NotFound(f"there is no tool `{name}`", hint="list them")
        return self.tools[name]

    def specs(self) -> Sequence[ToolSpec]:
        return [tool.spec for tool in self.tools.values()]

    async def connect(self, names: Collection[str]) -> Mapping[str, Mapping[str, Any]]:
        cards = {name: self.tools[name].card for name in names if name in self.tools}
        return {name: card for name, card in cards.items() if card is not None}

    async def forget(self, run: str) -> None:
        self.forgotten.append(run)


@dataclass
class Alive:
    """Says who is alive."""

    gone: set[str] = field(default_factory=set)

    def is_alive(self, owner: str) -> bool:
        return owner not in self.gone


class Stage:
    """A store, tools, and a worker or several."""

    def __init__(
        self,
        *puppets: Puppet,
        store: Any = None,
        say: AnswerRules | None = None,
        policy: OwnerPolicy = DEFAULT_POLICY,
        project: str = "",
    ) -> None:
        basic = (
            puppet("x.do"),
            puppet("x.undo"),
            puppet("value.set", value_of, Effect.NONE, is_instant=True),
            puppet("wait.for", waiting, Effect.NONE),
        )
        self.box = Box({one.spec.name: one for one in (*basic, *puppets)})
        self.store = store or MemoryStore()
        self.project = project
        self.alive = Alive()
        self.say = say or AnswerRules(groups={"leads": ["ada"]})
        self.policy = policy
        self.worker: Worker
        self.control: Control

    def clock(self) -> int:
        return START + int(asyncio.get_running_loop().time() * 1_000)

    async def open(self, owner: str = "w-one", *, host: Host | None = None, **terms: Any) -> Worker:
        """A worker at work; it becomes the stage's own."""
        writer = RecordWriter(self.clock, seeded_entropy(len(owner) + len(self.alive.gone)))
        policy = with_(self.policy, answers=self.say)
        dispatch = Dispatch(self.store, writer, policy=policy, project=self.project)
        agreed = WorkerSettings(
            owner=owner, actor="handrail", clock=self.clock, check=inputs_checked, fits=fitting, **terms
        )
        worker = Worker(dispatch, self.store, self.box, self.alive, agreed, host)
        await worker.open()
        self.worker, self.control = worker, Control(dispatch, self.clock, ApprovalAnswers(self.say, self.clock), worker)
        return worker

    async def start(self, plan: Definition, inputs: Mapping[str, Any] | None = None, **ask: Any) -> Run:
        return await self.worker.start(plan, inputs or {}, actor=ADA, ask=StartRun(**ask))

    async def play(self, plan: Definition, inputs: Mapping[str, Any] | None = None, **ask: Any) -> Run:
        """Start a run and wait until it has ended, or waits for others."""
        if not hasattr(self, "worker"):
            await self.open()
        run = await self.start(plan, inputs, **ask)
        return await self.worker.settled(run.id)

    async def events(self, run: str) -> list[Event]:
        return [entry_of(record).event for record in await self.store.read(run)]

    async def kinds(self, run: str) -> list[str]:
        return [f"{record.kind} {record.step or ''}".strip() for record in await self.store.read(run)]

    async def die(self) -> None:
        """End the worker as a kill would: nothing is told to anybody."""
        worker = self.worker
        self.alive.gone.add(worker.settings.owner)
        tasks: list[asyncio.Task[Any]] = [*worker._tasks, *worker._claims._tasks]
        for conductor in worker.conductors.values():
            conductor.is_lost = True
            tasks += [task for task in (conductor._task, *conductor.calls.tasks.values()) if task is not None]
        worker.dispatch.watchers.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def inputs_checked(definition: Definition, given: Mapping[str, Any]) -> tuple[Mapping[str, Any], Sequence[str]]:
    values, findings = check_inputs(definition, dict(given))
    return values, [finding.message for finding in findings]


def fitting(schema: Any, value: Any) -> Sequence[str]:
    if "enum" in schema:
        return [] if value in schema["enum"] else [f"is none of {schema['enum']}"]
    wants = {"object": dict, "string": str, "number": int}[schema["type"]]
    return [] if isinstance(value, wants) else [f"is not of type {schema['type']}"]


def plan(*steps: Any, **keys: Any) -> Definition:
    """A plan whose steps follow each other unless they say `after`."""
    return definition_from({"id": "a-plan", **keys, "steps": list(steps)})
