"""Runs from the command line: started, shown, controlled; words, JSON and exit codes."""

from __future__ import annotations

import getpass
import json
import re
from pathlib import Path
from typing import Any

import pytest

from handrail.interfaces.cli.run.view import EXIT_OF_STATUS, duration_words
from interfaces.shell import Shell

HELLO = """\
id: hello
inputs: {name: {type: string}, times: {type: integer, default: 1}}
steps:
  - {id: greet, tool: file.write, args: {path: hello.txt, text: 'Hello {{ inputs.name }}'}}
  - {id: count, tool: value.set, args: {value: '{{ inputs.times }}'}, after: []}
outputs: {file: steps.greet.output.path, times: steps.count.output}
"""
SLOWLY_UNDONE = """\
id: slowly-undone
steps:
  - {id: write, tool: file.write, args: {path: a.txt, text: a}}
  - {id: rest, tool: wait.for, args: {duration: 600ms}}
  - {id: ask, approve: 'Go on?'}
"""
ASKING = """\
id: asking
steps:
  - {id: write, tool: file.write, args: {path: a.txt, text: a}}
  - {id: go, approve: 'Go on?', by: [ann], expires: 1h}
  - {id: more, tool: file.write, args: {path: b.txt, text: b}}
"""
FAILING = """\
id: failing
on_failure: ask
steps:
  - {id: write, tool: file.write, args: {path: a.txt, text: a}}
  - {id: read, tool: file.read, args: {path: missing.txt}}
  - {id: last, tool: value.set, args: {value: 1}}
"""


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def start(shell: Shell, text: str, *words: str, code: int = 0) -> Any:
    return shell.json("run", "start", shell.write(text), *words, code=code)


def test_a_run_ends_with_its_outputs_and_its_id_comes_first(shell: Shell) -> None:
    file = shell.write(HELLO)
    result = shell.run("run", "start", file, "-i", "name=Ada")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert re.fullmatch(r"run_[a-z0-9]{8}", lines[0])
    assert lines[1] == f"{lines[0]}  hello  completed  2 of 2 steps done"
    assert (shell.folder / "hello.txt").read_text() == "Hello Ada"
    reply = start(shell, HELLO, "-i", "name=Bob", "--goal", "be polite", "--priority", "3")
    assert (reply["status"], reply["progress"]) == ("completed", {"done": 2, "total": 2})
    assert (reply["goal"], reply["priority"]) == ("be polite", 3)
    assert reply["outputs"] == {"file": "hello.txt", "times": 1}


def test_inputs_are_json_where_they_are_json_and_text_where_the_schema_says_so(shell: Shell) -> None:
    reply = start(shell, HELLO, "-i", "name=42", "-i", "times=3")
    assert reply["outputs"]["times"] == 3
    assert (shell.folder / "hello.txt").read_text() == "Hello 42"
    given = shell.write("name: Eve\ntimes: 7\n", "inputs.yaml")
    assert start(shell, HELLO, "-i", f"@{given}")["outputs"]["times"] == 7
    assert start(shell, HELLO, "-i", f"@{given}", "-i", "times=8")["outputs"]["times"] == 8


@pytest.mark.parametrize(
    ("words", "code", "sign"),
    [
        (("-i", "nam=Ada"), 5, "name"),
        (("-i", "name=Ada", "-i", "times=x"), 5, "times"),
        ((), 5, "name"),
        (("-i", "name"), 5, "name=value"),
        (("-i", "@nowhere.json"), 3, "JSON or YAML"),
    ],
)
def test_inputs_that_do_not_fit_are_refused_before_anything_starts(
    shell: Shell, words: tuple[str, ...], code: int, sign: str
) -> None:
    error = start(shell, HELLO, *words, code=code)["error"]
    assert sign in json.dumps(error)
    assert not shell.home.exists()


def test_inputs_in_a_file_must_have_names(shell: Shell) -> None:
    given = shell.write("[1, 2]", "inputs.json")
    assert "by name" in start(shell, HELLO, "-i", f"@{given}", code=5)["error"]["message"]


