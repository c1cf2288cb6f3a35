"""The witness: sees all that is really written and called, keeps the story of every run, and asks the invariants.

The first thing that is wrong stops the loop; the story up to there is what the seed's report shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import msgspec

from handrail.domain.definition.authoring import definition_from
from handrail.domain.definition.model import Category, Definition, Effect
from handrail.domain.journal.chain import Record
from handrail.domain.journal.codec import entry_of
from handrail.domain.journal.event import RUN_PREFIX, AttemptFailed, AttemptStarted, UndoStarted
from handrail.domain.journal.projection import Change
from handrail.domain.run.state import Run, apply, project, replay
from handrail.domain.run.status import RunStatus
from handrail.domain.scheduling.agenda import Agenda
from handrail.engine.proving.stream_fold import change_of
from handrail.engine.reading.prospect import prospect_of
from handrail.engine.running.lease import Lease
from handrail.engine.tool import ToolCall, ToolSpec
from handrail.storage.memory import MemoryStore
from simulation.invariants import INVARIANTS
from simulation.loop import Process, VirtualLoop
from simulation.outside import Outside
from simulation.story import Moment, Story

UNCALLED = frozenset({Category.INVALID_INPUT, Category.NOT_FOUND})
WORKING = frozenset({RunStatus.RUNNING, RunStatus.COMPENSATING})


class Witness:
    """Looks at everything, believes nothing."""

    def __init__(self, loop: VirtualLoop, store: MemoryStore, outside: Outside, *, lease_s: float) -> None:
        self.loop = loop
        self.store = store
        self.outside = outside
        self.stories: dict[str, Story] = {}
        self.labels: dict[str, frozenset[str]] = {}
        """By process: what its machine has."""
        self.clocks: dict[str, Callable[[], int]] = {}
        self.processes: dict[str, Process] = {}
        self.broken: list[str] = []
        self.tale: list[str] = []
        self.appends = 0
        self._lease_s = lease_s
        self._beats: dict[str, float] = {}
        self._refused: set[bytes] = set()
        self._seen: set[bytes] = set()
        self._definitions: dict[str, Definition] = {}

    def tell(self, text: str) -> None:
        """Add a line to the tale."""
        self.tale.append(f"{self.loop.time():9.3f} {text}")

    def complain(self, text: str) -> None:
        """Something is wrong: the loop stops."""
        self.tell(f"BROKEN: {text}")
        self.broken.append(text)
        self.loop.call_soon(self.loop.stop, context=self.outside.context)

    # --- what is written ----------------------------------------------------------------------------

    def appended(self, process: Process, records: Sequence[Record], change: Change, lease: Lease | None) -> None:
        """An append is in the store."""
        self.appends += 1
        for record in records:
            if record.hash in self._seen or record.hash in self._refused:
                self.complain(f"invariant 2: an append that was refused or done before appears: {record.kind}")
            self._seen.add(record.hash)
        stream = records[0].stream
        if not stream.startswith(RUN_PREFIX):
            for record in records:
                self.tell(f"{process.name:4} {stream} {record.kind} {record.body.decode()[:100]}")
            return
        if stream not in self.stories:
            self.stories[stream] = self._new_story(records[0])
            self.stories[stream].lease = lease
        story = self.stories[stream]
        failed = [entry_of(record).event for record in records if record.kind == "attempt_failed"]
        wrong = (one.step for one in failed if isinstance(one, AttemptFailed) and one.category in UNCALLED)
        uncalled = frozenset(wrong)
        for record in records:
            self._take_in(story, process, record, lease, uncalled)
        self._check_rows(story, {record.step: None for record in records if record.step is not None})
        self._check_prospect(story)
        self._check_agenda(story, {record.step: None for record in records if record.step is not None})
        if change.run is not None and change.run.ended is not None:
            story.lease = None

    def _new_story(self, first: Record) -> Story:
        content_hash = getattr(entry_of(first).event, "definition", "")
        return Story(first.stream, self._definition(content_hash), self.outside)

    def _definition(self, content_hash: str) -> Definition:
        if content_hash not in self._definitions:
            text = self.store._definitions[content_hash]
            self._definitions[content_hash] = definition_from(msgspec.json.decode(text))
        return self._definitions[content_hash]

    def _take_in(
        self, story: Story, process: Process, record: Record, lease: Lease | None, uncalled: frozenset[str]
    ) -> None:
        entry = entry_of(record)
        words = " ".join(str(word) for word in (record.kind, record.step or "", record.attempt or "") if word)
        body = record.body.decode()
        self.tell(f"{process.name:4} {story.id[-3:]} {record.n:3} {words} {body[:140]} [{record.actor}]")
        before = story.run
        story.entries.append(entry)
        story.run = apply(before, entry)
        now_s = self.loop.time()
        clock_ms = self.clocks[process.name]()
        moment = Moment(before, entry, story.run, process, lease, now_s, clock_ms, uncalled)
        for invariant in INVARIANTS:
            for complaint in invariant(story, moment):
                self.complain(f"{invariant.__name__}: {complaint}")
        story.go_on(moment)

    def _check_rows(self, story: Story, steps: Mapping[str, None]) -> None:
        """Invariant 6: the rows that are stored are those of the fold."""
        known = [path for path in steps if path in story.run.steps]
        wanted = project(story.run, known)
        if self.store._runs.get(story.id) != wanted.run:
            self.complain(f"invariant 6: the run's row is not what its events add up to: {wanted.run}")
        rows = self.store._steps.get(story.id, {})
        for row in wanted.steps:
            if rows.get(row.path) != row:
                self.complain(f"invariant 6: the row of {row.path} is {rows.get(row.path)}, not {row}")

    def _check_prospect(self, story: Story) -> None:
        """Whoever looks at a run is told that handrail moves it, or who else has to."""
        seen = prospect_of(story.run, story.definition, now=0)
        if story.run.status in WORKING and seen.is_settled and not (seen.for_agent or seen.asked or seen.undecided):
            self.complain(f"the run is {story.run.status.value}, and readers are told of nobody who could move it")

    def _check_agenda(self, story: Story, steps: Mapping[str, None]) -> None:
        """The agenda that is kept up to date is the one that would be made anew."""
        if story.run.status not in WORKING:
            story.agenda = None
            return
        now = 2**60
        if story.agenda is None:
            story.agenda = Agenda(story.definition, story.run)
        else:
            story.agenda.update(story.run, steps)
        story.agenda.keep_up(now)
        anew = Agenda(story.definition, story.run)
        anew.keep_up(now)
        for name, kept, fresh in _differences(story.agenda, anew):
            self.complain(f"agenda: {name} is {kept}; made anew it is {fresh}")

    def refused(self, records: Sequence[Record]) -> None:
        """An append was refused, and must never appear."""
        self._refused.update(record.hash for record in records)

    def unanswered(self, records: Sequence[Record]) -> None:
        """An append was done, and its caller is told that nobody knows."""
        for record in records:
            self.tell(f"     {record.stream[-3:]} {record.n:3} is not answered")
            if record.stream in self.stories and record.step is not None:
                self.stories[record.stream].orphans.add(record.step)

    def whole_journal(self) -> None:
        """Invariants 3 and 6 over everything that is stored, from the first event."""
        if len(self._seen) != len(self.store._places):
            self.complain("invariant 2: the store holds other events than were appended")
        for story in self.stories.values():
            entries = [entry_of(self.store._places[place]) for place in self.store._streams[story.id]]
            if any(later.n != earlier.n + 1 for earlier, later in pairwise(entries)):
                self.complain(f"invariant 3: {story.id} has gaps")
            change = change_of(story.id, entries)
            rows = tuple(self.store._steps.get(story.id, {})[path] for path in story.run.steps)
            if change.run != self.store._runs[story.id] or change.steps != rows:
                self.complain(f"invariant 6: folding {story.id} gives other rows than are stored")
            if _plain(replay(entries, Run(id=story.id))) != _plain(story.run):
                self.complain(f"invariant 6: folding {story.id} at once and one by one differ")

    # --- leases -------------------------------------------------------------------------------------

    def beaten(self, owner: str) -> None:
        """An owner has said that it is at work."""
        self._beats[owner] = self.loop.time()

    def claimed(self, process: Process, before: Sequence[Lease], leases: Sequence[Lease]) -> None:
        """Leases were taken: their last owner must be gone, or silent for long enough (13, 14)."""
        held = {lease.run: lease for lease in before}
        for lease in leases:
            was = held[lease.run]
            self.tell(f"{process.name:4} {lease.run[-3:]} takes epoch {lease.epoch}, was {was.owner!r} {was.epoch}")
            if lease.run in self.stories:
                self.stories[lease.run].lease = lease
            other = self.processes.get(was.owner)
            if other is None or other is process or other.is_dead:
                continue
            silent_s = self.loop.time() - self._beats.get(was.owner, 0.0)
            if silent_s < self._lease_s:
                self.complain(f"invariant 13: {was.owner} lost {lease.run} after {silent_s:.3f} s of silence")

    def released(self, leases: Sequence[Lease]) -> None:
        """Leases were given back, if they were still held so."""
        for lease in leases:
            story = self.stories.get(lease.run)
            if story is not None and story.lease == lease:
                story.lease = None

    # --- what is called -----------------------------------------------------------------------------

    def call_began(self, process: Process, spec: ToolSpec, call: ToolCall, *, is_undo: bool) -> None:
        """A call reaches a tool: its beginning must be in the journal, if it changes the world (section 3)."""
        self.tell(f"{process.name:4} {call.run[-3:]}     calls {spec.name} for {call.step}, attempt {call.attempt}")
        story = self.stories[call.run]
        if lacked := set(spec.runs_on) - self.labels.get(process.name, frozenset()):
            self.complain(f"{spec.name} is called on {process.name}, which has not {sorted(lacked)}")
        undoing = is_undo or call.key.endswith(":undo")
        if spec.effect is not Effect.NONE:
            self._check_beginning(story, call, is_undo=undoing)
        if spec.concurrency is not None and self.outside.under_way[process.name, spec.name] > spec.concurrency:
            self.complain(f"invariant 8: more calls of {spec.name} at once than {spec.concurrency}")
        if self.outside.under_way[process.name, call.run] > story.definition.max_parallel:
            self.complain(f"invariant 8: more calls of {call.run} at once than {story.definition.max_parallel}")

    def _check_beginning(self, story: Story, call: ToolCall, *, is_undo: bool) -> None:
        place = (call.step, call.attempt, is_undo)
        if place not in story.begun:
            self.complain(f"{call.tool} is called for {call.step} before attempt {call.attempt} is in the journal")
            return
        story.begun[place] += 1
        if story.begun[place] > 1:
            self.complain(f"{call.tool} is called twice in attempt {call.attempt} of {call.step}")
        wanted = UndoStarted if is_undo else AttemptStarted
        assert any(isinstance(entry.event, wanted) and entry.event.step == call.step for entry in story.entries)


def _plain(run: Run) -> tuple[Any, ...]:
    return (run.status, run.n, run.head, run.vars, run.outputs, run.done, dict(run.steps))


def _but(paths: Any, doomed: tuple[str, ...]) -> Any:
    if not doomed or not isinstance(paths, set | list):
        return paths
    return type(paths)(path for path in paths if not path.startswith(doomed))


def _differences(kept: Agenda, anew: Agenda) -> list[tuple[str, Any, Any]]:
    """Where two agendas of one run differ, as far as one can see."""
    pairs: list[tuple[str, Any, Any]] = [
        (name, getattr(kept, name), getattr(anew, name)) for name in ("is_done", "is_stuck", "ready")
    ]
    pairs += [
        (name, getattr(kept.tracked, name), getattr(anew.tracked, name))
        for name in ("busy", "uncertain", "failed", "halt", "expired")
    ]
    pairs += [
        (f"{name} to start", list(one), list(other))
        for name, one, other in (
            ("undos", kept.undos.ready, anew.undos.ready),
            ("calls", kept.ready_steps.calls, anew.ready_steps.calls),
        )
    ]
    pairs.append(("undos under way", kept.undos.under_way, anew.undos.under_way))
    pairs.append(("uncertain undos", kept.undos.uncertain, anew.undos.uncertain))
    # A loop with a round that can't go on is about to fail; which other rounds are open then does not matter.
    stuck = [lane.lane.parent for agenda in (kept, anew) for lane in agenda.lanes.by_prefix.values() if lane.is_stuck]
    doomed = tuple(f"{parent}{sign}" for parent in stuck if parent for sign in ".[")
    pairs = [(name, _but(one, doomed), _but(other, doomed)) for name, one, other in pairs]
    pairs.append(("holders", kept.containers.difference(stuck), anew.containers.difference(stuck)))
    kept_lanes, new_lanes = kept.lanes.by_prefix, anew.lanes.by_prefix
    pairs.append(("lanes", _but(set(kept_lanes), doomed), _but(set(new_lanes), doomed)))
    for prefix in set(kept_lanes) & set(new_lanes):
        one, other = kept_lanes[prefix], new_lanes[prefix]
        pairs.append((f"left in {prefix!r}", one.left, other.left))
        pairs.append((f"moving in {prefix!r}", one.moving, other.moving))
    return [(name, one, other) for name, one, other in pairs if one != other]
