"""The world outside: tools that answer, fail, hang, answer late or lose their answer, and what they did to the world.

It counts by idempotency key, and knows nothing of the journal. What a call sets off goes on whether or not the process
that called is still there."""

from __future__ import annotations

import asyncio
import contextvars
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from random import Random
from typing import Any, Final, Protocol

from msgspec.structs import replace

from handrail.domain.definition.model import Category, Effect, Retry
from handrail.domain.errors import NotFound
from handrail.engine.tool import Later, ToolCall, ToolFailed, ToolSpec
from simulation.loop import PROCESS, Process, VirtualLoop

EFFECTS: Final = {
    "comp": Effect.COMPENSATABLE,
    "rev": Effect.REVERSIBLE,
    "irr": Effect.IRREVERSIBLE,
    "undo": Effect.COMPENSATABLE,
}
PASSING: Final = (Category.TRANSIENT, Category.TIMEOUT, Category.RATE_LIMITED)
MANNERS: Final = ("answer", "answer", "answer", "fail", "fail", "slow", "slow", "lost", "late", "odd", "beat", "later")


class Observer(Protocol):
    """Who looks at every call."""

    def call_began(self, process: Process, spec: ToolSpec, call: ToolCall, *, is_undo: bool) -> None:
        """A call reaches a tool."""
        ...


class Outside:
    """What happened out there."""

    def __init__(self, loop: VirtualLoop, random: Random) -> None:
        self.loop = loop
        self.random = random
        self.is_calm = False
        self.is_fragile = False
        """Whether processes crash in the middle of undos more often than by chance: undos are few and short."""
        self.labelled: tuple[str, ...] = ()
        """What a node must have to call tools of the server `c`."""
        self.effects: Counter[str] = Counter()
        self.failed: dict[tuple[str, str], tuple[float, int]] = {}
        """By process and key: when its last call failed, and how long it asked to be left alone."""
        self.ended: set[tuple[str, str, int]] = set()
        """By process, key and attempt: the calls that came to an end, or were given up, while their process lived."""
        self.under_way: Counter[tuple[str, str]] = Counter()
        self.context = contextvars.Context()
        self.observer: Observer | None = None

    def happen(self, spec: ToolSpec, key: str) -> None:
        """A call has its effect; one that is repeated under the same key has it once, if the tool promises that."""
        if not (spec.idempotent and self.effects[key]):
            self.effects[key] += 1

    def reached(self, spec: ToolSpec, key: str, rest_s: float, reply: asyncio.Future[None]) -> None:
        """A call has reached the other side; its reply is under way."""
        if key:
            self.happen(spec, key)
        self.later(rest_s, _answered, reply)

    def later(self, delay_s: float, do: Any, *args: Any) -> None:
        """Something happens out there after a while."""
        self.loop.call_later(delay_s, do, *args, context=self.context)


class Box:
    """The tools as one process sees them."""

    def __init__(self, outside: Outside) -> None:
        self._tools: dict[str, SimulatedTool] = {}
        self._outside = outside

    def find(self, name: str) -> SimulatedTool:
        """The tool of that name."""
        if name.endswith(".gone"):
            raise NotFound(f"there is no tool {name}")
        return self._tools.setdefault(name, SimulatedTool(name, self._outside))

    def specs(self) -> Sequence[ToolSpec]:
        """Nobody asks."""
        return []

    async def connect(self, names: Collection[str]) -> Mapping[str, Mapping[str, Any]]:
        """All are our own."""
        return {}

    async def forget(self, run: str) -> None:
        """Nothing is kept."""


def spec_of(name: str) -> ToolSpec:
    """What a tool says of itself; its name tells it all."""
    server, _, tool = name.partition(".")
    kind = tool.partition("_")[0]
    return ToolSpec(
        name=name,
        description="",
        effect=EFFECTS.get(kind, Effect.NONE),
        idempotent=tool.endswith("_i"),
        is_instant=kind == "instant",
        retry=Retry(attempts=2) if server == "b" else None,
        timeout="1s",
        concurrency=1 if server == "c" else None,
        rate="4/s" if name == "b.none" else None,
    )


