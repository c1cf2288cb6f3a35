"""How long does an author wait? A 50-step workflow of about 40 kB: read, validated and analysed; then again.

Also what importing the core costs a process that starts. All figures are CPU time, medians.
Run: python bench/loading.py"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Mapping
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from handrail.domain.analysis.local import KnownTool, Local, LocalTools
from handrail.domain.definition.model import Effect
from handrail.library.loading import Loaded, load_definition

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.bars import exit_code, miss

CORE: Final = "handrail.assembly"
LOADER: Final = "handrail.library.loading"

STEPS: Final = 50
REPEATS: Final = 25
STARTS: Final = 15
EFFECTS: Final = {"git.create_tag": Effect.COMPENSATABLE, "git.delete_tag": Effect.NONE, "ci.build": Effect.NONE}
LOCAL: Final = Local(tools=LocalTools(tools={name: KnownTool(effect=effect) for name, effect in EFFECTS.items()}))

HEAD: Final = """\
id: bench
version: 1.0.0
inputs:
  version: {type: string}
  targets: {type: array, items: {type: string}}
steps:
"""
PROSE: Final = "Read what is there, change little, and say what you did and why. " * 9
KINDS: Final = (
    """\
  - id: sNUMBER
    title: Step NUMBER of the release
    prompt: |
      Work on {{ inputs.version }}; before: {{ BEFORE }}.
      PROSE
    output: {type: object, required: [file], properties: {file: {type: string}}}
    checks:
      - {rule: file_exists, path: '{{ output.file }}', severity: critical}
""",
    """\
  - id: sNUMBER
    tool: git.create_tag
    args: {name: 'v{{ inputs.version }}', message: 'After {{ BEFORE }}: PROSE'}
    undo: {tool: git.delete_tag, args: {name: 'v{{ inputs.version }}'}}
    timeout: 30s
    retry: {attempts: 5, first: 1s, factor: 2, max: 60s}
""",
    """\
  - id: sNUMBER
    each: inputs.targets
    as: target
    max: 50
    steps:
      - {id: make, tool: ci.build, args: {target: '{{ target }}', round: '{{ index }}'}}
      - id: look
        prompt: |
          See {{ steps.sNUMBER.make.output }}.
          PROSE
""",
    """\
  - id: sNUMBER
    approve: |
      Go on with {{ inputs.version }}?
      PROSE
    by: [leads]
    expires: 24h
    when: inputs.targets != []
""",
)

FIRST_MS_MAX: Final = 60.0
AGAIN_MS_MAX: Final = 1.0
IMPORT_MS_MAX: Final = 150.0


def survey(_tools: Collection[str], _rules: Collection[str]) -> Local:
    return LOCAL


def main() -> None:
    text = workflow(STEPS)
    check(load_definition(text, name="bench.yaml", survey=survey))
    number = count()
    first = median_ms(lambda: load_definition(f"{text}# {next(number)}\n", name="bench.yaml", survey=survey), REPEATS)
    again = median_ms(lambda: load_definition(text, name="bench.yaml", survey=survey), REPEATS)
    print(f"{f'{STEPS} steps, {len(text) / 1000:.0f} kB; CPU time':44}{'figure':>12}{'target':>12}")
    for title, figure, target in (
        ("read, validated and analysed", first, FIRST_MS_MAX),
        ("the same text again", again, AGAIN_MS_MAX),
        ("import of the core, over a bare interpreter", import_ms(CORE), IMPORT_MS_MAX),
        ("import of the core and the loader", import_ms(CORE, LOADER), IMPORT_MS_MAX),
    ):
        print(f"{title:44}{figure:9.2f} ms{target:9.0f} ms{'' if figure <= target else '   MISSED'}")
        if figure > target:
            miss(title)


def check(loaded: Loaded) -> None:
    assert loaded.is_valid, loaded.findings


def workflow(steps: int) -> str:
    """A workflow of all kinds of steps, with prompts as long as people write them."""
    return HEAD + "".join(step(number) for number in range(steps)) + "outputs: {tag: steps.s1.output}\n"


def step(number: int) -> str:
    before = f"steps.s{number - 1}.status" if number else "run.id"
    text = KINDS[number % len(KINDS)].replace("PROSE", PROSE)
    return text.replace("NUMBER", str(number)).replace("BEFORE", before)


def median_ms(work: Callable[[], object], repeats: int) -> float:
    return statistics.median(cpu_ms(work) for _ in range(repeats))


def cpu_ms(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return (time.process_time() - began) * 1000


def import_ms(*modules: str) -> float:
    """The CPU time of an interpreter that imports modules, less that of one that imports nothing; taking turns."""
    program = f"import {', '.join(modules)}"
    full: list[float] = []
    bare: list[float] = []
    with TemporaryDirectory() as folder:  # compiled code is kept, as it is where handrail is installed
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": folder, "PYTHONDONTWRITEBYTECODE": ""}
        child_ms(program, environment)
        for _ in range(STARTS):
            full.append(child_ms(program, environment))
            bare.append(child_ms("pass", environment))
    return statistics.median(full) - statistics.median(bare)


def child_ms(program: str, environment: Mapping[str, str]) -> float:
    before = children_s()
    subprocess.run([sys.executable, "-c", program], check=True, env=environment)
    return (children_s() - before) * 1000


def children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return float(used.ru_utime + used.ru_stime)


if __name__ == "__main__":
    main()
    raise SystemExit(exit_code())
