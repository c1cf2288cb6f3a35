"""What does an agent wait for, and what does it pay? `handrail mcp` beside the least server that the SDK can make.

    python bench/agents.py [--rounds 9] [--steps 1000] [--calls 10000]

Cold start and first call in turns, so that neighbours in time are compared; then guided calls from the first step of a
long run to the last, every tool, the tokens of lists and answers (characters / 4), and memory over many calls."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.bars import exit_code, miss

HERE: Final = Path(__file__).parent
HANDRAIL: Final = [sys.executable, "-m", "handrail", "mcp"]
LEAST: Final = [sys.executable, str(HERE / "peers" / "sdk_server.py")]
MODERN: Final = "2026-07-28"
META: Final = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
}
TOOLSETS: Final = ("guide", "run", "journal")
TOOL_CALLS: Final = 300
WARM_CALLS: Final = 1_000
LONGER: Final = {"control (pause, resume)": 10, "execute_plan (wait)": 20}
"""Two calls in one, and one that waits for a whole run with its own syncs: what they may take."""


class Pipe:
    """A server in a process of its own, and the client's end of its pipes."""

    def __init__(self, command: Sequence[str], home: Path) -> None:
        environment = {**os.environ, "HANDRAIL_HOME": str(home / "home"), "HANDRAIL_PROJECT": str(home)}
        self.began = time.perf_counter()
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
        )
        self.number = 0

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        self.number += 1
        request = {"jsonrpc": "2.0", "id": self.number, "method": method, "params": {**params, "_meta": META}}
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(request).encode() + b"\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        assert answer["id"] == self.number, answer
        result: dict[str, Any] = answer["result"]
        return result

    def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        return self.ask("tools/call", name=name, arguments=arguments)

    def data(self, name: str, **arguments: Any) -> dict[str, Any]:
        answer = self.call(name, **arguments)
        assert not answer.get("isError"), answer
        data: dict[str, Any] = answer["structuredContent"]
        return data

    def since_start_ms(self) -> float:
        return (time.perf_counter() - self.began) * 1_000

    def memory_mb(self) -> float:
        status = Path(f"/proc/{self.process.pid}/status")
        lines = status.read_text().splitlines() if status.exists() else []
        return next((int(line.split()[1]) / 1_024 for line in lines if line.startswith("VmRSS")), float("nan"))

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(60)


def main() -> None:
    parser = ArgumentParser()
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--steps", type=int, default=1_000)
    parser.add_argument("--calls", type=int, default=10_000)
    asked = parser.parse_args()
    print(f"{'':58}{'figure':>12}{'target':>12}")
    with tempfile.TemporaryDirectory() as folder:
        home = project(Path(folder), asked.steps)
        starts(home, asked.rounds)
        tokens(home)
        pipe = Pipe(HANDRAIL, home)
        try:
            pipe.call("status")
            guided(pipe, asked.steps)
            tools(pipe)
        finally:
            pipe.close()
        memory(home, asked.calls)


def project(folder: Path, steps: int) -> Path:
    workflows = folder / ".handrail" / "workflows"
    workflows.mkdir(parents=True)
    long = "".join(f"  - {{id: s{number}, prompt: 'Do number {number}.'}}\n" for number in range(steps))
    (workflows / "long.yaml").write_text(f"id: long\nname: A long one\nsteps:\n{long}")
    (workflows / "short.yaml").write_text("id: short\nname: A short one\nsteps: [{id: a, prompt: x}]\n")
    return folder


def show(title: str, figure: float, target: float | None, unit: str = "", *, least: bool = False) -> None:
    missed = target is not None and (figure < target if least else figure > target)
    goal = f"{target:9.4g} {unit:2}" if target is not None else ""
    if missed:
        miss(title)
    print(f"{title:58}{figure:9.4g} {unit:2}{goal:>12}{'   MISSED' if missed else ''}", flush=True)


def starts(home: Path, rounds: int) -> None:
    Pipe(HANDRAIL, home).close()
    warm = Pipe(HANDRAIL, home)  # takes the snapshot that later starts answer from
    warm.call("status")
    time.sleep(1.5)
    warm.close()
    listed: dict[str, list[float]] = {"handrail": [], "least": []}
    called: dict[str, list[float]] = {"handrail": [], "least": []}
    idle: dict[str, list[float]] = {"handrail": [], "least": []}
    for _ in range(rounds):
        for name, command in (("least", LEAST), ("handrail", HANDRAIL)):
            pipe = Pipe(command, home)
            pipe.ask("server/discover")
            pipe.ask("tools/list")
            listed[name].append(pipe.since_start_ms())
            pipe.call("status")
            called[name].append(pipe.since_start_ms())
            idle[name].append(pipe.memory_mb())
            pipe.close()
    pairs = {
        name: list(zip(times["handrail"], times["least"], strict=True))
        for name, times in (("listed", listed), ("called", called), ("idle", idle))
    }
    ratios = {name: statistics.median(ours / theirs for ours, theirs in both) for name, both in pairs.items()}
    show("start to tools/list, handrail", statistics.median(listed["handrail"]), None, "ms")
    show("start to tools/list, the SDK's least server", statistics.median(listed["least"]), None, "ms")
    show("  ratio", ratios["listed"], 1 / 6)
    show("start to first call answered, handrail", statistics.median(called["handrail"]), None, "ms")
    show("start to first call answered, the SDK's least server", statistics.median(called["least"]), None, "ms")
    show("  ratio", ratios["called"], 1.3)
    show("memory after the first call, handrail", statistics.median(idle["handrail"]), None, "MB")
    show("memory after the first call, the SDK's least server", statistics.median(idle["least"]), None, "MB")
    show("  ratio", ratios["idle"], 1.4)


