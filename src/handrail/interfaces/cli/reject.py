"""`handrail reject`: a person's answer to what a run asks. How it is given is told in run_control.py."""

from __future__ import annotations

from handrail.domain.legal import Action
from handrail.interfaces.cli.run_control import control_command

command = control_command(Action.REJECT)
