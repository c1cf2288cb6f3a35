"""Parts: what an agent who follows a workflow's own test has to do, step by step, and what must come of it.

Tests beside a workflow may stand in for the workflows that it inlines; a real agent has to walk through those, so their
own tests say what it does there. What must come of all that is worked out by the pure walker, before anything runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from handrail.assembly.checks import judging_rules
from handrail.domain.definition.model import Call, Definition, Prompt
from handrail.domain.rehearsal.script import Script, listed, names_in, plain
from handrail.domain.rehearsal.walk import Walked, WalkParts, walk_through
from handrail.domain.run.step_path import UNDO, locate
from handrail.library.inputs import check_inputs
from handrail.library.shelf.workflow_library import WorkflowLibrary
from handrail.library.test_script import TESTS_SUFFIX, read_tests

COMPLETED, COMPENSATED = "completed", "compensated"
DEPTH_MAX = 5


class Part(Struct, frozen=True, kw_only=True):
    """One workflow, what is done in it, and what must come of it."""

    workflow: str
    definition: Definition
    script: Script
    walked: Walked

    @property
    def for_agent(self) -> tuple[str, ...]:
        """The steps that the agent has to do, in the order of the walk."""
        return tuple(path for path in self.walked.path if isinstance(locate(self.definition, path).step.work, Prompt))

    def tries(self, path: str) -> list[Any]:
        """What the agent submits for a step, one after the other; only the last is accepted."""
        said = self._said(self.script.outputs, path)
        items = listed(said, "try")
        return items if items is not None else [said]

    def outcome(self, path: str) -> str:
        return str(self._said(self.script.outcomes, path) or "done")

    def left(self, path: str) -> dict[str, Any]:
        """The variables that the agent leaves with a step."""
        return dict(self._said(self.script.vars, path) or {})

    def is_approved(self, path: str) -> bool:
        return (self._said(self.script.approvals, path) or "approve") == "approve"

    def schema(self, path: str) -> Any:
        """The schema of a step's output; None if there is none."""
        step = locate(self.definition, path.removesuffix(UNDO)).step
        work = step.undo if path.endswith(UNDO) else step.work
        return work.output if isinstance(work, Prompt) else None

    def _said(self, said: Mapping[str, Any], path: str) -> Any:
        value = said.get(path, said.get(plain(path)))
        items = listed(value, "each")
        if items is None:
            return value
        rounds = [one for one in self.walked.path if plain(one) == plain(path)]
        return items[[*rounds, path].index(path)]  # what is not on the path is what failed, after all that were done


def cast_of_play() -> WalkParts:
    return WalkParts(check=_checked, rule_set=judging_rules())


def _checked(definition: Definition, given: Mapping[str, Any]) -> tuple[Mapping[str, Any], list[str]]:
    inputs, findings = check_inputs(definition, dict(given))
    return inputs, [finding.message for finding in findings]


@cache
def built_in_names() -> tuple[str, ...]:
    """The ids of all built-in workflows."""
    return tuple(entry.id for entry in _case().entries())


@cache
def _case() -> WorkflowLibrary:
    return WorkflowLibrary([str(files("handrail.library").joinpath("workflows"))])


@cache
def _tests_of(name: str) -> tuple[Definition, tuple[Script, ...]]:
    entry = next(entry for entry in _case().entries() if entry.id == name)
    loaded = _case().load(name)
    assert loaded.definition is not None, loaded.findings
    file = Path(entry.file).with_suffix(TESTS_SUFFIX)
    tests = read_tests(file.read_bytes(), name=str(file), definition=loaded.definition)
    assert not tests.findings, tests.findings
    return loaded.definition, tests.scripts


def whole_tests_of(name: str) -> tuple[Definition, list[Script]]:
    """A workflow, and its tests without stand-ins for the workflows that it inlines."""
    definition, scripts = _tests_of(name)
    return definition, [_whole(definition, script) for script in scripts]


@cache
def part_of(name: str, end: str = COMPLETED) -> Part | None:
    """The part in which an agent has most to do, of those that a workflow's own tests with this end make."""
    definition, scripts = _tests_of(name)
    parts = [_part(name, definition, script) for script in scripts if script.expect.end == end]
    return max(parts, key=lambda part: len(part.for_agent), default=None)


def _part(name: str, definition: Definition, script: Script) -> Part:
    whole = _whole(definition, script)
    walked = walk_through(definition, whole, cast_of_play())
    assert not walked.trouble, walked.trouble
    assert walked.end == script.expect.end, walked
    return Part(workflow=name, definition=definition, script=whole, walked=walked)


def _whole(definition: Definition, script: Script) -> Script:
    """The script without stand-ins: what the inlined workflows' own tests say takes their place."""
    for _ in range(DEPTH_MAX):
        calls = [(name, step.work) for name, step in names_in(definition) if isinstance(step.work, Call)]
        calls = [(name, call) for name, call in calls if name in script.outputs]
        if not calls:
            return script
        for name, call in calls:
            script = _unfolded(script, name, call.workflow)
    raise AssertionError("workflows inline each other without end")


def _unfolded(script: Script, name: str, workflow: str) -> Script:
    outputs = dict(script.outputs)
    stand_in = outputs.pop(name)
    rounds = listed(stand_in, "each")
    chosen = [_like(workflow.partition("@")[0], one) for one in (rounds if rounds is not None else [stand_in])]
    more: dict[str, Any] = {}
    for step in dict.fromkeys(step for one in chosen for step in one.outputs):
        said = [one.outputs[step] for one in chosen if step in one.outputs]
        more[f"{name}.{step}"] = said[0] if len(chosen) == 1 else {"each": list(_rounds(said))}
    return replace(script, outputs={**more, **outputs})


def _rounds(said: list[Any]) -> Iterator[Any]:
    for one in said:
        items = listed(one, "each")
        yield from items if items is not None else [one]


def _like(workflow: str, output: Any) -> Script:
    """The test of an inlined workflow whose outputs are most like these."""
    definition, scripts = _tests_of(workflow)
    done = [script for script in scripts if script.expect.end == COMPLETED]
    walks = [walk_through(definition, script, cast_of_play()) for script in done]

    def likeness(number: int) -> int:
        outputs = walks[number].outputs
        return sum(outputs.get(key) == value for key, value in output.items() if isinstance(value, str | bool | int))

    return done[max(range(len(done)), key=lambda number: (likeness(number), -number))]
