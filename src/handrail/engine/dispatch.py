"""Dispatch: the only way to change a run. Read, replay, decide, append, then answer.

Async; uses only the journal's protocol. domain/run/decide.py decides which commands are granted."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, TypeVar, cast

from msgspec.structs import replace

from handrail.domain.definition.authoring import definition_data
from handrail.domain.definition.duration import duration_ms
from handrail.domain.definition.model import Definition
from handrail.domain.definition.work_items import has_checks, is_judged
from handrail.domain.errors import Conflict, JournalConflict, LeaseLost, NotFound
from handrail.domain.journal.chain import Head, Record
from handrail.domain.journal.event import RUN_PREFIX, Entry, Event
from handrail.domain.journal.projection import Change
from handrail.domain.json import canonical_bytes, digest
from handrail.domain.metrics.cache_catalog import RUN_STATES
from handrail.domain.policy.actor import ActorKind, kind_of
from handrail.domain.policy.asking import may_command
from handrail.domain.policy.table import DEFAULT_POLICY, OwnerPolicy
from handrail.domain.policy.verdict import require_allowed
from handrail.domain.project import FindProject, refusal, scoped, unknown_project
from handrail.domain.run.baseline import Baseline
from handrail.domain.run.command import AdoptRun, Command, StartRun
from handrail.domain.run.decide import decide
from handrail.domain.run.state import Run, project, replay
from handrail.domain.run.status import RUN_ENDED
from handrail.domain.secrets.redaction import redact_inputs
from handrail.domain.secrets.scrubbing import NOTHING_KNOWN, SecretScrubber
from handrail.engine.clock import key_digest, keyed_id, timed_id
from handrail.engine.journal import Journal
from handrail.engine.passed_in import Clock
from handrail.engine.pinned_definitions import PinnedDefinitions
from handrail.engine.record_writer import RecordWriter
from handrail.engine.run_secrets import RunSecrets
from handrail.engine.running.lease import Lease
from handrail.engine.stream_pages import entries_of, steps_in
from handrail.engine.tracing.received import received
from handrail.engine.tracing.tracer import NO_TRACING, Tracer
from handrail.engine.watching import Watcher
from handrail.foundation.bounded_cache import BoundedCache
from handrail.foundation.cache_use import use_of

CONFLICTS_MAX: Final = 50
RUNS_KEPT: Final = 10_000
RUNS: Final = use_of(RUN_STATES)


PLAIN_START: Final = StartRun()
JUST_S: Final = 1.0
"""How long a look at the project for the start of a run also counts for its first step."""

Observe: TypeAlias = Callable[[], Awaitable[Baseline | None]]
"""The present state of the project; None if it is not known."""
EventT = TypeVar("EventT", bound=Event)
Texts: TypeAlias = tuple[tuple[str, bytes], ...]

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class CachedRun:
    """A run's state in memory, and whether it is synced already."""

    run: Run
    settled: asyncio.Future[bool] | None = None


@dataclass(frozen=True)
class Draft:
    """What is to be written, and the run as it will be then."""

    before: Run
    run: Run
    records: list[Record]
    entries: list[Entry]
    definition: Definition


