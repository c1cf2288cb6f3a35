"""`compiles`: the project compiles, with the compilers of its languages."""

from __future__ import annotations

from typing import Final

from handrail.rules.cards import COMPILES as CARD
from handrail.rules.toolchain.parameters import toolchain_rule
from handrail.rules.toolchain.task import TaskKind

compiles: Final = toolchain_rule(CARD, TaskKind.BUILD)
