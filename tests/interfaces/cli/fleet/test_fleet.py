"""A fleet from the outside: two machines with homes and folders of their own, real processes, one PostgreSQL."""

from __future__ import annotations

import json
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from interfaces.fleet import Machine, machines, project_of
from interfaces.shell import until
from storage.postgres import server

pytestmark = pytest.mark.skipif(bool(server.MISSING), reason=server.MISSING or "-")

GOOD_SERVER = Path(__file__).parents[3] / "tools" / "mcp" / "good_server.py"
WRITES = "id: writes\nsteps:\n  - {id: note, tool: file.append, args: {path: out.txt, text: 'x'}}\n"


@pytest.fixture
def two(tmp_path: Path) -> tuple[Machine, Machine]:
    one, other = machines(tmp_path, "one", "other")
    return one, other


def test_a_project_is_joined_by_its_id_and_each_machine_works_in_its_own_folder(two: tuple[Machine, Machine]) -> None:
    one, other = two
    project = project_of(one)
    refused = other.run("project", "join", "prj_22222222")
    assert (refused.exit_code, "knows no project" in refused.stderr, project in refused.stderr) == (3, True, True)
    joined = other.json("project", "join", project)
    assert (joined["id"], Path(joined["folder"])) == (project, other.folder)
    assert other.json("project", "join", project) == joined
    run = one.json("run", "start", one.write(WRITES), "--detach")["run"]
    with other.process("worker", "--labels", "linux") as worker:
        until(lambda: one.json("run", "show", run)["status"] == "completed")
        assert (other.folder / "out.txt").read_text() == "x"
        assert not (one.folder / "out.txt").exists()
        (node,) = one.json("nodes")["nodes"]
        assert node["name"] == "other"  # as it was admitted, not as its machine is called
        assert "other" in one.run("nodes").output
        (row,) = [row for row in one.json("project", "list")["projects"] if row["id"] == project]
        assert (row["nodes"], row["served_by"]) == (1, [node["id"]])
        worker.send(signal.SIGTERM)
        assert worker.end()[0] == 0
    assert one.run("journal", "verify").exit_code == 0


def test_a_machine_takes_only_runs_of_projects_that_it_has_joined(two: tuple[Machine, Machine]) -> None:
    one, other = two
    run = one.json("run", "start", one.write(WRITES), "--detach")["run"]
    with other.process("worker"):
        until(lambda: other.json("nodes")["total"] == 1)
        assert one.json("run", "show", run)["status"] == "running"
        strays = [row["name"] for row in other.json("project", "list")["projects"] if row["id"] == project_of(one)]
        assert strays == ["(forgotten)"]  # no node serves it, so it could as well be that
        assert other.json("nodes")["waiting"] == 1
        hint = other.run("project", "list")
        assert f"handrail project join {project_of(one)}" in hint.output + hint.stderr
        refused = other.run("run", "resume", run)
        assert "handrail project join" in refused.stderr
    with one.process("worker"):
        until(lambda: one.json("run", "show", run)["status"] == "completed")
        refused = other.run("project", "adopt", run, "--yes")
        assert (refused.exit_code, "served by other nodes" in refused.stderr) == (6, True)
    assert (one.folder / "out.txt").read_text() == "x"


LABELLED = """\
id: labelled
on_failure: compensate
steps:
  - {id: before, tool: file.write, args: {path: before.txt, text: a}}
  - {id: train, tool: file.write, args: {path: model.bin, text: b}, runs_on: [gpu]}
  - {id: after, tool: file.write, args: {path: after.txt, text: c}}
"""
FAILING = LABELLED + "  - {id: broken, tool: file.read, args: {path: nothing-there.txt}}\n"


