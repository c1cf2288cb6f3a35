"""`compiles`: what the project holds can be built, by the compilers of its own languages."""

from __future__ import annotations

from typing import Final

from handrail.domain.rule import Reads, RuleCard
from handrail.rules.toolchain.asking import PARAMETERS, toolchain_rule
from handrail.rules.toolchain.task import Want

CARD: Final = RuleCard(
    name="compiles",
    summary="The project can be built, by the compilers of the languages that it is written in.",
    parameters=PARAMETERS,
    reads=Reads.PROJECT,
    timeout="5m",
    example={"path": "server", "language": "go"},
)

compiles: Final = toolchain_rule(CARD, Want.BUILD)
