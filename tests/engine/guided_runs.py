"""An agent on the stage: a run with a worker behind it, and a guide that leads through it. Not a test file."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.stage import ADA, Puppet, Stage, plan
from handrail.domain.checks.finding import Finding, finding_without_text
from handrail.domain.definition.model import Definition
from handrail.domain.journal.event import Event, Outcome
from handrail.domain.run.legal_controls import Action
from handrail.domain.run.state import Run
from handrail.domain.run.submission import Submission, Verdict
from handrail.engine.checking.gate import QualityGate
from handrail.engine.checking.rule import NoMemory, Rule
from handrail.engine.guiding.guide import Guide, RunForAgent
from handrail.engine.running.change_notifier import ChangeNotifier
from handrail.engine.sandbox import Job, Ran
from handrail.library.schemas.structure import check_against
from handrail.rules.registry import RuleRegistry
from handrail.storage.memory import MemoryStore

CLAUDE = "agent:claude"
ONE = plan({"id": "write", "prompt": "write"})
TWO = plan({"id": "write", "prompt": "write"}, {"id": "read", "prompt": "read"})
SHAPED = plan({"id": "write", "prompt": "write", "output": {"type": "object", "required": ["file"]}})


def judge(schema: Any, value: Any) -> Sequence[Finding]:
    """What is wrong with an output, as the program itself finds it."""
    return [finding_without_text(flaw) for flaw in check_against(schema, value, path=("output",))]


def guide_of(stage: Stage) -> Guide:
    """A guide beside the stage's worker."""
    worker = stage.worker
    return Guide(
        worker.dispatch, worker.agenda_cache, ChangeNotifier(worker.dispatch), worker.settings, gate_of(is_plain=True)
    )


def gate_of(*rules: Rule, **more: Any) -> QualityGate:
    """A gate with the rules that look at the output alone, and these."""
    sandbox, memory = more.pop("sandbox", NoSandbox()), more.pop("memory", NoMemory())
    project = more.pop("project", Path())
    return QualityGate(rules=RuleRegistry(*rules), fits=judge, project=project, sandbox=sandbox, memory=memory, **more)


class NoSandbox:
    """Where nothing can be run."""

    caveat = ""

    async def run(self, job: Job, *, progress: Any = None) -> Ran:
        raise AssertionError("nothing is run here")

    async def trial(self) -> str:
        return "there is no sandbox here"


@dataclass
class Led:
    """A run that agents are led through."""

    stage: Stage
    guide: Guide
    run: str

    async def next(self, agent: str = "", *, within_s: float = 10) -> RunForAgent:
        """What an agent is to do next; claimed, if it names itself."""
        seen = await self.guide.look(self.run, agent=agent, within_s=within_s)
        return await self.guide.take(seen, agent, actor=CLAUDE) if agent else seen

    async def submit(self, step: str, output: Any = None, **more: Any) -> Verdict:
        """Submit a step; by default as done."""
        return await self.guide.submit(self.run, Submission(step=step, output=output, **more), actor=CLAUDE)

    async def fail(self, step: str, note: str = "") -> Verdict:
        """Say that a step could not be done."""
        return await self.submit(step, outcome=Outcome.FAILED, note=note)

    async def now(self) -> Run:
        """The run as it stands, when handrail has done what is its own."""
        return await self.stage.worker.settled(self.run)

    async def act(self, action: Action, **more: Any) -> Run:
        """Control the run, as a person."""
        return await self.stage.control.act(self.run, action, actor=ADA, reason="so be it", **more)

    async def events(self) -> list[Event]:
        """All events of the run."""
        return await self.stage.events(self.run)


class Slow:
    """A store in memory that takes its time, so that callers get in each other's way as with a disk."""

    def __init__(self) -> None:
        self.store = MemoryStore()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    async def read(self, *args: Any, **more: Any) -> Any:
        await asyncio.sleep(0.001)
        return await self.store.read(*args, **more)

    async def append(self, *args: Any, **more: Any) -> None:
        await asyncio.sleep(0.01)
        await self.store.append(*args, **more)


async def led(
    definition: Definition,
    inputs: Mapping[str, Any] | None = None,
    *,
    puppets: Sequence[Puppet] = (),
    is_slow: bool = False,
) -> Led:
    """A run that has begun, and waits for an agent or handrail's own steps."""
    stage = Stage(*puppets, store=Slow() if is_slow else None)
    await stage.open()
    run = await stage.start(definition, inputs)
    await asyncio.sleep(0)
    return Led(stage, guide_of(stage), run.id)
