"""The handlers of all routes, by the name of the operation; a test compares them with the table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from handrail.interfaces.http.api import (
    approving,
    planning,
    proving,
    run_details,
    run_listing,
    running,
    serving,
    tooling,
)
from handrail.interfaces.http.api.call import Handler

HANDLERS: Final[Mapping[str, Handler]] = {
    "home": run_listing.home,
    "list_runs": run_listing.list_runs,
    "start_run": running.start_run,
    "show_run": running.show_run,
    "list_steps": running.list_steps,
    "run_graph": run_details.run_graph,
    "run_definition": run_details.run_definition,
    "run_journal": proving.run_journal,
    "show_event": proving.show_event,
    "preview": running.preview,
    "next_step": running.next_step,
    **running.CONTROL_HANDLERS,
    "submit_step": running.submit_step,
    "record_decision": running.record_decision,
    "record_action": running.record_action,
    "record_compensation": running.record_compensation,
    "list_approvals": approving.list_approvals,
    "show_approval": approving.show_approval,
    "answer_approval": approving.answer_approval,
    "list_plans": planning.list_plans,
    "save_plan": planning.save_plan,
    "check_plan": planning.check_plan,
    "show_plan": planning.show_plan,
    "retire_plan": planning.retire_plan,
    "list_workflows": planning.list_workflows,
    "workflow_graph": planning.workflow_graph,
    "start_workflow": running.start_workflow,
    "show_workflow": planning.show_workflow,
    "list_tools": tooling.list_tools,
    "show_server": tooling.show_server,
    "list_rules": tooling.list_rules,
    "show_rule": tooling.show_rule,
    "query_journal": proving.query_journal,
    "verify_journal": proving.verify_journal,
    "export_journal": proving.export_journal,
    "run_bundle": proving.run_bundle,
    "verify_bundle": proving.verify_bundle,
    "make_checkpoint": proving.make_checkpoint,
    "proof": proving.proof,
    "proof_of_run": proving.proof_of_run,
    "statistics": serving.statistics,
    "doctor": serving.doctor,
    "list_clients": serving.list_clients,
    "list_projects": serving.list_projects,
    "list_settings": serving.list_settings,
    "about": serving.about,
    "session": serving.session,
}
