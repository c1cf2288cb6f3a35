"""Opening: the store that the settings name, and all parts over it; closes them again.

Part of the only place that knows which parts the program is made of; nothing is decided here."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from handrail.assembly.caching.use_file import noting_use
from handrail.assembly.checks import gate_of, inputs_checked, misfits_in, observer_of, rules_of
from handrail.assembly.hosts import host_of
from handrail.assembly.nodes import labels_of_machine, own_node
from handrail.assembly.people import passphrase_of, people_of, policy_of
from handrail.assembly.secrets import guard_logs, known_secrets_of
from handrail.assembly.stores import TurnSealer, is_shared, lost_since_seen, reading_store, verifier_of, writing_store
from handrail.assembly.tools import library_of, survey_of, toolbox_of
from handrail.assembly.tracing import tracing
from handrail.assembly.verified import noted
from handrail.assembly.witnesses import checkpoint_folder, witnesses_named
from handrail.definitions import Definitions
from handrail.domain.analysis.local import Survey
from handrail.domain.definition.duration import duration_ms
from handrail.domain.definition.model_hint import Model
from handrail.domain.errors import HandrailError, IntegrityBroken
from handrail.domain.fleet.label import labels_of
from handrail.domain.journal.chain import Record
from handrail.domain.project import Project
from handrail.engine.clock import new_id, steady_clock, system_clock, system_entropy
from handrail.engine.dispatch import Dispatch
from handrail.engine.fleet.limits import FleetLimits, LimitTable
from handrail.engine.fleet.node import LocalNode
from handrail.engine.guiding.guide import Guide
from handrail.engine.guiding.recorder import Recorder
from handrail.engine.known_secrets import KnownSecrets
from handrail.engine.measuring.measures import NO_MEASURES, Measures
from handrail.engine.plans import Plans
from handrail.engine.proving import store_facts
from handrail.engine.proving.audit import AuditResult, verify
from handrail.engine.proving.checkpointer import Checkpointer, CheckpointLog, found_text
from handrail.engine.proving.checkpointing_journal import CheckpointingJournal
from handrail.engine.proving.erasure import Within, erase_payload
from handrail.engine.proving.projection_repair import WholeStore, rebuild
from handrail.engine.proving.witness_courier import WitnessCourier
from handrail.engine.reading.approvals import Approvals
from handrail.engine.reading.control_previews import ControlPreviews
from handrail.engine.reading.ledger import Ledger
from handrail.engine.reading.node_view import NodeReader, NodesView
from handrail.engine.reading.run_reader import RunReader
from handrail.engine.record_writer import RecordWriter
from handrail.engine.run_secrets import RunSecrets
from handrail.engine.running.answers import ApprovalAnswers
from handrail.engine.running.change_notifier import ChangeNotifier
from handrail.engine.running.control import Control
from handrail.engine.running.worker import Worker
from handrail.engine.running.worker_settings import WorkerSettings
from handrail.engine.tracing.tracer import NO_TRACING, Tracer
from handrail.library.models import models_of
from handrail.library.shelf.workflow_library import WorkflowLibrary
from handrail.settings import Settings, local_person
from handrail.storage.keys import open_secret
from handrail.storage.presence import ProcessPresence
from handrail.storage.project_registry import ProjectRegistry, real_path
from handrail.storage.shared_presence import SharedPresence
from handrail.storage.witnesses.copies import witnessed_in
from handrail.storage.witnesses.register import WitnessRegister
from handrail.tools.registry import Registry
from handrail.tools.sdk import PythonTool

CARRYING: Final = "carrying.key"
WORKER: Final = "worker"

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class StoreReader:
    """Everything that only reads: the store, the ledger, plans, and verification."""

    settings: Settings
    project: Project
    store: WholeStore
    checkpoints: CheckpointLog
    ledger: Ledger
    plans: Plans

    async def verify(
        self,
        *,
        stream: str | None = None,
        replay: bool = False,
        receipts: Sequence[tuple[str, str]] = (),
        against: str = "",
    ) -> AuditResult:
        """Verify the journal, or one stream of it; `against` names a witness to compare with."""
        key = await verifier_of(self.settings, self.store)
        copies = await asyncio.to_thread(witnessed_in, against) if against else None
        found = await verify(
            self.store, self.checkpoints, key, stream=stream, replay=replay, receipts=receipts, witnessed=copies
        )
        if stream is not None:
            return found
        lost = await lost_since_seen(self.settings, self.checkpoints, key)
        return noted(self.settings, found.also(lost) if lost is not None else found)

    def run_reader(self, toolbox: Registry | None = None) -> RunReader:
        """Reads runs as the project of these settings sees them."""
        find = ProjectRegistry(self.settings.home).find
        return RunReader(
            self.store,
            system_clock,
            toolbox,
            project=self.project.id,
            find_project=find,
            fleet=self.store,
            is_shared=is_shared(self.settings),
        )

    def previews(self, toolbox: Registry | None = None) -> ControlPreviews:
        """Says what controls would do, and who may, by the policy of these settings."""
        return ControlPreviews(self.run_reader(toolbox), policy_of(self.settings), inputs_checked, toolbox)

    def approvals(self, toolbox: Registry | None = None) -> Approvals:
        """Reads what waits for the answer of a person."""
        return Approvals(self.previews(toolbox))

    async def nodes(self) -> NodesView:
        """Who executes runs on the store, and what waits for a node."""
        settled = None if is_shared(self.settings) else self.run_reader().is_settled
        return await NodeReader(self.store, settled).all(now=system_clock())


@dataclass(frozen=True)
class StoreWriter:
    """An open store that can be written to: dispatch, plans, control, checkpoints."""

    reader: StoreReader
    record_writer: RecordWriter
    checkpointer: Checkpointer
    dispatch: Dispatch
    plans: Plans
    control: Control
    recorder: Recorder
    journal: CheckpointingJournal
    prefix: str = ""
    limits: LimitTable | None = None
    node_name: str = ""
    measures: Measures = NO_MEASURES

    async def accept(self, *, reason: str, actor: str) -> None:
        """Accept a journal that differs from its checkpoints; who accepted it and why becomes an event."""
        look = self.reader
        lost = await lost_since_seen(look.settings, look.checkpoints, await verifier_of(look.settings, look.store))
        found = found_text([*filter(None, [lost]), *await self.checkpointer.compare()])
        await store_facts.accept(self.reader.store, self.record_writer, reason=reason, found=found, actor=actor)
        await self.checkpointer.seal(restart=True)

    async def rebuild(self) -> int:
        """Rewrite projections that differ from their events; how many streams were changed."""
        return await rebuild(self.reader.store)

    async def erase(
        self, stream: str, n: int, *, reason: str, actor: str, within: Within | None = None, is_forced: bool = False
    ) -> Record:
        """Erase the content of one event permanently: of any project, or `within` one."""
        store, record_writer = self.reader.store, self.record_writer
        return await erase_payload(
            store,
            store,
            stream,
            n,
            reason=reason,
            actor=actor,
            clock=record_writer.clock,
            entropy=record_writer.entropy,
            secrets=record_writer.secrets,
            within=within,
            is_forced=is_forced,
        )


@dataclass(frozen=True)
class OpenStore:
    """A store that is open for writing, for any number of projects."""

    store: WholeStore
    checkpoints: CheckpointLog
    journal: CheckpointingJournal
    record_writer: RecordWriter
    checkpointer: Checkpointer
    secrets: RunSecrets | None = None
    prefix: str = ""
    """How the names of this home's workers begin, if other homes share the store."""
    limits: LimitTable | None = None
    """Where all nodes count their calls, if they share the store."""
    node_name: str = ""
    """The name under which this home was admitted to a shared store."""
    measures: Measures = NO_MEASURES
    tracer: Tracer = NO_TRACING

    def writer(self, settings: Settings) -> StoreWriter:
        """The store as the project of these settings writes to it; the project is registered if it is new."""
        registry = ProjectRegistry(settings.home)
        project = registry.register(settings.project)
        look = _reading(settings, self.store, self.checkpoints, self.record_writer, project)
        steady = steady_clock(self.record_writer.clock)
        dispatch = Dispatch(
            self.journal,
            self.record_writer,
            steady,
            policy_of(settings),
            project=project.id,
            find_project=registry.find,
            behalf=local_person(),
            observe=observer_of(settings),
            run_secrets=self.secrets,
            tracer=self.tracer,
        )
        recorder = Recorder(dispatch, steady, inputs_checked)
        plans = Plans(self.journal, self.record_writer, project.id)
        answers = ApprovalAnswers(dispatch.policy.answers, steady, fits=misfits_in, passphrase=passphrase_of(settings))
        control = Control(dispatch, steady, answers, recorder=recorder)
        return StoreWriter(
            look,
            self.record_writer,
            self.checkpointer,
            dispatch,
            plans,
            control,
            recorder,
            self.journal,
            prefix=self.prefix,
            limits=self.limits,
            node_name=self.node_name,
            measures=self.measures,
        )


