"""What is the guide worth, and what does it cost? An agent that behaves badly, with the guide and without it.

    python bench/guidance.py [--seeds 2] [--steps 1000] [--workflows 500] [--only costs]

The agent is the one of tests/outside: by seeded randomness it submits rubbish, skips ahead, repeats itself, and forgets
everything. With the guide it works through every built-in workflow, and the journal tells what was done. Without it,
the same moods meet nothing but the list of the steps that are to be done: what it skips stays undone, what it repeats
is done twice, and after forgetting it goes on where it believes that it was, give or take two steps. That is a model of
an agent, not a measured one: compare the two with each other, and neither with a real model. Then: what three
workflows cost a worker that does the work for real and makes no mistake (tests/outside/walks), in calls and tokens
(characters / 4) that it writes and reads; the fixed share of what it reads is neither prompt, shape, guidance, question
nor finding. Last: whether a long guided run stays flat, and how long a large library takes to list and to search."""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Callable
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Final

from msgspec import Struct

from handrail.library.shelf.workflow_library import WorkflowLibrary

ROOT: Final = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from bench.agents import HANDRAIL, Pipe, quantile, show, timed  # noqa: E402 - found by the path above
from interfaces.mcp.surface.agent import Place  # noqa: E402
from outside.parts import Part, built_in_names, part_of  # noqa: E402
from outside.scripted_agent import AHEAD_MAX, OLD_MAX, Mood, Whims  # noqa: E402
from outside.walks.code import bug_fix, feature, review  # noqa: E402
from outside.walks.walk import walked_honestly  # noqa: E402
from outside.walks.workplace import Workplace  # noqa: E402
from outside.worlds import DONE, InMemory, events_of, is_as_scripted  # noqa: E402

GUESS: Final = 2
"""How far off an agent's guess is where it was, after it has forgotten everything."""
QUERIES: Final = ("fix a bug with a failing test", "review a pull request", "database", "how do I deploy this")
LOOKS: Final = 200
STEPS_OF_SHORT: Final = 2
WALKS: Final = [
    *(bug_fix.QUICK, bug_fix.NORMAL, bug_fix.THOROUGH),
    *(feature.QUICK, feature.NORMAL, feature.THOROUGH),
    *(review.QUICK, review.NORMAL, review.THOROUGH),
]
TARGETS: Final = {("bug-fix-test-first", "quick"): (9, 2_500), ("bug-fix-test-first", "normal"): (14, 4_000)}
"""Calls and tokens at most, by workflow and depth."""


class Tally(Struct):
    """What became of steps, over many runs."""

    steps: int = 0
    left_out: int = 0
    twice: int = 0
    badly: int = 0
    refused: int = 0

    def count(self, part: Part, done: Counter[str]) -> None:
        self.steps += len(part.for_agent)
        self.left_out += sum(not done[path] for path in part.for_agent)
        self.twice += sum(done[path] > 1 for path in part.for_agent)


def main() -> None:
    parser = ArgumentParser()
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--steps", type=int, default=1_000)
    parser.add_argument("--workflows", type=int, default=500)
    parser.add_argument("--only", choices=["costs"])
    asked = parser.parse_args()
    costs()
    if asked.only:
        return
    print(f"\n{'':58}{'figure':>12}{'target':>12}")
    worth(asked.seeds)
    with tempfile.TemporaryDirectory() as folder:
        flat(Path(folder), asked.steps)
    with tempfile.TemporaryDirectory() as folder:
        library(Path(folder), asked.workflows)


# --- what a workflow costs its worker -------------------------------------------------------------------------


def costs() -> None:
    """A table: the clean path of three workflows, at each depth."""
    print(f"{'clean path':34}{'calls':>7}{'writes':>8}{'reads':>8}{'tokens':>8}{'fixed':>8}{'at most':>16}")
    for walk in WALKS:
        depth = str(walk.inputs.get("depth", "normal"))
        with tempfile.TemporaryDirectory() as folder:
            cost = asyncio.run(walked_honestly(walk, Workplace(Path(folder), walk.files))).cost
        calls, tokens = TARGETS.get((walk.workflow, depth), (None, None))
        target = f"{calls} / {tokens:,}" if tokens else "-"
        print(
            f"{walk.workflow + ', ' + depth:34}{cost.calls:7}{cost.written / 4:8.0f}{cost.read / 4:8.0f}"
            f"{cost.tokens:8}{100 * cost.frame / cost.read:7.0f}%{target:>16}"
        )


