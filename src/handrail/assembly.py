"""Assembly: the only place that knows which parts the program is made of.

Opens what a caller needs and closes it again; nothing is decided here."""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace as with_

from handrail.domain.analysis.local import Local, Survey
from handrail.domain.checks.finding import Finding, Flaw, finding_without_text
from handrail.domain.checks.finding import Path as Place
from handrail.domain.checks.judgement import PlainRuleSet
from handrail.domain.definition.duration import duration_ms
from handrail.domain.definition.model import Definition
from handrail.domain.definition.model_hint import Model
from handrail.domain.errors import HandrailError, IntegrityBroken, Invalid, Unavailable
from handrail.domain.journal.chain import Record
from handrail.engine.checking.gate import QualityGate
from handrail.engine.clock import new_id, steady_clock, system_clock, system_entropy
from handrail.engine.dispatch import Dispatch
from handrail.engine.guiding.guide import Guide
from handrail.engine.journal import FAR_BEHIND
from handrail.engine.plans import Plans
from handrail.engine.proving import store_facts
from handrail.engine.proving.audit import AuditResult, verify
from handrail.engine.proving.checkpointer import Checkpointer, found_text
from handrail.engine.proving.checkpointing_journal import CheckpointingJournal
from handrail.engine.proving.erasure import erase_payload
from handrail.engine.proving.projection_repair import WholeStore, rebuild
from handrail.engine.reading.ledger import Ledger
from handrail.engine.reading.run_reader import RunReader
from handrail.engine.record_writer import RecordWriter
from handrail.engine.running.change_notifier import ChangeNotifier
from handrail.engine.running.control import ApprovalPolicy, Control
from handrail.engine.running.worker import Worker, WorkerSettings
from handrail.engine.sandbox import Sandbox
from handrail.engine.secrets import SecretStore
from handrail.library.inputs import check_inputs
from handrail.library.models import models_of
from handrail.library.schemas.structure import check_against
from handrail.library.shelf.workflow_entry import WorkflowSource
from handrail.library.shelf.workflow_library import WorkflowLibrary
from handrail.rules.cards import BUILT_IN_CARDS
from handrail.rules.files.tree import tree_digest
from handrail.rules.plugins.card_cache import CardCache
from handrail.rules.plugins.plugin_discovery import PluginRules
from handrail.rules.plugins.plugin_rule import RuleEntry
from handrail.rules.registry import RuleRegistry, built_in
from handrail.settings import PROJECT_FOLDER, Settings
from handrail.storage.check_cache import RuleMemory
from handrail.storage.checkpoint_log import CheckpointFile
from handrail.storage.keys import open_key, open_public_key, open_secret
from handrail.storage.memory import MemoryStore
from handrail.storage.presence import ProcessPresence
from handrail.storage.secret_file import SecretFile
from handrail.storage.sqlite.store import SqliteStore
from handrail.tools.configuration import tool_configuration
from handrail.tools.files.content_store import ContentStore
from handrail.tools.mcp.declaration import declared_servers
from handrail.tools.mcp.servers import Servers
from handrail.tools.registry import Registry
from handrail.tools.sandbox.unconfined import Unconfined
from handrail.tools.sdk import PythonTool
from handrail.tools.shell import shell_configuration, shell_sandbox, shell_tools
from handrail.tools.vault import Vault

CARRYING: Final = "carrying.key"
TOOLS_FILE: Final = "tools.json"

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class StoreReader:
    """Everything that only reads: the store, the ledger, plans, and verification."""

    settings: Settings
    store: WholeStore
    checkpoints: CheckpointFile
    ledger: Ledger
    plans: Plans

    async def verify(
        self, *, stream: str | None = None, replay: bool = False, receipts: Sequence[tuple[str, str]] = ()
    ) -> AuditResult:
        """Verify the journal, or one stream of it."""
        key = open_public_key(self.settings.keys)
        return await verify(self.store, self.checkpoints, key, stream=stream, replay=replay, receipts=receipts)


