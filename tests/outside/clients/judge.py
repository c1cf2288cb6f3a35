"""The judge: what the server saw beside what the journal says of a run. Each flaw is a line of words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from handrail.domain.journal.event import AttemptStarted, Entry, StepCompleted, UndoStarted
from handrail.domain.run.state import Run, replay
from handrail.domain.run.status import RunStatus, StepStatus
from outside.crashes.random_plans import RandomPlan, spot_of
from outside.effects_server import OK, Asked, Effect, EffectsServer


@dataclass
class Seen:
    """What the server saw of one run, by verb and spot."""

    run: str
    asked: Mapping[tuple[str, str], list[Asked]]
    effects: Mapping[tuple[str, str], list[Effect]]
    most_at_once: int = 0

    def began(self, verb: str, spot: str) -> int:
        return min(one.arrived for one in self.asked[verb, spot])

    def ended(self, verb: str, spot: str) -> int | None:
        """When it was first reported as done."""
        return min((one.answered for one in self.asked[verb, spot] if one.status == OK), default=None)

    def spots(self, verb: str) -> set[str]:
        return {spot for word, spot in self.effects if word == verb}


def seen_by(server: EffectsServer) -> dict[str, Seen]:
    """What the server saw, run by run."""
    asked: dict[str, dict[tuple[str, str], list[Asked]]] = defaultdict(lambda: defaultdict(list))
    effects: dict[str, dict[tuple[str, str], list[Effect]]] = defaultdict(lambda: defaultdict(list))
    for one in server.asked:
        asked[one.deed.run][one.deed.verb, one.deed.step].append(one)
    for effect in server.effects:
        effects[effect.deed.run][effect.deed.verb, effect.deed.step].append(effect)
    return {run: Seen(run, asked[run], effects[run], server.most_at_once[run]) for run in asked}


@dataclass
class Case:
    """One run at its end: its plan, its events, and what the server saw of it."""

    plan: RandomPlan
    entries: Sequence[Entry]
    seen: Seen
    wanted: RunStatus
    is_skipped: bool = False
    """Whether a person had what was refused skipped, so that all behind it was done."""
    run: Run = field(init=False)

    def __post_init__(self) -> None:
        self.run = replay(self.entries, Run(id=self.seen.run))

    def flaws(self) -> list[str]:
        """Everything that is wrong with it."""
        found = [
            *self._keys(),
            *self._lost(),
            *self._strangers(),
            *self._order(),
            *self._undo_order(),
            *self._end(),
        ]
        return [f"{self.seen.run} ({self.plan.definition['id']}, {self.plan.policy}): {flaw}" for flaw in found]

    def _keys(self) -> Iterator[str]:
        of_key: dict[tuple[str, str], str] = {}
        for (verb, spot), requests in self.seen.asked.items():
            keys = {one.key for one in requests}
            if "" in keys:
                yield f"{verb} {spot} came without a key"
            if len(keys) > 1:
                yield f"{verb} {spot} came under {len(keys)} keys"
            for key in keys:
                if of_key.setdefault((verb, key), spot) != spot:
                    yield f"{verb} {spot} came under the key of {of_key[verb, key]}"
        for (verb, spot), effects in self.seen.effects.items():
            if len(effects) != 1:
                yield f"{verb} {spot} happened {len(effects)} times"

    def _lost(self) -> Iterator[str]:
        done = {spot_of(entry.event.step) for entry in self.entries if isinstance(entry.event, StepCompleted)}
        for spot in (done & self.plan.calls) - self.seen.spots("do"):
            yield f"{spot} is completed, and nothing was done"
        for path, state in self.run.steps.items():
            spot = spot_of(path)
            if state.status is StepStatus.COMPENSATED and spot in self.plan.calls - self.seen.spots("undo"):
                yield f"{spot} is compensated, and nothing was undone"

    def _strangers(self) -> Iterator[str]:
        tried = {spot_of(entry.event.step) for entry in self.entries if isinstance(entry.event, AttemptStarted)}
        undone = {spot_of(entry.event.step) for entry in self.entries if isinstance(entry.event, UndoStarted)}
        for spot in self.seen.spots("do") - tried:
            yield f"{spot} was done, and the journal knows of no try"
        for spot in self.seen.spots("undo") - undone:
            yield f"{spot} was undone, and the journal knows of no try"

    def _order(self) -> Iterator[str]:
        for spot in self.plan.calls & {spot for verb, spot in self.seen.asked if verb == "do"}:
            for earlier in self.plan.before[spot]:
                if self.is_skipped and earlier in self.plan.refused:
                    continue
                ended = self.seen.ended("do", earlier)
                if ended is None or ended > self.seen.began("do", spot):
                    yield f"{spot} began before {earlier} was done"
        if self.seen.most_at_once > self.plan.definition["max_parallel"]:
            yield f"{self.seen.most_at_once} calls at once"

    def _undo_order(self) -> Iterator[str]:
        undone = {spot for verb, spot in self.seen.asked if verb == "undo"}
        for spot in undone:
            if any(one.arrived > self.seen.began("undo", spot) for one in self.seen.asked["do", spot]):
                yield f"{spot} was tried again after its undo had started"
            built_on = {later for later in self.seen.spots("do") if spot in self.plan.before[later]}
            for later in built_on:
                ended = self.seen.ended("undo", later) if ("undo", later) in self.seen.asked else None
                if ended is None or ended > self.seen.began("undo", spot):
                    yield f"{spot} was undone before {later}"

    def _end(self) -> Iterator[str]:
        if self.run.status is not self.wanted:
            yield f"it is {self.run.status.value}, not {self.wanted.value}"
        done, undone = self.seen.spots("do"), self.seen.spots("undo")
        if self.wanted is RunStatus.COMPENSATED:
            if left := done - undone:
                yield f"done and not undone: {_named(self.run, left)}"
        elif undone:
            yield f"undone without need: {_named(self.run, undone)}"
        missing = self._wanted_calls() - done
        if missing:
            yield f"never done: {_named(self.run, missing)}"
        if too_much := done & (frozenset() if self.is_skipped else self.plan.beyond):
            yield f"done behind a failure: {_named(self.run, too_much)}"

    def _wanted_calls(self) -> frozenset[str]:
        """What must have been done, whatever chance had in mind."""
        if self.wanted is RunStatus.COMPLETED:
            return self.plan.calls - self.plan.refused
        if self.plan.policy == "continue":
            inside = {spot.split(".")[0] for spot in self.plan.refused if "." in spot}
            loops = {spot for spot in self.plan.calls if spot.split(".")[0] in inside}  # rounds may be left out
            return self.plan.calls - self.plan.refused - self.plan.beyond - loops
        return frozenset()


def _named(run: Run, spots: set[str] | frozenset[str]) -> str:
    states = {spot_of(path): state.status.value for path, state in run.steps.items()}
    return ", ".join(f"{spot} ({states.get(spot, 'never heard of')})" for spot in sorted(spots))
