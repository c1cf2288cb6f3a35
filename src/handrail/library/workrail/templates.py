"""Templates: a step with `templateCall` stands for the steps of a routine, which is a file of its own.

The routine is looked up beside the workflow. As in WorkRail, its steps replace the one that calls it, their ids start
with that one's id, `{name}` in their texts is an argument, and the routine's own guidance becomes that of its steps."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from handrail.domain.checks.finding import Path
from handrail.library.documents.document import Document
from handrail.library.workrail.noting import Notes, Reader

ROUTINES: Final = "wr.templates.routine."
PREFIX: Final = "routine-"
CALLER_KEYS: Final = ("id", "type", "title", "templateCall", "runCondition")
TEXTS: Final = ("title", "prompt")

Originals: TypeAlias = Callable[[Sequence[str]], Sequence[Document]]
"""The documents with one of these ids, as they were written."""
Placed: TypeAlias = tuple[Any, Path]

_argument = re.compile(r"(?<!\{)\{([^{}]+)\}(?!\})")


def no_originals(_ids: Sequence[str]) -> Sequence[Document]:
    """There are no other files."""
    return ()


def expanded(placed: Sequence[Placed], originals: Originals, notes: Notes) -> list[Placed]:
    """The steps of a list, those with a template replaced by the steps of its routine, if that is found."""
    found: list[Placed] = []
    for step, path in placed:
        inside = _steps_of(Reader(step, path, notes), originals) if isinstance(step, Mapping) else None
        found += [(step, path)] if inside is None else [(one, path) for one in inside]
    return found


def _steps_of(step: Reader, originals: Originals) -> list[Any] | None:
    """The steps of the routine that a step calls; None if it calls none, or there is none."""
    call = step.value.get("templateCall")
    if not isinstance(call, Mapping):
        return None
    routine = _routine_of(call, originals)
    if routine is None:
        return None
    for key in sorted(step.value.keys() - set(CALLER_KEYS)):
        step.notes.note(step.at(key), f"the steps of the template replace this step: `{key}` is left out")
    given = call["args"] if isinstance(call.get("args"), Mapping) else {}
    return [_expanded(one, step, routine, given) if isinstance(one, Mapping) else one for one in routine["steps"]]


def _routine_of(call: Mapping[str, Any], originals: Originals) -> Mapping[str, Any] | None:
    name = call.get("templateId")
    if not isinstance(name, str) or not name.strip():
        return None
    plain = name.strip().removeprefix(ROUTINES)
    found: list[Any] = [one.value for one in originals([PREFIX + plain, plain])]
    return next((one for one in found if _is_routine(one)), None)


def _is_routine(value: Any) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("steps"), list | tuple) and bool(value["steps"])


def _expanded(inner: Mapping[str, Any], caller: Reader, routine: Mapping[str, Any], given: Mapping[str, Any]) -> Any:
    texts = {key: _filled(inner[key], given, caller) for key in TEXTS if isinstance(inner.get(key), str)}
    guidance = [*_listed(inner.get("guidance")), *_listed(routine.get("metaGuidance"))]
    condition = inner.get("runCondition") or caller.value.get("runCondition")
    # A routine that calls another is not resolved further: WorkRail refuses it.
    return {
        **inner,
        **texts,
        "id": f"{caller.text('id')}.{inner.get('id', '')}",
        **({"guidance": guidance} if guidance else {}),
        **({"runCondition": condition} if condition else {}),
    }


def _filled(text: str, given: Mapping[str, Any], caller: Reader) -> str:
    def replaced(found: re.Match[str]) -> str:
        value = given.get(found[1])
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, str | int | float):
            return str(value)
        message = f"the template has no argument `{found[1][:60]}`: it stays in the text"
        caller.notes.note(caller.at("templateCall"), message, f"add `{found[1][:60]}` to `args`")
        return found[0]

    return _argument.sub(replaced, text)


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else []
