"""`tests_pass`: the project's own tests pass, run by its own runner; a project without tests does not pass."""

from __future__ import annotations

from typing import Final

from handrail.rules.cards import TESTS_PASS as CARD
from handrail.rules.toolchain.parameters import toolchain_rule
from handrail.rules.toolchain.task import TaskKind

tests_pass: Final = toolchain_rule(CARD, TaskKind.TEST)