class SimulatedTool:
    """One tool."""

    def __init__(self, name: str, outside: Outside) -> None:
        spec = spec_of(name)
        self.spec = replace(spec, runs_on=outside.labelled) if name.startswith("c.") else spec
        self._outside = outside

    @property
    def card(self) -> Mapping[str, Any] | None:
        """All are our own."""
        return None

    async def ready(self) -> None:
        """They are at hand."""

    def effect(self, args: Mapping[str, Any]) -> Effect:
        """What it says."""
        return self.spec.effect

    def server(self, args: Mapping[str, Any]) -> str:
        """The word before the dot; what is instant stays on this machine."""
        return "" if self.spec.is_instant else self.spec.name.partition(".")[0]

    def misfits(self, args: Mapping[str, Any]) -> Sequence[str]:
        """Everything fits."""
        return []

    async def capture(self, call: ToolCall) -> Any:
        """What is there before; only reversible tools look."""
        if self.spec.effect is not Effect.REVERSIBLE:
            return None
        await self._process().port()
        random = self._outside.random
        if random.random() < 0.3:
            await asyncio.sleep(random.choice((0, 0.02, 0.2)))
        if not self._outside.is_calm and random.random() < 0.05:
            self._note_end(call)
            raise ToolFailed(Category.TRANSIENT, "it can't be looked at")
        return {"was": call.key}

    async def call(self, call: ToolCall) -> Any:
        """Do it, one way or another."""
        return await self._observed(call, is_undo=False)

    async def undo(self, call: ToolCall) -> Any:
        """Take it back, one way or another."""
        return await self._observed(call, is_undo=True)

    async def _observed(self, call: ToolCall, *, is_undo: bool) -> Any:
        outside, process = self._outside, self._process()
        await process.port()
        places = [(process.name, call.run), (process.name, self.spec.name)]
        outside.under_way.update(places)
        try:
            if outside.observer is not None:
                outside.observer.call_began(process, self.spec, call, is_undo=is_undo)
            self._strike(process, call)
            return await self._going(call, places)
        except ToolFailed as failure:
            outside.failed[process.name, call.key] = (outside.loop.time(), failure.retry_after_ms or 0)
            raise
        finally:
            self._note_end(call)
            outside.under_way.subtract(places)

    def _strike(self, process: Process, call: ToolCall) -> None:
        """Let the process crash during an undo, or right after it, sometimes."""
        outside = self._outside
        is_target = call.key.endswith(":undo") and outside.is_fragile and not outside.is_calm
        if is_target and outside.random.random() < 0.4:
            process.crash_at = process.calls + outside.random.choice((1, 1, 2, 4))

    def _note_end(self, call: ToolCall) -> None:
        self._outside.ended.add((self._process().name, call.key, call.attempt))

    async def _going(self, call: ToolCall, places: list[tuple[str, str]]) -> Any:
        manner = self._manner(str(call.args.get("fate", "ok")), call)
        if self.spec.is_instant:
            return await self._ended("fail" if manner == "fail" else "answer", call)
        delay_s = self._outside.random.choice((0, 0, 0.005, 0.03, 0.03, 0.12, 0.4))
        if manner in {"slow", "late"}:
            delay_s = self._outside.random.choice((1.2, 3.0, 9.0))
        if manner == "beat":
            for _ in range(3):
                await asyncio.sleep(0.25)
                call.progress("still at it")
        return await self._asked(call, manner, delay_s, places)

    async def _asked(self, call: ToolCall, manner: str, delay_s: float, places: list[tuple[str, str]]) -> Any:
        """Send the request, and wait for the reply; the effect happens out there, on the way."""
        outside = self._outside
        reply: asyncio.Future[None] = outside.loop.create_future()
        has_effect = manner not in {"fail", "later", "odd"}
        outside.later(delay_s / 2, outside.reached, self.spec, call.key if has_effect else "", delay_s / 2, reply)
        try:
            await reply
        except asyncio.CancelledError:
            if manner != "late":
                raise
            self._note_end(call)
            outside.under_way.subtract(places)
            places.clear()
            await asyncio.sleep(0.3)  # it does not care that it was given up
            return {"n": 0, "late": True}
        return await self._ended(manner, call)

    async def _ended(self, manner: str, call: ToolCall) -> Any:
        random = self._outside.random
        await self._process().port()
        match manner:
            case "fail":
                raise self._failure(str(call.args.get("fate")))
            case "lost":
                raise random.choice((ToolFailed(Category.TRANSIENT, "the line broke"), OSError("reset")))
            case "odd":
                return object()
            case "later":
                return Later(random.choice((0, 100, 900)))
            case _:
                return {"n": random.randint(0, 5)}

    def _manner(self, fate: str, call: ToolCall) -> str:
        outside, name = self._outside, self.spec.name.partition(".")[2]
        if name == "later" and call.deferred < 2:
            return "later"
        if fate == "broken":
            return "fail"
        if outside.is_calm or fate == "ok":
            return "answer"
        if fate == "flaky":
            return "fail" if outside.random.random() < 0.5 else "answer"
        manner = outside.random.choice(MANNERS)
        return manner if manner != "later" or call.deferred < 3 else "answer"

    def _failure(self, fate: str) -> ToolFailed:
        random = self._outside.random
        if fate != "broken":
            category = random.choice(PASSING)
            after = random.choice((None, 0, 150, 1_200))
            return ToolFailed(category, "not now", retry_after_ms=after)
        lasting = [category for category in Category if category not in PASSING]
        return ToolFailed(random.choice(lasting), "no")

    def _process(self) -> Process:
        process = PROCESS.get()
        assert process is not None
        return process


def _answered(reply: asyncio.Future[None]) -> None:
    if not reply.done():
        reply.set_result(None)
