"""The SDK for writing rules in Python: a function with type hints that yields findings.

    from handrail.rules.sdk import Context, Finding, rule

    @rule("no_todo", version="1.0.0", reads="project")
    def no_todo(context: Context, *, path: str) -> Iterator[Finding]:
        '''No TODO is left in the file.'''
        if "TODO" in context.read_text(path):
            yield Finding("a TODO is left", where=path, fix="do it, or remove it")

A package provides its rules through the entry point group `handrail.rules`. Packages are found in plugin.py, and rules
are called in plugin_host.py. The guide: docs/guides/writing-a-rule.md."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from msgspec import Struct

from handrail.domain.checks.rule import Reads, RuleCard
from handrail.domain.definition.duration import duration_ms
from handrail.domain.definition.semver import parse_version
from handrail.foundation.call_signature import CallSignature
from handrail.rules.context import Context, Unreadable
from handrail.rules.plugins.signature import parameter_schemas, required_in, signature_of

__all__ = ["Context", "Finding", "PythonRule", "TryAgain", "Unreadable", "rule"]

NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")
TIMEOUT_MS_MAX: Final = 600_000

Function: TypeAlias = Callable[..., Any]


class Finding(Struct, frozen=True):
    """One error: what is wrong, where, how to fix it, and an excerpt. Its severity is set by the check."""

    message: str
    where: str = "output"
    """`output.x`, or `file:line:column`."""
    fix: str = ""
    excerpt: str = ""


class TryAgain(Exception):
    """Raise this if the rule could not finish this time but might the next time; handrail retries it."""


Unwell = TryAgain  # the former name: packages that import it still work


class PythonRule:
    """A function that checks can apply. It can still be called as a function."""

    def __init__(self, function: Function, card: RuleCard, signature: CallSignature) -> None:
        self.function = function
        self.card = card
        self.signature = signature

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Call the function itself."""
        return self.function(*args, **named)


def rule(
    name: str,
    *,
    version: str,
    reads: str = "output",
    timeout: str = "60s",
    parameters: Mapping[str, Any] | None = None,
    example: Mapping[str, Any] | None = None,
) -> Callable[[Function], PythonRule]:
    """Make a rule of a function; `reads` says what it reads besides its parameters: `output` or `project`.

    Increase `version` (SemVer) whenever the rule finds something else than before. The docstring's first line says what
    is true if nothing is found. `parameters` replaces the JSON Schemas derived from the type hints; `example` are
    parameters as an author would write them."""
    if not NAME.fullmatch(name):
        raise ValueError(f"{name!r} is not a valid name of a rule; use lower-case letters, digits and _, as in no_todo")
    parse_version(version)
    if not 0 < duration_ms(timeout) <= TIMEOUT_MS_MAX:
        raise ValueError(f"the timeout {timeout} is not between 1ms and 10m")
    if reads not in {Reads.OUTPUT, Reads.PROJECT}:
        raise ValueError(
            f"reads={reads!r}: a rule of a package reads `output` or `project`; it can't reach the network"
        )

    def made(function: Function) -> PythonRule:
        signature = signature_of(function, Context)
        card = RuleCard(
            name=name,
            summary=(inspect.getdoc(function) or name).splitlines()[0],
            parameters=_schemas(name, parameter_schemas(function.__qualname__, signature), parameters),
            required=required_in(signature),
            reads=Reads(reads),
            version=version,
            timeout=timeout,
            example=dict(example or {}),
        )
        return PythonRule(function, card, signature)

    return made


def _schemas(name: str, hinted: Mapping[str, Any], given: Mapping[str, Any] | None) -> Mapping[str, Any]:
    if given is None:
        return hinted
    if strange := sorted(set(given) ^ set(hinted)):
        raise TypeError(f"{name}: `parameters=` and the function differ in `{strange[0]}`; use the same names in both")
    return dict(given)
