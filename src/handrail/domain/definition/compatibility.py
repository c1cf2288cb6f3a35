"""Compatibility: what has changed between two versions of a workflow, and what that means for its users.

Pure. A change is breaking if a run that is started, or inlined, as before can now fail: different inputs, removed
steps, outputs of a different shape. Additions and changes in order are minor; changes in wording are a patch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct

from handrail.domain.definition.authoring import definition_data
from handrail.domain.definition.model import Definition, Step, walk
from handrail.domain.definition.semver import Version, parse_version
from handrail.domain.errors import Invalid


class Weight(StrEnum):
    """How much a change matters, breaking first."""

    BREAKING = "breaking"
    MINOR = "minor"
    PATCH = "patch"


class VersionChange(Struct, frozen=True, kw_only=True):
    """One difference between two versions."""

    weight: Weight
    where: str
    what: str


WORDS: Final = frozenset({"title", "description", "examples", "$comment"})
"""Keys of a JSON Schema that are only documentation."""
TOP_WORDS: Final = ("name", "description", "category", "tags", "license", "preconditions", "clarify", "guidance")
STEP_WORDS: Final = frozenset({"title", "prompt", "role", "guidance", "model", "approve", "priority"})
ORDER: Final = tuple(Weight)


def changes(old: Definition, new: Definition) -> list[VersionChange]:
    """All differences, breaking ones first."""
    found = [*_inputs(old, new), *_steps(old, new), *_outputs(old, new), *_top(old, new)]
    return sorted(found, key=lambda one: ORDER.index(one.weight))


def bump(found: Iterable[VersionChange]) -> Weight | None:
    """The greatest weight among the changes; None if there are none."""
    return min((one.weight for one in found), key=ORDER.index, default=None)


def next_version(version: str, weight: Weight | None) -> str:
    """The lowest version that a change of this weight requires; empty if the old version is invalid."""
    try:
        major, minor, patch = parse_version(version).core
    except Invalid:
        return ""
    if weight is None:
        return version
    # Below 1.0.0 the second number is the one that ranges such as ^0.2 look at.
    steps = {Weight.BREAKING: 0, Weight.MINOR: 1, Weight.PATCH: 2}[weight] + (major == 0 and weight is not Weight.PATCH)
    return str(Version(((major + 1, 0, 0), (major, minor + 1, 0), (major, minor, patch + 1))[steps]))


def is_enough(old: str, new: str, weight: Weight | None) -> bool:
    """Whether the new version is at least what the change requires."""
    wanted = next_version(old, weight)
    try:
        return not wanted or parse_version(new) >= parse_version(wanted)
    except Invalid:
        return False


# --- the parts --------------------------------------------------------------------------------------


def _inputs(old: Definition, new: Definition) -> Iterator[VersionChange]:
    for name in old.inputs.keys() - new.inputs.keys():
        yield VersionChange(weight=Weight.BREAKING, where=f"inputs.{name}", what="was removed or renamed")
    for name, schema in new.inputs.items():
        where = f"inputs.{name}"
        if name not in old.inputs:
            is_free = "default" in schema
            what = "is new, with a default" if is_free else "is new and required"
            yield VersionChange(weight=Weight.MINOR if is_free else Weight.BREAKING, where=where, what=what)
        else:
            yield from _input(old.inputs[name], schema, where)


def _input(old: Mapping[str, Any], new: Mapping[str, Any], where: str) -> Iterator[VersionChange]:
    yield from _default(old, new, where)
    if _meaning(old, "default") != _meaning(new, "default"):
        if _takes_more(old, new):
            yield VersionChange(weight=Weight.MINOR, where=where, what="accepts more values than before")
        else:
            yield VersionChange(
                weight=Weight.BREAKING, where=where, what="may refuse what it accepted before: its schema differs"
            )
    elif old != new and _meaning(old) == _meaning(new):
        yield VersionChange(weight=Weight.PATCH, where=where, what="has a different description")


def _default(old: Mapping[str, Any], new: Mapping[str, Any], where: str) -> Iterator[VersionChange]:
    nothing = object()
    before, after = old.get("default", nothing), new.get("default", nothing)
    if after is nothing and before is not nothing:
        yield VersionChange(weight=Weight.BREAKING, where=where, what="no longer has a default")
    elif before != after:
        yield VersionChange(weight=Weight.MINOR, where=where, what="has a different default")


def _takes_more(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether only the list of allowed values differs, and none was removed from it."""
    rest = _meaning(old, "default", "enum") == _meaning(new, "default", "enum")
    known = old.get("enum")
    return rest and known is not None and ("enum" not in new or all(one in new["enum"] for one in known))