# --- what it is worth -----------------------------------------------------------------------------------------


def worth(seeds: int) -> None:
    parts = [part for name in built_in_names() if (part := part_of(name)) is not None]
    with_guide, without = Tally(), Tally()
    for part in parts:
        for seed in range(seeds):
            asyncio.run(guided(part, f"{part.workflow} {seed}", with_guide))
            unguided(part, f"{part.workflow} {seed}", without)
    print(f"{len(parts)} workflows, {seeds} rounds each, {with_guide.steps} steps of the agent in all")
    for title, tally, target in (("with the guide", with_guide, 0.0), ("without it", without, None)):
        show(f"steps left out, {title}", share(tally.left_out, tally), target, "%")
        show(f"steps done twice, {title}", share(tally.twice, tally), target, "%")
        show(f"steps that rubbish was taken for, {title}", share(tally.badly, tally), target, "%")
    show("submissions that were refused or known, for 100 steps", share(with_guide.refused, with_guide), None)


def share(count: int, tally: Tally) -> float:
    return 100 * count / tally.steps


async def guided(part: Part, seed: str, tally: Tally) -> None:
    """The agent with the guide: what was done, the journal tells."""
    with tempfile.TemporaryDirectory() as folder:
        place = Place(Path(folder))
        async with place.serving(built_in="true") as server:
            world = InMemory(server, place.home, place.project)
            agent = world.agent(part, seed)
            run = await agent.start()
            await agent.work(run)
            async with world.connect() as line:
                events = await events_of(line, run, DONE)
    tally.count(part, Counter(event["step"] for event in events))
    tally.badly += sum(not is_as_scripted(event, part) for event in events)
    tally.refused += agent.refused


def unguided(part: Part, seed: str, tally: Tally) -> None:
    """The same agent with a list of what is to be done, and its memory."""
    whims, steps = Whims(seed), part.for_agent
    done: Counter[str] = Counter()
    place = 0
    while place < len(steps):
        mood = whims.mood()
        match mood:
            case Mood.AHEAD:
                place = min(place + whims.chance.randint(1, AHEAD_MAX), len(steps) - 1)
            case Mood.AGAIN | Mood.OTHERWISE if place:
                done[steps[whims.chance.randrange(max(0, place - OLD_MAX), place)]] += 1
                continue
            case Mood.TWICE:
                done[steps[place]] += 1
            case Mood.RUBBISH:
                tally.badly += 1
            case Mood.FORGET:
                place = guessed(whims, place, len(steps))
                continue
        done[steps[place]] += 1
        place += 1
        if mood is Mood.LOST:
            place = guessed(whims, place, len(steps))
    tally.count(part, done)


def guessed(whims: Whims, place: int, steps: int) -> int:
    return min(max(0, place + whims.chance.randint(-GUESS, GUESS)), steps)


# --- what it costs --------------------------------------------------------------------------------------------


