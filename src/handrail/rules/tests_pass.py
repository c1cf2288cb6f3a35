"""`tests_pass`: the project's own tests pass, run by its own runner; no tests is no pass."""

from __future__ import annotations

from typing import Final

from handrail.domain.rule import Reads, RuleCard
from handrail.rules.toolchain.asking import PARAMETERS, toolchain_rule
from handrail.rules.toolchain.task import Want

CARD: Final = RuleCard(
    name="tests_pass",
    summary="The project's own tests were run, there are some, and all pass.",
    parameters=PARAMETERS,
    reads=Reads.PROJECT,
    timeout="10m",
    example={"paths": ["tests/unit"], "timeout": "2m"},
)

tests_pass: Final = toolchain_rule(CARD, Want.TEST)
