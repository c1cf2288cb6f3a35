"""`lint_clean`: the installed linters of the project's languages find nothing."""

from __future__ import annotations

from typing import Final

from handrail.rules.cards import LINT_CLEAN as CARD
from handrail.rules.toolchain.comparing.guarded import guarded
from handrail.rules.toolchain.parameters import toolchain_rule
from handrail.rules.toolchain.task import TaskKind

lint_clean: Final = guarded(toolchain_rule(CARD, TaskKind.LINT), "lint")
