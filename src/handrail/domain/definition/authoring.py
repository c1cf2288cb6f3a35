"""Converts the data that an author wrote into a definition, and back. Also the content hash.

Pure. The data has passed the structure check (library/schemas/structure.py) or comes from the store; nothing is
validated here. Authors write a step as one flat object with its kind as a key; a `Step` keeps the work of its kind in
`work`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from handrail.domain.definition.model import Check, Definition, Kind, Step
from handrail.domain.json import Json, canonical_bytes, digest

CHECK_KEYS: Final = frozenset(Check.__struct_fields__) - {"parameters"}
STEP_KEYS: Final = frozenset(Step.__struct_fields__) - {"work", "undo"}
ID_LENGTH_MAX: Final = 64


def definition_from(data: Mapping[str, Any]) -> Definition:
    """The definition that structurally valid data describes, with every implied `after` filled in."""
    return msgspec.convert(_nested_definition(data), Definition)


def definition_data(definition: Definition) -> dict[str, Any]:
    """The definition as an author would write it, with every `after` written out."""
    return _flat_definition(msgspec.to_builtins(definition))


def content_hash(definition: Definition) -> str:
    """The hash that a run is pinned to: the same for the same meaning, regardless of key order and formatting."""
    return digest(definition_data(definition))


def slug(text: str) -> str:
    """A kebab-case id made from a name."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:ID_LENGTH_MAX].strip("-") or "plan"


def kind_in(data: Mapping[str, Any]) -> Kind:
    """The kind of a step, by the one kind key that it has."""
    return next(kind for kind in Kind if kind.value in data)


def expression_text(value: Json) -> str:
    """An expression that was written as a plain value (`when: true`, `each: [a, b]`) as its text."""
    return value if isinstance(value, str) else canonical_bytes(value).decode()


def _nested_definition(data: Mapping[str, Any]) -> dict[str, Any]:
    identity = data.get("id") or slug(data.get("name", ""))
    pinned = {name: _nested_definition(inner) for name, inner in data.get("pinned", {}).items()}
    own = {"id": identity, "name": data.get("name") or identity, "pinned": pinned}
    outputs = {name: expression_text(value) for name, value in data.get("outputs", {}).items()}
    return {**data, **own, "outputs": outputs, "steps": _nested_steps(data["steps"])}


def _nested_steps(items: Sequence[Any]) -> list[dict[str, Any]]:
    """A step without `after` follows the step written before it; a plain text is a step for the agent."""
    steps: list[dict[str, Any]] = []
    for number, item in enumerate(items, 1):
        data = {"prompt": item} if isinstance(item, str) else item
        implied = [steps[-1]["id"]] if steps else []
        steps.append(_nested_step({"id": f"step-{number}", "after": implied, **data}))
    return steps


def _nested_step(data: Mapping[str, Any]) -> dict[str, Any]:
    step = {key: value for key, value in data.items() if key in STEP_KEYS}
    if "when" in data:
        step["when"] = expression_text(data["when"])
    step["work"] = _nested_work(data)
    if "undo" in data:
        step["undo"] = _nested_work(data["undo"])
    return step


def _nested_work(data: Mapping[str, Any]) -> dict[str, Any]:
    work = {"kind": kind_in(data).value, **data}
    if "each" in data:
        work["each"] = expression_text(data["each"])
    if "repeat" in data:
        ends = {key: expression_text(data["repeat"][key]) for key in ("until", "while") if key in data["repeat"]}
        work["repeat"] = {**data["repeat"], **ends}
    if "steps" in data:
        work["steps"] = _nested_steps(data["steps"])
    if "checks" in data:
        work["checks"] = [_nested_check(check) for check in data["checks"]]
    return work


def _nested_check(data: Mapping[str, Any]) -> dict[str, Any]:
    own = {key: value for key, value in data.items() if key in CHECK_KEYS}
    if "when" in data:
        own["when"] = expression_text(data["when"])
    return {**own, "parameters": {key: value for key, value in data.items() if key not in CHECK_KEYS}}


def _flat_definition(data: dict[str, Any]) -> dict[str, Any]:
    data["steps"] = [_flat_step(step) for step in data["steps"]]
    if "pinned" in data:
        data["pinned"] = {name: _flat_definition(inner) for name, inner in data["pinned"].items()}
    return data


def _flat_step(step: dict[str, Any]) -> dict[str, Any]:
    work = _flat_work(step.pop("work"))
    undo = {"undo": _flat_work(step.pop("undo"))} if "undo" in step else {}
    return {"id": step.pop("id"), **step, "after": step.get("after", []), **work, **undo}


def _flat_work(work: dict[str, Any]) -> dict[str, Any]:
    del work["kind"]
    if "steps" in work:
        work["steps"] = [_flat_step(step) for step in work["steps"]]
    if "checks" in work:
        work["checks"] = [{**check.pop("parameters", {}), **check} for check in work["checks"]]
    return work
