"""Functions of WorkRail: named texts that several steps share. A step's prompt shows those that it mentions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from handrail.library.workrail.noting import Reader

KEYS = ("name", "definition", "parameters", "scope")
PARAMETER_KEYS = ("name", "type", "required", "description", "enum", "default")


class WorkRailFunction(Struct, frozen=True):
    """A function with its text, on one line."""

    name: str
    text: str


def functions_in(holder: Reader) -> dict[str, WorkRailFunction]:
    """The functions that a workflow, loop or step defines."""
    found = [_function(one) for one in holder.inners("functionDefinitions")]
    return {function.name: function for function in found if function.name}


def mentioned_in(step: Reader, text: str, known: Mapping[str, WorkRailFunction]) -> list[WorkRailFunction]:
    """The functions that a step refers to, calls, or names in its text."""
    named = {name.removesuffix("()") for name in step.texts("functionReferences")}
    named |= {one.text("name") for one in step.inners("functionCalls")}
    words = set(re.findall(r"[A-Za-z_]\w*(?=\s*\()", text))
    return [function for name, function in known.items() if name in named | words]


def calls_in(step: Reader) -> list[str]:
    """The function calls of a step, one line each."""
    calls: list[str] = []
    for call in step.inners("functionCalls"):
        call.note_unknown(("name", "args"))
        arguments = call.inner("args")
        given = ", ".join(f"{key}: {_shown(value)}" for key, value in arguments.value.items()) if arguments else ""
        calls.append(f"{call.text('name')}({given})")
    return calls


def _function(definition: Reader) -> WorkRailFunction:
    definition.note_unknown(KEYS)
    name, text = definition.text("name"), definition.text("definition")
    parameters = [_parameter(one) for one in definition.inners("parameters")]
    if not name:
        definition.notes.fault(definition.path, "the function has no name", "add `name`")
    about = "; ".join(filter(None, (words for _, words in parameters)))
    signature = f"{name}({', '.join(head for head, _ in parameters)})"
    return WorkRailFunction(name, f"{signature}: {text}" + (f" ({about})" if about else ""))


def _parameter(parameter: Reader) -> tuple[str, str]:
    """A parameter for the signature, and its description."""
    parameter.note_unknown(PARAMETER_KEYS)
    name = parameter.text("name")
    kind = parameter.text("type")
    is_optional = parameter.value.get("required") is False
    words = [parameter.text("description")]
    if choices := parameter.items("enum"):
        words.append(f"one of {', '.join(map(_shown, choices))}")
    if parameter.value.get("default") is not None:
        words.append(f"default {_shown(parameter.value['default'])}")
    said = ", ".join(filter(None, words))
    head = name + ("?" if is_optional else "") + (f": {kind}" if kind else "")
    return head, f"{name}: {said}" if said else ""


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_shown(item)}" for key, item in value.items()) + "}"
    if isinstance(value, Sequence):
        return f"[{', '.join(map(_shown, value))}]"
    return str(value)
