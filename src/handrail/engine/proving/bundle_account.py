"""The account of a proof bundle: the result of the run, from its events alone.

Pure. Says for each step how it is known to be done: handrail executed it, checks verified it, only the form of its
output was checked, a person approved it, or someone claims it. bundle_check.py verifies the bundle first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from handrail.domain.definition.authoring import definition_from
from handrail.domain.definition.model import Definition, Kind
from handrail.domain.errors import HandrailError
from handrail.domain.instant import instant_text
from handrail.domain.journal.event import Entry, OutputRefused, StepCarried, StepCompleted
from handrail.domain.journal.proof_bundle import APPROVAL, broken
from handrail.domain.run.state import Run, replay
from handrail.domain.run.status import RUN_BROKEN_OFF, RUN_ENDED, RunStatus, StepStatus
from handrail.domain.run.step_path import locate
from handrail.domain.run.step_state import StepState
from handrail.domain.scheduling.compensation import not_undone
from handrail.engine.proving.bundle_check import Proven
from handrail.engine.reading.run_view import ExceptionView, exceptions_of
from handrail.engine.reading.step_view import Shown

HOLDERS: Final = frozenset({Kind.EACH, Kind.REPEAT, Kind.WORKFLOW})
EVIDENCE_SHOWN: Final = (
    *("rule", "version", "passed", "digest", "tree", "exit"),
    *("took", "counts", "tools", "ran", "cached"),
)
NONSENSE: Final = (
    HandrailError,
    msgspec.MsgspecError,
    LookupError,
    ValueError,
    TypeError,
    AttributeError,
    RecursionError,
    ArithmeticError,
    OSError,
)
"""What made-up but correctly signed events and definitions can raise."""


class ProofKind(StrEnum):
    """How a step is known to be done."""

    EXECUTED = "executed"
    VERIFIED = "verified"
    CHECKED = "checked"
    APPROVED = "approved"
    CLAIMED = "claimed"
    CARRIED = "carried"


class ProvenStep(Shown, frozen=True):
    """One step, and how it is known to be done."""

    id: str
    status: StepStatus
    how: ProofKind | None = None
    by: str = ""
    checks: tuple[str, ...] = ()
    evidence: tuple[Mapping[str, Any], ...] = ()
    """Of the checks that it passed, not of those that it failed before."""
    refused: int = 0
    """How many outputs were refused before."""
    compensation: str = ""
    message: str = ""


class Approval(Shown, frozen=True):
    """What a person was asked or answered."""

    step: str
    what: str
    by: str
    at: str
    words: str = ""
    digest: str = ""
    channel: str = ""


class Account(Shown, frozen=True):
    """The result of a run."""

    run: str
    workflow: str
    status: RunStatus
    has_ended: bool
    events: int
    definition: str
    made: str
    key: str
    """The fingerprint of the key that signed."""
    goal: str = ""
    started: str = ""
    ended: str = ""
    forked_from: str = ""
    steps: tuple[ProvenStep, ...] = ()
    approvals: tuple[Approval, ...] = ()
    not_undone: tuple[str, ...] = ()
    """Steps whose effect remains although the run did not complete."""
    exceptions: tuple[ExceptionView, ...] = ()
    """What somebody skipped or overrode."""
    tools: tuple[str, ...] = ()
    erased: tuple[int, ...] = ()
    """Events whose content was erased."""
    sealed: int = 0
    """How many events a checkpoint covers."""
    checkpoint: int = 0
    """Its number."""
    has_checkpoint_itself: bool = False


def account_of(proven: Proven) -> Account:
    """The result of a bundle's run; inconsistent events are reported as broken."""
    try:
        definition = definition_from(msgspec.json.decode(proven.definition))
        run = replay(proven.entries, Run(id=proven.header.run))
        return _account(proven, run, definition)
    except NONSENSE as error:
        raise broken(f"its events are inconsistent: {error}") from error


def _account(proven: Proven, run: Run, definition: Definition) -> Account:
    account = Account(
        run=run.id,
        workflow=run.workflow,
        status=run.status,
        has_ended=run.status in RUN_ENDED,
        events=run.n,
        definition=run.definition,
        made=instant_text(proven.header.made),
        key=proven.fingerprint,
        goal=run.goal,
        started=instant_text(run.started),
        ended=instant_text(run.ended) if run.ended else "",
        forked_from=run.fork.run if run.fork else "",
        steps=tuple(_steps(proven.entries, run, definition)),
        approvals=tuple(_approvals(proven)),
        not_undone=_not_undone(run, definition),
        exceptions=exceptions_of(run),
        tools=proven.tools,
        erased=tuple(part.event for part in proven.erasures),
    )
    seal = proven.checkpoint
    if seal is None:
        return account
    return replace(account, sealed=seal.n, checkpoint=seal.number, has_checkpoint_itself=seal.sealed is not None)


def _steps(entries: Sequence[Entry], run: Run, definition: Definition) -> Iterable[ProvenStep]:
    """All steps that have events, then those that never started."""
    events = [entry.event for entry in entries]
    ends = {event.step: event for event in events if isinstance(event, StepCompleted | StepCarried)}
    refused = Counter(event.step for event in events if isinstance(event, OutputRefused))
    for path, state in run.steps.items():
        kind = locate(definition, path).step.kind
        yield replace(_step(path, state, kind, ends.get(path)), refused=refused[path])
    yield from (_to_come(step.id) for step in definition.steps if step.id not in run.steps)


def _to_come(name: str) -> ProvenStep:
    return ProvenStep(id=name, status=StepStatus.PENDING)


def _step(path: str, state: StepState, kind: Kind, end: StepCompleted | StepCarried | None) -> ProvenStep:
    step = ProvenStep(
        id=path, status=state.status, by=state.actor, compensation=state.compensation, message=state.message
    )
    if not state.proof or kind in HOLDERS:
        return step  # it was not done, or only contains other steps
    if isinstance(end, StepCarried):
        return replace(step, how=ProofKind.CARRIED)
    checks, evidence = (end.checks, end.evidence) if end else ((), ())
    return replace(step, how=_how(kind, state), checks=checks, evidence=tuple(map(_shown, evidence)))


def _how(kind: Kind, state: StepState) -> ProofKind:
    if state.looked_at:
        return ProofKind(state.looked_at)
    return ProofKind.APPROVED if kind is Kind.APPROVE else ProofKind.EXECUTED


def _shown(evidence: Mapping[str, Any]) -> Mapping[str, Any]:
    return {name: evidence[name] for name in EVIDENCE_SHOWN if name in evidence}


def _approvals(proven: Proven) -> Iterable[Approval]:
    return (
        Approval(
            step=part.step,
            what=part.kind.removeprefix(APPROVAL),
            by=part.actor,
            at=instant_text(part.at),
            words=part.words,
            digest=part.digest,
            channel=part.channel or "",
        )
        for part in proven.approvals
    )


def _not_undone(run: Run, definition: Definition) -> tuple[str, ...]:
    if run.status not in RUN_BROKEN_OFF:
        return ()  # it completed, so its effects are wanted; or it has not ended yet
    return tuple(not_undone(run, definition))
