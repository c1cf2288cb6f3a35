"""The answer to an agent that is being guided: one shape for every interface.

Pure functions. The view of a run for other readers is in run_view.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from handrail.domain.checks.finding import Finding
from handrail.domain.definition.model import Definition
from handrail.domain.definition.model_hint import Model
from handrail.domain.errors import Invalid
from handrail.domain.journal.event import Outcome, Proof
from handrail.domain.json import canonical_bytes
from handrail.domain.run.guidance import ShownStep, brief, name_for_agent, shown_step
from handrail.domain.run.state import Run
from handrail.domain.run.status import RUN_ENDED, STEP_SATISFIED, RunStatus, StepStatus
from handrail.domain.run.step_path import UNDO
from handrail.domain.run.submission import Verdict
from handrail.engine.guiding.guide import RunForAgent
from handrail.engine.reading.run_view import (
    ExceptionView,
    Failure,
    Progress,
    RecoveryOption,
    Status,
    WaitingFor,
    WaitingKind,
    exceptions_of,
    status_of,
)
from handrail.engine.reading.step_view import Shown

RECAPPED_MAX: Final = 50
"""How many steps a recap names, the latest ones."""
OUTPUTS_RECAPPED: Final = 12
OUTPUT_LENGTH_MAX: Final = 200
"""Of how many steps a recap has the output, the latest ones, and how much of each."""
READY_MAX: Final = 50


class Recap(Shown, frozen=True):
    """What a run is about and what was done, for an agent that continues it without context."""

    goal: str = ""
    done: tuple[str, ...] = ()
    verified: Mapping[str, tuple[str, ...]] = {}
    """Which of them handrail verified by looking at the world, and the checks."""
    checked: Mapping[str, tuple[str, ...]] = {}
    """Of which of them only the form of the output was checked, and the checks."""
    exceptions: tuple[ExceptionView, ...] = ()
    """What somebody skipped or overrode."""
    claimed: tuple[str, ...] = ()
    """Which of them are only claimed to be done."""
    decisions: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    """What was wrong with the output that was refused last, if its step is still open."""
    outputs: Mapping[str, str] = {}
    """The outputs of the steps done last, in brief."""
    vars: Mapping[str, Any] = {}
    inputs: Mapping[str, Any] = {}


class Guided(Shown, frozen=True):
    """The state of a run for the agent that is guided through it."""

    run: str
    status: RunStatus
    progress: Progress
    workflow: str = ""
    accepted: bool | None = None
    repeated: bool = False
    tries: int = 0
    unchecked: bool = False
    """Whether the output was refused only because a check could not be applied: it was no try."""
    findings: tuple[Finding, ...] = ()
    step: ShownStep | None = None
    preconditions: tuple[str, ...] = ()
    clarify: tuple[str, ...] = ()
    guidance: tuple[str, ...] = ()
    ready: tuple[str, ...] = ()
    waiting_for: tuple[WaitingFor, ...] = ()
    failure: Failure | None = None
    options: tuple[RecoveryOption, ...] = ()
    reason: str = ""
    not_compensated: tuple[str, ...] = ()
    exceptions: tuple[ExceptionView, ...] = ()
    """What was left out, once the run has ended."""
    outputs: Mapping[str, Any] = {}
    recap: Recap | None = None
    receipt: str = ""


class ReplyContext(Struct, frozen=True, kw_only=True):
    """What an answer is about, besides the state of the run."""

    verdict: Verdict | None = None
    """The result of a submission; `submitted` is its step."""
    submitted: str = ""
    outcome: Outcome = Outcome.DONE
    """How the submission says that it ended."""
    recap: Recap | None = None
    is_first: bool = False
    models: tuple[Model, ...] = ()

    @property
    def is_refused(self) -> bool:
        """Whether the same step is to be done again."""
        return self.verdict is not None and not self.verdict.accepted

    @property
    def accepted_words(self) -> str:
        """What was done with a submission that was accepted: a report that a step failed is not a success."""
        return _ACCEPTED.get(self.outcome, "accepted")

    @property
    def unconfirmed(self) -> str:
        """The step that waits only for a person's confirmation."""
        return self.submitted if self.verdict is not None and self.verdict.unconfirmed else ""


PLAIN: Final = ReplyContext()
_ACCEPTED: Final = {Outcome.FAILED: "recorded as failed, as reported", Outcome.SKIPPED: "skipped, as reported"}


