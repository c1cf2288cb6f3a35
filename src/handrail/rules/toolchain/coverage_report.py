"""Coverage reports: Cobertura, JaCoCo, lcov, Go's profile. Pure; reports are hostile.

Each becomes the same: by file, how many lines were run, of how many."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from handrail.engine.sandbox import Ran
from handrail.rules.toolchain.task import Result

FILES_MAX: Final = 20_000
LINES_MAX: Final = 2_000_000

_go = re.compile(r"^([^\s:]{1,500}):(\d{1,7})\.\d{1,6},(\d{1,7})\.\d{1,6} (\d{1,7}) (\d{1,15})$")
_tag = re.compile(r"<(class|line|package|sourcefile|counter)\b([^<>]{0,2000})>|</(sourcefile|class)>")
_attribute = re.compile(r'\b([\w-]{1,40})="([^"<>]{0,500})"')

Covered = Mapping[str, tuple[int, int]]


class NoReport(Exception):
    """A file that is no coverage report that is known here."""


def read_report(name: str, text: str) -> Covered:
    """What a report says, whichever of the known kinds it is; NoReport if it is none."""
    head = text[:4_000]
    if "<!ENTITY" in text:
        raise NoReport("it defines entities, which no coverage report needs")
    if "<report" in head and "<sourcefile" in text:
        return _jacoco(text)
    if "<coverage" in head:
        return _cobertura(text)
    if head.startswith("mode: "):
        return go_profile(text)
    if re.search(r"^(?:SF|TN):", head, re.MULTILINE):
        return lcov_files(text)
    raise NoReport(f"{name} is neither Cobertura, JaCoCo, lcov nor a Go profile")


def lcov(ran: Ran) -> Result:
    """The lcov that a command writes to its standard output."""
    return Result(covered=lcov_files(ran.stdout), is_whole="end_of_record" in ran.stdout)


def lcov_files(text: str) -> Covered:
    """By file, from lines `SF:`, `DA:` and `end_of_record`."""
    found: dict[str, tuple[int, int]] = {}
    file, lines = "", dict[str, bool]()
    for line in _lines(text):
        kind, _, rest = line.partition(":")
        if kind == "SF":
            file, lines = rest, {}
        elif kind == "DA":
            number, _, count = rest.partition(",")
            lines[number] = lines.get(number, False) or count.split(",")[0] not in {"0", ""}
        elif kind == "end_of_record" and len(found) < FILES_MAX:
            found[file] = (sum(lines.values()), len(lines))
    return found


def go_profile(text: str) -> Covered:
    """By file, in statements: a Go profile knows blocks, not lines."""
    blocks: dict[tuple[str, ...], tuple[int, bool]] = {}
    for line in _lines(text):
        if found := _go.match(line):
            key = (found[1], found[2], found[3], found[0].rsplit(" ", 2)[0])
            was_run = blocks.get(key, (0, False))[1]
            blocks[key] = (int(found[4]), was_run or found[5] != "0")
    covered: dict[str, tuple[int, int]] = {}
    for (file, *_), (count, was_run) in blocks.items():
        run, every = covered.get(file, (0, 0))
        covered[file] = (run + count * was_run, every + count)
    return covered


def _cobertura(text: str) -> Covered:
    lines: dict[str, dict[str, bool]] = {}
    file = ""
    for name, attributes in _tags(text):
        if name == "class":
            file = attributes.get("filename", "")
        elif name == "line" and file:
            of_file = lines.setdefault(file, {})
            number = attributes.get("number", "")
            of_file[number] = of_file.get(number, False) or attributes.get("hits", "0") != "0"
    return {name: (sum(found.values()), len(found)) for name, found in lines.items()}


def _jacoco(text: str) -> Covered:
    covered: dict[str, tuple[int, int]] = {}
    package, file = "", ""
    for name, attributes in _tags(text):
        if name == "package":
            package = attributes.get("name", "")
        elif name in {"sourcefile", "/sourcefile"}:
            file = "/".join(filter(None, [package, attributes.get("name", "")])) if name == "sourcefile" else ""
        elif name == "counter" and file and attributes.get("type") == "LINE":
            missed, run = _number(attributes.get("missed")), _number(attributes.get("covered"))
            covered[file] = (run, run + missed)
    return covered


def _tags(text: str) -> Iterator[tuple[str, dict[str, str]]]:
    """The tags that count, in their order. No parser of XML: reports are large, hostile, and need no more."""
    for found in _tag.finditer(text):
        if found[1]:
            yield found[1], dict(_attribute.findall(found[2]))
        else:
            yield f"/{found[3]}", {}


def _number(text: str | None) -> int:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 10 else 0


def _lines(text: str) -> Iterator[str]:
    for number, line in enumerate(text.splitlines()):
        if number >= LINES_MAX:
            return
        yield line.strip()
