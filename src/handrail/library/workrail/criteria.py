"""Converts `validationCriteria` to checks. What can't be checked is added to the prompt."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import Struct

from handrail.domain.checks.finding import Path
from handrail.domain.errors import Invalid
from handrail.library.schemas.author_schema import check_schema
from handrail.library.schemas.schema_words import described
from handrail.library.workrail.conditions import Read, condition_of
from handrail.library.workrail.naming import Names
from handrail.library.workrail.noting import Notes, Reader
from handrail.library.workrail.patterns import pattern_of
from handrail.library.workrail.texts import bullets, section, verbatim, verbatim_value

CHECKS_MAX: Final = 50
MESSAGE_MAX: Final = 1_000
KEYS: Final = ("type", "value", "pattern", "flags", "min", "max", "message", "schema", "condition")
COMPOSED: Final = {"and": "all_of", "or": "any_of", "not": "none_of"}

_pattern_signs = re.compile(r"[\\^$|\[\]*]")

Check = dict[str, Any]


class Criteria(Struct, frozen=True):
    """The checks, what is only in the prompt, and the variables that the checks depend on."""

    checks: tuple[Check, ...] = ()
    sentences: tuple[str, ...] = ()
    reads: tuple[Read, ...] = ()

    def rules(self) -> list[str]:
        """What can't be checked, as a part of the prompt."""
        return [section("What must hold", bullets(self.sentences))]


def criteria_of(value: Any, names: Names, path: Path, notes: Notes) -> Criteria:
    """The criteria of a step."""
    if value is None:
        return Criteria()
    reading = _Reading(names, notes)
    found = reading.whole(value, path)
    if any(check["rule"] == "length" for check in found):
        reading.sentences.append("The output is a string: its length is checked.")
    return Criteria(tuple(bounded(found)), tuple(reading.sentences), tuple(reading.reads))


