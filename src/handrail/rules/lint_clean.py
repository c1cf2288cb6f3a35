"""`lint_clean`: the linters that are installed for the project's languages have nothing to say."""

from __future__ import annotations

from typing import Final

from handrail.domain.rule import Reads, RuleCard
from handrail.rules.toolchain.asking import PARAMETERS, toolchain_rule
from handrail.rules.toolchain.task import Want

CARD: Final = RuleCard(
    name="lint_clean",
    summary="The linters of the project's languages find nothing.",
    parameters=PARAMETERS,
    reads=Reads.PROJECT,
    timeout="5m",
    example={"paths": ["src"]},
)

lint_clean: Final = toolchain_rule(CARD, Want.LINT)