def test_a_tool_nobody_knows_is_refused_and_what_a_tool_gave_is_checked(shell: Shell) -> None:
    unknown = "id: x\nsteps: [{id: a, tool: file.wriet, args: {path: a, text: b}}]"
    assert "did you mean `file.write`" in json.dumps(start(shell, unknown, code=5))
    checked = "id: x\nsteps: [{id: a, tool: value.set, args: {value: 1}, checks: [{rule: equals, value: 2}]}]"
    failure = start(shell, checked, code=4)["failure"]
    assert (failure["step"], failure["category"]) == ("a", "tool_error")
    assert "it is 1, not 2" in failure["message"]


def test_a_run_starts_by_the_id_of_a_workflow_or_of_a_saved_plan(shell: Shell) -> None:
    old = HELLO.replace("id: hello\n", "id: hello\nversion: 1.0.0\n")
    shell.write(old, ".handrail/workflows/old.yaml")
    shell.write(old.replace("1.0.0", "1.1.0"), ".handrail/workflows/new.yaml")
    assert shell.json("run", "start", "hello", "-i", "name=Ada")["workflow"] == "hello@1.1.0"
    assert shell.json("run", "start", "hello@~1.0", "-i", "name=Ada")["workflow"] == "hello@1.0.0"
    shell.run("plan", "save", shell.write(HELLO.replace("id: hello", "id: greeting")))
    assert shell.json("run", "start", "greeting", "-i", "name=Ada")["workflow"] == "greeting"
    shell.run("plan", "retire", "greeting", "--reason", "old")
    assert shell.json("run", "start", "greeting", code=3)["error"]["name"] == "not_found"
    assert shell.json("run", "start", "helo", code=3)["error"]["hint"] == "did you mean `hello`?"


def test_a_saved_plan_whose_tools_are_gone_is_refused(shell: Shell) -> None:
    declared = shell.write('{"mcpServers": {"nowhere": {"command": "nowhere"}}}', ".handrail/tools.json")
    shell.json("plan", "save", shell.write("id: gone\nsteps: [{id: a, tool: nowhere.do}]"))
    Path(declared).unlink()
    assert "nowhere.do" in json.dumps(shell.json("run", "start", "gone", code=5))


def test_a_plan_may_come_from_stdin(shell: Shell) -> None:
    result = shell.run("run", "start", "-", "-i", "name=Ada", stdin=HELLO)
    assert result.exit_code == 0, result.output


def test_a_run_that_asks_ends_the_command_with_4_and_an_answer_lets_it_go_on(shell: Shell) -> None:
    reply = start(shell, ASKING, code=4)
    (asked,) = reply["waiting_for"]
    assert (reply["status"], asked["kind"], asked["step"], asked["text"]) == ("waiting", "approval", "go", "Go on?")
    (row,) = shell.json("approvals")["approvals"]
    assert (row["run"], row["step"], row["by"], row["text"]) == (reply["run"], "go", ["ann"], "Go on?")
    assert row["expires"] > row["since"]
    assert "Go on?" in shell.run("approvals").stdout
    assert f"handrail approve {reply['run']} go" in shell.run("run", "show", reply["run"]).stdout
    shell.configure(f'[groups]\nann = ["{getpass.getuser()}"]\n')
    result = shell.run("approve", reply["run"], "--reason", "looks good", "--watch", *shell.seen(reply["run"]))
    assert result.exit_code == 0, result.output
    assert "go: approved by person:" in result.stdout
    assert "write: started" not in result.stdout, "what was printed before is not printed again"
    assert (shell.folder / "b.txt").exists()
    assert shell.json("approvals") == {"approvals": [], "total": 0}
    assert "no pending approvals" in shell.run("approvals").stderr
    again = shell.json("approve", reply["run"], "go", "--reason", "again", "--digest", row["digest"], code=6)
    assert again["error"]["name"] == "conflict"


