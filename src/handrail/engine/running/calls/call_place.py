"""Where a call can be made: what another node must have for it, if this one lacks it.

No I/O. Labels are compared in domain/fleet/placing.py; the run is handed over by the worker (worker.py)."""

from __future__ import annotations

from handrail.domain.definition.model import Step
from handrail.domain.fleet.label import Needs
from handrail.domain.fleet.placing import commands_label, home_label, lacking, server_label
from handrail.domain.run.state import Run
from handrail.domain.scheduling.step_start import CallTool
from handrail.engine.running.calls.attempt import AttemptServices
from handrail.engine.tool import ToolSpec


def needed_for_call(
    parts: AttemptServices, run: Run, step: Step, todo: CallTool, spec: ToolSpec, *, is_undo: bool
) -> Needs:
    """What another node must have to make this call; empty if this one can."""
    asked = {*step.runs_on, *spec.runs_on}
    # Trust is each machine's own: a server that is declared here may only be started where somebody has trusted it.
    if parts.is_shared and spec.server:
        asked.add(server_label(run.project, spec.server))
    if parts.is_shared and spec.is_command:
        asked.add(commands_label(run.project))
    # What a tool did to this machine's folder is undone from what was stored here: nowhere else is either of them.
    if is_undo and todo.own_undo and parts.is_shared and not spec.server:
        asked |= {home_label(run.step(todo.path).actor)} - {""}
    return lacking(asked, parts.labels)


def server_needed(parts: AttemptServices, run: Run, tool: str) -> Needs:
    """The label of nodes that have the server of a tool, if others may have it; empty for a tool of ours."""
    server = tool.partition(".")[0]
    # A tool that is unknown on a server that is known is a mistake of the plan: no other node would help.
    known = {spec.name.partition(".")[0] for spec in parts.toolbox.specs()}
    return server_label(run.project, server) if parts.is_shared and server not in known else ""
