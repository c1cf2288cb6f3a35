"""Differences between what a test expects of a rehearsal and its result, those that explain the others first. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from handrail.domain.rehearsal.script import Expected, is_named, plain
from handrail.domain.rehearsal.walk import SHAPE, Walked

SHAPE_NAMES = frozenset({SHAPE, "output"})


class Difference(Struct, frozen=True, kw_only=True):
    """Something that is not as expected."""

    what: str
    expected: str
    got: str

    def __str__(self) -> str:
        return f"{self.what}: expected {self.expected}, got {self.got}"


def differences(expected: Expected, walked: Walked) -> list[Difference]:
    """All differences from what a test expects; what a test does not mention is not compared."""
    found = (
        _trouble(walked),
        _order("path", expected.path, walked.path),
        _members("skipped", expected.skipped, walked.skipped),
        _findings(expected.findings, walked.findings),
        _order("undone", expected.undone, walked.undone),
        _end(expected.end, walked),
        _outputs(expected.outputs or {}, walked.outputs),
    )
    return [difference for part in found for difference in part]


def _trouble(walked: Walked) -> Iterator[Difference]:
    for trouble in walked.trouble:
        yield Difference(what="script", expected="a script that fits the workflow", got=trouble)


def _end(expected: str | None, walked: Walked) -> Iterator[Difference]:
    if expected is None or expected == walked.end:
        return
    why = f" ({walked.waits_for})" if walked.waits_for else ""
    yield Difference(what="end", expected=expected, got=f"{walked.end or 'not started'}{why}")


def _outputs(expected: Mapping[str, Any], got: Mapping[str, Any]) -> Iterator[Difference]:
    for name, value in expected.items():
        if name not in got:
            yield Difference(what=f"outputs.{name}", expected=_text(value), got="no output of that name")
        elif got[name] != value:
            yield Difference(what=f"outputs.{name}", expected=_text(value), got=_text(got[name]))


def _order(what: str, expected: Sequence[str] | None, got: Sequence[str]) -> Iterator[Difference]:
    """Check that the expected steps came in this order; others may be between them."""
    if not expected:
        yield from _none(what, expected, got)
        return
    left = iter(got)
    for place, name in enumerate(expected):
        if not any(is_named(name, path) for path in left):
            before = f" after {expected[place - 1]}" if place else ""
            words = f"{_listed(expected)}; there is no {name}{before}"
            yield Difference(what=what, expected=words, got=_listed(got))
            return


def _members(what: str, expected: Sequence[str] | None, got: Sequence[str]) -> Iterator[Difference]:
    if not expected:
        yield from _none(what, expected, got)
    elif any(not any(is_named(name, path) for path in got) for name in expected):
        yield Difference(what=what, expected=_listed(expected), got=_listed(got))


def _none(what: str, expected: Sequence[str] | None, got: Sequence[str]) -> Iterator[Difference]:
    """Check that there is nothing, if a test says so with an empty list."""
    if expected is not None and got:
        yield Difference(what=what, expected="none", got=_listed(got))


def _findings(expected: Mapping[str, Sequence[str]] | None, got: Mapping[str, Sequence[str]]) -> Iterator[Difference]:
    if not expected:
        yield from _none("findings", None if expected is None else (), list(got))
        return
    for step, rules in expected.items():
        came = got.get(plain(step), ())
        known = {*came, *(SHAPE_NAMES if SHAPE in came else ())}
        if missing := [rule for rule in rules if rule not in known]:
            yield Difference(what=f"findings of {step}", expected=_listed(missing), got=_listed(came))


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"


def _text(value: Any) -> str:
    return msgspec.json.encode(value).decode()[:200]
