"""The host of a rule: the process in which the code of a package runs, and nothing of handrail's own work.

A question comes as JSON on stdin, and one answer goes as JSON to stdout. Whoever asks (guest.py) believes nothing of
what comes back: the package's code may do here what it likes."""

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

from handrail.domain.rule import Reads
from handrail.rules.context import Context, Unreadable
from handrail.rules.sdk import Finding, PythonRule, TryAgain

FINDINGS_MAX: Final = 50
TEXT_MAX: Final = 1_000
OUT: Final = 1


class Question(Struct, frozen=True, kw_only=True):
    """What is asked of a rule: to describe itself, or to be applied."""

    what: Literal["describe", "apply"]
    rule: str
    """Where it is: `package.module:name`."""
    path: tuple[str, ...] = ()
    """Folders in which its code is looked for, after all others."""
    parameters: dict[str, Any] = field(default_factory=dict)
    output: Any = None
    project: str = ""
    private: tuple[str, ...] = ()


def answer_to(question: Question) -> dict[str, Any]:
    """What is said back: `card`, `findings`, `failed`, or `broken` with the reason."""
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
    except (Exception, SystemExit) as error:  # a package's code: whatever it raises is told, in words
        return {"broken": told(error)}


def found_by(rule: PythonRule, parameters: Mapping[str, Any], context: Context) -> list[Finding]:
    """What a rule finds, in this process, outside any event loop; TypeError if it is no list of findings."""
    try:
        found = begun(rule, parameters, context)
        if inspect.isawaitable(found) or isinstance(found, AsyncIterator):
            found = asyncio.run(awaited(found))
        return findings_of(rule, found)
    except Unreadable as error:
        return unread(error)


def begun(rule: PythonRule, parameters: Mapping[str, Any], context: Context) -> Any:
    """What the rule's function returns: findings, or something to wait for."""
    named = rule.signature.arguments(parameters)
    if rule.signature.context:
        named[rule.signature.context] = context
    return rule.function(**named)


async def awaited(found: Any) -> Any:
    """What comes in the end, if the function was an async one."""
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


def unread(error: Unreadable) -> list[Finding]:
    """What is found if a file that the rule wanted to read can't be."""
    return [Finding(str(error), where=error.path, fix=error.fix)]


def findings_of(rule: PythonRule, found: Any) -> list[Finding]:
    """What was found, held against what a rule may find, and not endlessly many; Unreadable as the rule raises it."""
    if not isinstance(found, Iterable) or isinstance(found, str | bytes | Mapping):
        # Also for None: a `return` that was forgotten must not pass.
        raise TypeError(f"{rule.card.name} returned {type(found).__name__}; yield findings, or return a list of them")
    findings = list(islice(found, FINDINGS_MAX + 1))
    for one in findings:
        if not isinstance(one, Finding):
            raise TypeError(f"{rule.card.name} found {type(one).__name__}; make each with Finding(...)")
    if len(findings) > FINDINGS_MAX:
        findings[FINDINGS_MAX:] = [Finding("there is more; it is not listed", fix="mend these first")]
    return findings


def _loaded(question: Question) -> PythonRule:
    sys.path += [one for one in question.path if one not in sys.path]
    module, _, name = question.rule.partition(":")
    found: Any = import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    if not isinstance(found, PythonRule):
        raise TypeError(f"{question.rule} is no rule but {type(found).__name__}; make one with @rule")
    return found


def told(error: BaseException) -> str:
    """An exception in one line."""
    words = " ".join(str(error).split())
    return f"{type(error).__name__}{': ' if words else ''}{words}"[:TEXT_MAX]


def main() -> None:
    """Answer the one question on stdin."""
    question = msgspec.json.decode(sys.stdin.buffer.read(), type=Question)
    # Whatever the rule prints belongs to people: only the answer goes to where it is awaited.
    answering = os.dup(OUT)
    os.dup2(sys.stderr.fileno(), OUT)
    content = msgspec.json.encode(answer_to(question))
    with os.fdopen(answering, "wb") as stream:
        stream.write(content)
