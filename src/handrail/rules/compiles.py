"""`compiles`: what the project holds can be built, by the compilers of its own languages."""

from __future__ import annotations

from typing import Final

from handrail.rules.cards import COMPILES as CARD
from handrail.rules.toolchain.asking import toolchain_rule
from handrail.rules.toolchain.task import TaskKind

compiles: Final = toolchain_rule(CARD, TaskKind.BUILD)
