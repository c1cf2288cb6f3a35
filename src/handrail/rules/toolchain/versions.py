"""Versions of programs: each program is asked once, and again when it has changed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from handrail.engine.checking.rule import Setting
from handrail.engine.sandbox import Bounds, Job
from handrail.engine.tool import ToolFailed
from handrail.rules.toolchain.program import FoundProgram, environment, shown_for

KNOWN_MAX: Final = 200
TIME_MS: Final = 20_000
OUTPUT_BYTES: Final = 20_000
ASKED: Final = {"go": "version", "java": "-version", "javac": "-version"}
SILENT: Final = frozenset({"gofmt"})
"""Programs that can't print their version."""

_version = re.compile(r"(?<![\d.])(\d{1,6}\.\d[0-9A-Za-z+_-]{0,30}(?:\.[0-9A-Za-z+_-]{1,30}){0,3})")


@dataclass(frozen=True)
class Versions:
    """Asks programs for their versions, and caches the answers."""

    known: dict[str, str] = field(default_factory=dict)

    async def of(self, programs: Sequence[FoundProgram], setting: Setting) -> dict[str, str]:
        """The version of each program by name; empty if it does not print one."""
        return {program.name: await self._of(program, programs, setting) for program in programs}

    async def _of(self, program: FoundProgram, others: Sequence[FoundProgram], setting: Setting) -> str:
        key = program.identity
        if key not in self.known:
            if len(self.known) >= KNOWN_MAX:
                self.known.clear()
            self.known[key] = await _asked(program, others, setting)
        return self.known[key]


async def _asked(program: FoundProgram, others: Sequence[FoundProgram], setting: Setting) -> str:
    if program.version or program.name in SILENT:
        return program.version
    bounds = Bounds(time_ms=TIME_MS, output_bytes=OUTPUT_BYTES)
    argv = (str(program.path), ASKED.get(program.name, "--version"))
    programs = [program, *others]  # a script may need its interpreter
    job = Job(argv=argv, env=environment(programs, {}), bounds=bounds, writable=False, shows=shown_for(programs))
    try:
        ran = await setting.sandbox.run(job)
    except ToolFailed:
        return ""
    found = _version.search(ran.stdout) or _version.search(ran.stderr)
    return found[1] if found else ""
