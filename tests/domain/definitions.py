"""Strategies for hypothesis: JSON values, and definitions as authors write them.

`sound()` gives data that loads without a blocking finding; `shaped()` gives data of the right structure whose meaning
may be any nonsense; `spoiled()` is sound but for one value. Not a test file: other tests build on it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from handrail.domain.definition.authoring import definition_from
from handrail.domain.definition.model import Definition

Data = dict[str, Any]

patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""For property tests: a busy machine is no reason to fail."""

INPUTS: Data = {
    "text": {"type": "string", "default": "a"},
    "count": {"type": "integer", "minimum": 0, "default": 3},
    "names": {"type": "array", "items": {"type": "string"}, "default": ["a", "b"]},
    "anything": {"default": None},
}
TEXTS = [
    "Do it.",
    "Größe: 5 €",
    "Write {{ inputs.text }}.",
    "Run {{ run.id }}",
    "{% if inputs.count > 2 %}many{% endif %}",
    "{{ vars.note }}",
]
CONDITIONS: list[Any] = [
    True,
    "true",
    "inputs.count > 2",
    'inputs.text == "a" or not exists(vars.done)',
    "len(inputs.names) >= 1",
]
SCHEMAS: list[Data] = [
    {"type": "object"},
    {"type": "object", "required": ["file"], "properties": {"file": {"type": "string"}}},
    {"type": "string"},
]
TOOLS = ["file.read", "file.write", "http.request", "shell.run", "git.create_tag"]

NONSENSE = [
    "{{",
    "{{ nobody }}",
    "{{ inputs.nope }}",
    "{% for %}",
    "{{ steps.s1.output.x.y }}",
    "{{ steps.later }}",
    "}} {%",
    "{{ 1 | upper }}",
    "{{ inputs.text.deep }}",
]
NONSENSE_CONDITIONS: list[Any] = [
    *(False, "((", "nobody", "steps.s1.output > inputs", "inputs.count + 1", "'text'", "len(5)", " ", "output.x"),
    *("steps", "steps[0]", "[1, 2]", "steps.s1.s1.output", 'steps["a-b"]["s1"]["s2"].status == "x"'),
]
NONSENSE_NAMES = ["steps", "inputs", "s1", "s2", "s3", "later", "index", "a-b"]


def json_values(*, max_leaves: int = 12) -> st.SearchStrategy[Any]:
    """Any JSON value, within the numbers and texts that a journal can keep."""
    numbers = st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(allow_nan=False, allow_infinity=False)
    leaves = st.none() | st.booleans() | numbers | texts()
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts(), inner, max_size=4),
        max_leaves=max_leaves,
    )


def texts(*, min_size: int = 0) -> st.SearchStrategy[str]:
    """Any text that can be encoded."""
    return st.text(st.characters(exclude_categories=["Cs"]), min_size=min_size, max_size=12)


def sound() -> st.SearchStrategy[Data]:
    """A definition as an author writes it, without a blocking finding."""
    return _definitions(wild=False)


def shaped() -> st.SearchStrategy[Data]:
    """A definition of the right structure, with any nonsense where meaning begins."""
    return _definitions(wild=True)


@st.composite
def spoiled(draw: st.DrawFn) -> Any:
    """A sound definition in which one value, anywhere, has been replaced by any other."""
    data = copy.deepcopy(draw(sound()))
    place: Any = data
    while True:
        key = draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
        if not isinstance(place[key], dict | list) or not place[key] or draw(st.integers(0, 3)) == 0:
            place[key] = draw(json_values())
            return data
        place = place[key]


def definitions() -> st.SearchStrategy[Definition]:
    """A definition without a blocking finding, as a value."""
    return sound().map(definition_from)


@st.composite
def _definitions(draw: st.DrawFn, *, wild: bool) -> Data:
    author = _Author(draw=draw, wild=wild)
    data: Data = {
        "id": draw(st.sampled_from(["ship", "ship-release", "team/ship"])),
        "inputs": INPUTS,
        "steps": author.steps(),
    }
    optional: dict[str, st.SearchStrategy[Any]] = {
        "name": texts(min_size=1),
        "version": st.sampled_from(["1.0.0", "0.2.10-beta.1"]),
        "description": texts(),
        "tags": st.lists(st.sampled_from(["a", "b"]), unique=True),
        "guidance": st.lists(texts(min_size=1), max_size=2),
        "on_failure": st.sampled_from(["ask", "compensate", "continue", "stop"]),
        "max_parallel": st.integers(1, 8),
        "deadline": st.sampled_from(["2h", "250ms"]),
        "outputs": st.dictionaries(
            st.sampled_from(["one", "two"]), st.sampled_from([*author.references, "inputs.count", "[1, 2]"]), max_size=2
        ),
    }
    chosen = draw(st.sets(st.sampled_from(sorted(optional)), max_size=4))
    return data | {key: draw(values) for key, values in optional.items() if key in chosen}


