"""A real HTTP server on this machine that has effects, and keeps count of them.

    POST /do/<run>/<step>      does something, once for each Idempotency-Key; /undo/<run>/<step> takes it back likewise
    POST /plain/<run>/<step>   does something each time: it knows no keys

It is slow at times, fails at times before or after the effect (an answer that is lost), and permanently refuses what it
is configured to refuse. Every request has a number in one sequence, so that the order can be judged from outside."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import NamedTuple

import msgspec

from tools.loopback import read, reply

OK = 200
REFUSED = 403
BUSY = 503
CALM_ANSWERS = 4
"""So many good answers lie between two failures: else handrail's circuit breaker would open, and rightly so."""
FAILURES_PER_DEED_MAX = 2


class Deed(NamedTuple):
    """What a request asks for, by its address alone; its key says nothing here."""

    verb: str
    run: str
    step: str


@dataclass
class Asked:
    """One request."""

    deed: Deed
    key: str
    arrived: int
    answered: int = 0
    status: int = 0


@dataclass(frozen=True)
class Effect:
    """Something that has happened."""

    deed: Deed
    key: str
    at: int


@dataclass
class Mood:
    """How the server behaves: as chance has it, or calm if there is none."""

    chance: Random | None = None
    slow_s: float = 0.008
    fails: float = 0.05
    """The share of requests that fail before the effect; as many fail after it."""

    def pause_s(self) -> float:
        return self.chance.uniform(0, self.slow_s) if self.chance is not None else 0.0

    def is_failing(self) -> bool:
        return self.chance is not None and self.chance.random() < self.fails


@dataclass
class Gate:
    """Holds the answers to requests for one step, after their effect, until it is opened."""

    reached: asyncio.Event = field(default_factory=asyncio.Event)
    opened: asyncio.Event = field(default_factory=asyncio.Event)


def never(_deed: Deed) -> bool:
    return False


@dataclass
class EffectsServer:
    """The server, and all that it has seen."""

    mood: Mood = field(default_factory=Mood)
    refuses: Callable[[Deed], bool] = never
    port: int = 0
    filler: str = ""
    """What every answer says beside: outputs are journaled, so that this fills a disk."""
    asked: list[Asked] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)
    gates: dict[str, Gate] = field(default_factory=dict)
    """By the step's name."""
    most_at_once: Counter[str] = field(default_factory=Counter)
    """By run: how many requests were under way at once at most."""
    _under_way: Counter[str] = field(default_factory=Counter)
    _done: dict[tuple[str, str], Effect] = field(default_factory=dict)
    _failures: Counter[Deed] = field(default_factory=Counter)
    _good_in_a_row: int = 0
    _places: count[int] = field(default_factory=lambda: count(1))
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def gate(self, step: str) -> Gate:
        """Hold the answers to this step from now on."""
        return self.gates.setdefault(step, Gate())

    async def requests(self, number: int) -> None:
        """Wait until so many requests have come in all."""
        while len(self.asked) < number:
            self._news.clear()
            await self._news.wait()

    def times_done(self, run: str) -> Counter[str]:
        """How often each step of a run really happened."""
        return Counter(effect.deed.step for effect in self.effects if effect.deed.run == run)

    def times_asked(self, run: str) -> Counter[str]:
        """How often each step of a run was asked for."""
        return Counter(asked.deed.step for asked in self.asked if asked.deed.run == run)

    def keys_of(self, run: str, step: str) -> set[str]:
        """Under which keys a step was asked for."""
        return {asked.key for asked in self.asked if (asked.deed.run, asked.deed.step) == (run, step)}

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while heard := await read(reader):
                _, verb, run, step = heard.path.split("/")
                status = await self._answer(Deed(verb, run, step), heard.headers.get("idempotency-key", ""))
                body = msgspec.json.encode({"done": status == OK, "filler": self.filler})
                writer.write(reply(status, body, Content_Type="application/json"))
                await writer.drain()
        except (ConnectionError, asyncio.CancelledError):
            pass  # who asked is gone, or the server ends
        finally:
            writer.close()

    async def _answer(self, deed: Deed, key: str) -> int:
        asked = Asked(deed, key, next(self._places))
        self.asked.append(asked)
        self._under_way[deed.run] += 1
        self.most_at_once[deed.run] = max(self.most_at_once[deed.run], self._under_way[deed.run])
        self._news.set()
        try:
            asked.status = await self._treated(deed, key)
        finally:
            self._under_way[deed.run] -= 1
        asked.answered = next(self._places)
        self._good_in_a_row = self._good_in_a_row + 1 if asked.status == OK else 0
        return asked.status

    async def _treated(self, deed: Deed, key: str) -> int:
        await asyncio.sleep(self.mood.pause_s())
        if self.refuses(deed):
            return REFUSED
        if self._fails(deed):
            return BUSY
        self._apply(deed, key)
        gate = self.gates.get(deed.step)
        if gate is not None:
            gate.reached.set()
            await gate.opened.wait()
        await asyncio.sleep(self.mood.pause_s())
        return BUSY if self._fails(deed) else OK

    def _fails(self, deed: Deed) -> bool:
        if self._good_in_a_row < CALM_ANSWERS or self._failures[deed] >= FAILURES_PER_DEED_MAX:
            return False
        if not self.mood.is_failing():
            return False
        self._failures[deed] += 1
        self._good_in_a_row = 0
        return True

    def _apply(self, deed: Deed, key: str) -> None:
        effect = Effect(deed, key, next(self._places))
        if deed.verb != "plain" and self._done.setdefault((deed.verb, key), effect) is not effect:
            return  # the same key: the same answer, and nothing happens
        self.effects.append(effect)


@asynccontextmanager
async def serving_effects(
    mood: Mood | None = None, refuses: Callable[[Deed], bool] = never
) -> AsyncIterator[EffectsServer]:
    effects = EffectsServer(mood or Mood(), refuses)
    server = await asyncio.start_server(effects.talk, "127.0.0.1", 0)
    effects.port = server.sockets[0].getsockname()[1]
    try:
        yield effects
    finally:
        for gate in effects.gates.values():
            gate.opened.set()
        server.close()