@asynccontextmanager
async def open_writer(
    settings: Settings, *, compare: bool = True, secrets: KnownSecrets | None = None
) -> AsyncIterator[StoreWriter]:
    """Open the store that the settings name for writing; it is created if it is missing.

    A journal that differs from its last checkpoint is refused, unless `compare` is false. `secrets` are left out of all
    that is written; those of the settings if none are given."""
    async with open_store(settings, compare=compare, secrets=secrets) as opened:
        yield opened.writer(settings)


@asynccontextmanager
async def open_store(
    settings: Settings,
    *,
    compare: bool = True,
    secrets: KnownSecrets | None = None,
    measures: Measures = NO_MEASURES,
) -> AsyncIterator[OpenStore]:
    """Open the store itself, which several projects can share; see `open_writer`."""
    secrets = secrets or known_secrets_of(settings)
    await asyncio.to_thread(secrets.scrubber)  # in a thread: the keyring may have to prompt its user
    guard_logs(secrets)
    record_writer = RecordWriter(system_clock, system_entropy, secrets)
    async with (
        tracing(settings) as tracer,
        noting_use(settings),
        writing_store(settings, record_writer, compare=compare, measures=measures) as parts,
    ):
        store, checkpoints = parts.store, parts.checkpoints
        if compare and not parts.unsealed and await checkpoints.last() is None:
            await _warn_of_missing_checkpoints(store)
        register = WitnessRegister(checkpoint_folder(settings))
        witnesses = (*witnesses_named(settings), *parts.copies)
        courier = WitnessCourier(checkpoints, witnesses, register, record_writer.clock)
        checkpointer = Checkpointer(store, checkpoints, parts.signer, record_writer.clock, courier.wake)
        # Before anything is written: a new checkpoint over a changed journal would make the change look right.
        if compare and (breaks := await checkpointer.compare()):
            raise IntegrityBroken(f"the journal differs from its last checkpoint: {found_text(breaks)}")
        sealer = TurnSealer(checkpointer, parts.turns)
        every = settings.choices.checkpoint_every
        journal = CheckpointingJournal(store, sealer, every=every, unsealed=parts.unsealed)
        try:
            courier.wake()  # an earlier process may have left something to copy
            # The first event of a store names its key: checkpoints by another key are recognised by that.
            await store_facts.create(journal, record_writer, key=parts.signer.public)
            yield OpenStore(
                store,
                checkpoints,
                journal,
                record_writer,
                checkpointer,
                secrets=parts.secrets,
                prefix=parts.prefix,
                limits=parts.limits,
                node_name=parts.node_name,
                measures=measures,
                tracer=tracer,
            )
        finally:
            await journal.close()
            await courier.close()