def test_a_step_runs_on_a_node_with_its_labels_and_a_wait_for_one_has_a_name(two: tuple[Machine, Machine]) -> None:
    one, other = two
    other.json("project", "join", project_of(one))
    with one.process("worker", "--labels", "linux"):
        run = one.json("run", "start", one.write(LABELLED), "--detach")["run"]
        waits = "waits for a node with gpu: none is up"
        until(lambda: one.json("run", "show", run).get("node") == waits)
        assert one.json("run", "show", run)["status"] == "running"
        (train,) = [step for step in one.json("run", "show", run, "--full")["steps"] if step["id"] == "train"]
        assert train["waits_for"] == [{"kind": "node", "reason": waits}]
        shown = other.run("run", "show", run)
        assert waits in shown.output
        assert "no process executes it" not in shown.output + shown.stderr
        (waiting,) = one.json("nodes")["by_label"]
        assert waiting == {"needs": "gpu", "runs": 1, "nodes": 0}
        with other.process("worker", "--labels", "gpu,linux"):
            until(lambda: one.json("run", "show", run)["status"] == "completed")
            one.json("nodes", "pause", "other")
            until(lambda: one.json("nodes")["nodes"][1]["beats"] > 2)
            # Who waits for a run does not wait for a person who may come back tomorrow.
            left = one.run("run", "start", one.write(LABELLED))
            assert "waits for a node with gpu: paused" in left.output + left.stderr
            assert "1 run waits for a node with gpu" in one.run("nodes").stderr
            one.json("nodes", "resume", "other")
    assert (one.folder / "before.txt").exists()
    assert (other.folder / "model.bin").exists()
    assert not (one.folder / "model.bin").exists()


def test_what_a_machine_did_is_undone_on_that_machine(two: tuple[Machine, Machine]) -> None:
    one, other = two
    other.json("project", "join", project_of(one))
    (one.folder / "before.txt").write_text("old")
    (other.folder / "model.bin").write_text("older")
    with one.process("worker", "--labels", "linux"), other.process("worker", "--labels", "gpu"):
        run = one.json("run", "start", one.write(FAILING), "--detach")["run"]
        until(lambda: one.json("run", "show", run)["status"] == "compensated")
    assert (one.folder / "before.txt").read_text() == "old"
    assert (other.folder / "model.bin").read_text() == "older"
    assert not (one.folder / "after.txt").exists()
    assert not (other.folder / "after.txt").exists()
    assert one.run("journal", "verify").exit_code == 0


SAYING = """\
id: saying
steps:
  - {id: say, tool: good.say, args: {words: [hello]}}
  - {id: command, tool: shell.run, args: {argv: ['true']}, retry: {attempts: 1}}
"""


def test_what_only_a_trusted_folder_may_start_is_done_where_somebody_trusts_it(two: tuple[Machine, Machine]) -> None:
    one, other = two
    other.json("project", "join", project_of(one))
    for machine in two:
        words = [str(GOOD_SERVER), str(machine.folder)]
        declared = {"mcpServers": {"good": {"command": sys.executable, "args": words, "effect": "none"}}}
        machine.write(json.dumps(declared), ".handrail/tools.json")
    other.json("trust", "--digest", other.json("trust", code=4)["digest"])
    run = other.json("run", "start", other.write(SAYING), "--detach")["run"]
    with one.process("worker"):
        until(
            lambda: one.json("run", "show", run).get("node") == "waits for a node with the tool server good: none is up"
        )
        with other.process("worker"):
            # The second step is allowed nowhere: it waits for a node, and fails on none of them.
            waits = "waits for a node with permission to run commands: none is up"
            until(lambda: one.json("run", "show", run).get("node") == waits)
            done = {step["id"]: step["status"] for step in one.json("run", "show", run, "--full")["steps"]}
            assert done["say"] == "completed"
            assert asked_for(one, run, "attempt_started", "command") == []


ASKING = """\
id: asking
inputs: {url: {type: string}}
steps:
  - {id: ask, tool: http.request, args: {method: POST, url: '{{ inputs.url }}'}}
  - {id: note, tool: file.append, args: {path: out.txt, text: 'x'}}
"""


