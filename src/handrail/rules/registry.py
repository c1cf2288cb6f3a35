"""The registry of rules: those that are built in, by name. Each looks at an output alone; none waits or reads files."""

from __future__ import annotations

from functools import cache, partial

from handrail.domain.rule import Rules
from handrail.rules import composition, text, value


@cache
def built_in() -> Rules:
    """Every rule that can be applied."""
    rules = {
        "contains": text.contains,
        "matches": text.matches,
        "length": text.length,
        "equals": value.equals,
        "expression": value.expression,
        "schema": value.schema,
        "json": value.json,
    }
    for rule in (composition.all_of, composition.any_of, composition.none_of):
        rules[rule.__name__] = partial(rule, rules)
    return rules