def test_a_no_is_a_failure_that_asks_what_to_do(shell: Shell) -> None:
    run = start(shell, ASKING, code=4)["run"]
    shell.configure(f'[groups]\nann = ["{getpass.getuser()}"]\n')
    reply = shell.json("reject", run, "go", "--reason", "not today", code=4)
    assert (reply["failure"]["category"], reply["failure"]["message"]) == ("permission", "not today")
    assert shell.json("run", "compensate", run, "--reason", "then not", code=9)["status"] == "compensated"
    assert not (shell.folder / "a.txt").exists()


def test_an_approval_needs_a_reason(shell: Shell) -> None:
    run = start(shell, ASKING, code=4)["run"]
    assert shell.run("approve", run).exit_code == 2
    empty = shell.json("approve", run, "--reason", " ", *shell.seen(run), code=5)
    assert empty["error"]["message"] == "a short reason is missing"


@pytest.mark.parametrize(
    ("policy", "code", "status"), [("ask", 4, "waiting"), ("stop", 1, "failed"), ("compensate", 9, "compensated")]
)
def test_how_a_failed_run_ends_is_in_the_exit_code(shell: Shell, policy: str, code: int, status: str) -> None:
    reply = start(shell, FAILING.replace("on_failure: ask", f"on_failure: {policy}"), code=code)
    assert reply["status"] == status
    assert (shell.folder / "a.txt").exists() is (policy != "compensate")


def test_an_undo_that_failed_ends_with_the_names_of_all_that_is_not_undone(shell: Shell) -> None:
    stuck = """\
id: stuck
on_failure: compensate
steps:
  - {id: first, tool: file.write, args: {path: a.txt, text: a}}
  - {id: second, tool: file.write, args: {path: b.txt, text: b}, undo: {tool: file.delete, args: {path: no.txt}}}
  - {id: read, tool: file.read, args: {path: missing.txt}}
"""
    run = start(shell, stuck, code=1)["run"]
    words = shell.run("run", "show", run, "--full").stdout
    assert "NOT undone: second, first" in words
    assert "; not undone because of that: first" in words
    assert re.search(r"first +completed .*NOT undone", words)


def test_a_failure_is_reported_with_commands_that_can_be_typed(shell: Shell) -> None:
    run = start(shell, FAILING, code=4)["run"]
    words = shell.run("run", "show", run, "--full").stdout
    assert "read failed (not_found)" in words
    (typed,) = re.findall(r"handrail (run skip .*?) --reason", words)
    assert shell.run(*typed.split(), "--reason", "not needed").exit_code == 0
    after = shell.json("run", "show", run)
    assert (after["status"], after["progress"]) == ("completed", {"done": 3, "total": 3, "skipped": 1})
    assert "steps ended" in shell.run("run", "list", "--all").stdout.splitlines()[0].lower()
    words = shell.run("run", "show", run, "--full").stdout
    assert "completed  2 of 3 steps done, 1 skipped" in words
    assert re.search(r"- read +skipped", words)


def test_a_step_in_a_round_is_named_so_that_shells_understand_it(shell: Shell) -> None:
    loop = "id: l\nsteps: [{id: l, each: '[1]', steps: [{id: r, tool: file.read, args: {path: no}}]}]"
    run = start(shell, loop, code=4)["run"]
    words = shell.run("run", "show", run).stdout
    assert f"handrail run retry {run} 'l[0].r' --reason" in words
    retry = shell.json("run", "show", run)["failure"]["options"][0]
    assert (retry["step"], retry["command"]) == ("l[0].r", f"handrail run retry {run} 'l[0].r' --reason '...'")
    assert shell.json("run", "skip", run, "l[0].r", "--reason", "x")["status"] == "completed"


def test_resuming_a_run_that_waits_for_a_person_says_so(shell: Shell) -> None:
    run = start(shell, "id: w\nsteps: [{id: go, approve: 'Go?'}]", code=4)["run"]
    assert shell.json("run", "resume", run, code=4)["waiting_for"][0]["step"] == "go"