def test_a_worker_that_is_stopped_ends_its_call_and_hands_the_run_over(two: tuple[Machine, Machine]) -> None:
    one, other = two
    other.json("project", "join", project_of(one))
    with a_slow_server() as (port, asked, answer):
        one.configure(f'lease = "3s"\n[http]\nallow = ["127.0.0.1:{port}"]\n')
        with one.process("worker") as first:
            url = f"url=http://127.0.0.1:{port}/"
            run = one.json("run", "start", one.write(ASKING), "--detach", "--input", url)["run"]
            assert asked.wait(30)
            first.send(signal.SIGTERM)
            until(lambda: one.json("nodes")["nodes"][0]["state"] == "draining")
            with other.process("worker"):
                until(lambda: len(one.json("nodes")["nodes"]) == 2)
                assert one.json("run", "show", run)["status"] == "running"
                answer.set()
                assert first.end()[0] == 0
                until(lambda: one.json("run", "show", run)["status"] == "completed")
        assert len(asked_for(one, run, "attempt_started", "ask")) == 1
    assert (other.folder / "out.txt").read_text() == "x"
    assert not (one.folder / "out.txt").exists()


def test_a_second_signal_ends_a_worker_at_once(two: tuple[Machine, Machine]) -> None:
    one, _ = two
    with a_slow_server() as (port, asked, _):
        one.configure(f'lease = "3s"\n[http]\nallow = ["127.0.0.1:{port}"]\n')
        with one.process("worker", "--grace", "10m") as worker:
            url = f"url=http://127.0.0.1:{port}/"
            one.json("run", "start", one.write(ASKING), "--detach", "--input", url)
            assert asked.wait(30)
            worker.send(signal.SIGTERM)
            until(lambda: one.json("nodes")["nodes"][0]["state"] == "draining")
            worker.send(signal.SIGTERM)
            assert worker.end()[0] == -signal.SIGTERM


def test_ready_runs_are_shared_between_nodes_and_slots_bound_what_one_takes(two: tuple[Machine, Machine]) -> None:
    one, other = two
    other.json("project", "join", project_of(one))
    with a_slow_server() as (port, _, answer):
        for machine in two:
            machine.configure(f'lease = "3s"\n[http]\nallow = ["127.0.0.1:{port}"]\n')
        plan, url = one.write(ASKING), f"url=http://127.0.0.1:{port}/"
        with one.process("worker", "--slots", "2"), other.process("worker", "--slots", "3"):
            until(lambda: one.json("nodes")["total"] == 2)
            runs = [one.json("run", "start", plan, "--detach", "--input", url)["run"] for _ in range(6)]
            until(lambda: sorted(node.get("used", 0) for node in one.json("nodes")["nodes"]) == [2, 3])
            assert one.json("nodes")["waiting"] == 1
            waits = "waits for a node that serves its project: all slots are taken"
            assert [one.json("run", "show", run).get("node") for run in runs].count(waits) == 1
            answer.set()
            until(lambda: all(one.json("run", "show", run)["status"] == "completed" for run in runs))
    texts = [(machine.folder / "out.txt").read_text() for machine in two]
    assert sum(map(len, texts)) == 6


def asked_for(machine: Machine, run: str, kind: str, step: str) -> list[dict[str, str]]:
    events = machine.json("journal", "show", run)["events"]
    return [event for event in events if event["kind"] == kind and event.get("step") == step]


@contextmanager
def a_slow_server() -> Iterator[tuple[int, threading.Event, threading.Event]]:
    """Its port, whether it was asked, and what lets it answer."""
    asked, answer = threading.Event(), threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.set()
            answer.wait(120)
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server_:
        server_.daemon_threads = True
        thread = threading.Thread(target=server_.serve_forever, daemon=True)
        thread.start()
        try:
            yield server_.server_address[1], asked, answer
        finally:
            answer.set()
            server_.shutdown()
