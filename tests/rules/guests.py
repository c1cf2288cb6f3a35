"""Plugin rules for tests: entries of rules in the folder hostile/, their sandbox, and a setting to apply them in."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from handrail.domain.checks.rule import Given, Reads, RuleCard
from handrail.engine.checking.rule import Setting
from handrail.engine.sandbox import Job, Ran, Sandbox
from handrail.rules.plugins.plugin_discovery import visible
from handrail.rules.plugins.plugin_rule import PluginRule, PluginSandbox, RuleEntry
from outside.debian import bubblewrap

HOSTILE = Path(__file__).parent / "hostile"


def door(name: str, value: str = "", *, folder: Path = HOSTILE, **more: Any) -> RuleEntry:
    """Where a rule is, as its package's metadata would say."""
    value = value or f"hostile_rules:{name}"
    return RuleEntry(name=name, value=value, package="hostile", version="6.6", path=(str(folder),), **more)


def cell(project: Path, *, private: Sequence[Path] = (), read: Sequence[Path] = ()) -> Sandbox:
    """A real sandbox; the test is left out where there is none."""
    program = str(bubblewrap())
    from handrail.tools.sandbox.bubblewrap import Bubblewrap  # Linux only

    return Bubblewrap(project, program=program, private=private, read=[*visible([door("any")]), *read])


def guest(name: str, house: PluginSandbox, **card: Any) -> PluginRule:
    """A hostile rule that was met before."""
    made = RuleCard(
        **{
            "name": name,
            "summary": "",
            "parameters": {"target": {"type": "string"}},
            "reads": Reads.PROJECT,
            "timeout": "10s",
            "origin": "hostile 6.6",
            **card,
        }
    )
    return PluginRule(made, door(name), house)


def setting(project: Path, sandbox: Sandbox, output: Any = None, *, private: Sequence[Path] = ()) -> Setting:
    given = Given(output=output, evaluate=lambda _: None, fits=lambda *_: ())
    return Setting(given=given, project=project, private=tuple(private), sandbox=sandbox)


class Said:
    """A sandbox with prepared results."""

    caveat = ""

    def __init__(self, *answers: Ran | Exception | str, why_not: str = "") -> None:
        self.answers = list(answers)
        self.jobs: list[Job] = []
        self.why_not = why_not

    async def run(self, job: Job, *, progress: Any = None) -> Ran:
        self.jobs.append(job)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return Ran(exit=0, stdout=answer, stderr="", took_ms=1) if isinstance(answer, str) else answer

    async def trial(self) -> str:
        return self.why_not
