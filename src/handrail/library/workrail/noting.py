"""Collects the findings of a conversion, and reads values with the right type, or a finding.

Notes are minor: something is kept as text, or has no counterpart. Faults are critical: the meaning is unknown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from handrail.domain.checks.finding import Flaw, Path, Severity
from handrail.domain.suggestion import did_you_mean
from handrail.library.documents.document_tree import FINDINGS_MAX, shown
from handrail.library.schemas.schema_words import described

RULE: Final = "workrail"


class Notes:
    """All findings about one file, with the places in it."""

    def __init__(self) -> None:
        self._notes: dict[Flaw, None] = {}
        self._faults: dict[Flaw, None] = {}

    @property
    def has_faults(self) -> bool:
        """Whether a finding makes the file unusable."""
        return bool(self._faults)

    def flaws(self) -> tuple[Flaw, ...]:
        """All findings, up to a limit."""
        return (*_few(self._faults, Severity.CRITICAL), *_few(self._notes, Severity.MINOR))

    def note(self, path: Path, message: str, fix: str = "") -> None:
        """Something is kept in another form, or left out; the workflow can be used."""
        self._notes[_flaw(Severity.MINOR, path, message, fix)] = None

    def fault(self, path: Path, message: str, fix: str = "") -> None:
        """The meaning is unknown; the workflow can't be used."""
        self._faults[_flaw(Severity.CRITICAL, path, message, fix)] = None


def _few(flaws: Mapping[Flaw, None], severity: Severity) -> Iterator[Flaw]:
    yield from islice(flaws, FINDINGS_MAX)
    if len(flaws) > FINDINGS_MAX:
        yield _flaw(severity, (), f"no more of these are listed, of {len(flaws):,} in all")


def _flaw(severity: Severity, path: Path, message: str, fix: str = "") -> Flaw:
    return Flaw(rule=RULE, severity=severity, path=path, message=message, fix=fix)


class Reader:
    """An object of the file; its values are read by key, each with the expected type."""

    def __init__(self, value: Mapping[str, Any], path: Path, notes: Notes) -> None:
        self.value = value
        self.path = path
        self.notes = notes

    def at(self, *keys: str | int) -> Path:
        """The path of something inside."""
        return (*self.path, *keys)

    def text(self, key: str) -> str:
        """A string, without the white space around it; empty if there is none."""
        value = self.value.get(key)
        if value is None:
            return ""
        if not isinstance(value, str):
            self._wrong(key, "a string", value)
            return ""
        return value.strip()

    def flag(self, key: str) -> bool:
        """True or false; false if there is none."""
        value = self.value.get(key)
        if value is None or isinstance(value, bool):
            return value is True
        self._wrong(key, "true or false", value)
        return False

    def items(self, key: str) -> Sequence[Any]:
        """A list; empty if there is none."""
        value = self.value.get(key)
        if value is None:
            return ()
        if not isinstance(value, list | tuple):
            self._wrong(key, "a list", value)
            return ()
        return value

    def inner(self, key: str) -> Reader | None:
        """An object inside; None if there is none."""
        value = self.value.get(key)
        if value is None:
            return None
        if not isinstance(value, Mapping):
            self._wrong(key, "an object", value)
            return None
        return Reader(value, self.at(key), self.notes)

    def inners(self, key: str) -> list[Reader]:
        """The objects in a list; anything else is a fault."""
        found: list[Reader] = []
        for index, item in enumerate(self.items(key)):
            if isinstance(item, Mapping):
                found.append(Reader(item, self.at(key, index), self.notes))
            else:
                self.notes.fault(self.at(key, index), f"an object is expected here, not {described(item)}")
        return found

    def texts(self, key: str) -> list[str]:
        """The texts in a list, empty ones left out; anything else is a fault."""
        found: list[str] = []
        for index, item in enumerate(self.items(key)):
            if isinstance(item, str):
                found += [item.strip()] if item.strip() else []
            else:
                self.notes.fault(self.at(key, index), f"a string is expected here, not {described(item)}")
        return found

    def note_unknown(self, known: Iterable[str]) -> None:
        """Note the keys that WorkRail does not have."""
        names = frozenset(known)
        for key in self.value:
            if key not in names:
                near = did_you_mean(key, names)
                fix = near if near.startswith("did") else ""
                self.notes.note(self.at(key), f"`{shown(key)}` is not a key of WorkRail here: left out", fix)

    def _wrong(self, key: str, wanted: str, value: Any) -> None:
        self.notes.fault(self.at(key), f"{wanted} is expected here, not {described(value)}")