def tokens(home: Path) -> None:
    pipe = Pipe(HANDRAIL, home)
    show("tokens of the tool list, all 14", size(pipe.ask("tools/list")["tools"]), 3_000)
    answer = pipe.call("workflow_next", workflow="short")
    run = answer["structuredContent"]["run"]
    show("tokens of a step answer without any words, text", len(answer["content"][0]["text"]) / 4, 60)
    show("tokens of a step answer without any words, data", size(answer["structuredContent"]), None)
    pipe.data("control", run=run, action="cancel", reason="measured")
    pipe.close()
    for toolset in TOOLSETS:
        pipe = Pipe([*HANDRAIL, "--toolsets", toolset], home)
        show(f"tokens of the tool list, {toolset} alone", size(pipe.ask("tools/list")["tools"]), 1_300)
        pipe.close()


def size(value: Any) -> float:
    return len(json.dumps(value, separators=(",", ":"), ensure_ascii=False)) / 4


def guided(pipe: Pipe, steps: int) -> None:
    run = pipe.data("workflow_next", workflow="long", goal="measure it")["run"]
    took = [timed(partial(pipe.data, "workflow_next", run=run, step=f"s{n}", output={"n": n})) for n in range(steps)]
    tenth = max(1, steps // 10)
    show(f"guided call, durable, {steps} steps, p50", quantile(took, 0.5), 5, "ms")
    show("guided call, p99", quantile(took, 0.99), 20, "ms")
    show("  last tenth by the first", statistics.median(took[-tenth:]) / statistics.median(took[:tenth]), 1.2)


def timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1_000


def quantile(values: Sequence[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def tools(pipe: Pipe) -> None:
    plan = {"name": "bench", "steps": [{"id": "v", "tool": "value.set", "args": {"value": 1}}]}
    pipe.data("save_plan", plan=plan)
    pipe.data("record_plan", plan={"name": "noted", "steps": ["one", "two"]})
    run = pipe.data("workflow_next", workflow="short")["run"]
    noted = pipe.data("record_execution_start", plan="noted")["run"]
    number = iter(range(10**9))
    calls: dict[str, Callable[[], object]] = {
        "workflow_list": lambda: pipe.data("workflow_list", query="a long one"),
        "workflow_get": lambda: pipe.data("workflow_get", id="short"),
        "workflow_next (resume)": lambda: pipe.data("workflow_next", run=run),
        "workflow_validate": lambda: pipe.data("workflow_validate", definition=plan),
        "save_plan": lambda: pipe.data("save_plan", plan={**plan, "description": str(next(number))}),
        "execute_plan (wait)": lambda: pipe.data("execute_plan", plan="bench", wait="5s"),
        "status": lambda: pipe.data("status", run=run, detail="full"),
        "control (pause, resume)": lambda: _paused(pipe, run),
        "record_execution_start": lambda: pipe.data("record_execution_start", plan="noted"),
        "record_decision": lambda: pipe.data("record_decision", run=noted, decision=str(next(number)), reason="r"),
        "record_action": lambda: pipe.data("record_action", run=noted, description=str(next(number))),
        "query_ledger": lambda: pipe.data("query_ledger", run=noted, limit=20),
    }
    for name, call in calls.items():
        took = [timed(call) for _ in range(TOOL_CALLS)]
        show(f"{name}, p50", quantile(took, 0.5), LONGER.get(name, 5), "ms")
        show(f"{name}, p99", quantile(took, 0.99), None, "ms")


def _paused(pipe: Pipe, run: str) -> None:
    pipe.data("control", run=run, action="pause", reason="p")
    pipe.data("control", run=run, action="resume", reason="r")


def memory(home: Path, calls: int) -> None:
    pipe = Pipe(HANDRAIL, home)
    run = pipe.data("workflow_next", workflow="short")["run"]
    before = 0.0
    for number in range(calls):
        pipe.data("record_decision", run=run, decision=f"number {number}", reason="measured")
        if number == WARM_CALLS:
            before = pipe.memory_mb()
    show(f"memory after {calls} calls", pipe.memory_mb(), None, "MB")
    show(f"  by that after {WARM_CALLS}", pipe.memory_mb() / before, 1.1)
    pipe.close()


if __name__ == "__main__":
    main()
    raise SystemExit(exit_code())
