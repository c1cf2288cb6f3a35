"""The host process of a plugin rule: runs the code of a package, and nothing else of handrail.

Reads one question as JSON from stdin, and writes one answer as JSON to stdout. The caller (plugin_rule.py) does not
trust the answer: the package's code can do anything in this process."""

from __future__ import annotations

import asyncio
import inspect
import os
import sys
from collections.abc import AsyncIterator, Iterable, Mapping
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct, field

from handrail.domain.checks.rule import Reads
from handrail.rules.context import Context, Unreadable
from handrail.rules.sdk import Finding, PythonRule, TryAgain

FINDINGS_MAX: Final = 50
TEXT_MAX: Final = 1_000
OUT: Final = 1


class HostQuestion(Struct, frozen=True, kw_only=True):
    """What a rule is asked for: its card, or its findings."""

    what: Literal["describe", "apply"]
    rule: str
    """Where it is: `package.module:name`."""
    path: tuple[str, ...] = ()
    """Folders to search for its code, after all others."""
    parameters: dict[str, Any] = field(default_factory=dict)
    output: Any = None
    project: str = ""
    private: tuple[str, ...] = ()


def answer_to(question: HostQuestion) -> dict[str, Any]:
    """The answer: `card`, `findings`, `failed`, or `broken` with the reason."""
    try:
        rule = _loaded(question)
        if question.what == "describe":
            return {"card": msgspec.to_builtins(rule.card)}
        reads_files = rule.card.reads is Reads.PROJECT
        private = [Path(one) for one in question.private]
        context = Context(question.output, Path(question.project) if reads_files else None, private=private)
        return {"findings": found_by(rule, question.parameters, context)}
    except TryAgain as error:
        return {"failed": str(error)[:TEXT_MAX]}
    except (Exception, SystemExit) as error:  # third-party code may raise anything: it is reported as text
        return {"broken": error_line(error)}


def found_by(rule: PythonRule, parameters: Mapping[str, Any], context: Context) -> list[Finding]:
    """What a rule finds, in this process, outside any event loop; TypeError if it is not a list of findings."""
    try:
        found = call_rule(rule, parameters, context)
        if inspect.isawaitable(found) or isinstance(found, AsyncIterator):
            found = asyncio.run(awaited(found))
        return findings_of(rule, found)
    except Unreadable as error:
        return unreadable_finding(error)


def call_rule(rule: PythonRule, parameters: Mapping[str, Any], context: Context) -> Any:
    """Call the rule's function: returns findings, or something to await."""
    named = rule.signature.arguments(parameters)
    if rule.signature.context:
        named[rule.signature.context] = context
    return rule.function(**named)


async def awaited(found: Any) -> Any:
    """The result of an async function, or the value itself."""
    if inspect.isawaitable(found):
        return await found
    if not isinstance(found, AsyncIterator):
        return found
    findings = []
    async for one in found:
        findings.append(one)
        if len(findings) > FINDINGS_MAX:
            break
    return findings


def unreadable_finding(error: Unreadable) -> list[Finding]:
    """The finding for a file that the rule could not read."""
    return [Finding(str(error), where=error.path, fix=error.fix)]


def findings_of(rule: PythonRule, found: Any) -> list[Finding]:
    """The validated findings, a limited number; TypeError if they are not findings."""
    if not isinstance(found, Iterable) or isinstance(found, str | bytes | Mapping):
        # Also for None: a forgotten `return` must not pass.
        raise TypeError(f"{rule.card.name} returned {type(found).__name__}; yield findings, or return a list of them")
    findings = list(islice(found, FINDINGS_MAX + 1))
    for one in findings:
        if not isinstance(one, Finding):
            raise TypeError(f"{rule.card.name} found {type(one).__name__}; make each with Finding(...)")
    if len(findings) > FINDINGS_MAX:
        findings[FINDINGS_MAX:] = [Finding("there are more findings, which are not listed", fix="fix these first")]
    return findings


def _loaded(question: HostQuestion) -> PythonRule:
    sys.path += [one for one in question.path if one not in sys.path]
    module, _, name = question.rule.partition(":")
    found: Any = import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    if not isinstance(found, PythonRule):
        raise TypeError(f"{question.rule} is not a rule but {type(found).__name__}; make one with @rule")
    return found


def error_line(error: BaseException) -> str:
    """An exception in one line."""
    words = " ".join(str(error).split())
    return f"{type(error).__name__}{': ' if words else ''}{words}"[:TEXT_MAX]


def main() -> None:
    """Answer the one question on stdin."""
    question = msgspec.json.decode(sys.stdin.buffer.read(), type=HostQuestion)
    # What the rule prints goes to stderr: only the answer may go to stdout, where the caller parses it.
    answering = os.dup(OUT)
    os.dup2(sys.stderr.fileno(), OUT)
    content = msgspec.json.encode(answer_to(question))
    with os.fdopen(answering, "wb") as stream:
        stream.write(content)
