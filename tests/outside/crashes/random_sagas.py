"""Random sagas: plans of effects on a server and on files that end in a failure, so that all of it must be undone.

Only makes definitions, and says what the world must look like afterwards. No undo here says `idempotent`, and none may
fail even once: what a kill interrupts must be repeated without using up the retry policy."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from outside.crashes.random_plans import REFUSED

BEFORE = "as it was before\n"
LAST = "last"
"""The spot of the undo that comes last in every saga: a gate there keeps all sagas from ending."""
ONCE = {"attempts": 1}
KINDS = ("web", "web", "web", "flow", "new-file", "old-file", "deleted-file")


@dataclass
class Saga:
    """A saga, and what it does to the world."""

    number: int
    url: str
    steps: list[dict[str, Any]] = field(default_factory=list)
    pinned: dict[str, Any] = field(default_factory=dict)
    undone_at: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """By the spot of what is done at the server: the spots that undo it."""

    @property
    def definition(self) -> dict[str, Any]:
        shape = {"id": f"saga-{self.number}", "on_failure": "compensate", "max_parallel": 3}
        return {**shape, "steps": self.steps, "pinned": self.pinned}

    @property
    def old_file(self) -> str:
        return f"old-{self.number}.txt"

    def add(self, name: str, kind: str, after: list[str]) -> None:
        """Add a step of some kind."""
        self.steps.append({"id": name, "after": after, **self._work(name, kind)})

    def _work(self, name: str, kind: str) -> dict[str, Any]:
        match kind:
            case "web":
                return {**self._done(name), "undo": self._undo(name, LAST if name == "s0" else name)}
            case "flow":
                return {**self._done(name), "undo": {"workflow": self._workflow(name)}}
            case "new-file":
                return _written(f"new-{{{{ run.id }}}}-{name}.txt")
            case "old-file":
                return _written(self.old_file)
            case _:
                path = f"deleted-{{{{ run.id }}}}-{name}.txt"
                return {**_written(path), "undo": {"tool": "file.delete", "args": {"path": path}, "retry": ONCE}}

    def _done(self, name: str) -> dict[str, Any]:
        return {**self._request("do", name), "idempotent": True}

    def _undo(self, name: str, spot: str) -> dict[str, Any]:
        self.undone_at[name] = (spot,)
        return {**self._request("undo", spot), "retry": ONCE}

    def _workflow(self, name: str) -> str:
        spots = (f"{name}-first", f"{name}-then")
        self.undone_at[name] = spots
        steps = [{"id": spot, **self._request("undo", spot), "idempotent": True} for spot in spots]
        self.pinned[f"back-{name}@1.0.0"] = {"id": f"back-{name}", "version": "1.0.0", "steps": steps}
        return f"back-{name}@1.0.0"

    def refuse(self, after: list[str]) -> None:
        """Add the step that fails."""
        self.steps.append({"id": REFUSED, "after": after, **self._done(REFUSED), "retry": ONCE})

    def _request(self, verb: str, spot: str) -> dict[str, Any]:
        url = f"{self.url}/{verb}/{{{{ run.id }}}}/{spot}"
        return {"tool": "http.request", "args": {"method": "POST", "url": url}}


def random_saga(chance: Random, url: str, number: int, project: Path) -> Saga:
    saga = Saga(number, url)
    (project / saga.old_file).write_text(BEFORE)
    saga.add("s0", "web", [])
    names = ["s0"]
    has_old_file = False
    for place in range(1, chance.randint(4, 7)):
        kind = chance.choice(KINDS)
        if kind == "old-file" and has_old_file:
            kind = "web"  # two writers of one file would have to follow each other
        has_old_file |= kind == "old-file"
        name = f"s{place}"
        saga.add(name, kind, sorted({"s0", chance.choice(names)}))
        names.append(name)
    saga.refuse(names)
    return saga


def _written(path: str) -> dict[str, Any]:
    return {"tool": "file.write", "args": {"path": path, "text": "made by a saga"}}
