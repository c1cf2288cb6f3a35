"""Compares the entries of tools.json with the tools that a server really has. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from handrail.domain.suggestion import did_you_mean
from handrail.tools.mcp.declaration import Declared, UndoRule

_template = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
_argument = re.compile(r"(?<![\w.])args\.([A-Za-z_]\w*)")


def left_out(declared: Declared, names: Collection[str]) -> Sequence[str]:
    """The tools of a server that plans may not call, by its `allow` and `deny`."""
    return sorted(name for name in names if not _is_offered(declared, name))


def misfits(declared: Declared, schemas: Mapping[str, Mapping[str, Any]]) -> Sequence[str]:
    """Entries for tools that do not exist, and undos that can't work; `schemas` are the argument schemas of all tools
    of the server, by name."""
    return [
        *_unmatched_patterns(declared, schemas),
        *_unknown_tools(declared, schemas),
        *_undo_misfits(declared, schemas),
    ]


def _is_offered(declared: Declared, name: str) -> bool:
    is_allowed = not declared.allow or any(fnmatchcase(name, pattern) for pattern in declared.allow)
    return is_allowed and not any(fnmatchcase(name, pattern) for pattern in declared.deny)


def _unmatched_patterns(declared: Declared, names: Collection[str]) -> Iterator[str]:
    for key, patterns in (("allow", declared.allow), ("deny", declared.deny)):
        for pattern in patterns:
            if not any(fnmatchcase(name, pattern) for name in names):
                yield _with_hint(f"{key}: `{pattern}` matches no tool", did_you_mean(pattern, sorted(names)))


def _unknown_tools(declared: Declared, names: Collection[str]) -> Iterator[str]:
    for name in declared.tools:
        if name not in names:
            yield _with_hint(f"tools.{name}: there is no such tool", did_you_mean(name, sorted(names)))


def _undo_misfits(declared: Declared, schemas: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for name, rule in declared.tools.items():
        undo = rule.undo
        if undo is None or name not in schemas:
            continue
        place = f"tools.{name}.undo"
        if undo.tool not in schemas:
            known = sorted(schemas)
            yield _with_hint(f"{place}: there is no tool `{undo.tool}`", did_you_mean(undo.tool, known))
            continue
        yield from (f"{place}: {wrong}" for wrong in _argument_misfits(undo, schemas[undo.tool]))
        yield from (f"{place}: {wrong}" for wrong in _unknown_references(undo, schemas[name], name))


def _argument_misfits(undo: UndoRule, schema: Mapping[str, Any]) -> Iterator[str]:
    """Arguments that the undoing tool requires and does not get, or gets but does not have."""
    known = _properties(schema)
    for name in _required(schema):
        if name not in undo.args:
            yield f"`{undo.tool}` needs the argument `{name}`; add it to args"
    for name in undo.args:
        if name not in known and schema.get("additionalProperties") is False:
            yield _with_hint(f"`{undo.tool}` has no argument `{name}`", did_you_mean(name, known))


def _unknown_references(undo: UndoRule, schema: Mapping[str, Any], tool: str) -> Iterator[str]:
    """References to arguments that the call can't have."""
    known = _properties(schema)
    if not known or schema.get("additionalProperties") not in (None, False):
        return
    for name in dict.fromkeys(_arguments_used(undo.args)):
        if name not in known:
            yield _with_hint(
                f"args refer to `args.{name}`, but `{tool}` has no such argument", did_you_mean(name, known)
            )


def _arguments_used(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        for inside in _template.findall(value):
            yield from _argument.findall(inside)
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from _arguments_used(one)
    elif isinstance(value, Sequence):
        for one in value:
            yield from _arguments_used(one)


def _properties(schema: Mapping[str, Any]) -> Sequence[str]:
    # The schema comes from the server: no content of it may stop the check.
    found = schema.get("properties")
    return list(found) if isinstance(found, Mapping) else []


def _required(schema: Mapping[str, Any]) -> Sequence[str]:
    found = schema.get("required")
    return [name for name in found if isinstance(name, str)] if isinstance(found, list | tuple) else []


def _with_hint(wrong: str, hint: str) -> str:
    return f"{wrong}; {hint}" if hint else wrong
