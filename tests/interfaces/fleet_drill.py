"""A fleet drill: three workers on a real PostgreSQL, a load of runs, and everything that goes wrong in a data centre.

    make fleet          (python tests/interfaces/fleet_drill.py [RUNS] [temporal|absurd|local])

Runs are placed by a real Temporal server, unless another host is named. Both servers come out of wheels.
One worker is killed (kill -9), one is stopped past its lease and goes on later (SIGSTOP, SIGCONT), the database is
restarted without a word. Then the journal is verified and what the runs did to a server outside is counted."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from handrail.assembly.moving import admit_node, node_key
from handrail.assembly.opening import StoreReader, open_reader, open_store, open_writer
from handrail.assembly.tools import toolbox_of
from handrail.domain.definition.authoring import definition_from
from handrail.domain.run.command import StartRun
from handrail.runs import start_for_a_worker
from handrail.settings import Settings, read_settings
from handrail.storage.project_registry import ProjectRegistry
from hosts.fleet import install_absurd
from hosts.servers import DevTemporal, OwnPostgres, missing

LEASE = "3s"
STEPS = ("one", "two", "three", "four")
WITHIN_S = 300.0
OUTAGE_S = 2.0
NAMES = ("alpha", "beta", "gamma")


HOSTS = ("temporal", "absurd", "local")


class Drilled(NamedTuple):
    """What was left of it."""

    runs: int
    completed: int
    steps_completed_twice: int
    effects_missing: int
    effects_repeated: int
    """Under their key: the node that made the call was killed before it knew the answer."""
    broken: int
    workers: int
    """How many of the workers completed steps."""
    took_s: float


def until(holds: Callable[[], Any], within_s: float = WITHIN_S) -> None:
    """Wait until something is the case."""
    deadline = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline, "it never came to that"
        time.sleep(0.05)


@contextmanager
def world() -> Iterator[tuple[int, Counter[str]]]:
    """A server outside: its port, and how often each effect was asked for."""
    effects: Counter[str] = Counter()
    turn = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            with turn:
                effects[self.path] += 1
            time.sleep(0.05)  # long enough that a kill hits calls that are under way
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        listening.daemon_threads = True
        threading.Thread(target=listening.serve_forever, daemon=True).start()
        try:
            yield listening.server_address[1], effects
        finally:
            listening.shutdown()


def machine(folder: Path, name: str, url: str, port: int, host: str) -> Settings:
    """A home and a folder of its own, which may call the world."""
    home, project = folder / name / "home", folder / name / "project"
    for one in (home, project):
        one.mkdir(parents=True)
    (home / "config.toml").write_text(f'lease = "{LEASE}"\n[http]\nallow = ["127.0.0.1:{port}"]\n', encoding="utf-8")
    return read_settings({"home": str(home), "project": str(project), "store": url}, {"HANDRAIL_HOST": host})


async def joined(machines: list[Settings]) -> str:
    """Make the store, admit all machines, and let them serve one project: its id."""
    first, *others = machines
    async with open_store(first) as opened:
        project = opened.writer(first).reader.project
    for name, other in zip(NAMES[1:], others, strict=True):
        await admit_node(first, node_key(other), name=name, actor="person:drill")
        ProjectRegistry(other.home).join(project.id, other.project)
    return project.id


async def load(settings: Settings, port: int, runs: int) -> list[str]:
    """Start runs that some node executes."""
    url = f"http://127.0.0.1:{port}/{{{{ inputs.number }}}}/"
    plan = {
        "id": "load",
        "inputs": {"number": {"type": "integer"}},
        "steps": [
            {"id": step, "tool": "http.request", "args": {"method": "POST", "url": url + step}, "idempotent": True}
            for step in STEPS
        ],
    }
    toolbox = toolbox_of(settings)
    try:
        async with open_writer(settings) as writer:
            started = [
                await start_for_a_worker(
                    writer.dispatch,
                    toolbox,
                    definition_from(plan),
                    {"number": number},
                    actor="person:d",
                    ask=StartRun(),
                )
                for number in range(runs)
            ]
    finally:
        await toolbox.close()
    return [run.id for run in started]


def worker(settings: Settings, url: str) -> subprocess.Popen[bytes]:
    """A worker of a machine, as a process of its own."""
    environment = {**os.environ, "HANDRAIL_HOME": str(settings.home), "HANDRAIL_STORE": url}
    environment["HANDRAIL_HOST"] = settings.choices.host
    with (settings.home / "worker.log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "handrail", "worker", "--slots", "8"],
            cwd=settings.project,
            env=environment,
            stdout=log,
            stderr=log,
        )


async def counted(look: StoreReader) -> Counter[str]:
    """How many runs are in which state."""
    counts: Counter[str] = Counter()
    for one in await look.store.run_counts():
        counts[one.status] += one.runs
    return counts


def drill_here(runs: int, say: Callable[[str], None], host: str = HOSTS[0]) -> Drilled:
    """The same in a folder of its own: with a short name, because of the socket, that another user may pass through."""
    with tempfile.TemporaryDirectory(prefix="handrail-fleet-") as folder:
        Path(folder).chmod(0o755)
        (Path(folder) / "pg").mkdir()
        return drill(Path(folder), runs, say, host)


def drill(folder: Path, runs: int, say: Callable[[str], None], host: str) -> Drilled:
    """Do all of it in a folder; what it says is for people."""
    started = time.monotonic()
    with ExitStack() as stack:
        port, effects = stack.enter_context(world())
        database = OwnPostgres(folder / "pg", is_durable=True)
        stack.callback(database.stop)
        database.start()
        url = database.url("postgres")
        say(f"PostgreSQL is up, out of a wheel, with {runs} runs of {len(STEPS)} calls to come")
        address = hosted(stack, folder, url, host)
        say(f"runs are placed by {address}")
        machines = [machine(folder, name, url, port, address) for name in NAMES]
        asyncio.run(joined(machines))
        workers = [worker(one, url) for one in machines]
        for one in workers:
            stack.callback(_end, one)
        asyncio.run(load(machines[0], port, runs))
        say(f"{runs} runs are started, and 3 workers are up")
        _trouble(workers, database, effects, runs * len(STEPS), say)
        left = asyncio.run(_finished(machines[0], runs))
        say(f"{left['completed']} of {runs} runs have completed")
        return asyncio.run(_result(machines[0], runs, effects, time.monotonic() - started))


def hosted(stack: ExitStack, folder: Path, url: str, host: str) -> str:
    """Start what a host needs; what HANDRAIL_HOST is then."""
    if host == "absurd":
        asyncio.run(install_absurd(url))
    if host != "temporal":
        return host
    temporal = DevTemporal(folder)
    stack.callback(temporal.stop)
    temporal.start()
    return temporal.address


def _trouble(
    workers: list[subprocess.Popen[bytes]],
    database: OwnPostgres,
    effects: Counter[str],
    expected: int,
    say: Callable[[str], None],
) -> None:
    killed, stopped, _ = workers
    until(lambda: len(effects) >= expected // 6)
    killed.kill()
    killed.wait()
    say(f"after {len(effects)} effects: worker {NAMES[0]} is killed (kill -9)")
    until(lambda: len(effects) >= expected // 3)
    stopped.send_signal(signal.SIGSTOP)
    say(f"after {len(effects)} effects: worker {NAMES[1]} is stopped (SIGSTOP), past its lease of {LEASE}")
    time.sleep(1)
    database.stop()
    say(f"after {len(effects)} effects: the database is gone, for {OUTAGE_S:.0f} s")
    time.sleep(OUTAGE_S)
    database.start()
    say("the database is back")
    time.sleep(4)
    stopped.send_signal(signal.SIGCONT)
    say(f"after {len(effects)} effects: worker {NAMES[1]} goes on (SIGCONT), and finds that its runs are with others")


async def _finished(settings: Settings, runs: int) -> Counter[str]:
    """Wait until no run is open."""
    deadline = time.monotonic() + WITHIN_S
    async with open_reader(settings) as look:
        while (counts := await counted(look))["completed"] < runs and time.monotonic() < deadline:
            await asyncio.sleep(0.2)
    return counts


async def _result(settings: Settings, runs: int, effects: Counter[str], took_s: float) -> Drilled:
    async with open_reader(settings) as look:
        done: Counter[tuple[str, str | None]] = Counter()
        workers: set[str] = set()
        async for batch in look.store.scan():
            completed = [one.record for one in batch if one.record.kind == "step_completed"]
            done.update((one.stream, one.step) for one in completed)
            workers |= {one.actor for one in completed}
        verdict = await look.verify(replay=True)
        counts = await counted(look)
    expected = {f"/{number}/{step}" for number in range(runs) for step in STEPS}
    return Drilled(
        runs=runs,
        completed=counts["completed"],
        steps_completed_twice=sum(times > 1 for times in done.values()),
        effects_missing=len(expected - effects.keys()),
        effects_repeated=sum(times - 1 for times in effects.values()),
        broken=len(verdict.breaks),
        workers=len(workers),
        took_s=took_s,
    )


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGCONT)
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def main(runs: int, host: str) -> int:
    """The drill as a command: 0 if nothing was lost."""
    if host not in HOSTS or missing(host):
        sys.stderr.write(f"{missing(host) if host in HOSTS else f'there is no host {host}: {HOSTS}'}\n")
        return 1
    found = drill_here(runs, lambda text: print(text, flush=True), host)  # noqa: T201 (a command for people)
    for name, value in found._asdict().items():
        sys.stdout.write(f"  {name.replace('_', ' '):24} {value:g}\n")
    is_lost = found.completed < runs or found.steps_completed_twice or found.effects_missing or found.broken
    sys.stdout.write("something was lost\n" if is_lost else "nothing was lost: the journal is verified\n")
    return 1 if is_lost else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 120, sys.argv[2] if len(sys.argv) > 2 else HOSTS[0]))
