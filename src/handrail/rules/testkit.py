"""A test kit for authors of rules: what does a rule find, given files and an output?

The rule runs in this process, so that a debugger can follow it; in real checks it runs in a process of its own
(plugin_rule.py). Its parameters and findings go through JSON as they would there."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from handrail.domain.checks.rule import Reads
from handrail.rules.context import Context, Unreadable
from handrail.rules.plugins.plugin_host import awaited, call_rule, findings_of, unreadable_finding
from handrail.rules.sdk import Finding, PythonRule


async def check(
    rule: PythonRule,
    parameters: Mapping[str, Any] | None = None,
    *,
    output: Any = None,
    files: Mapping[str, str] | None = None,
) -> list[Finding]:
    """What a rule finds in a project with these files (path and text) and this output.

    Exceptions of the rule are not caught; in a real check they would be reported as a broken rule."""
    given, submitted = (msgspec.json.decode(msgspec.json.encode(value)) for value in (parameters or {}, output))
    with tempfile.TemporaryDirectory(prefix="handrail-rule-") as folder:
        _write(Path(folder), files or {})
        context = Context(submitted, Path(folder) if rule.card.reads is Reads.PROJECT else None)
        try:
            found = findings_of(rule, await awaited(call_rule(rule, given, context)))
        except Unreadable as error:
            found = unreadable_finding(error)
    return msgspec.json.decode(msgspec.json.encode(found), type=list[Finding])


def _write(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        file = (folder / name).resolve()
        if not file.is_relative_to(folder.resolve()):
            raise ValueError(f"{name} is not a path below the project's folder")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8", newline="")
