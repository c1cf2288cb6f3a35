"""Prompts: texts that a person picks in the client (as slash commands), and what half-typed arguments may become.

Four of our own, and every workflow of the library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from handrail.domain.errors import HandrailError
from handrail.interfaces.mcp.surface.answering import compact
from handrail.interfaces.mcp.surface.caller import unknown
from handrail.interfaces.mcp.surface.desk import Desk
from handrail.interfaces.mcp.surface.offer import Prompt, PromptArgument
from handrail.library.book import Book

LISTED_MAX: Final = 500
COMPLETED_MAX: Final = 100
ARGUMENT_LENGTH_MAX: Final = 20_000

RUN: Final = PromptArgument(name="run", description="the run's id", required=True)

PLAN_TASK: Final = """\
Plan this task and have it run: {task}

1. workflow_list with the task in your words: if a workflow fits, start it with workflow_next and follow it.
2. Otherwise write a plan: small steps, each with one kind: `tool` (handrail calls it), `prompt` (you do it) or \
`approve` (the user decides). Give every step that changes the world an `undo`; put an `approve` before what can't be \
taken back; say `on_failure`.
3. workflow_validate it, mend the findings, save_plan, show the user the waves, then execute_plan with dry_run, then \
for real.
4. status tells where it stands; follow what it offers."""
HANDLE_FAILURE: Final = """\
Run {run} needs a decision.

1. status with this run: read `failure` (what happened, the category, the attempts) and `options`.
2. transient, timeout, rate_limited: retry. invalid_input, not_found: find the cause first. permission: ask the user. \
uncertain: look in the world whether it happened; accept if it did, retry if it did not.
3. If it can't be mended: compensate undoes what was done; tell the user first what will be undone and what can't be.
4. record_decision with your reason and the alternatives, then control. Look at status again."""
REVIEW_RUN: Final = """\
Review run {run} for the user.

1. status with detail full: what was done, by whom, verified or only claimed; what was compensated and how.
2. query_ledger with this run and verify: decisions with their reasons, failures, approvals; is the journal sound?
3. Tell in few lines: the outcome, what was decided and why, what is only claimed, what is left undone."""
RESUME_WORK: Final = """\
Go on with the work that was begun{about}.

1. workflow_next with nothing lists the open runs; pick the one that is meant, ask the user if in doubt.
2. workflow_next with that run: it gives the goal, what is done, the decisions and your next step. Trust it rather \
than your memory.
3. Do that step, hand it in, go on."""


@dataclass(frozen=True)
class Prompts:
    """The prompts over a desk."""

    desk: Desk

    async def listed(self) -> Sequence[Prompt]:
        """Our own prompts, and one for every workflow."""
        own = (
            Prompt(
                name="plan_task",
                title="Plan a task",
                description="plan a task and have handrail run it",
                arguments=(PromptArgument(name="task", description="what is to be done", required=True),),
            ),
            Prompt(name="handle_failure", title="Handle a failure", description="decide on a run", arguments=(RUN,)),
            Prompt(name="review_run", title="Review a run", description="what a run did, proven", arguments=(RUN,)),
            Prompt(
                name="resume_work",
                title="Resume work",
                description="pick up where the last chat ended",
                arguments=(PromptArgument(name="run", description="the run's id, if known"),),
            ),
        )
        taken = {prompt.name for prompt in own}
        books = [_of_book(book) for book in self.desk.books.books()[:LISTED_MAX] if book.id not in taken]
        return [*own, *books]

    async def filled(self, name: str, arguments: Mapping[str, str]) -> str:
        """A prompt's text; Unknown if there is none of that name."""
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
        book = next((book for book in self.desk.books.books() if book.id == name), None)
        return _text_of(book, given) if book is not None else unknown("prompt", name)

    async def completed(self, about: str, argument: str, value: str) -> Sequence[str]:
        """Ids that begin like the value, or contain it."""
        if argument == "run":
            known = await self._runs()
        elif argument in {"id", "workflow"}:
            known = [book.id for book in self.desk.books.books()]
        else:
            return ()
        beginning = [one for one in known if one.startswith(value)]
        return [*beginning, *(one for one in known if value in one and one not in beginning)][:COMPLETED_MAX]

    async def _runs(self) -> list[str]:
        try:
            store = (await self.desk.open()).handrail.look.store
        except HandrailError:
            return []  # nothing to offer, and the tools say why
        return [row.id for row in sorted(await store.runs(limit=1_000), key=lambda row: -row.updated)]


def _of_book(book: Book) -> Prompt:
    blanks = [
        PromptArgument(
            name=name,
            description=str(schema.get("description", "")) if isinstance(schema, dict) else "",
            required=not (isinstance(schema, dict) and "default" in schema),
        )
        for name, schema in book.inputs.items()
    ]
    return Prompt(name=book.id, title=book.name, description=compact(book.description, 200), arguments=tuple(blanks))


def _text_of(book: Book, given: Mapping[str, str]) -> str:
    known = {name: given[name] for name in book.inputs if name in given}
    inputs = "\n".join(f"- {name}: {value}" for name, value in known.items())
    told = f" with these inputs:\n{inputs}\n" if inputs else ".\n"
    return (
        f"Follow the workflow `{book.id}` ({book.name}){told}"
        f'Start it: workflow_next {{"workflow": "{book.id}", "inputs": {{..}}, "goal": ".."}}. '
        "Ask the user for inputs that are missing. Then do exactly the step you are given, hand in its output with "
        "workflow_next, and go on until the run has ended."
    )