def _steps(old: Definition, new: Definition) -> Iterator[VersionChange]:
    before, after = _named(old), _named(new)
    data_before, data_after = _data(old), _data(new)
    for name in before:
        if name not in after:
            yield VersionChange(weight=Weight.BREAKING, where=f"steps.{name}", what="was removed or renamed")
    for name, step in after.items():
        where = f"steps.{name}"
        if name not in before:
            yield VersionChange(weight=Weight.MINOR, where=where, what="is new")
        elif before[name].kind is not step.kind:
            kinds = f"`{before[name].kind.value}`, now `{step.kind.value}`"
            yield VersionChange(weight=Weight.BREAKING, where=where, what=f"was of the kind {kinds}")
        else:
            yield from _step(data_before[name], data_after[name], where)


def _step(old: Mapping[str, Any], new: Mapping[str, Any], where: str) -> Iterator[VersionChange]:
    for key in dict.fromkeys([*old, *new]):
        one, other = old.get(key), new.get(key)
        if one == other or key == "steps":
            continue
        if key == "output":
            yield from _output_schema(one, other, f"{where}.output")
        elif key in STEP_WORDS:
            yield VersionChange(weight=Weight.PATCH, where=f"{where}.{key}", what="is worded differently")
        else:
            yield VersionChange(weight=Weight.MINOR, where=f"{where}.{key}", what=_how(one, other))


def _output_schema(old: Any, new: Any, where: str) -> Iterator[VersionChange]:
    if _meaning(old) == _meaning(new):
        yield VersionChange(weight=Weight.PATCH, where=where, what="has a different description")
    elif _has_only_more(old, new):
        yield VersionChange(weight=Weight.MINOR, where=where, what="may contain more than before")
    else:
        yield VersionChange(weight=Weight.BREAKING, where=where, what="has a different shape")


def _has_only_more(old: Any, new: Any) -> bool:
    """Whether the only difference is new optional properties."""
    before, after = _properties(old), _properties(new)
    if before is None or after is None or _meaning(old, "properties") != _meaning(new, "properties"):
        return False
    return all(name in after and _meaning(one) == _meaning(after[name]) for name, one in before.items())


def _properties(schema: Any) -> Mapping[str, Any] | None:
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    return properties if isinstance(properties, Mapping) else None


def _outputs(old: Definition, new: Definition) -> Iterator[VersionChange]:
    for name in old.outputs.keys() - new.outputs.keys():
        yield VersionChange(weight=Weight.BREAKING, where=f"outputs.{name}", what="was removed or renamed")
    for name, source in new.outputs.items():
        if name not in old.outputs:
            yield VersionChange(weight=Weight.MINOR, where=f"outputs.{name}", what="is new")
        elif old.outputs[name] != source:
            yield VersionChange(weight=Weight.MINOR, where=f"outputs.{name}", what=_how(old.outputs[name], source))


def _top(old: Definition, new: Definition) -> Iterator[VersionChange]:
    if old.id != new.id:
        yield VersionChange(weight=Weight.BREAKING, where="id", what=f"was `{old.id}`, now `{new.id}`")
    for key in ("on_failure", "max_parallel", "deadline", "revisit"):
        if getattr(old, key) != getattr(new, key):
            yield VersionChange(weight=Weight.MINOR, where=key, what=_how(getattr(old, key), getattr(new, key)))
    for key in TOP_WORDS:
        if getattr(old, key) != getattr(new, key):
            yield VersionChange(weight=Weight.PATCH, where=key, what="is worded differently")


def _named(definition: Definition) -> dict[str, Step]:
    """Every step by its name; a step in a loop has the loop's name in front."""
    return {_name(definition, path): step for path, step in walk(definition.steps)}


def _name(definition: Definition, path: tuple[str | int, ...]) -> str:
    names: list[str] = []
    steps = definition.steps
    for index in path:
        if isinstance(index, int):
            names.append(steps[index].id)
            steps = steps[index].body
    return ".".join(names)


def _data(definition: Definition) -> dict[str, Mapping[str, Any]]:
    """Every step as its author would write it, by name."""
    return dict(_flat(definition_data(definition)["steps"], ""))


def _flat(steps: Iterable[Mapping[str, Any]], prefix: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for step in steps:
        name = prefix + step["id"]
        yield name, step
        yield from _flat(step.get("steps", ()), f"{name}.")


def _meaning(schema: Any, *without: str) -> Any:
    """A schema without its documentation keys."""
    if isinstance(schema, list | tuple):
        return [_meaning(part) for part in schema]
    if not isinstance(schema, Mapping):
        return schema
    silent = WORDS.union(without)
    # Under `properties` the keys are names: a property called `title` is no documentation.
    return {key: _named_parts(key, part) for key, part in schema.items() if key not in silent}


def _named_parts(key: str, part: Any) -> Any:
    if key == "properties" and isinstance(part, Mapping):
        return {name: _meaning(one) for name, one in part.items()}
    return _meaning(part)


def _how(old: Any, new: Any) -> str:
    if old is None:
        return "is new"
    return "was removed" if new is None else "changed"
