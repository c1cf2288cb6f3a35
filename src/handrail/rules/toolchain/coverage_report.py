"""Coverage reports: Cobertura, JaCoCo, lcov, Go's profile. Pure; reports are not trusted.

Each gives, by file, how many lines were executed and how many there are. XML is read with the standard library's expat,
which fetches nothing; a report that defines entities is refused, so that none can expand to a huge text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeAlias
from xml.parsers import expat

from handrail.domain.checks.changed_coverage import Lines

FILES_MAX: Final = 20_000
LINES_MAX: Final = 2_000_000
BLOCK_LINES_MAX: Final = 20_000
"""How many lines a block of a Go profile may have."""

_go = re.compile(r"^([^\s:]{1,500}):(\d{1,7})\.\d{1,6},(\d{1,7})\.\d{1,6} (\d{1,7}) (\d{1,15})$")

Covered = Mapping[str, tuple[int, int]]
Start: TypeAlias = Callable[[str, dict[str, str]], None]
End: TypeAlias = Callable[[str], None]


class NoReport(Exception):
    """A file that is not a coverage report of a known kind."""


def read_report(name: str, text: str) -> Covered:
    """The coverage in a report of any known kind; NoReport if it is none of them."""
    head = text[:4_000]
    if "<report" in head and "<sourcefile" in text:
        return _jacoco(text)
    if "<coverage" in head:
        return _cobertura(text)
    if head.startswith("mode: "):
        return go_profile(text)
    if re.search(r"^(?:SF|TN):", head, re.MULTILINE):
        return lcov_files(text)
    raise NoReport(f"{name} is neither Cobertura, JaCoCo, lcov nor a Go profile")


def read_lines(text: str) -> Lines:
    """The lines in a report of a known kind; NoReport if it can't be read."""
    head = text[:4_000]
    if "<report" in head and "<sourcefile" in text:
        return _jacoco_lines(text)
    if "<coverage" in head:
        return _cobertura_lines(text)
    return go_lines(text) if head.startswith("mode: ") else lcov_lines(text)


def lcov_files(text: str) -> Covered:
    """By file, from lines `SF:`, `DA:` and `end_of_record`."""
    return _counted(lcov_lines(text))


def lcov_lines(text: str) -> Lines:
    """Each line, from the same."""
    found: dict[str, dict[int, bool]] = {}
    file, lines = "", dict[int, bool]()
    for line in _lines(text):
        kind, _, rest = line.partition(":")
        if kind == "SF":
            file, lines = rest, {}
        elif kind == "DA":
            number, _, count = rest.partition(",")
            at = _number(number)
            lines[at] = lines.get(at, False) or count.split(",")[0] not in {"0", ""}
        elif kind == "end_of_record" and len(found) < FILES_MAX:
            found[file] = lines
    return found


def _counted(lines: Lines) -> Covered:
    return {name: (sum(found.values()), len(found)) for name, found in lines.items()}


def go_lines(text: str) -> Lines:
    """Each line that a block of a Go profile covers; one that belongs to two blocks was executed if either was."""
    found: dict[str, dict[int, bool]] = {}
    for line in _lines(text):
        if (block := _go.match(line)) and int(block[3]) - int(block[2]) < BLOCK_LINES_MAX:
            of_file = found.setdefault(block[1], {})
            for number in range(int(block[2]), int(block[3]) + 1):
                of_file[number] = of_file.get(number, False) or block[5] != "0"
    return found


def go_profile(text: str) -> Covered:
    """By file, in statements: a Go profile has blocks, not lines."""
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
    return _counted(_cobertura_lines(text))


def _cobertura_lines(text: str) -> Lines:
    lines: dict[str, dict[int, bool]] = {}
    file = ""

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal file
        if name == "class":
            file = attributes.get("filename", "")
        elif name == "line" and file:
            # A line is listed twice, in its method and in its class: it was executed if either says so.
            of_file = lines.setdefault(file, {})
            number = _number(attributes.get("number"))
            of_file[number] = of_file.get(number, False) or attributes.get("hits", "0") != "0"

    _parse(text, start)
    return lines


def _jacoco(text: str) -> Covered:
    return _read_jacoco(text)[0]


def _jacoco_lines(text: str) -> Lines:
    return _read_jacoco(text)[1]


def _read_jacoco(text: str) -> tuple[Covered, Lines]:
    covered: dict[str, tuple[int, int]] = {}
    lines: dict[str, dict[int, bool]] = {}
    package, file = "", ""  # where in the report it is

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal package, file
        if name == "package":
            package = attributes.get("name", "")
        elif name == "sourcefile":
            file = "/".join(filter(None, [package, attributes.get("name", "")]))
        elif name == "line" and file:
            lines.setdefault(file, {})[_number(attributes.get("nr"))] = _number(attributes.get("ci")) > 0
        elif name == "counter" and file and attributes.get("type") == "LINE":
            missed, run = _number(attributes.get("missed")), _number(attributes.get("covered"))
            covered[file] = (run, run + missed)

    def end(name: str) -> None:
        nonlocal file
        if name == "sourcefile":  # the counters that follow are those of the package
            file = ""

    _parse(text, start, end)
    return covered, lines


def _parse(text: str, start: Start, end: End | None = None) -> None:
    """Call back at each element, without a tree: reports may have 50 MB."""
    parser = expat.ParserCreate()
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.EntityDeclHandler = _refuse_entity
    try:
        parser.Parse(text, True)  # noqa: FBT003 - it takes no keywords; true: this is the whole text
    except expat.ExpatError as error:
        raise NoReport(f"it is not valid XML: {error}") from error


def _refuse_entity(*_: object) -> None:
    raise NoReport("it defines entities, which no coverage report needs")


def _number(text: str | None) -> int:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 10 else 0


def _lines(text: str) -> Iterator[str]:
    for number, line in enumerate(text.splitlines()):
        if number >= LINES_MAX:
            return
        yield line.strip()