def flat(folder: Path, steps: int) -> None:
    """A run of many steps, each with a shape, a check and the words of the one before."""
    workflows = folder / ".handrail" / "workflows"
    workflows.mkdir(parents=True)
    shape = "{type: object, required: [n, text], properties: {n: {type: integer}, text: {type: string}}}"
    check = "{rule: contains, of: text, text: number, severity: major}"
    lines = [
        f"  - {{id: s{n}, prompt: 'Do {n}.{before(n)}', output: {shape}, checks: [{check}]}}\n" for n in range(steps)
    ]
    (workflows / "long.yaml").write_text("id: long\nname: A long one\nsteps:\n" + "".join(lines))
    pipe = Pipe(HANDRAIL, folder)
    try:
        run = pipe.data("workflow_next", workflow="long")["run"]
        took = [timed(partial(submit, pipe, run, n)) for n in range(steps)]
        assert pipe.data("status", run=run)["status"] == "completed"
        verified = pipe.data("query_ledger", run=run, verify=True, limit=1)["verified"]
        assert verified["ok"], verified
    finally:
        pipe.close()
    tenth = max(1, steps // 10)
    show(f"guided step, durable, of {steps}, p50", quantile(took, 0.5), 5, "ms")
    show("  last tenth by the first", statistics.median(took[-tenth:]) / statistics.median(took[:tenth]), 1.2)


def before(number: int) -> str:
    return f" Before: {{{{ steps.s{number - 1}.output.text }}}}" if number else ""


def submit(pipe: Pipe, run: str, number: int) -> None:
    output = {"n": number, "text": f"this is number {number}"}
    answer = pipe.data("workflow_next", run=run, step=f"s{number}", output=output)
    assert answer["accepted"], answer


def library(folder: Path, count: int) -> None:
    """A library of copies of the built-in workflows, each under a name of its own, and one of short workflows."""
    workflows, kept = folder / ".handrail" / "workflows", folder / "home" / "cache" / "library.json"
    short = folder / "short"
    indexed(
        f"{count} short workflows, {copies(short, count, STEPS_OF_SHORT) / 1e6:.1f} MB", short, folder / "short.json"
    )
    title = f"{count} workflows, {copies(workflows, count) / 1e6:.1f} MB"
    indexed(title, workflows, kept)
    next(workflows.glob("*.yaml")).write_text("id: changed\nsteps: [{id: a, prompt: x}]\n")
    show(
        "  and one file changed meanwhile",
        timed(lambda: WorkflowLibrary([workflows], cache_file=kept).entries()),
        300,
        "ms",
    )
    case = WorkflowLibrary([workflows], cache_file=kept)
    case.entries()
    looks(title, "in process", case.search, lambda query: case.search(query))
    pipe = Pipe(HANDRAIL, folder)
    try:
        pipe.data("workflow_list")
        looks(
            title,
            "by an agent",
            lambda: pipe.data("workflow_list"),
            lambda query: pipe.data("workflow_list", query=query),
        )
    finally:
        pipe.close()


def indexed(title: str, workflows: Path, kept: Path) -> None:
    show(
        f"cold index of {title}, never seen",
        timed(lambda: WorkflowLibrary([workflows], cache_file=kept).entries()),
        300,
        "ms",
    )
    cold = [timed(lambda: WorkflowLibrary([workflows], cache_file=kept).entries()) for _ in range(5)]
    show("  as kept by another process", statistics.median(cold), 300, "ms")


def looks(title: str, who: str, every: Callable[[], object], found: Callable[[str], object]) -> None:
    listed = [timed(every) for _ in range(LOOKS)]
    searched = [timed(partial(found, QUERIES[number % len(QUERIES)])) for number in range(LOOKS)]
    show(f"list {title}, {who}, p50", quantile(listed, 0.5), 5, "ms")
    show(f"search {title}, {who}, p50", quantile(searched, 0.5), 5, "ms")
    show("  p99", quantile(searched, 0.99), None, "ms")


def copies(workflows: Path, count: int, steps: int | None = None) -> int:
    """Write so many workflows into a folder, with all their steps or only the first; how many characters it took."""
    workflows.mkdir(parents=True)
    own = Path(str(files("handrail.library").joinpath("workflows")))
    texts = [file.read_text("utf-8") for file in sorted(own.rglob("*.yaml")) if not file.name.endswith(".tests.yaml")]
    size = 0
    for number in range(count):
        head, _, rest = texts[number % len(texts)].partition("\n")
        if steps is not None:
            before, *parts = rest.split("\n  - id: ")
            rest = "\n  - id: ".join([before, *parts[:steps]]) + "\n"
        text = f"{head}-{number}\n{rest}"
        size += len(text)
        (workflows / f"w{number}.yaml").write_text(text, "utf-8")
    return size


if __name__ == "__main__":
    main()
