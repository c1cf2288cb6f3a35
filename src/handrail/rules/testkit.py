"""The kit for testing rules: given files and an output, what does the rule find?

For authors of packages. Here a rule runs in this very process, so that a debugger can follow it; in real checks it runs
in its own (guest.py). What it is given and what it finds goes through JSON as it would there."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from handrail.domain.rule import Reads
from handrail.rules.context import Context, Unreadable
from handrail.rules.host import awaited, begun, findings_of, unread
from handrail.rules.sdk import Finding, PythonRule


async def check(
    rule: PythonRule,
    parameters: Mapping[str, Any] | None = None,
    *,
    output: Any = None,
    files: Mapping[str, str] | None = None,
) -> list[Finding]:
    """What a rule finds in a project of these files (path and text) and this output.

    Whatever the rule raises comes out as it is; in a real check it would be told as a broken rule."""
    given, handed_in = (msgspec.json.decode(msgspec.json.encode(value)) for value in (parameters or {}, output))
    with tempfile.TemporaryDirectory(prefix="handrail-rule-") as folder:
        _write(Path(folder), files or {})
        context = Context(handed_in, Path(folder) if rule.card.reads is Reads.PROJECT else None)
        try:
            found = findings_of(rule, await awaited(begun(rule, given, context)))
        except Unreadable as error:
            found = unread(error)
    return msgspec.json.decode(msgspec.json.encode(found), type=list[Finding])


def _write(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        file = (folder / name).resolve()
        if not file.is_relative_to(folder.resolve()):
            raise ValueError(f"{name} is no path below the project's folder")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8", newline="")
