"""`handrail nodes` with real workers on one machine: who is up, what waits, and pausing."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from interfaces.shell import Shell, until

QUICK = "id: quick\nsteps:\n  - {id: note, tool: file.write, args: {path: 'out.txt', text: a}}\n"


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def test_a_worker_is_listed_paused_and_gone_when_it_ends(shell: Shell) -> None:
    shell.configure('lease = "2s"\n')
    plan = shell.write(QUICK)
    assert shell.json("nodes") == {"nodes": [], "total": 0, "waiting": 0, "by_label": []}
    with shell.process("worker", "--labels", "linux,gpu", "--slots", "2") as worker:
        until(lambda: shell.json("nodes")["total"] == 1)
        (node,) = shell.json("nodes")["nodes"]
        assert (node["state"], node["labels"], node["slots"]) == ("up", ["gpu", "linux"], 2)
        assert shell.run("nodes", "pause", "n-nobody").exit_code == 3
        paused = shell.json("nodes", "pause", node["id"])
        assert paused["state"] == "paused"
        assert "paused by person:" in shell.run("nodes").output
        until(lambda: shell.json("nodes")["nodes"][0]["beats"] > paused["beats"] + 1)
        run = shell.json("run", "start", plan, "--detach")["run"]
        (waiting,) = shell.json("nodes")["by_label"]
        assert (waiting["needs"], waiting["runs"]) == ("", 1)
        shell.json("nodes", "resume", node["id"])
        until(lambda: shell.json("run", "show", run)["status"] == "completed")
        worker.send(signal.SIGTERM)
        assert worker.end()[0] == 0
    assert shell.json("nodes")["nodes"] == []


def test_a_pause_outlives_its_process_and_a_killed_worker_is_not_listed_twice(shell: Shell) -> None:
    shell.configure('lease = "2s"\n')
    plan = shell.write(QUICK)
    with shell.process("worker") as worker:
        until(lambda: shell.json("nodes")["total"] == 1)
        node = shell.json("nodes")["nodes"][0]["id"]
        shell.json("nodes", "pause", node)
        worker.send(signal.SIGTERM)
        assert worker.end()[0] == 0
    (down,) = shell.json("nodes")["nodes"]
    assert (down["id"], down["state"]) == (node, "down")
    assert "down, paused by person:" in shell.run("nodes").output
    run = shell.json("run", "start", plan, "--detach")["run"]
    with shell.process("worker") as again:
        until(lambda: shell.json("nodes")["nodes"][0]["state"] == "paused")
        (node_again,) = [one["id"] for one in shell.json("nodes")["nodes"]]
        assert node_again == node
        assert shell.json("run", "show", run)["status"] == "running"
        again.send(signal.SIGKILL)
        again.end()
    with shell.process("worker") as last:
        until(lambda: shell.json("nodes")["nodes"][0]["state"] == "paused")
        assert shell.json("nodes")["total"] == 1
        assert shell.json("run", "show", run)["status"] == "running"
        shell.json("nodes", "resume", node)
        until(lambda: shell.json("run", "show", run)["status"] == "completed")
        last.send(signal.SIGTERM)
        assert last.end()[0] == 0
    assert shell.json("nodes")["nodes"] == []


def test_a_node_that_is_down_is_listed_until_it_is_resumed(shell: Shell) -> None:
    shell.configure('lease = "2s"\n')
    with shell.process("worker") as worker, shell.process("worker", "--labels", "gpu"):
        until(lambda: shell.json("nodes")["total"] == 2)
        (plain,) = [one["id"] for one in shell.json("nodes")["nodes"] if not one.get("labels")]
        shell.json("nodes", "pause", plain)
        worker.send(signal.SIGTERM)
        worker.end()
        until(lambda: {one["state"] for one in shell.json("nodes")["nodes"]} == {"up", "down"})
        shell.json("nodes", "resume", plain)
        (left,) = shell.json("nodes")["nodes"]
        assert left["labels"] == ["gpu"]


def test_a_label_that_is_none_is_refused_before_anything_starts(shell: Shell) -> None:
    refused = shell.run("worker", "--labels", "GPU!")
    assert refused.exit_code == 5
    assert "is not a label" in refused.output
