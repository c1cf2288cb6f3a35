"""How much of the changed code tests run: changed lines with code that were executed, of all changed lines with code.

Pure. A changed file that was not measured at all counts as not executed, unless the project's own settings say which
files are measured."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct

from handrail.domain.checks.changed_lines import ChangedLines, spans_in_words

Lines: TypeAlias = Mapping[str, Mapping[int, bool]]
"""By file: whether each of its lines with code was executed."""
Text: TypeAlias = Callable[[str], str | None]
"""The text of a file of the project; None if it is not there, or is not judged."""

_no_code = re.compile(r"^\s*(?:[{}()\[\];,]*|//.*|/\*.*|\*.*|(?:\}\s*)?else\s*\{?|end)\s*$")
_settings = re.compile(
    r"(?:^|/)(?:setup|noxfile|tasks|conf|manage)\.py$|\.config\.[cm]?[jt]s$|(?:^|/)\.[^/]*$|\.d\.[cm]?ts$"
    r"|(?:^|/)(?:docs?|examples?|scripts?|bench|benchmarks)/"
)


class ChangedCoverage(Struct, frozen=True):
    """By file: whether each of its changed lines with code was executed."""

    files: Lines

    @property
    def lines(self) -> int:
        """How many changed lines have code."""
        return sum(map(len, self.files.values()))

    @property
    def covered(self) -> int:
        """How many of them were executed."""
        return sum(sum(found.values()) for found in self.files.values())

    def missed(self) -> Iterator[tuple[str, str]]:
        """The files with lines that were not executed, and these lines in words; those with most of them first."""
        missing = {
            path: sorted(at for at, was_run in lines.items() if not was_run) for path, lines in self.files.items()
        }
        for path in sorted(missing, key=lambda path: (-len(missing[path]), path)):
            if missing[path]:
                yield path, spans_in_words(missing[path])


def changed_coverage(changed: ChangedLines, measured: Lines, text_of: Text, *, is_narrowed: bool) -> ChangedCoverage:
    """The coverage of what has changed; `is_narrowed` says that files which were not measured were left out on
    purpose."""
    found: dict[str, Mapping[int, bool]] = {}
    for path in changed.files:
        text = text_of(path)
        every = _executed(path, text, measured, is_narrowed=is_narrowed) if text is not None else {}
        if judged := {at: was_run for at, was_run in every.items() if changed.has(path, at)}:
            found[path] = judged
    return ChangedCoverage(found)


def _executed(path: str, text: str, measured: Lines, *, is_narrowed: bool) -> Mapping[int, bool]:
    """Whether each line with code of a file was executed."""
    of_file = _measured(path, measured)
    if of_file is not None:
        source = text.splitlines()  # some tools measure blocks, or every line of a file
        return {at: was_run for at, was_run in of_file.items() if 0 < at <= len(source) and has_code(source[at - 1])}
    return {} if is_narrowed or _settings.search(path) else dict.fromkeys(_code_of(path, text), False)


def _measured(path: str, measured: Lines) -> Mapping[int, bool] | None:
    """What a report says of a file, which it may name by its package or its module."""
    if path in measured:
        return measured[path]
    same = [name for name in measured if name.endswith(f"/{path}") or path.endswith(f"/{name}")]
    return measured[same[0]] if len(same) == 1 else None


def has_code(line: str) -> bool:
    """Whether a line has more than brackets or a remark."""
    return not _no_code.match(line)


def _code_of(path: str, text: str) -> Iterable[int]:
    """The lines with code of a file that was not measured."""
    statements = _statements(text) if path.endswith(".py") else None
    return (
        statements if statements is not None else [at for at, line in enumerate(text.splitlines(), 1) if has_code(line)]
    )


def _statements(text: str) -> list[int] | None:
    """Where the statements of a Python file start, without texts that document; None if it is not valid."""
    try:
        nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.stmt)]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return [node.lineno for node in nodes if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))]


def merged_lines(every: Sequence[Lines]) -> Lines:
    """The lines of several measurements: one is executed if any has executed it."""
    found: dict[str, dict[int, bool]] = {}
    for path, at, was_run in ((path, at, ran) for one in every for path, of in one.items() for at, ran in of.items()):
        of_file = found.setdefault(path, {})
        of_file[at] = of_file.get(at, False) or was_run
    return found
