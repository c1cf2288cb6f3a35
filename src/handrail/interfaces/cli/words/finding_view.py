"""Prints findings as compilers do: what is wrong, where, the source line, and how to fix it.

If the source can't be read again, the finding is printed without its line."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import click

from handrail.domain.checks.finding import WHO, Finding, FixedBy, Position, Severity
from handrail.domain.plural import plural
from handrail.foundation.plain_file import NotPlain, read_plain
from handrail.interfaces.cli.words.excerpt import excerpt_of, lines_of, printable
from handrail.interfaces.cli.words.terminal_edge import Styled, say
from handrail.library.documents.document import DOCUMENT_BYTES_MAX

STDIN_NAME: Final = "<stdin>"
STDIN_KEY: Final = "handrail.stdin"
WORDS: Final[Mapping[Severity, tuple[str, str]]] = {
    Severity.CRITICAL: ("error", "red"),
    Severity.MAJOR: ("error", "red"),
    Severity.MINOR: ("warning", "yellow"),
}
"""The name and colour of each severity; only errors make a definition invalid."""
BAR: Final = Styled("|", "blue", bold=True)
WIDTH_MIN: Final = 40
WIDTH_MAX: Final = 160
"""The limit for excerpts, also without a terminal."""


TOOL_OFF: Final = "tool_off"
HOW_TO_ALLOW: Final = (
    "to allow commands, write `[shell] allow = true` into config.toml of HANDRAIL_HOME; servers that run need a restart"
)


def print_findings(findings: Iterable[Finding], *, err: bool = False) -> None:
    """Print each finding with its place, the source line and the fix."""
    texts: dict[str, Sequence[str]] = {}
    for finding in findings:
        word, color = WORDS[finding.severity]
        say(f"{word}[{_shown(finding.rule, err)}]", nl=False, fg=color, bold=True, err=err)
        say(f": {_shown(finding.message, err)}", bold=True, err=err)
        has_excerpt = _print_place(finding, texts, err)
        if finding.fix:
            who = "" if finding.fixed_by is FixedBy.AGENT else f" for {WHO[finding.fixed_by]}"
            say(f"help{who}", nl=False, fg="cyan", bold=True, err=err)
            say(f": {_shown(finding.fix, err)}", err=err)
        if finding.rule == TOOL_OFF:
            print_how_to_allow(err=err)
        if has_excerpt:  # an empty line separates blocks of several lines
            say(err=err)


def print_how_to_allow(*, err: bool) -> None:
    """Print how commands are allowed: only where a person reads it. Refusals, which agents read, do not say it."""
    say(HOW_TO_ALLOW, fg="cyan", err=err)


def counted(findings: Sequence[Finding]) -> str:
    """`1 error, 0 warnings`."""
    warnings = sum(finding.severity is Severity.MINOR for finding in findings)
    return f"{plural(len(findings) - warnings, 'error')}, {plural(warnings, 'warning')}"


def stdin_text() -> bytes:
    """The content of stdin, read once and kept for excerpts: it can't be read again."""
    text = _remembered()
    if text is None:
        text = sys.stdin.buffer.read()
        context = click.get_current_context(silent=True)
        if context is not None:
            context.meta[STDIN_KEY] = text
    return text


def _print_place(finding: Finding, texts: dict[str, Sequence[str]], err: bool) -> bool:
    """Print where it is; returns whether the source line was shown."""
    at = finding.at
    source = _source_line(at, texts) if at is not None else None
    if at is None or source is None:
        place = f"{at} ({finding.where})" if at is not None else finding.where
        _print_arrow(place, 1, err)
        for line in finding.excerpt.splitlines():
            say("   ", BAR, f" {_shown(line, err)}", err=err)
        return False
    margin = len(str(at.line)) + 1
    excerpt = excerpt_of(source, at.column, width=_width() - margin - 3, encoding=_encoding(err))
    _print_arrow(str(at), margin - 1, err)
    say(f"{' ' * margin} ", BAR, err=err)
    say(Styled(f"{at.line:>{margin}}", "blue", bold=True), " ", BAR, f" {excerpt.line}", err=err)
    carets = Styled(excerpt.carets, WORDS[finding.severity][1], bold=True)
    say(f"{' ' * margin} ", BAR, " ", carets, f" {_shown(finding.where, err)}", err=err)
    return True


def _print_arrow(place: str, margin: int, err: bool) -> None:
    say(f"{' ' * margin} ", Styled("-->", "blue", bold=True), f" {_shown(place, err)}", err=err)


def _source_line(at: Position, texts: dict[str, Sequence[str]]) -> str | None:
    """The source line at a position; None if the file is gone or has no such line."""
    if at.file not in texts:
        texts[at.file] = _lines_in(at.file)
    lines = texts[at.file]
    return lines[at.line - 1] if 0 < at.line <= len(lines) else None


def _lines_in(name: str) -> Sequence[str]:
    content = _remembered() if name == STDIN_NAME else _file_content(name)
    return lines_of(content.decode("utf-8-sig", "replace")) if content is not None else ()


def _remembered() -> bytes | None:
    context = click.get_current_context(silent=True)
    content = context.meta.get(STDIN_KEY) if context is not None else None
    return content if isinstance(content, bytes) else None


def _file_content(name: str) -> bytes | None:
    try:
        return read_plain(Path(name), bytes_max=DOCUMENT_BYTES_MAX)
    except (OSError, ValueError, NotPlain):
        return None


def _width() -> int:
    return min(max(shutil.get_terminal_size((WIDTH_MAX, 24)).columns, WIDTH_MIN), WIDTH_MAX)


def _encoding(err: bool) -> str:
    stream = sys.stderr if err else sys.stdout
    return getattr(stream, "encoding", None) or "utf-8"


def _shown(text: str, err: bool) -> str:
    """The text on one line, without control characters."""
    return printable(" ".join(text.split("\n")), encoding=_encoding(err))
