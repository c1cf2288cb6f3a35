"""Random plans: graphs of steps of every kind, with loops, inlined workflows, undos, policies and limits.

Only makes definitions. What the tools that they name do is told in outside.py."""

from __future__ import annotations

from random import Random
from typing import Any, Final

from handrail.domain.definition.authoring import definition_from
from handrail.domain.definition.model import Definition

POLICIES: Final = ("ask", "compensate", "continue", "stop")
FATES: Final = ("ok", "ok", "ok", "ok", "flaky", "flaky", "broken", "wild", "wild")
"""How the calls of a step go: well, with passing failures, with lasting ones, or in any way at all."""
WITH_EFFECT: Final = ("comp", "comp", "comp_i", "rev", "rev_i", "irr", "irr_i")
TOOLS: Final = (*WITH_EFFECT, *WITH_EFFECT, "none", "none", "later", "instant")
SERVERS: Final = ("a", "b", "c")


class Planner:
    """Draws one plan."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.left = random.choice((2, 3, 4, 5, 6, 8, 8, 12, 25))
        self.pinned: dict[str, Any] = {}
        self.is_rich = random.random() < 0.6

    def plan(self) -> Definition:
        """A plan of a few or a few more steps."""
        random = self.random
        data: dict[str, Any] = {
            "id": "plan",
            "inputs": {"items": {"default": list(range(random.randint(0, 3)))}, "x": {"default": random.randint(0, 9)}},
            "on_failure": random.choice((*POLICIES, "compensate")),
            "max_parallel": random.choice((1, 2, 2, 4)),
            "steps": self.steps(depth=0, most=self.left),
        }
        if random.random() < 0.12:
            data["deadline"] = f"{random.choice((2, 5, 20))}s"
        if random.random() < 0.3:
            data["outputs"] = {"last": f"steps.{data['steps'][-1]['id']}.output"}
        return definition_from({**data, "pinned": self.pinned})

    def steps(self, *, depth: int, most: int, loops: tuple[str, ...] = ()) -> list[dict[str, Any]]:
        """A list of steps, each after some of those before it."""
        steps: list[dict[str, Any]] = []
        count = min(most, self.left) if depth == 0 else min(self.random.randint(1, most), max(1, self.left))
        for number in range(max(1, count)):
            if self.left <= 0 and steps:
                break
            self.left -= 1
            steps.append(self.step(f"s{depth}{number}", steps, depth, loops))
        return steps

    def step(self, name: str, before: list[dict[str, Any]], depth: int, loops: tuple[str, ...]) -> dict[str, Any]:
        """One step of some kind."""
        random = self.random
        most = min(len(before), random.choice((0, 1, 1, 1, 2, 3)))
        after = random.sample([step["id"] for step in before], most) if most else []
        step: dict[str, Any] = {"id": name, "after": sorted(after), **self.work(name, depth, loops)}
        if random.random() < 0.1:
            step["when"] = self.condition([id_ for id_ in after if not loops])
        if random.random() < 0.15:
            step["priority"] = random.randint(-5, 5)
        if random.random() < 0.15:
            step["on_failure"] = random.choice(POLICIES)
        return step

    def condition(self, after: list[str]) -> str:
        """Something that holds, or does not."""
        random = self.random
        if after and random.random() < 0.6:
            return f"steps.{after[0]}.status {random.choice(('==', '!='))} 'completed'"
        return f"inputs.x {random.choice(('<', '>'))} {random.randint(0, 9)}"

    def work(self, name: str, depth: int, loops: tuple[str, ...]) -> dict[str, Any]:
        """What a step does."""
        random = self.random
        kind = random.random() if self.is_rich else random.random() * 0.72
        if kind < 0.72 or self.left <= 1 or (depth >= 2 and kind > 0.86):
            return self.tool()
        if kind < 0.79:
            return {"prompt": "Do it.", **self.gate(0.5), **self.undo(0.4)}
        if kind < 0.86:
            expires = {"expires": f"{random.choice((1, 3, 30))}s"} if random.random() < 0.6 else {}
            return {"approve": "Go on?", **expires}
        inner = (*loops, name)
        if kind < 0.91:
            parallel = random.choice((1, 1, 2, 3))
            items = random.choice(("inputs.items", "inputs.items", "[1, 2]")) if depth == 0 else "[1, 2]"
            steps = self.steps(depth=depth + 1, most=3, loops=inner)
            return {"each": items, "parallel": parallel, "steps": steps, **self.undo(0.15)}
        if kind < 0.955:
            return {
                "repeat": self.rounds(loops, name, depth),
                "steps": self.steps(depth=depth + 1, most=3, loops=inner),
            }
        return {**self.call(depth), **self.undo(0.15)}

    def gate(self, chance: float) -> dict[str, Any]:
        """What has to be shown or agreed before a step counts, perhaps, and who may skip that."""
        random = self.random
        if random.random() >= chance:
            return {}
        said = random.choice(({}, {}, {"skippable": "agent"}, {"skippable": "person"}, {"skippable": "nobody"}))
        return random.choice(({"checks": [{"rule": "json"}]}, {"confirm": True}, {})) | said

    def rounds(self, loops: tuple[str, ...], name: str, depth: int) -> dict[str, Any]:
        """When a loop is over."""
        random = self.random
        every = {"every": f"{random.choice((200, 1500))}ms"} if random.random() < 0.4 else {}
        place = ".".join((*loops, name))
        first = f"steps.{place}.s{depth + 1}0.status"
        ends: list[dict[str, Any]] = [
            {"times": random.randint(1, 3)},
            {"until": f"{first} == 'completed' and index >= 1", "max": random.randint(1, 4)},
            {"until": f"index >= {random.randint(0, 2)}", "max": 3},
            {"while": f"index < {random.randint(0, 2)}", "max": 3},
        ]
        return {**random.choice(ends), **every}

    def call(self, depth: int) -> dict[str, Any]:
        """Another workflow, inlined."""
        name = f"w{len(self.pinned)}@1.0.0"
        self.pinned[name] = {}
        inner: dict[str, Any] = {"id": name.partition("@")[0], "version": "1.0.0", "inputs": {"x": {"default": 1}}}
        inner["steps"] = self.steps(depth=depth + 1, most=3)
        if self.random.random() < 0.5:
            inner["outputs"] = {"x": "inputs.x"}
        self.pinned[name] = inner
        return {"workflow": name, "with": {"x": "{{ inputs.x }}"} if self.random.random() < 0.5 else {}}

    def tool(self) -> dict[str, Any]:
        """A call of a tool."""
        random = self.random
        name = random.choice(TOOLS)
        fate = random.choice(FATES)
        work: dict[str, Any] = {"tool": f"{random.choice(SERVERS)}.{name}", "args": {"fate": fate}}
        if random.random() < 0.4:
            attempts = random.randint(1, 4)
            jitter = {"jitter": False} if random.random() < 0.5 else {}
            work["retry"] = {"attempts": attempts, "first": f"{random.choice((50, 300))}ms", "max": "900ms", **jitter}
        else:
            work["retry"] = {"first": "200ms", "max": "1s"}
        work["timeout"] = f"{random.choice((300, 1000, 2000))}ms"
        if random.random() < 0.1:
            work["idempotent"] = True
        if name.startswith("comp"):
            return {**work, **self.undo(0.85)}
        return {**work, **self.undo(0.1)} if name in {"rev", "irr"} else work

    def undo(self, chance: float) -> dict[str, Any]:
        """How a step is undone, perhaps."""
        random = self.random
        if random.random() >= chance:
            return {}
        kind = random.random()
        if kind < 0.1 and self.is_rich:
            return {"undo": {"prompt": "Take it back."}}
        if kind < 0.2 and self.is_rich:
            name = f"u{len(self.pinned)}@1.0.0"
            steps = [{"id": f"t{number}", "after": [], **self.undo_tool()} for number in range(random.randint(1, 2))]
            self.pinned[name] = {"id": name.partition("@")[0], "version": "1.0.0", "steps": steps}
            return {"undo": {"workflow": name}}
        return {"undo": self.undo_tool()}

    def undo_tool(self) -> dict[str, Any]:
        """A call that undoes something."""
        random = self.random
        name = random.choice(("undo", "undo", "undo_i", "rev"))
        fate = random.choice(("ok", "ok", "ok", "ok", "flaky", "broken", "wild"))
        retry = {"first": "200ms", "max": "1s"}
        work = {"tool": f"{random.choice(SERVERS)}.{name}", "args": {"fate": fate}, "timeout": "1s", "retry": retry}
        said = random.choice((None, None, None, True, False))
        return work if said is None else {**work, "idempotent": said}


def draw_plan(random: Random) -> Definition:
    """A random plan; now and then one that only does things to undo them."""
    return saga(random) if random.random() < 0.15 else Planner(random).plan()


def saga(random: Random) -> Definition:
    """Steps that can all be undone, by tools that may be repeated or not, and then one that fails."""
    planner = Planner(random)
    steps: list[dict[str, Any]] = []
    for number in range(random.randint(2, 6)):
        after = [random.choice(steps)["id"]] if steps and random.random() < 0.7 else []
        name = random.choice(("comp_i", "comp_i", "rev_i"))
        work = {"tool": f"{random.choice(SERVERS)}.{name}", "args": {"fate": "ok"}}
        undo = {} if name == "rev_i" and random.random() < 0.5 else {"undo": planner.undo_tool()}
        steps.append({"id": f"s0{number}", "after": after, **work, **undo})
    broken = {"id": "broken", "after": [step["id"] for step in steps], "tool": "a.none", "args": {"fate": "broken"}}
    shape = {"id": "saga", "on_failure": "compensate", "max_parallel": random.choice((1, 2, 4))}
    return definition_from({**shape, "steps": [*steps, broken]})
