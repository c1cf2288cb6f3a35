"""`handrail reject`: a person's answer to a step that asks. The command is built in control.py."""

from __future__ import annotations

from handrail.domain.run.legal_controls import Action
from handrail.interfaces.cli.run.control import control_command

command = control_command(Action.REJECT)