@dataclass
class Dispatch:
    """Grants commands on runs, and caches the state of recent runs."""

    journal: Journal
    record_writer: RecordWriter
    clock: Clock | None = None
    """The clock for due times; the scribe's if no steadier one is given."""
    policy: OwnerPolicy = DEFAULT_POLICY
    """Asked for every command: who may do what."""
    watchers: list[Watcher] = field(default_factory=list)
    project: str = ""
    """The id of the project of this process: it starts and changes only runs of this one."""
    find_project: FindProject = unknown_project
    """Finds the project that another run belongs to, so that a refusal can name it."""
    behalf: str = ""
    """The person that agents work for here."""
    observe: Observe | None = None
    """Looks at the project, so that checks can compare with the beginning of a run or step."""
    run_secrets: RunSecrets | None = None
    """Where other nodes find the values of secret inputs; None if the store is not shared."""
    tracer: Tracer = NO_TRACING
    _cache: BoundedCache[str, CachedRun] = field(default_factory=lambda: RUNS.keeps(BoundedCache(RUNS_KEPT)))
    _definitions: PinnedDefinitions = field(init=False)
    _last: tuple[Definition, str, bytes] | None = None
    _started: tuple[str, int, float] | None = None
    """The run that was started last, its latest event then, and when."""
    _secrets: dict[str, SecretScrubber] = field(default_factory=dict)
    """By run, until it ends: the values of secret inputs, so that they are removed from later events, too."""

    def __post_init__(self) -> None:
        self._definitions = PinnedDefinitions(self.journal)

    async def start(
        self,
        definition: Definition,
        inputs: Mapping[str, Any],
        *,
        actor: str,
        ask: StartRun = PLAIN_START,
        owner: str = "",
        texts: Texts = (),
    ) -> Run:
        """Start a run pinned to the definition; the inputs are validated and complete.

        `ask` has the other options (goal, mode, priority, fork, key); `owner` executes the run from its start; `texts`
        are the tool descriptions that it is pinned to. Conflict if the key has started a run already: see
        `started_under_key`."""
        content_hash, text = self._pinned(definition)
        # A definition is stored under its own hash and can't be redacted: with a secret in it, it must not be stored at
        # all.
        self.record_writer.secrets.require_absent(text, "the definition")
        kept, secrets = redact_inputs(inputs, definition.inputs)
        workflow = f"{definition.id}@{definition.version}" if definition.version else definition.id
        now = (self.clock or self.record_writer.clock)()
        deadline = now + duration_ms(definition.deadline) if definition.deadline else None
        known_by = key_digest(scoped(self.project, ask.key)) if ask.key else ""
        command = replace(ask, definition=content_hash, workflow=workflow, inputs=kept, deadline=deadline, key=known_by)
        behalf = self.behalf if kind_of(actor) is ActorKind.AGENT else ""
        # Before the look, so that JUST_S counts from when the state was true, however long looking takes.
        observed_s = asyncio.get_running_loop().time()
        baseline = await self._observed(definition)
        command = replace(command, project=self.project, behalf=behalf, baseline=baseline, trace=received())
        for _ in range(CONFLICTS_MAX):
            run = await self._unstarted(ask.key, now)
            if secrets:
                self._secrets[run.id] = SecretScrubber(dict.fromkeys(secrets, ""))
                if self.run_secrets is not None:  # first: a node that goes on with the run must find them
                    await self.run_secrets.keep(run.id, secrets)
            draft = self._drafted(run, [command], definition, actor=actor)
            lease = Lease(run.id, owner) if owner else None
            try:
                run = await self._commit(draft, lease=lease, texts=((content_hash, text), *texts))
            except (JournalConflict, LeaseLost):
                continue  # the id is taken
            self._started = (run.id, run.n, observed_s)
            return run
        raise JournalConflict("no free id could be found for the run")

    def is_just_started(self, run: Run) -> bool:
        """Whether the project was looked at for its start a moment ago, and nothing has happened in the run since."""
        if self._started is None or self._started[:2] != (run.id, run.n):
            return False
        return asyncio.get_running_loop().time() - self._started[2] <= JUST_S

    async def started_under_key(self, ask: StartRun) -> Run | None:
        """The run that was started under the same key, if any; Conflict if that was a different request."""
        run = await self._keyed(ask.key) if ask.key else None
        if run is None or not run.n:
            return None
        # The same key for another request is a mistake of the caller: answering with the old run would hide it.
        if run.asked != ask.asked:
            hint = "use a new key, or repeat exactly the same request"
            raise Conflict(f"the key {ask.key!r} has started {run.id} with a different request", hint=hint)
        return run

    async def _keyed(self, key: str) -> Run:
        """The run of a key in this project; without events if it is not started yet."""
        if self.project:  # the key of a run that was started before there were projects is not scoped
            adopted = await self._keyed_as(key)
            if adopted.n and adopted.project == self.project:
                return adopted
        return await self._keyed_as(scoped(self.project, key))

    async def _keyed_as(self, key: str) -> Run:
        for number in range(CONFLICTS_MAX):
            run_id = keyed_id(RUN_PREFIX, key, number)
            try:
                run = await self.current(run_id)
            except NotFound:
                return Run(id=run_id)
            # The id is only derived from the key: another key may have the same one, and then the next number is tried.
            if run.key == key_digest(key):
                return run
        raise JournalConflict("no free id could be found for the run")

    async def _observed(self, definition: Definition) -> Baseline | None:
        """The project as it is now; that there is no repository matters only to what compares with it."""
        if self.observe is None or not is_judged(definition):
            return None
        baseline = await self.observe()
        return None if baseline is not None and baseline.missing and not has_checks(definition) else baseline

    async def _unstarted(self, key: str, now: int) -> Run:
        if not key:
            return Run(id=timed_id(RUN_PREFIX, now, self.record_writer.entropy))
        run = await self._keyed(key)
        if run.n:
            raise Conflict(f"the key {key!r} has started {run.id} already")
        return run

    def require_own(self, run: Run) -> Run:
        """The run, if it belongs to this project; OtherProject names the project that it belongs to."""
        if run.project != self.project:
            raise refusal(run.id, run.project, self.find_project)
        return run

    async def own(self, run_id: str) -> Run:
        """The current state of a run of this project: for all that checks, gives out or changes something."""
        return self.require_own(await self.current(run_id))

    async def adopt(self, run_id: str, *, reason: str, actor: str) -> Run:
        """Give a run to this project; OtherProject if it belongs to one that is known."""
        command = AdoptRun(project=self.project, reason=reason)
        return await self._granted(run_id, [command], actor=actor, lease=None, require=self._require_adoptable)

    def _require_adoptable(self, run: Run) -> None:
        if run.project and self.find_project(run.project) is not None:
            self.require_own(run)

    async def grant(self, run_id: str, *commands: Command, actor: str, lease: Lease | None = None) -> Run:
        """Grant commands on a run, all or none: the synced run after them; Conflict says what is legal instead."""
        return await self._granted(run_id, commands, actor=actor, lease=lease, require=self.require_own)

    async def _granted(
        self,
        run_id: str,
        commands: Sequence[Command],
        *,
        actor: str,
        lease: Lease | None,
        require: Callable[[Run], object],
    ) -> Run:
        for _ in range(CONFLICTS_MAX):
            cached = await self._cached(run_id)
            definition = await self.definition(cached.run.definition)
            try:
                require(cached.run)
                draft = self._drafted(cached.run, commands, definition, actor=actor)
                if draft.records:
                    return await self._commit(draft, lease=lease)
            except LeaseLost:
                raise
            except JournalConflict:
                await self._catch_up(cached)  # another writer was first: read what it wrote, then decide again
                continue
            except Conflict:
                if await self._catch_up(cached):
                    continue
                raise
            # Nothing was to be written, by what is known here: true only if no other writer was faster.
            if not await self._catch_up(cached):
                return cached.run
        raise JournalConflict(f"too many writers append to run {run_id} at once")

    async def require_allowed(self, run: Run, *commands: Command, actor: str) -> None:
        """Forbidden if the policy refuses any of these commands now; for what must not even be tried."""
        definition = await self.definition(run.definition)
        for command in commands:
            require_allowed(may_command(actor, run, definition, command, self.policy))

    async def require_grantable(self, run: Run, *commands: Command, actor: str) -> None:
        """Refuse what `grant` would refuse now; nothing is written."""
        self._drafted(run, commands, await self.definition(run.definition), actor=actor)

    async def current(self, run_id: str) -> Run:
        """The current synced state of a run, including what other processes wrote."""
        cached = await self._cached(run_id)
        while await self._catch_up(cached):
            cached = await self._cached(run_id)
        return cached.run

    def kept(self, run_id: str, event: EventT) -> EventT:
        """An event of a run as the journal would store it, without secrets, to compare it with a stored one."""
        return cast("EventT", self.record_writer.kept(event, self._secrets.get(run_id, NOTHING_KNOWN)))

    async def text(self, content_hash: str) -> bytes | None:
        """The text stored under a content hash: a definition, or a tool's description."""
        return await self.journal.definition(content_hash)

    async def definition(self, content_hash: str) -> Definition:
        """The definition with this content hash, as it was pinned."""
        return await self._definitions.get(content_hash)

    def _pinned(self, definition: Definition) -> tuple[str, bytes]:
        """The content hash of a definition and its text; the last result is cached."""
        if self._last is None or self._last[0] is not definition:
            data = definition_data(definition)
            self._last = (definition, digest(data), canonical_bytes(data))
        _, content_hash, text = self._last
        self._definitions.put(content_hash, definition)
        return content_hash, text

    async def _cached(self, run_id: str) -> CachedRun:
        cached = self._cache.get(run_id)
        if cached is not None:
            RUNS.hit()
            return cached
        with RUNS.making():
            entries = await entries_of(self.journal, run_id)
            if not entries:
                raise NotFound(f"there is no run {run_id!r}", hint="list the runs, then repeat the call")
            read = CachedRun(replay(entries, Run(id=run_id)))
        if read.run.status not in RUN_ENDED:
            await self._recall(run_id)
        if cached := self._cache.get(run_id):
            return cached  # another caller has read it in the meantime
        if read.run.status not in RUN_ENDED:  # an ended run is not cached: it rarely changes again
            self._cache.put(run_id, read)
        # Which steps have changed is not known after a first read: watchers must look at the run as a whole.
        self._notify(read.run, None, after=0)
        return read

    async def _recall(self, run_id: str) -> None:
        """Learn the values of secret inputs that another node was given."""
        if self.run_secrets is not None and run_id not in self._secrets:
            values = await self.run_secrets.of(run_id)
            if values:
                self._secrets[run_id] = SecretScrubber(dict.fromkeys(values, ""))

    async def _catch_up(self, cached: CachedRun) -> bool:
        """Whether the journal is ahead of this cached state; the cache is then updated."""
        run = cached.run
        if cached.settled is not None and not await asyncio.shield(cached.settled):
            # The state in the cache runs ahead of the disk, so that commands can follow each other without waiting for
            # syncs. No caller may see it before it is synced.
            return True  # an append that this state built on was refused, and the cache entry is gone
        tail = await entries_of(self.journal, run.id, after=run.n)
        if tail and self._cache.get(run.id) is cached:  # else another caller has caught up already
            caught_up = replay(tail, run)
            self._cache.put(run.id, CachedRun(caught_up))
            self._notify(caught_up, steps_in(tail), after=run.n)
        return bool(tail)

    def _drafted(self, run: Run, commands: Sequence[Command], definition: Definition, *, actor: str) -> Draft:
        """What granting these commands in order would write."""
        known = self._secrets.get(run.id, NOTHING_KNOWN)
        before = run
        records: list[Record] = []
        entries: list[Entry] = []
        for command in commands:
            require_allowed(may_command(actor, run, definition, command, self.policy))
            events = decide(run, command, definition)
            more, written = self.record_writer.write(Head(run.id, run.n, run.head), events, actor=actor, known=known)
            # The next command is decided over what this one will have changed, as if it were written.
            run = replay(written, run)
            records += more
            entries += written
        return Draft(before, run, records, entries, definition)

    async def _commit(self, draft: Draft, *, lease: Lease | None = None, texts: Texts = ()) -> Run:
        start_s = time.perf_counter()
        after = draft.run
        change = replace(project(after, steps_in(draft.entries)), definitions=texts)
        await self._append(after, draft.records, change, lease)
        if after.status in RUN_ENDED:  # it is rarely needed from now on, and can be read again
            if self._secrets.pop(after.id, None) is not None and self.run_secrets is not None:
                await self.run_secrets.forget(after.id)
            cached = self._cache.get(after.id)
            if cached is not None and cached.run is after:
                self._cache.pop(after.id)
        _log_commit(after, draft.records, start_s)
        self.tracer.appended(draft.before, draft.entries, draft.definition)
        self._notify(after, steps_in(draft.entries), after=after.n - len(draft.records))
        return after

    async def _append(self, after: Run, records: Sequence[Record], change: Change, lease: Lease | None) -> None:
        # The next command may build on this state before it is synced: its append is queued after this one, and the
        # store refuses it if this one fails. So many commands on one run share one sync.
        settled = asyncio.get_running_loop().create_future()
        self._cache.put(after.id, CachedRun(after, settled))
        is_synced = False
        try:
            await self.journal.append(records, change, lease=lease)
            is_synced = True
        finally:
            settled.set_result(is_synced)
            if not is_synced:
                self._cache.pop(after.id)

    def _notify(self, run: Run, steps: Collection[str] | None, *, after: int) -> None:
        for watcher in self.watchers:
            watcher(run, steps, after)


def _log_commit(run: Run, records: Sequence[Record], start_s: float) -> None:
    """Log a commit: every one at debug level, else only the start and the end of a run."""
    last = records[-1]
    level = logging.INFO if run.n == 1 or run.status in RUN_ENDED else logging.DEBUG
    if log.isEnabledFor(level):
        about = {"run": run.id, "duration_ms": round(1_000 * (time.perf_counter() - start_s), 2)}
        if last.step is not None:
            about["step"] = last.step
        log.log(level, "%s by %s", last.kind, last.actor, extra=about)
