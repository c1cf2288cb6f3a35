"""[retention]: old runs are archived by rules, abandoned ones are asked about and ended; all of it is shown first."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from handrail.assembly.retention import pruning, schedule
from handrail.assembly.retention.archives import rules_of
from handrail.assembly.retention.pruning import Pruned
from handrail.engine.clock import system_clock
from handrail.settings import read_settings
from interfaces.shell import Shell

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
SHIP = "id: ship\nsteps:\n  - {id: tag, tool: value.set, args: {value: 1}}\n"
GUIDED = "id: guided\nsteps:\n  - {id: think, prompt: Think.}\n"
UNDONE = """\
id: undone
on_failure: compensate
steps:
  - {id: write, tool: file.write, args: {path: out.txt, text: new}}
  - {id: think, prompt: Think.}
"""
RULES = """\
[retention]
archive_after = "90d"
abandoned_after = "14d"
answer_within = "3d"

[[retention.rules]]
workflow = "ship*"
outcome = ["completed"]
archive_after = "7d"
"""


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path / "ours")
    shell.configure(RULES)
    return shell


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many milliseconds the clock of the rules is ahead."""
    ahead = [0]
    monkeypatch.setattr(pruning, "system_clock", lambda: system_clock() + ahead[0])
    return ahead


def test_each_run_is_archived_after_the_time_of_the_first_rule_about_it(shell: Shell, later: list[int]) -> None:
    shell.run("run", "start", shell.write(SHIP))
    shell.run("run", "start", shell.write(SHIP.replace("ship", "other")))
    runs = {run["workflow"]: run["run"] for run in shell.json("run", "list", "--all")["runs"]}
    assert shell.json("db", "prune", "--dry-run")["archive"] == []
    later[0] = 8 * DAY_MS
    assert shell.json("db", "prune", "--dry-run")["archive"] == [runs["ship"]]
    assert shell.json("db", "list")["runs"] == [], "only shown"
    done = shell.json("db", "prune")
    assert (done["runs"], done["events"]) == (1, 4)
    later[0] = 91 * DAY_MS
    assert shell.json("db", "prune", "--dry-run")["archive"] == [runs["other"]]
    assert shell.json("journal", "verify", "--replay")["ok"]


def test_somebody_is_asked_about_an_abandoned_run_before_it_is_cancelled(shell: Shell, later: list[int]) -> None:
    shell.run("run", "start", shell.write(GUIDED))
    (run,) = [one["run"] for one in shell.json("run", "list")["runs"]]
    later[0] = 13 * DAY_MS
    assert shell.json("db", "prune", "--dry-run")["abandoned"] == []
    later[0] = 15 * DAY_MS
    (planned,) = shell.json("db", "prune", "--dry-run")["abandoned"]
    assert (planned["run"], planned["ending"], planned["how"]) == (run, "ask", "pause")
    shell.json("db", "prune")
    shown = shell.json("run", "show", run)
    assert shown["status"] == "paused"
    assert "no agent has worked on it for 15 days" in shown["reason"]
    later[0] = 2 * DAY_MS
    assert shell.json("db", "prune")["abandoned"] == [], "there is time to answer"
    later[0] = 4 * DAY_MS
    shell.json("db", "prune")
    shown = shell.json("run", "show", run)
    assert (shown["status"], "no answer" in shown["reason"]) == ("cancelled", True)
    assert shell.json("journal", "verify", "--replay")["ok"]


def test_who_resumes_an_abandoned_run_keeps_it(shell: Shell, later: list[int]) -> None:
    shell.run("run", "start", shell.write(GUIDED))
    (run,) = [one["run"] for one in shell.json("run", "list")["runs"]]
    later[0] = 15 * DAY_MS
    shell.json("db", "prune")
    shell.run("run", "resume", run, "--reason", "still wanted")
    later[0] = 5 * DAY_MS
    assert shell.json("db", "prune")["abandoned"] == []
    assert shell.json("run", "show", run)["status"] == "waiting"