@asynccontextmanager
async def open_reader(settings: Settings) -> AsyncIterator[StoreReader]:
    """Open the store that the settings name for reading only; an empty one if it does not exist.

    Nothing is written, except that a store of an older handrail is brought to the present schema first."""
    guard_logs(known_secrets_of(settings))
    record_writer = RecordWriter(system_clock, system_entropy)
    project = ProjectRegistry(settings.home).at(settings.project)
    async with reading_store(settings) as (store, checkpoints):
        yield _reading(settings, store, checkpoints, record_writer, project)


@dataclass(frozen=True)
class Assembly:
    """All parts over one open store, with a worker that executes runs and a guide for agents."""

    writer: StoreWriter
    worker: Worker
    control: Control
    guide: Guide
    recorder: Recorder
    run_reader: RunReader
    library: WorkflowLibrary
    toolbox: Registry
    models: tuple[Model, ...]
    survey: Survey

    @property
    def definitions(self) -> Definitions:
        """Finds what can be run here."""
        reader = self.writer.reader
        return Definitions(self.library, self.writer.plans, reader.store, self.toolbox, self.survey)

    @property
    def previews(self) -> ControlPreviews:
        """Says what controls would do."""
        return ControlPreviews(self.run_reader, self.writer.dispatch.policy, inputs_checked, self.toolbox)

    @property
    def approvals(self) -> Approvals:
        """Reads what waits for the answer of a person."""
        return Approvals(self.previews)


