"""Prompts, which clients show as slash commands, and completions for their arguments.

Four prompts of our own, and one for each workflow of the library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from handrail.domain.errors import HandrailError
from handrail.interfaces.mcp.surface.answering import compact
from handrail.interfaces.mcp.surface.caller import unknown
from handrail.interfaces.mcp.surface.lazy_program import LazyProgram
from handrail.interfaces.mcp.surface.offer import PromptArgument, PromptOffer
from handrail.library.shelf.workflow_entry import WorkflowEntry

LISTED_MAX: Final = 500
COMPLETED_MAX: Final = 100
ARGUMENT_LENGTH_MAX: Final = 20_000

RUN: Final = PromptArgument(name="run", description="the run's id", required=True)

PLAN_TASK: Final = """\
Plan this task and have it run: {task}

1. workflow_list with the task in your own words: if a workflow fits, start it with workflow_next and follow it.
2. Otherwise write a plan: small steps, each with one kind: `tool` (handrail calls it), `prompt` (you do it) or \
`approve` (the user decides). Give every step with a side effect an `undo`; put an `approve` before what can't be \
undone; set `on_failure`.
3. workflow_validate it, fix the findings, save_plan, show the user the waves, then execute_plan with dry_run, then \
for real.
4. status shows the progress; choose from the options it lists."""
HANDLE_FAILURE: Final = """\
Run {run} needs a decision.

1. status with this run: read `failure` (what happened, the category, the attempts) and `options`.
2. transient, timeout, rate_limited: retry. invalid_input, not_found: find the cause first. permission: ask the user. \
uncertain: check whether the effect happened; accept if it did, retry if it did not.
3. If it can't be fixed: compensate undoes what was done; tell the user first what will be undone and what can't be.
4. record_decision with your reason and the alternatives, then control. Check status again."""
REVIEW_RUN: Final = """\
Review run {run} for the user.

1. status with detail full: what was done, who did it, verified, checked or only claimed; what was compensated and how.
2. query_ledger with this run and verify: decisions with their reasons, failures, approvals; is the journal unchanged?
3. Summarize in a few lines: the outcome, what was decided and why, what is only claimed, what is still to do."""
RESUME_WORK: Final = """\
Continue the work that was started{about}.

1. workflow_next without arguments lists the open runs; choose the right one, and ask the user if in doubt.
2. workflow_next with that run returns the goal, what is done, the decisions and your next step. Trust it more than \
your memory.
3. Do that step, submit it, continue."""


@dataclass(frozen=True)
class Prompts:
    """All prompts: ours, and those made from workflows."""

    lazy: LazyProgram

    async def listed(self) -> Sequence[PromptOffer]:
        """Our own prompts, and one for every workflow."""
        own = (
            PromptOffer(
                name="plan_task",
                title="Plan a task",
                description="plan a task and have handrail run it",
                arguments=(PromptArgument(name="task", description="what to do", required=True),),
            ),
            PromptOffer(
                name="handle_failure",
                title="Handle a failure",
                description="decide how a failed run continues",
                arguments=(RUN,),
            ),
            PromptOffer(
                name="review_run", title="Review a run", description="summarize a run, with proof", arguments=(RUN,)
            ),
            PromptOffer(
                name="resume_work",
                title="Resume work",
                description="continue where the last chat ended",
                arguments=(PromptArgument(name="run", description="the run's id, if known"),),
            ),
        )
        taken = {prompt.name for prompt in own}  # a workflow with one of these names must not replace our prompt
        entries = [_prompt_of(entry) for entry in self.lazy.library.entries()[:LISTED_MAX] if entry.id not in taken]
        return [*own, *entries]

    async def filled(self, name: str, arguments: Mapping[str, str]) -> str:
        """The text of a prompt; Unknown if there is none with that name."""
        # Values come from the client, and are put into the text: their length is limited.
        given = {key: value[:ARGUMENT_LENGTH_MAX] for key, value in arguments.items()}
        run = given.get("run", "")
        match name:
            case "plan_task":
                return PLAN_TASK.format(task=given.get("task", "(ask the user)"))
            case "handle_failure":
                return HANDLE_FAILURE.format(run=run or "(see status)")
            case "review_run":
                return REVIEW_RUN.format(run=run or "(see status)")
            case "resume_work":
                return RESUME_WORK.format(about=f" in {run}" if run else "")
        entry = next((entry for entry in self.lazy.library.entries() if entry.id == name), None)
        return _text_of(entry, given) if entry is not None else unknown("prompt", name)

    async def completed(self, about: str, argument: str, value: str) -> Sequence[str]:
        """Ids that start with the value, then those that contain it."""
        if argument == "run":
            known = await self._runs()
        elif argument in {"id", "workflow"}:
            known = [entry.id for entry in self.lazy.library.entries()]
        else:
            return ()
        first = [one for one in known if one.startswith(value)]
        return [*first, *(one for one in known if value in one and one not in first)][:COMPLETED_MAX]

    async def _runs(self) -> list[str]:
        try:
            look = (await self.lazy.open()).writer.reader
        except HandrailError:
            return []  # completions have no error answer; the tools report why
        rows = await look.store.runs(limit=1_000, project=look.project.id)
        return [row.id for row in sorted(rows, key=lambda row: -row.updated)]


def _prompt_of(entry: WorkflowEntry) -> PromptOffer:
    inputs = [
        PromptArgument(
            name=name,
            description=str(schema.get("description", "")) if isinstance(schema, dict) else "",
            required=not (isinstance(schema, dict) and "default" in schema),
        )
        for name, schema in entry.inputs.items()
    ]
    return PromptOffer(
        name=entry.id, title=entry.name, description=compact(entry.description, 200), arguments=tuple(inputs)
    )


def _text_of(entry: WorkflowEntry, given: Mapping[str, str]) -> str:
    known = {name: given[name] for name in entry.inputs if name in given}
    inputs = "\n".join(f"- {name}: {value}" for name, value in known.items())
    with_inputs = f" with these inputs:\n{inputs}\n" if inputs else ".\n"
    return (
        f"Follow the workflow `{entry.id}` ({entry.name}){with_inputs}"
        f'Start it: workflow_next {{"workflow": "{entry.id}", "inputs": {{..}}, "goal": ".."}}. '
        "Ask the user for missing inputs. Then do exactly the step you are given, submit its output with "
        "workflow_next, and continue until the run has ended."
    )