def guided(seen: RunForAgent, *, now: int, about: ReplyContext = PLAIN) -> Guided:
    """The answer to an agent: the whole next step, or only its name if its output was refused, since it has read it."""
    run, definition, verdict = seen.run, seen.definition, about.verdict
    status = status_of(run, definition, now=now, prospect=seen.prospect)
    path = about.submitted.removesuffix(UNDO) if about.is_refused else seen.step
    return Guided(
        run=run.id,
        status=status.status,
        progress=status.progress,
        workflow="" if verdict else run.workflow,
        accepted=verdict.accepted if verdict else None,
        repeated=bool(verdict and verdict.repeated),
        tries=run.step(path).tries if about.is_refused else 0,
        unchecked=bool(verdict and verdict.unchecked),
        findings=verdict.findings if verdict else (),
        step=_step(seen, path, about),
        ready=tuple(name_for_agent(run, one) for one in seen.prospect.for_agent[:READY_MAX]),
        waiting_for=_waiting(status, about.unconfirmed),
        failure=status.failure,
        options=status.options,
        reason=status.reason,
        not_compensated=status.not_compensated,
        exceptions=status.exceptions if run.status in RUN_ENDED else (),
        outputs=status.outputs,
        recap=about.recap,
        receipt=run.receipt,
        **_rules(definition, about),
    )


def _rules(definition: Definition, about: ReplyContext) -> Mapping[str, Any]:
    """What applies to the whole run: shown at its start, and to an agent that resumes it."""
    if about.is_first:
        return {
            "preconditions": definition.preconditions,
            "clarify": definition.clarify,
            "guidance": definition.guidance,
        }
    return {"guidance": definition.guidance} if about.recap is not None else {}


def refused_step(seen: RunForAgent) -> str:
    """The step whose output was refused and that is not done yet; empty if there is none."""
    open_steps = (seen.step, *seen.prospect.undecided)
    states = ((path, seen.run.step(path)) for path in open_steps if path)
    return next((path for path, state in states if state.tries or state.unchecked), "")


def recap_of(seen: RunForAgent, decisions: Sequence[str], refused: Sequence[str] = ()) -> Recap:
    """A short summary of a run; `refused` is what was wrong with the output that was refused last."""
    run = seen.run
    done = [path for path, state in run.steps.items() if state.status in STEP_SATISFIED]
    named_done = [path if run.step(path).status is StepStatus.COMPLETED else f"{path} (skipped)" for path in done]
    shown = done[-RECAPPED_MAX:]
    return Recap(
        goal=run.goal,
        done=tuple(named_done[-RECAPPED_MAX:]),
        verified=_checks_by_step(run, shown, Proof.VERIFIED),
        checked=_checks_by_step(run, shown, Proof.CHECKED),
        exceptions=exceptions_of(run),
        claimed=tuple(path for path in shown if run.step(path).proof == Proof.CLAIMED),
        decisions=tuple(decisions),
        refused=tuple(refused),
        outputs=_outputs(run, done),
        vars=run.vars,
        inputs=run.inputs,
    )


def _outputs(run: Run, done: Sequence[str]) -> Mapping[str, str]:
    known = [path for path in done if run.step(path).output is not None]
    return {path: _brief_text(run.step(path).output) for path in known[-OUTPUTS_RECAPPED:]}


def _brief_text(value: Any) -> str:
    """A value as the start of its text, and how much is missing."""
    text = value if isinstance(value, str) else canonical_bytes(value).decode()
    line = " ".join(text.split())
    left = len(line) - OUTPUT_LENGTH_MAX
    return f"{line[:OUTPUT_LENGTH_MAX]}… [{left} more characters]" if left > 0 else line


def _checks_by_step(run: Run, paths: Sequence[str], proof: Proof) -> Mapping[str, tuple[str, ...]]:
    states = {path: run.step(path) for path in paths}
    return {path: state.checks for path, state in states.items() if state.checks and state.proof == proof}


def _step(seen: RunForAgent, path: str, about: ReplyContext) -> ShownStep | None:
    if not path:
        return None
    known = brief(seen.run, seen.definition, path)
    if about.is_refused:
        return known
    try:
        return shown_step(seen.run, seen.definition, path, about.models)
    except Invalid as error:  # the submission was accepted, so it must still be answered
        return replace(known, prompt=f"({error}; {error.hint})")


def _waiting(status: Status, unconfirmed: str) -> tuple[WaitingFor, ...]:
    if not unconfirmed:
        return status.waiting_for
    others = tuple(one for one in status.waiting_for if one.step != unconfirmed)
    return (WaitingFor(kind=WaitingKind.CONFIRMATION, step=unconfirmed), *others)