@dataclass(frozen=True)
class StoreWriter:
    """An open store that can be written to: dispatch, plans, control, checkpoints."""

    reader: StoreReader
    record_writer: RecordWriter
    checkpointer: Checkpointer
    dispatch: Dispatch
    plans: Plans
    control: Control

    async def accept(self, *, reason: str, actor: str) -> None:
        """Accept a journal that differs from its checkpoints; who accepted it and why becomes an event."""
        found = found_text(await self.checkpointer.compare())
        await store_facts.accept(self.reader.store, self.record_writer, reason=reason, found=found, actor=actor)
        await self.checkpointer.seal(restart=True)

    async def rebuild(self) -> int:
        """Rewrite projections that differ from their events; how many streams were changed."""
        return await rebuild(self.reader.store)

    async def erase(self, stream: str, n: int, *, reason: str, actor: str) -> Record:
        """Erase the content of one event permanently."""
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
        )


@asynccontextmanager
async def open_writer(settings: Settings, *, compare: bool = True) -> AsyncIterator[StoreWriter]:
    """Open the store that the settings name for writing; it is created if it is missing.

    A journal that differs from its last checkpoint is refused, unless `compare` is false."""
    _require_sqlite(settings)
    record_writer = RecordWriter(system_clock, system_entropy)
    async with await SqliteStore.open(settings.journal, busy_ms=duration_ms(settings.choices.busy)) as store:
        look = _reading(settings, store, record_writer)
        has_checkpoints = await look.checkpoints.last() is not None if compare else False
        if compare and not has_checkpoints:
            await _warn_of_missing_checkpoints(store)
        key = open_key(settings.keys, has_checkpoints=has_checkpoints)
        checkpointer = Checkpointer(store, look.checkpoints, key, record_writer.clock)
        if compare and (breaks := await checkpointer.compare()):
            raise IntegrityBroken(f"the journal is not what its last checkpoint says: {found_text(breaks)}")
        journal = CheckpointingJournal(store, checkpointer, every=settings.choices.checkpoint_every)
        try:
            await store_facts.create(journal, record_writer, key=key.public)
            steady = steady_clock(record_writer.clock)
            dispatch = Dispatch(journal, record_writer, steady)
            control = Control(dispatch, steady, _say(settings), fits=_misfits)
            yield StoreWriter(look, record_writer, checkpointer, dispatch, Plans(journal, record_writer), control)
        finally:
            await journal.close()


@dataclass(frozen=True)
class Assembly:
    """All parts over one open store, with a worker that executes runs and a guide for agents."""

    writer: StoreWriter
    worker: Worker
    control: Control
    guide: Guide
    run_reader: RunReader
    library: WorkflowLibrary
    toolbox: Registry
    models: tuple[Model, ...]
    survey: Survey


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
    models = models_of(settings.tables.get("models", {}))
    toolbox = toolbox or toolbox_of(settings, tools)
    try:
        async with open_writer(settings) as writer:
            owner = new_id("w-", writer.record_writer.entropy)
            presence = ProcessPresence.enter(settings.workers, owner)
            gate = gate_of(settings, toolbox)
            survey = survey_of(rules_of(settings, toolbox), toolbox)
            terms = WorkerSettings(
                owner=owner,
                actor=f"{actor}:{owner}" if actor == "worker" else actor,
                clock=writer.control.clock,
                check=_inputs_checked,
                fits=_misfits,
                judge=gate.judge,
                lease_s=duration_ms(settings.choices.lease) / 1_000,
                calls_max=settings.choices.calls,
                picks_up=picks_up,
            )
            worker = Worker(writer.dispatch, writer.reader.store, toolbox, presence, terms)
            try:
                await worker.open()
                control = replace(writer.control, worker=worker)
                guide = Guide(writer.dispatch, worker.agenda_cache, ChangeNotifier(writer.dispatch), terms, gate)
                run_reader = RunReader(writer.reader.store, terms.clock, toolbox, worker.agenda_cache)
                yield Assembly(
                    writer, worker, control, guide, run_reader, library_of(settings), toolbox, models, survey
                )
            finally:
                await worker.close()
                presence.leave()
    finally:
        await toolbox.close()


