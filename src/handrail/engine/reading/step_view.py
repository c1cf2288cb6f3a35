"""The steps of a run for readers: in written order, rounds below their loop.

Pure, in one pass over the steps that have events. The run as a whole is in run_view.py."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Final

from msgspec import Struct

from handrail.domain.checks.rule import LooksAt
from handrail.domain.definition.model import Call, Category, Definition, Each, Kind, Prompt, Repeat, Step
from handrail.domain.history.step_title import title_of_located
from handrail.domain.instant import instant_text
from handrail.domain.journal.event import Mode
from handrail.domain.run.state import Run
from handrail.domain.run.status import STEP_SATISFIED, RunStatus, StepStatus
from handrail.domain.run.step_path import UNDO, Located, container_of, locate
from handrail.domain.run.step_state import StepState
from handrail.domain.scheduling.agenda import Agenda
from handrail.engine.reading.prospect import Prospect

TEXT_LENGTH_MAX: Final = 300


class Shown(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The base of everything shown to readers: empty fields are left out."""


class Why(StrEnum):
    """What a step waits for."""

    STEP = "step"
    AGENT = "agent"
    APPROVAL = "approval"
    DECISION = "decision"
    RETRY = "retry"
    TIME = "time"
    BREAKER = "breaker"
    LIMIT = "limit"
    NODE = "node"


class PostponedView(Shown, frozen=True):
    """Something that a step waits for: another step, a time, or a limit with its reason."""

    kind: Why
    step: str = ""
    until: str = ""
    reason: str = ""


class LiveState(Struct, frozen=True):
    """What is not in the journal: why ready steps do not start, and the progress that running tools report."""

    postponed: Mapping[str, PostponedView] = {}
    words: Mapping[str, str] = {}


NOTHING: Final = LiveState()


class StepView(Shown, frozen=True):
    """One step of a run."""

    id: str
    kind: Kind
    status: StepStatus
    title: str = ""
    text: str = ""
    """What there is to do, in a run that is only recorded: only views show it to the agent."""
    attempts: int = 0
    refused: int = 0
    """How many of its submissions were refused since a person last decided."""
    started: str = ""
    ended: str = ""
    due: str = ""
    by: str = ""
    channel: str = ""
    """How a person's answer came."""
    approved_by: tuple[str, ...] = ()
    """Those who have approved, if several must."""
    proof: str = ""
    """`verified`, `checked` or `claimed`; none where handrail called a tool or a person answered, and no check ran."""
    checks: tuple[str, ...] = ()
    looks_at: Mapping[str, LooksAt] = {}
    """By check that its latest output went through: the world, or only the words that were submitted."""
    compensation: str = ""
    category: Category | None = None
    message: str = ""
    says: str = ""
    """The progress that its tool reports."""
    round: int = 0
    rounds: int = 0
    waits_for: tuple[PostponedView, ...] = ()
    worked_ms: int = 0
    """What its tries took; `waited_ms` is what it waited for a retry, a time, an agent, a person or a decision, and
    `undone_ms` what its undo took. Between `started` and `ended` there can be more: what others did."""
    waited_ms: int = 0
    undone_ms: int = 0


def steps_of(
    run: Run, definition: Definition, prospect: Prospect, within: LiveState, lasting: Sequence[str]
) -> tuple[StepView, ...]:
    """Every step that is known so far."""
    lister = _StepLister(run, definition, prospect, within, frozenset(lasting))
    return tuple(lister.views(definition.steps, ""))