@asynccontextmanager
async def open_assembly(
    settings: Settings,
    *,
    actor: str = "handrail",
    picks_up: bool = True,
    tools: Sequence[PythonTool] = (),
    toolbox: Registry | None = None,
) -> AsyncIterator[Assembly]:
    """All parts over an open store, with a worker: it executes what it is asked to, and picks up runs without a worker.

    `tools` are the caller's own, beside those that are built in or installed; `toolbox` is one that knows servers
    already, and is closed in the end."""
    toolbox = toolbox or toolbox_of(settings, tools)
    try:
        async with open_writer(settings, secrets=toolbox.secrets) as writer:
            with _node(writer, actor) if picks_up else nullcontext() as node:
                async with _assembled(writer, toolbox, actor, node) as parts:
                    yield parts
    finally:
        await toolbox.close()


class ProjectAssemblies:
    """Opens projects over one open store, each with its own tools, library, settings and worker."""

    def __init__(self, opened: OpenStore, actor: str, resources: AsyncExitStack) -> None:
        self._opened, self._actor, self._resources = opened, actor, resources
        self.node: LocalNode | None = None
        """This process as a node, which all projects share; from the first that is opened."""
        self.opened: list[Assembly] = []

    async def open(self, settings: Settings) -> Assembly:
        """The parts of one more project; they are closed together with the store."""
        async with AsyncExitStack() as own:
            # One set of known secrets: what a tool of one project was given must not be written by another either.
            toolbox = toolbox_of(settings, secrets=self._opened.record_writer.secrets)
            own.push_async_callback(toolbox.close)
            writer = self._opened.writer(settings)
            self.node = self.node or self._resources.enter_context(_node(writer, self._actor))
            parts = _assembled(writer, toolbox, self._actor, self.node)
            opened = await own.enter_async_context(parts)
            self._resources.push_async_exit(own.pop_all())
            self.opened.append(opened)
            return opened


@asynccontextmanager
async def open_assemblies(
    settings: Settings, *, actor: str, measures: Measures = NO_MEASURES
) -> AsyncIterator[ProjectAssemblies]:
    """The store that the settings name, and the parts of as many projects as are opened over it."""
    async with AsyncExitStack() as resources:
        opened = await resources.enter_async_context(open_store(settings, measures=measures))
        yield ProjectAssemblies(opened, actor, resources)


