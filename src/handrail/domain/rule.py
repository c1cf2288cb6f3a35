"""Rules: what a check applies to an output, as values and shapes. The rules themselves are in rules/. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from msgspec import Struct

from handrail.domain.check import Finding
from handrail.domain.json import Json

SchemaJudge: TypeAlias = Callable[[Any, Any], Sequence[Finding]]
"""What is wrong with a value by a JSON Schema."""


class Given(Struct, frozen=True, kw_only=True):
    """What a rule may look at: the output, and ways to work out expressions over the run and to apply schemas."""

    output: Json
    evaluate: Callable[[str], Json]
    fits: SchemaJudge


Rule: TypeAlias = Callable[[Mapping[str, Any], Given], Iterable[Finding]]
"""A rule: its parameters and what is given in, findings out. It does not raise, print, read files or wait."""
Rules: TypeAlias = Mapping[str, Rule]
"""The rules that can be applied, by name."""
