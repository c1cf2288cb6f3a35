"""Random plans for real runs: a graph of calls with loops in it, and what must come before what.

Pure. Every call has an address of its own at the effects server, and an undo there, so that the server alone can tell
what was done, how often, and in which order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise, product
from random import Random
from typing import Any

STEPS_MIN, STEPS_MOSTLY, STEPS_MAX = 5, 8, 40
REFUSED = "refused"
"""The prefix of steps that the server refuses permanently."""
RETRY = {"attempts": 6, "first": "5ms", "max": "20ms"}


@dataclass(frozen=True)
class RandomPlan:
    """A plan, and what is known of it before it runs."""

    definition: dict[str, Any]
    calls: frozenset[str]
    """Every call that it can make, by its spot."""
    before: dict[str, frozenset[str]]
    """By spot: all that must be done before."""

    @property
    def policy(self) -> str:
        return str(self.definition["on_failure"])

    @property
    def refused(self) -> frozenset[str]:
        return frozenset(spot for spot in self.calls if is_refused(spot))

    @property
    def beyond(self) -> frozenset[str]:
        """What can't be done since it comes after something that is refused."""
        return frozenset(spot for spot in self.calls if self.before[spot] & self.refused)


@dataclass
class Node:
    """A step of the plan's own list: its calls round by round, and the steps that it waits for."""

    step: dict[str, Any]
    rounds: list[list[str]]
    in_order: bool = True
    needs: list[Node] = field(default_factory=list)

    @property
    def calls(self) -> list[str]:
        return [spot for one in self.rounds for spot in one]


def spot_of(path: str) -> str:
    """A step's path as it stands in an address: `build[2].make` is at `build.2.make`."""
    return path.replace("[", ".").replace("]", "")


def is_refused(spot: str) -> bool:
    return spot.rpartition(".")[2].startswith(REFUSED)


def call(url: str, name: str, spot: str, **more: Any) -> dict[str, Any]:
    """A step that does something at the server, and can be undone there."""
    undo = {"tool": "http.request", "args": _args(f"{url}/undo/{{{{ run.id }}}}/{spot}"), "idempotent": True}
    done = {"tool": "http.request", "args": _args(f"{url}/do/{{{{ run.id }}}}/{spot}"), "idempotent": True}
    return {"id": name, **done, "retry": RETRY, "undo": {**undo, "retry": RETRY}, **more}


def in_a_row(url: str, *names: str, name: str = "row") -> dict[str, Any]:
    """A plan of calls that follow each other."""
    return {"id": name, "steps": [call(url, one, one) for one in names]}


def plainly(url: str, name: str) -> dict[str, Any]:
    """A step that does something each time it is asked: it knows no keys."""
    return {"id": name, "tool": "http.request", "args": _args(f"{url}/plain/{{{{ run.id }}}}/{name}")}


def _args(url: str) -> dict[str, str]:
    return {"method": "POST", "url": url}


def random_plan(chance: Random, url: str, number: int) -> RandomPlan:
    policy = chance.choices(["compensate", "ask", "continue", "stop"], weights=[6, 2, 1, 1])[0]
    fails = chance.random() < (0.6 if policy == "compensate" else 0.75)
    nodes: list[Node] = []
    wanted = round(chance.triangular(STEPS_MIN, STEPS_MAX, STEPS_MOSTLY))
    while (left := wanted - sum(len(node.calls) for node in nodes)) > 0:
        nodes.append(_node(chance, url, f"s{len(nodes)}", left))
    if fails:
        _refuse(chance, url, chance.choice(nodes[len(nodes) // 3 :]))
    for place, node in enumerate(nodes):
        needs = chance.choices([0, 1, 2, 3], weights=[2, 5, 3, 1])[0]
        node.needs = chance.sample(nodes[:place], k=min(place, needs))
        node.step["after"] = [need.step["id"] for need in node.needs]
    definition = {
        "id": f"plan-{number}",
        "on_failure": policy,
        "max_parallel": chance.randint(1, 8),
        "steps": [node.step for node in nodes],
    }
    before = _closed({later: set(earlier) for later, earlier in _order(nodes)})
    return RandomPlan(definition, frozenset(before), before)


def _node(chance: Random, url: str, name: str, left: int) -> Node:
    kind = chance.choices(["call", "each", "repeat"], weights=[8, 1, 1])[0]
    rounds, width = chance.randint(1, 3), chance.randint(1, 2)
    if kind == "call" or rounds * width > left:
        return Node(call(url, name, name), [[name]])
    inside = [f"{name}{letter}" for letter in "ab"[:width]]
    steps = [call(url, inner, f"{name}.{{{{ index }}}}.{inner}") for inner in inside]
    calls = [[f"{name}.{index}.{inner}" for inner in inside] for index in range(rounds)]
    if kind == "repeat":
        return Node({"id": name, "repeat": {"times": rounds}, "steps": steps}, calls)
    parallel = chance.randint(1, 2)
    loop = {"id": name, "each": list(range(rounds)), "parallel": parallel, "steps": steps}
    return Node(loop, calls, in_order=parallel == 1)


def _refuse(chance: Random, url: str, node: Node) -> None:
    """Let the server refuse a step, or one inside it."""
    inside = node.step.get("steps")
    if inside is None:
        node.step["id"] = name = f"{REFUSED}-{node.step['id']}"
        node.step |= call(url, name, name)
        node.rounds = [[name]]
        return
    at = chance.randrange(len(inside))
    name = f"{REFUSED}-{inside[at]['id']}"
    inside[at] = call(url, name, f"{node.step['id']}.{{{{ index }}}}.{name}")
    node.rounds = [
        [*one[:at], f"{node.step['id']}.{index}.{name}", *one[at + 1 :]] for index, one in enumerate(node.rounds)
    ]


def _order(nodes: list[Node]) -> Iterator[tuple[str, list[str]]]:
    """Each call, and the calls that come right before it."""
    for node in nodes:
        outside = [spot for need in node.needs for spot in need.calls]
        earlier: dict[str, list[str]] = {spot: list(outside) for spot in node.calls}
        for one in node.rounds:
            for first, second in pairwise(one):
                earlier[second].append(first)
        if node.in_order:
            for one, other in pairwise(node.rounds):
                for first, second in product(one, other):
                    earlier[second].append(first)
        yield from earlier.items()


def _closed(direct: dict[str, set[str]]) -> dict[str, frozenset[str]]:
    """All that comes before each call, be it through others; the plan's order is one that needs come first in."""
    whole: dict[str, frozenset[str]] = {}
    for spot, earlier in direct.items():
        whole[spot] = frozenset(earlier).union(*(whole[one] for one in earlier))
    return whole