def test_which_of_several_steps_is_meant_must_be_said(shell: Shell) -> None:
    two = "id: two\nsteps: [{id: a, approve: 'A?'}, {id: b, approve: 'B?', after: []}, {id: c, prompt: Do., after: []}]"
    run = start(shell, two, code=4)["run"]
    assert "which step to approve? a, b" in shell.json("approve", run, "--reason", "x", code=5)["error"]["message"]
    assert shell.json("approve", run, "a", "--reason", "x", *shell.seen(run, "a"), code=4)["progress"]["done"] == 1
    assert "waiting for the agent to do c" in shell.run("run", "show", run).stdout


def test_a_failed_step_is_retried_when_its_cause_is_gone(shell: Shell) -> None:
    run = start(shell, FAILING, code=4)["run"]
    shell.write("here I am", "missing.txt")
    reply = shell.json("run", "retry", run, "--reason", "the file is there now")
    assert (reply["status"], reply["progress"]) == ("completed", {"done": 3, "total": 3})


def test_what_is_not_legal_is_a_conflict_that_says_what_is(shell: Shell) -> None:
    run = start(shell, FAILING, code=4)["run"]
    error = shell.json("run", "accept", run, "read", "--reason", "x", "--output", "{}", code=6)["error"]
    assert "retry read" in error["hint"]
    assert shell.json("run", "accept", run, "read", "--reason", "x", "--output", "{", code=5)["error"]["hint"]


def test_a_run_is_paused_resumed_and_cancelled(shell: Shell) -> None:
    run = start(shell, ASKING, code=4)["run"]
    paused = shell.json("run", "pause", run, "--reason", "lunch")
    assert (paused["status"], paused["reason"]) == ("paused", "lunch")
    assert shell.json("run", "list", "--status", "paused")["runs"][0]["run"] == run
    assert shell.json("run", "resume", run, "--reason", "back", code=4)["status"] == "waiting"
    cancelled = shell.json("run", "cancel", run, "--reason", "wrong")
    assert (cancelled["status"], cancelled["reason"]) == ("cancelled", "wrong")
    assert shell.json("run", "list") == {"runs": []}
    assert [row["run"] for row in shell.json("run", "list", "--all")["runs"]] == [run]
    assert shell.json("run", "resume", run, "--reason", "x", code=6)["error"]["name"] == "conflict"


def test_a_fork_shares_what_was_done_and_names_what_it_does_not_undo(shell: Shell) -> None:
    run = start(shell, FAILING, code=4)["run"]
    shell.write("here I am", "missing.txt")
    result = shell.run("run", "fork", run, "read", "--reason", "again from there")
    assert result.exit_code == 0, result.output
    fork = result.stdout.splitlines()[0]
    reply = shell.json("run", "show", fork, "--full")
    assert reply["fork"] == {"run": run, "step": "read"}
    assert reply["steps"][0]["status"] == "completed"
    assert f"forked: from {run} at read" in shell.run("run", "show", fork).stdout


def test_runs_are_listed_in_pages_and_those_that_wait_say_for_what(shell: Shell) -> None:
    assert shell.json("run", "list") == {"runs": []}
    assert "no runs" in shell.run("run", "list").stderr
    waiting = start(shell, ASKING, code=4)["run"]
    ended = start(shell, HELLO, "-i", "name=Ada")["run"]
    (row,) = shell.json("run", "list")["runs"]
    assert (row["run"], row["status"], row["waiting_for"][0]["step"]) == (waiting, "waiting", "go")
    assert {row["run"] for row in shell.json("run", "list", "--all")["runs"]} == {waiting, ended}
    page = shell.json("run", "list", "--all", "--limit", "1")
    assert ([row["run"] for row in page["runs"]], page["cursor"]) == ([min(waiting, ended)], min(waiting, ended))
    rest = shell.json("run", "list", "--all", "--after", page["cursor"])
    assert ([row["run"] for row in rest["runs"]], "cursor" in rest) == ([max(waiting, ended)], False)
    assert "waiting for approval go" in shell.run("run", "list").stdout