def carrying_key(settings: Settings) -> bytes:
    """The key that seals state which clients carry: the same for all processes on one store."""
    try:
        return open_secret(settings.keys, CARRYING)
    except HandrailError as error:
        # The store will tell what is wrong; until then what this process sealed only it can open.
        log.warning("%s", error)
        return system_entropy(32)


def library_of(settings: Settings) -> WorkflowLibrary:
    """The library of workflows: the project's own, the user's, those of further folders, and the built-in ones."""
    more = [WorkflowSource("more", folder) for folder in settings.choices.library.split(os.pathsep) if folder]
    sources = [
        WorkflowSource("project", str(settings.workflows), within=str(settings.project)),
        WorkflowSource("user", str(settings.home / "workflows")),
        *more,
    ]
    if settings.choices.built_in:
        sources.append(WorkflowSource("built in", str(files("handrail.library").joinpath("workflows"))))
    return WorkflowLibrary(
        sources, cache_file=settings.home / "cache" / "library.json", survey=survey_of(rules_of(settings))
    )


def survey_of(rules: RuleRegistry, toolbox: Registry | None = None) -> Survey:
    """Reports what is known of the tools and rules in a definition; without a toolbox, of rules only."""

    def survey(tools: Collection[str], checks: Collection[str]) -> Local:
        known = toolbox.known(tools) if toolbox is not None else None
        return Local(tools=known, rules=rules.known(checks), fits=_flaws)

    return survey


def toolbox_of(settings: Settings, tools: Sequence[PythonTool] = ()) -> Registry:
    """All tools that plans of this project can call."""
    configuration = tool_configuration(settings.tables)
    vault = Vault(secrets_of(settings), allowed_env=_allowed_env(settings))
    servers = Servers(
        declared_servers([settings.home / TOOLS_FILE, settings.project / PROJECT_FOLDER / TOOLS_FILE]),
        project=settings.project,
        logs=settings.home / "logs" / "servers",
        cache=settings.home / "cache" / "servers.json",
        kept=ContentStore(settings.kept),
        vault=vault,
        configuration=configuration,
    )
    return Registry(
        project=settings.project,
        kept=settings.kept,
        private=(settings.home,),
        configuration=configuration,
        own=tools,
        more=shell_tools(settings.project, shell_configuration(settings.tables), private=(settings.home,)),
        servers=servers,
        vault=vault,
    )


def secrets_of(settings: Settings) -> SecretStore:
    """The secrets that people have stored for tools."""
    return SecretFile(settings.keys, choice=settings.choices.secrets_in)


def _allowed_env(settings: Settings) -> Sequence[str]:
    table = settings.home_tables.get("secrets", {})  # not the project's: what was cloned must not help itself
    names = table.get("env", [])
    if set(table) - {"env"} or not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise Invalid("config.toml: [secrets] takes a list of names: env", hint='write: env = ["GITHUB_TOKEN"]')
    return names


def _inputs_checked(definition: Definition, given: Mapping[str, Any]) -> tuple[Mapping[str, Any], Sequence[str]]:
    inputs, findings = check_inputs(definition, dict(given))
    return inputs, [f"{finding.where}: {finding.message}" for finding in findings]


def gate_of(settings: Settings, toolbox: Registry | None = None) -> QualityGate:
    """The gate that applies the checks of this project's runs."""
    return QualityGate(
        rules=rules_of(settings, toolbox),
        fits=_findings,
        project=settings.project,
        private=(settings.home,),
        sandbox=sandbox_of(settings),
        memory=rule_memory_of(settings),
        tree=partial(tree_digest, settings.project, private=(settings.home,)),
        is_plain=settings.choices.checks == "plain",
    )