class _StepLister:
    """Lists the steps of one run."""

    def __init__(
        self, run: Run, definition: Definition, prospect: Prospect, within: LiveState, lasting: frozenset[str]
    ) -> None:
        self.run = run
        self.definition = definition
        self.postponed = within.postponed
        self.words = within.words
        self.lasting = lasting
        self.lanes = prospect.agenda.lanes.by_prefix
        self.for_agent = frozenset(prospect.for_agent)
        self.undecided = frozenset(prospect.undecided)
        may_begin = run.status is RunStatus.RUNNING and prospect.agenda.tracked.halt is None
        self.ready = prospect.agenda.ready if may_begin else frozenset()
        self.touched = {path.rpartition(".")[0] for path in run.steps}
        self.moving = self._containers_of(self._moving(prospect.agenda))
        """Containers in which something goes on by itself."""
        self.awaited = self._awaited(prospect)
        """By container: what somebody has to do inside it."""

    def _moving(self, agenda: Agenda) -> Iterator[str]:
        yield from agenda.tracked.busy
        yield from (path for path in agenda.ready_steps.calls if path in self.ready)
        waiting = agenda.tracked.waiting.difference(self.for_agent)
        timed = (path for path in waiting if not self.run.step(path).digest)
        yield from (path for path in timed if self.run.step(path).due is not None)

    def _awaited(self, prospect: Prospect) -> dict[str, PostponedView]:
        awaited: dict[str, PostponedView] = {}
        sorts = ((Why.DECISION, prospect.undecided), (Why.APPROVAL, prospect.asked), (Why.AGENT, prospect.for_agent))
        for why, path in ((why, path) for why, paths in sorts for path in paths):
            for container in _containers(path):
                awaited.setdefault(container, PostponedView(kind=why, step=path))
        return awaited

    @staticmethod
    def _containers_of(paths: Iterator[str]) -> frozenset[str]:
        return frozenset(container for path in paths for container in _containers(path))

    def views(self, steps: Sequence[Step], prefix: str) -> Iterator[StepView]:
        is_open = not prefix or prefix in self.lanes
        shown = [step for step in steps if is_open or prefix + step.id in self.run.steps]
        if not shown:
            return
        lane = locate(self.definition, prefix + shown[0].id).lane
        for step in shown:
            path = prefix + step.id
            yield self._view(Located(step, lane), path)
            yield from self._inside(step, path)

    def _inside(self, step: Step, path: str) -> Iterator[StepView]:
        state = self.run.step(path)
        if step.body:
            for number in range(self._started_rounds(path, state)):
                yield from self.views(step.body, f"{path}[{number}].")
        elif isinstance(step.work, Call) and self._is_known(f"{path}."):
            yield from self.views(self.definition.pinned[step.work.workflow].steps, f"{path}.")
        if isinstance(step.undo, Call) and self._is_known(f"{path}{UNDO}."):
            yield from self.views(self.definition.pinned[step.undo.workflow].steps, f"{path}{UNDO}.")

    def _is_known(self, prefix: str) -> bool:
        return prefix in self.lanes or prefix[:-1] in self.touched

    def _started_rounds(self, path: str, state: StepState) -> int:
        """How many rounds of a loop have started."""
        if state.rounds is None:
            return state.round + 1
        started = 0
        while started < state.rounds and self._is_known(f"{path}[{started}]."):
            started += 1
        return started

    def _view(self, found: Located, path: str) -> StepView:
        step, prefix = found.step, found.prefix
        state = self.run.step(path)
        status = self._status(path, state)
        return StepView(
            id=path,
            kind=step.kind,
            status=status,
            title=title_of_located(self.run, found),
            text=recorded_text(self.run, step),
            attempts=state.attempts - state.deferred,  # a tool that asked to be called later has not failed
            refused=state.tries,
            started=_instant(state.started),
            ended=_instant(state.ended),
            due=_instant(state.due),
            by=state.actor,
            channel=state.channel,
            approved_by=state.approvers if len(state.approvers) > 1 or status is StepStatus.WAITING else (),
            proof=state.looked_at,
            checks=state.checks,
            compensation=state.compensation or ("none" if path in self.lasting else ""),
            category=state.category,
            message=state.message,
            says=self.words.get(path, "") or self.words.get(path + UNDO, ""),
            round=self._started_rounds(path, state) if step.body else 0,
            rounds=_bound(step, state),
            waits_for=tuple(self._waits(step, path, prefix, state, status)),
        )

    def _status(self, path: str, state: StepState) -> StepStatus:
        """The status to show: a loop in which only somebody else can go on is not running, but waiting."""
        if state.status is StepStatus.PENDING and path in self.ready:
            return StepStatus.READY
        is_held = state.status is StepStatus.RUNNING and path in self.awaited and path not in self.moving
        return StepStatus.WAITING if is_held else state.status

    def _waits(
        self, step: Step, path: str, prefix: str, state: StepState, status: StepStatus
    ) -> Iterator[PostponedView]:
        if path in self.for_agent:
            yield PostponedView(kind=Why.AGENT)
        if path in self.undecided:
            yield PostponedView(kind=Why.DECISION)
        if path in self.postponed:
            yield self.postponed[path]
        if state.status is StepStatus.RUNNING and status is StepStatus.WAITING:
            yield self.awaited[path]
            return
        if status is StepStatus.PENDING:
            open_needs = (name for name in step.after if self.run.step(prefix + name).status not in STEP_SATISFIED)
            yield from (PostponedView(kind=Why.STEP, step=prefix + name) for name in open_needs)
        elif state.digest and status is StepStatus.WAITING:
            yield PostponedView(kind=Why.APPROVAL, until=_instant(state.due))
        elif state.due is not None and path not in self.for_agent and path not in self.postponed:
            yield _timer(step, state)


def _containers(path: str) -> Iterator[str]:
    while path := container_of(path):
        yield path


def recorded_text(run: Run, step: Step) -> str:
    """What there is to do at a step of a run that is only recorded, in one line; empty in any other run."""
    if run.mode is not Mode.RECORD:
        return ""
    text = step.work.prompt if isinstance(step.work, Prompt) else step.title
    return " ".join(text.split())[:TEXT_LENGTH_MAX]


def _timer(step: Step, state: StepState) -> PostponedView:
    is_retry = state.failures > 0 and not step.body
    return PostponedView(kind=Why.RETRY if is_retry else Why.TIME, until=_instant(state.due))


def _bound(step: Step, state: StepState) -> int:
    match step.work:
        case Each():
            return state.rounds or 0
        case Repeat(repeat=rounds):
            return rounds.bound
        case _:
            return 0


def _instant(milliseconds: int | None) -> str:
    return instant_text(milliseconds) if milliseconds else ""