@asynccontextmanager
async def _assembled(
    writer: StoreWriter, toolbox: Registry, actor: str, node: LocalNode | None
) -> AsyncIterator[Assembly]:
    """The parts; without a node, the worker executes only what it is asked to."""
    settings, dispatch = writer.reader.settings, writer.dispatch
    models = models_of(settings.tables.get("models", {}))
    owner = new_id(writer.prefix or "w-", writer.record_writer.entropy)
    presence = ProcessPresence.enter(settings.workers, owner)
    present = SharedPresence(presence, writer.prefix) if writer.prefix else presence
    gate = gate_of(settings, toolbox)
    survey = survey_of(rules_of(settings, toolbox), toolbox, people_of(settings))
    terms = WorkerSettings(
        owner=owner,
        # In a shared store the machine is named: what its tools did is undone there.
        actor=f"{WORKER}:{owner}" if actor == WORKER or writer.prefix else actor,
        clock=writer.control.clock,
        check=inputs_checked,
        fits=misfits_in,
        judge=gate.judge,
        lease_s=duration_ms(settings.choices.lease) / 1_000,
        calls_max=settings.choices.calls,
        node=node,
        labels=frozenset(labels_of_machine(settings, toolbox.server_names(), dispatch.project, writer.prefix)),
        runs_on=frozenset(labels_of(settings.choices.runs_on)),
        is_shared=bool(writer.prefix),
        limits=FleetLimits(writer.limits, owner, dispatch.project) if writer.limits is not None else None,
        picks_up=node is not None,
        measures=writer.measures,
    )
    # A process that executes only what it is asked for does that itself: it may be the only one with its tools.
    host = host_of(settings, writer.reader.store, project=dispatch.project, node=owner) if node is not None else None
    worker = Worker(dispatch, writer.reader.store, toolbox, present, terms, host)
    try:
        await worker.open()
        control = replace(writer.control, worker=worker)
        guide = Guide(dispatch, worker.agenda_cache, ChangeNotifier(dispatch), terms, gate)
        run_reader = RunReader(
            writer.reader.store,
            terms.clock,
            toolbox,
            worker.agenda_cache,
            project=dispatch.project,
            find_project=dispatch.find_project,
            fleet=writer.reader.store,
            is_shared=bool(writer.prefix),
        )
        library = library_of(settings)
        yield Assembly(writer, worker, control, guide, writer.recorder, run_reader, library, toolbox, models, survey)
    finally:
        await worker.close()
        presence.leave()


def _node(writer: StoreWriter, actor: str) -> AbstractContextManager[LocalNode]:
    reader = writer.reader
    kind = actor if actor == WORKER else "server"
    return own_node(reader.settings, reader.store, kind=kind, prefix=writer.prefix, admitted=writer.node_name)


def _reading(
    settings: Settings, store: WholeStore, checkpoints: CheckpointLog, record_writer: RecordWriter, project: Project
) -> StoreReader:
    plans = Plans(store, record_writer, project.id)
    return StoreReader(settings, project, store, checkpoints, Ledger(store, store), plans)


async def _warn_of_missing_checkpoints(store: WholeStore) -> None:
    """A crash before the first checkpoint looks the same as removed checkpoints: warn, and continue."""
    if events := (await store.end()).events:
        log.warning("the journal has %d events and no checkpoint: nothing signed vouches for them", events)


def carrying_key(settings: Settings) -> bytes:
    """The key that seals state which clients carry: the same for all processes on one store."""
    try:
        return open_secret(settings.keys, CARRYING)
    except HandrailError as error:
        # The store will tell what is wrong; until then what this process sealed only it can open.
        log.warning("%s", error)
        return system_entropy(32)


def projects_of(settings: Settings) -> ProjectRegistry:
    """The registered projects of this home."""
    return ProjectRegistry(settings.home)


def real_folder(folder: Path) -> str:
    """The path under which the project in a folder is registered."""
    return real_path(folder)
