"""No entrance goes around the policy: where events are made, the policy is asked first."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import handrail

SRC = Path(handrail.__file__).parent
ROOMS = [room.name for room in SRC.iterdir() if room.name != "domain" and (room.is_dir() or room.suffix == ".py")]
"""All of the program that can change anything: in `domain` nothing is done."""
DECIDES = {"decide", "decide_plan"}
ASKS = "require_allowed"
ENGINES_OWN = {
    "engine/running/calls/breakers.py": "the circuit breaker of a server: handrail's own observation",
    "engine/proving/store_facts.py": "what an operator did to the store: asked in `accept`",
    "engine/proving/erasure.py": "an erasure: asked in `erase_payload`",
    "engine/proving/node_keys.py": "the admission of a node: asked in `admit`; the first node introduces itself",
    "engine/retention/archiving.py": "runs that leave the journal, or come back: asked in each of its three verbs",
}
"""Files that write events which no command asks for."""


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def called(node: ast.AST) -> list[str]:
    """The names of what is called in a piece of code, in order."""
    calls = [one for one in ast.walk(node) if isinstance(one, ast.Call)]
    calls.sort(key=lambda one: (one.lineno, one.col_offset))
    return [one.func.attr if isinstance(one.func, ast.Attribute) else getattr(one.func, "id", "") for one in calls]


def sources(*rooms: str) -> Iterator[tuple[str, ast.AST]]:
    for room in rooms:
        place = SRC / room
        for file in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            yield file.relative_to(SRC).as_posix(), ast.parse(file.read_text(encoding="utf-8"))


def test_whoever_decides_on_a_command_asks_the_policy_first() -> None:
    deciding = {
        f"{name}:{function.name}": called(function)
        for name, tree in sources(*ROOMS)
        for function in functions(tree)
        if DECIDES & set(called(function))
    }
    assert deciding.keys() == {"engine/dispatch.py:_drafted", "engine/plans.py:_grant"}
    for name, calls in deciding.items():
        first = min(calls.index(one) for one in DECIDES if one in calls)
        assert ASKS in calls[:first], name


def test_only_the_engine_makes_events_and_only_where_the_policy_is_asked() -> None:
    writing = {
        name
        for name, tree in sources(*ROOMS)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "write"
        if isinstance(node.func.value, ast.Attribute | ast.Name) and "record_writer" in ast.unparse(node.func.value)
    }
    assert writing == {"engine/dispatch.py", "engine/plans.py", *ENGINES_OWN}


def test_what_an_operator_does_to_the_store_asks_the_policy() -> None:
    """Whoever is told who asks, where no command is decided on, asks the policy before anything else."""
    asking = {
        f"{file}:{function.name}": called(function)[0]
        for file in (*ENGINES_OWN, "engine/fleet/node_table.py")
        for function in functions(ast.parse((SRC / file).read_text(encoding="utf-8")))
        if not function.name.startswith("_") and is_told_who(function)
    }
    assert len(asking) >= 6, "also who restored a backup, and who paused a node"
    assert {name for name, first in asking.items() if first != ASKS} == set()


def is_told_who(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a function has the actor as an argument."""
    return "actor" in {one.arg for one in (*function.args.args, *function.args.kwonlyargs)}


def test_only_who_has_asked_for_the_passphrase_says_so() -> None:
    """A command with `is_proven` counts as one whose passphrase was right; a preview grants nothing."""
    saying = {
        name
        for name, tree in sources("")
        for node in ast.walk(tree)
        if isinstance(node, ast.keyword | ast.Constant) and "is_proven" in {getattr(node, "arg", ""), _text(node)}
    }
    assert saying - {"domain/policy/asking.py"} == {"engine/running/answers.py", "domain/preview/control_preview.py"}


def _text(node: ast.AST) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