def test_a_run_is_shown_with_every_step_on_demand(shell: Shell) -> None:
    run = start(shell, HELLO, "-i", "name=Ada")["run"]
    assert "steps" not in shell.json("run", "show", run)
    greet, count = shell.json("run", "show", run, "--full")["steps"]
    assert (greet["id"], greet["kind"], greet["status"], greet["by"]) == ("greet", "tool", "completed", "handrail")
    # handrail called a tool, and no check looked at what that did to the world
    assert (greet["attempts"], "proof" in greet, count["title"]) == (1, False, "Count")
    assert "completed" in shell.run("run", "show", run, "--full").stdout
    assert shell.json("run", "show", run[:-1], code=3)["error"]["hint"] == f"did you mean `{run}`?"


def test_an_ended_run_is_watched_as_a_story_that_ends_at_once(shell: Shell) -> None:
    run = start(shell, HELLO, "-i", "name=Ada")["run"]
    result = shell.run("run", "watch", run)
    assert result.exit_code == 0, result.output
    reply = [line[10:] for line in result.stdout.splitlines()]
    assert "hello started" in reply
    assert "greet: completed" in reply
    assert reply.count("run completed") == 1
    assert shell.json("run", "watch", run)["status"] == "completed"


def test_a_detached_run_is_executed_by_a_worker_that_ends_when_nothing_is_left(shell: Shell) -> None:
    result = shell.run("run", "start", shell.write(ASKING), "--detach")
    assert result.exit_code == 0, result.output
    run = result.stdout.splitlines()[0]
    assert f"no process executes it now: `handrail run resume {run}` does, or `handrail worker`" in result.stderr
    assert not (shell.folder / "a.txt").exists()
    assert f"no process executes it now: `handrail run resume {run}`" in shell.run("run", "show", run).stderr
    assert shell.json("run", "list")["runs"][0]["status"] == "running"
    worked = shell.run("worker", "--until-idle")
    assert worked.exit_code == 0, worked.output
    assert f"{run} picked up: asking" in worked.stderr
    assert f"{run} waiting for approval go" in worked.stderr
    shell.configure(f'[groups]\nann = ["{getpass.getuser()}"]\n')
    assert shell.json("approve", run, "--reason", "yes", "--detach", *shell.seen(run))["status"] == "running"
    assert f"{run} completed" in shell.run("worker", "--until-idle").stderr
    assert shell.json("run", "show", run)["status"] == "completed"


def test_what_a_step_worked_waited_and_took_to_undo_is_shown_apart(shell: Shell) -> None:
    """An undo may take no time at all, and long after its step: that is not the time of the step."""
    run = shell.json("run", "start", shell.write(SLOWLY_UNDONE), code=4)["run"]
    shell.json("run", "compensate", run, "--reason", "no", code=9)
    table = [line for line in shell.run("run", "show", run, "--full").stdout.splitlines() if "  " in line]
    head = next(line for line in table if "worked" in line)
    times = {}
    for line in table[table.index(head) + 1 :]:
        cells = {name: line[head.index(name) :].split("  ")[0].strip() for name in ("worked", "waited", "undone")}
        times[line.split()[1]] = cells
    assert times["write"]["worked"].endswith(" ms"), times
    assert times["write"]["undone"].endswith(" ms"), times
    assert times["write"]["waited"] == ""
    assert times["ask"]["waited"], "a person was asked"
    assert times["rest"]["worked"] != times["rest"]["waited"], "waiting for a time is no work"


def test_a_detached_run_that_nobody_executes_is_resumed_here(shell: Shell) -> None:
    run = start(shell, HELLO, "-i", "name=Ada", "--detach")["run"]
    assert shell.json("run", "resume", run)["status"] == "completed"


def test_every_status_has_an_exit_code() -> None:
    assert {status.value: code.value for status, code in EXIT_OF_STATUS.items()} == {
        "completed": 0,
        "running": 0,
        "failed": 1,
        "cancelled": 1,
        "compensation_failed": 1,
        "waiting": 4,
        "paused": 4,
        "compensating": 4,
        "compensated": 9,
    }


def test_durations_are_reported_as_people_say_them() -> None:
    assert [duration_words(one) for one in (0.04, 61, 3_725)] == ["0.0 s", "1 min 1 s", "1 h 2 min"]