class _Reading:
    """Reads the criteria of one step."""

    def __init__(self, names: Names, notes: Notes) -> None:
        self.names = names
        self.notes = notes
        self.sentences: list[str] = []
        self.reads: list[Read] = []

    def whole(self, value: Any, path: Path) -> list[Check]:
        """All checks; a plain string goes into the prompt."""
        if isinstance(value, str):
            self.show(value, path)
            return []
        if isinstance(value, Mapping) and value.keys() == {"and"} and isinstance(value["and"], list | tuple):
            return self.listed(value["and"], (*path, "and"))
        is_list = isinstance(value, list | tuple)
        return self.listed(value if is_list else [value], path, is_alone=not is_list)

    def listed(self, values: Any, path: Path, *, is_alone: bool = False) -> list[Check]:
        """The rules of a list; `is_alone` if the path is that of the only one."""
        found = [self.check(one, path if is_alone else (*path, index)) for index, one in enumerate(values)]
        return [check for check in found if check is not None]

    def check(self, value: Any, path: Path) -> Check | None:
        """One rule or composition as a check; None if it goes into the prompt, or is an error."""
        if isinstance(value, str):
            return self._from_text(value, path)
        if not isinstance(value, Mapping):
            self.notes.fault(path, f"a rule is an object, not {described(value)}")
            return None
        return self._rule(Reader(value, path, self.notes)) if "type" in value else self._composition(value, path)

    def show(self, text: str, path: Path) -> None:
        """Add a rule that handrail can't check to the prompt."""
        if text.strip():
            self.sentences.append(text.strip())
            self.notes.note(path, "this is shown to the agent; handrail does not check it")

    def _from_text(self, value: str, path: Path) -> Check | None:
        if _pattern_signs.search(value):
            return self._matching(value, "", path)
        self.show(value, path)
        return None

    def _composition(self, value: Mapping[str, Any], path: Path) -> Check | None:
        key = next(iter(value), "")
        if key not in COMPOSED or len(value) != 1:
            self.notes.fault(path, "it is unclear what is validated here", "write a rule with `type`, or and/or/not")
            return None
        inner = [value[key]] if key == "not" else value[key]
        if not isinstance(inner, list | tuple):
            self.notes.fault((*path, key), f"`{key}` needs a list of rules, not {described(inner)}")
            return None
        known_before = len(self.sentences)
        checks = self.listed(inner, (*path, key), is_alone=key == "not")
        if len(self.sentences) > known_before and key != "and":
            self._show_all(key, path)
            return None
        return {"rule": COMPOSED[key], "checks": list(map(_unconditional, checks))} if checks else None

    def _show_all(self, key: str, path: Path) -> None:
        """Check none of a composition: without the part that can't be checked, the rest would mean something else."""
        self.sentences.append(f"Of these, {'one' if key == 'or' else 'none'} must hold: see the rules above.")
        self.notes.note((*path, key), "a part of this can't be checked, so none of it is")

    def _rule(self, rule: Reader) -> Check | None:
        rule.note_unknown(KEYS)
        build = self._builders().get(rule.text("type"))
        if build is None:
            known = ", ".join(self._builders())
            self.notes.fault(
                rule.at("type"), f"there is no rule {described(rule.value['type'])}", f"choose one of {known}"
            )
            return None
        check = build(rule)
        return None if check is None else {**check, **self._terms(rule)}

    def _builders(self) -> Mapping[str, Callable[[Reader], Check | None]]:
        return {"contains": self._contains, "regex": self._regex, "length": _length, "schema": self._schema}

    def _terms(self, rule: Reader) -> Check:
        """When the rule is applied, and the message if it fails."""
        terms: Check = {}
        condition = condition_of(rule.value.get("condition"), self.names, rule.at("condition"), self.notes)
        if condition is not None:
            terms["when"] = condition.source
            self.reads += condition.reads
        if message := rule.text("message"):
            terms["message"] = message[:MESSAGE_MAX]
        return terms

    def _contains(self, rule: Reader) -> Check | None:
        value = rule.value.get("value")
        if not isinstance(value, str) or not value:
            self.notes.fault(rule.at("value"), f"a string is expected here, not {described(value)}")
            return None
        return {"rule": "contains", "text": verbatim(value)}

    def _regex(self, rule: Reader) -> Check | None:
        pattern = rule.value.get("pattern")
        if not isinstance(pattern, str):
            self.notes.fault(rule.at("pattern"), f"a pattern is expected here, not {described(pattern)}")
            return None
        return self._matching(pattern, rule.text("flags"), rule.at("pattern"), rule.text("message"))

    def _matching(self, pattern: str, flags: str, path: Path, message: str = "") -> Check | None:
        try:
            return {"rule": "matches", "pattern": verbatim(pattern_of(pattern, flags))}
        except Invalid as error:
            self.sentences.append(message or f"It must match the pattern {pattern}")
            self.notes.note(path, f"shown to the agent, not checked: {error}")
            return None

    def _schema(self, rule: Reader) -> Check | None:
        inner = rule.inner("schema")
        if inner is None:
            if "schema" not in rule.value:
                self.notes.fault(rule.path, "`schema` is missing", "add it")
            return None
        flaws = check_schema(dict(inner.value))
        if flaws:
            self.sentences.append(rule.text("message") or "It must fit the schema that this step describes.")
            self.notes.note(inner.path, f"shown to the agent, not checked: {flaws[0].message}")
            return None
        return {"rule": "schema", "schema": verbatim_value(inner.value)}


def _length(rule: Reader) -> Check | None:
    bounds: Check = {}
    for key in ("min", "max"):
        value = rule.value.get(key)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
            rule.notes.fault(rule.at(key), f"a number is expected here, not {described(value)}")
            return None
        bounds[key] = int(value)
    if not bounds:
        rule.notes.fault(rule.path, "the rule has neither `min` nor `max`", "add `min` or `max`")
        return None
    return {"rule": "length", **bounds}


def _unconditional(check: Check) -> Check:
    """A check without `when`, for use inside another: it passes if it would not be applied."""
    if "when" not in check:
        return check
    rest = {key: value for key, value in check.items() if key != "when"}
    return {"rule": "any_of", "checks": [{"rule": "expression", "that": verbatim(f"not ({check['when']})")}, rest]}


def bounded(checks: list[Check]) -> list[Check]:
    """The checks, the last ones put together if there are too many."""
    if len(checks) <= CHECKS_MAX:
        return checks
    return [
        *checks[: CHECKS_MAX - 1],
        {"rule": "all_of", "checks": list(map(_unconditional, checks[CHECKS_MAX - 1 :]))},
    ]