def sandbox_of(settings: Settings, more: Sequence[Path] = ()) -> Sandbox:
    """Where the commands of checks run; `more` are further folders that they may read."""
    table = settings.home_tables.get("checks", {})  # not the project's: what was cloned must not open the door
    walls = table.get("sandbox", "required")
    if set(table) - {"sandbox"} or walls not in {"required", "off"}:
        raise Invalid("config.toml: [checks] takes one key, sandbox", hint='write: sandbox = "required", or "off"')
    if walls == "off":
        return Unconfined(settings.project)
    configuration = shell_configuration(settings.tables)
    read = (*configuration.read, *map(str, more))
    return shell_sandbox(settings.project, with_(configuration, read=read), private=(settings.home,))


def rules_of(settings: Settings, toolbox: Registry | None = None) -> RuleRegistry:
    """All rules that checks can apply here; the toolbox makes their network requests."""
    return RuleRegistry(fetch=toolbox.status if toolbox else None, plugins=plugin_rules_of(settings))


def plugin_rules_of(
    settings: Settings, *, installed: Callable[[], Mapping[str, RuleEntry | str]] | None = None
) -> PluginRules:
    """The rules of installed packages, or of the packages that the caller gives."""
    cards = CardCache(settings.home / "cache" / "rule-cards")
    return PluginRules(partial(sandbox_of, settings), reserved=BUILT_IN_CARDS.keys(), installed=installed, cache=cards)


def rule_memory_of(settings: Settings) -> RuleMemory:
    """The cache of earlier check results."""
    return RuleMemory(settings.home / "cache" / "rules")


def judging_rules() -> PlainRuleSet:
    """The rules that judge outputs without waiting: for tests that walk a workflow by a script."""
    return PlainRuleSet(built_in(), _findings)


def _findings(schema: Any, value: Any) -> Sequence[Finding]:
    return [finding_without_text(flaw) for flaw in check_against(schema, value, path=("output",))]


def _flaws(schema: Any, value: Any, path: Place) -> Sequence[Flaw]:
    return check_against(schema, value, path=path)


def _misfits(schema: Any, value: Any) -> Sequence[str]:
    return [flaw.message for flaw in check_against(schema, value, path=("output",))]


def _say(settings: Settings) -> ApprovalPolicy:
    groups = settings.tables.get("groups", {})
    if not all(isinstance(names, list) and all(isinstance(name, str) for name in names) for names in groups.values()):
        raise Invalid("config.toml: [groups] is not lists of names", hint='write: release-managers = ["ann", "bob"]')
    return ApprovalPolicy(agents_may_approve=settings.choices.agents_may_approve, groups=groups)


@asynccontextmanager
async def open_reader(settings: Settings) -> AsyncIterator[StoreReader]:
    """Open the store that the settings name for reading only; an empty one if it does not exist. Nothing is written."""
    _require_sqlite(settings)
    record_writer = RecordWriter(system_clock, system_entropy)
    if not settings.journal.exists():
        async with MemoryStore() as nothing:
            yield _reading(settings, nothing, record_writer)
        return
    busy_ms = duration_ms(settings.choices.busy)
    async with await SqliteStore.open(settings.journal, busy_ms=busy_ms, read_only=True) as store:
        yield _reading(settings, store, record_writer)


def _reading(settings: Settings, store: WholeStore, record_writer: RecordWriter) -> StoreReader:
    return StoreReader(
        settings, store, CheckpointFile(settings.checkpoints), Ledger(store, store), Plans(store, record_writer)
    )


async def _warn_of_missing_checkpoints(store: WholeStore) -> None:
    """A crash before the first checkpoint looks the same as removed checkpoints: warn, and continue."""
    events, _ = await store.heads(after=FAR_BEHIND)
    if events:
        log.warning("the journal has %d events and no checkpoint: nothing signed vouches for them", events)


def _require_sqlite(settings: Settings) -> None:
    if settings.choices.store:
        raise Unavailable(
            "this handrail keeps its journal in a file only; other stores are not built yet",
            hint="leave HANDRAIL_STORE empty, and choose the folder with HANDRAIL_HOME",
        )