@dataclass(frozen=True)
class _Author:
    """Writes lists of steps; `references` are the results that its next step may speak of."""

    draw: st.DrawFn
    wild: bool
    depth: int = 0
    prefix: str = "steps"
    references: tuple[str, ...] = ()

    def pick(self, sound: list[Any], nonsense: list[Any]) -> Any:
        return self.draw(st.sampled_from([*sound, *nonsense] if self.wild else sound))

    def steps(self) -> list[Data | str]:
        written: list[Data | str] = []
        before: dict[str, frozenset[str]] = {}
        for number in range(1, self.draw(st.integers(1, 4)) + 1):
            name = self.pick([f"s{number}", f"make-{number}"], NONSENSE_NAMES)
            step, needs = self._order({"id": name}, before)
            known = tuple(f'{self.prefix}["{earlier}"].output' for earlier in sorted(needs))
            author = replace(self, references=self.references + known)
            before[name] = needs
            work = author.work(name)
            written.append(step | work | author.extras(has_effect="prompt" in work or "tool" in work))
        return written

    def _order(self, step: Data, before: dict[str, frozenset[str]]) -> tuple[Data, frozenset[str]]:
        if self.draw(st.booleans()):  # implied order: after the step written before it
            named = list(before)[-1:]
        else:
            named = (
                self.draw(
                    st.lists(
                        st.sampled_from([*before, *(NONSENSE_NAMES if self.wild else [])]), unique=True, max_size=3
                    )
                )
                if before or self.wild
                else []
            )
            step = step | {"after": named}
        known = [name for name in named if name in before]
        return step, frozenset(known).union(*(before[name] for name in known))

    def work(self, name: str) -> Data:
        kinds = ["prompt", "tool", "approve", "workflow"] if self.wild else ["prompt", "tool", "approve"]
        kind = self.draw(st.sampled_from([*kinds, "each", "repeat"] if self.depth < 2 else kinds))
        match kind:
            case "prompt":
                return {"prompt": self.text()} | self._handed_in()
            case "tool":
                return {"tool": self.draw(st.sampled_from(TOOLS)), "args": self.arguments()} | self._handed_in()
            case "approve":
                return {"approve": self.text(), "by": ["leads"], "expires": "24h"}
            case "workflow":
                return {"workflow": "notify-team@^1", "with": self.arguments()}
            case "each":
                items = self.pick(["inputs.names", ["a", "b"]], ["inputs.count", "nobody", [], "steps.s1.output"])
                return {
                    "each": items,
                    "as": self.pick(["target", "item"], ["steps", "output"]),
                    "steps": self._body(name),
                    "max": 5,
                }
            case _:
                return {"repeat": self._rounds(), "steps": self._body(name)}

    def _body(self, name: str) -> list[Data | str]:
        return replace(self, depth=self.depth + 1, prefix=f'{self.prefix}["{name}"]').steps()

    def _rounds(self) -> Data:
        ends: list[Data] = [
            {"times": 3},
            {"until": self.condition(), "max": 4},
            {"while": self.condition(), "max": 4, "every": "15s"},
        ]
        return self.draw(st.sampled_from(ends))

    def _handed_in(self) -> Data:
        if not self.draw(st.booleans()):
            return {}
        check = {"rule": "file_exists", "severity": "critical", "path": self.pick(["{{ output }}"], NONSENSE)}
        return {"output": self.draw(st.sampled_from(SCHEMAS)), "checks": [check]}

    def extras(self, *, has_effect: bool) -> Data:
        optional: dict[str, Callable[[], Any]] = {
            "title": lambda: self.draw(texts(min_size=1)),
            "when": self.condition,
            "priority": lambda: self.draw(st.integers(-3, 3)),
            "guidance": lambda: [self.draw(texts(min_size=1))],
            "effect": lambda: self.draw(st.sampled_from(["none", "reversible", "compensatable", "irreversible"])),
            "undo": lambda: {"tool": "git.delete_tag", "args": self.arguments()},
            "on_failure": lambda: self.draw(st.sampled_from(["ask", "stop"])),
        }
        possible = sorted(optional if has_effect else optional.keys() - {"effect", "undo"})
        chosen = self.draw(st.sets(st.sampled_from(possible), max_size=3))
        return {key: write() for key, write in optional.items() if key in chosen}

    def text(self) -> str:
        known = [f"See {{{{ {reference} }}}}." for reference in self.references]
        return str(self.pick([*TEXTS, *known], NONSENSE))

    def condition(self) -> Any:
        known = [f"exists({reference})" for reference in self.references]
        return self.pick([*CONDITIONS, *known], NONSENSE_CONDITIONS)

    def arguments(self) -> Data:
        known = [f"{{{{ {reference} }}}}" for reference in self.references]
        nested = st.sampled_from(["plain", 5, None, {"deep": ["{{ inputs.text }}", True]}, *known])
        return self.draw(st.dictionaries(st.sampled_from(["path", "text", "n"]), nested, max_size=3))
