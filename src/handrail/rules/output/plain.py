"""Plain rules: their cards, and how the gate applies them.

The functions are in text.py and value.py. They read only the output, and never wait."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from handrail.domain.checks.rule import CheckOutcome, PlainRule, RuleCard
from handrail.engine.checking.rule import Setting
from handrail.rules.output import text, value

TEXT: Final = {"type": "string", "minLength": 1, "maxLength": 10_000}
NUMBER: Final = {"type": "number"}


@dataclass(frozen=True)
class OutputRule:
    """A plain rule, as the gate applies it."""

    plain: PlainRule

    @property
    def card(self) -> RuleCard:
        """The card of the rule."""
        return self.plain.card

    async def apply(self, parameters: Mapping[str, Any], setting: Setting) -> CheckOutcome:
        """The findings of the plain rule."""
        return CheckOutcome(findings=tuple(self.plain.find(parameters, setting.given)))

    async def inputs(self, parameters: Mapping[str, Any], setting: Setting) -> str:
        """Not cached: applying the rule again is faster."""
        return ""


PLAIN: Final = (
    PlainRule(
        RuleCard(
            name="contains",
            summary="`text`, or each of `texts`, is in the output, or in the part of it that `of` names.",
            parameters={"text": TEXT, "texts": {"type": "array", "minItems": 1, "maxItems": 100, "items": TEXT}},
            example={"of": "summary", "text": "tested"},
        ),
        text.contains,
    ),
    PlainRule(
        RuleCard(
            name="matches",
            summary="`pattern` matches somewhere in it; `flags: i` ignores case, `s` lets a dot match line ends.",
            parameters={"pattern": TEXT, "flags": {"type": "string", "maxLength": 4}},
            required=("pattern",),
            example={"of": "version", "pattern": r"^\d+\.\d+\.\d+$"},
        ),
        text.matches,
    ),
    PlainRule(
        RuleCard(
            name="length",
            summary="It has at least `min` and at most `max` characters, items or members.",
            parameters={"min": NUMBER, "max": NUMBER},
            example={"of": "changes", "min": 1},
        ),
        text.length,
    ),
    PlainRule(
        RuleCard(
            name="equals",
            summary="It equals `value`.",
            parameters={"value": {}},
            required=("value",),
            example={"of": "done", "value": True},
        ),
        value.equals,
    ),
    PlainRule(
        RuleCard(
            name="expression",
            summary="`that` is true: an expression over `output`, `inputs`, `vars` and `steps`.",
            parameters={"that": TEXT},
            required=("that",),
            example={"that": "len(output.files) <= 10"},
        ),
        value.expression,
    ),
    PlainRule(
        RuleCard(
            name="schema",
            summary="It fits the JSON Schema `schema`.",
            parameters={"schema": {"type": "object"}},
            required=("schema",),
            example={"of": "report", "schema": {"type": "object", "required": ["cause"]}},
        ),
        value.schema,
    ),
    PlainRule(
        RuleCard(
            name="json",
            summary="It is a string with valid JSON, or structured data.",
            example={"of": "config"},
        ),
        value.json,
    ),
)