def test_an_abandoned_run_is_undone_if_its_plan_says_so(shell: Shell, later: list[int]) -> None:
    shell.write("old", "out.txt")
    shell.run("run", "start", shell.write(UNDONE))
    assert (shell.folder / "out.txt").read_text() == "new"
    (run,) = [one["run"] for one in shell.json("run", "list")["runs"]]
    later[0] = 15 * DAY_MS
    shell.json("db", "prune")
    assert "undone" in shell.json("run", "show", run)["reason"]
    later[0] = 4 * DAY_MS
    assert shell.json("db", "prune")["abandoned"][0]["how"] == "compensate"
    shell.run("worker", "--until-idle")
    assert shell.json("run", "show", run)["status"] == "compensated"
    assert (shell.folder / "out.txt").read_text() == "old"


def test_a_run_that_waits_for_a_person_is_not_abandoned(shell: Shell, later: list[int]) -> None:
    shell.run("run", "start", shell.write("id: gate\nsteps:\n  - {id: go, approve: Go on?}\n"))
    later[0] = 100 * DAY_MS
    assert shell.json("db", "prune", "--dry-run")["abandoned"] == []


def test_contents_are_kept_until_their_run_is_deleted(shell: Shell, later: list[int]) -> None:
    shell.write("old", "out.txt")
    shell.run("run", "start", shell.write(UNDONE))
    (run,) = [one["run"] for one in shell.json("run", "list")["runs"]]
    shell.run("run", "cancel", run, "--reason", "enough")
    kept = shell.home / "kept" / run
    assert kept.exists()
    shell.json("db", "archive", run)
    assert shell.json("db", "prune")["contents"] == []
    shell.json("db", "archive", "--delete", run, "--reason", "asked", "--yes")
    assert shell.json("db", "prune", "--dry-run")["contents"] == [run]
    assert shell.json("db", "prune")["contents"] == [run]
    assert not kept.exists()


def test_the_schedule_applies_the_rules_once_in_their_time(shell: Shell, later: list[int]) -> None:
    settings = read_settings({"home": str(shell.home), "project": str(shell.folder)}, {})
    rules = rules_of(settings)
    assert rules is not None
    now = system_clock()

    def applied(at: int) -> Pruned | None:
        return asyncio.run(schedule.prune_if_due(settings, rules, now=at))

    assert applied(now) is None, "there is no journal yet"
    shell.run("run", "start", shell.write(SHIP))
    later[0] = 8 * DAY_MS
    done = applied(now)
    assert done is not None
    assert done.archived.runs == 1
    assert applied(now + HOUR_MS) is None
    assert applied(now + DAY_MS) is not None
    assert applied(now) is not None, "the clock was set back"
    (event,) = [one for one in shell.json("journal", "show", "store")["events"] if one["kind"] == "runs_archived"]
    assert (event["actor"], event["data"]["reason"]) == ("handrail", "[retention]")


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        ('archive_afer = "90d"', "archive_after"),
        ('archive_after = "1m"', "too short"),
        ('archive_after = "soon"', "not a duration"),
        ('every = "1s"', "too often"),
        ("archive_after = 90", "archive_after"),
        ('[[retention.rules]]\narchive_after = "1d"\noutcome = ["finished"]', "no outcome of a run"),
        ('[[retention.rules]]\nworkflow = "a"', "archive_after"),
    ],
)
def test_rules_that_are_wrong_are_refused_with_their_reason(shell: Shell, table: str, reason: str) -> None:
    shell.configure(f"[retention]\n{table}\n")
    result = shell.run("db", "prune", "--dry-run")
    assert result.exit_code == 5
    assert reason in result.output


def test_a_project_can_not_set_rules(shell: Shell, later: list[int]) -> None:
    shell.configure("")
    shell.write('[retention]\narchive_after = "1h"\n', ".handrail/config.toml")
    result = shell.run("db", "prune", "--dry-run")
    assert result.exit_code == 5
    assert "config.toml" in result.output
