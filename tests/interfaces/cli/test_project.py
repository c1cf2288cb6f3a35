"""Projects from the command line: what belongs to another is shown, and never changed; `handrail project` itself."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import sys
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from handrail.interfaces.cli.program import program
from handrail.settings import read_settings
from interfaces.shell import Shell, until
from stores_from_before import store_from_before

ASKING = """\
id: asking
steps:
  - {id: write, tool: file.write, args: {path: a.txt, text: a}}
  - {id: go, approve: 'Go on?'}
  - {id: say, prompt: 'Say more.'}
  - {id: more, tool: file.write, args: {path: b.txt, text: b}}
"""
READING = {"run report", "run show", "run watch"}
"""The commands that may look at another project's run."""


class TwoProjects:
    """Two projects, shop and site, on one home."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.shop, self.site = self.project(folder / "shop"), self.project(folder / "site")

    def project(self, folder: Path) -> Shell:
        folder.mkdir()
        shell = Shell(folder)
        shell.home = self.home
        return shell

    def started(self) -> str:
        """A run of the shop that waits for an approval."""
        run: str = self.shop.json("run", "start", self.shop.write(ASKING), code=4)["run"]
        return run

    def without_project(self) -> str:
        """A run in a store that was written before there were projects."""
        settings = read_settings({"home": str(self.home), "project": str(self.shop.folder)}, {})
        return asyncio.run(store_from_before(settings, ASKING))


@pytest.fixture
def two(tmp_path: Path) -> TwoProjects:
    return TwoProjects(tmp_path)


def leaves(group: click.Group, path: str = "") -> Iterator[tuple[str, click.Command]]:
    ctx = click.Context(group)
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from leaves(command, f"{path}{name} ")
        else:
            yield f"{path}{name}", command


def on_a_run() -> list[str]:
    """Every command that takes a run, from the command tree itself."""
    return [path for path, command in leaves(program) if any(one.name == "run_id" for one in command.params)]


def words_of(path: str, run: str) -> list[str]:
    """A call of a command on a run, with all that it asks for."""
    command = dict(leaves(program))[path]
    words = [*path.split(), run]
    for one in command.params:
        if one.name == "step":
            words.append("go")
        elif isinstance(one, click.Option) and (one.required or one.name == "reason"):
            words += [one.opts[0], "x"]
    return words


def test_there_are_commands_that_change_a_run() -> None:
    assert {"approve", "reject", "run submit", "run cancel", "run fork"} <= set(on_a_run())
    assert set(on_a_run()) >= READING


@pytest.mark.parametrize("path", [path for path in on_a_run() if path not in READING])
def test_a_command_on_another_projects_run_is_refused_with_the_command_that_works(two: TwoProjects, path: str) -> None:
    run = two.started()
    before = two.shop.json("journal", "show", run)["events"]
    result = two.site.run(*words_of(path, run), "--json")
    assert result.exit_code == 6, result.output
    error = json.loads(result.stdout)["error"]
    folder = os.path.realpath(two.shop.folder)
    assert error["message"] == f"{run} belongs to another project: shop, in {folder}"
    assert f"handrail --project {folder}" in error["hint"]
    assert two.shop.json("journal", "show", run)["events"] == before
    assert sorted(file.name for file in two.site.folder.iterdir()) == []
    assert not (two.shop.folder / "b.txt").exists()


def test_an_output_for_another_projects_step_is_refused_before_anything_is_checked(two: TwoProjects) -> None:
    run = two.started()
    two.shop.json("approve", run, "go", "--reason", "x", *two.shop.seen(run), code=4)
    given = ("run", "submit", run, "say", "--output", "{}")
    assert two.site.run(*given).exit_code == 6
    assert two.site.run("run", "submit", run).exit_code == 6  # not even shown
    assert two.shop.run(*given).exit_code == 0
    assert (two.shop.folder / "b.txt").read_text() == "b"


def test_another_projects_run_can_be_looked_at_and_says_whose_it_is(two: TwoProjects) -> None:
    run = two.started()
    folder = os.path.realpath(two.shop.folder)
    seen = two.site.json("run", "show", run)
    assert (seen["project"]["name"], seen["project"]["folder"]) == ("shop", folder)
    assert "project" not in two.shop.json("run", "show", run)
    shown = two.site.run("run", "show", run)
    assert f"project: shop, in {folder}" in shown.stdout
    assert shown.stderr == ""
    assert (
        f"    handrail --project {folder} approve {run} go    (or: handrail --project {folder} reject" in shown.stdout
    )
    assert two.site.json("journal", "show", run)["events"]
    assert two.site.run("run", "watch", run).exit_code == 4


# --- lists --------------------------------------------------------------------------------------------


def test_lists_show_the_runs_of_this_project_and_of_all_on_request(two: TwoProjects) -> None:
    run = two.started()
    two.shop.json("plan", "save", two.shop.write(ASKING))
    for words, key in ((("run", "list"), "runs"), (("approvals",), "approvals"), (("plan", "list"), "plans")):
        assert len(two.shop.json(*words)[key]) == 1
        assert "project" not in two.shop.json(*words)[key][0]
        assert two.site.json(*words)[key] == []
        (seen,) = two.site.json(*words, "--all-projects")[key]
        assert (seen["project"]["name"], seen["project"]["folder"]) == ("shop", os.path.realpath(two.shop.folder))
        assert two.site.run(*words, "--all-projects").stdout.split()[0] == "project"
    assert {event["run"] for event in two.shop.json("journal", "show")["events"]} > {run}
    assert {event["run"] for event in two.site.json("journal", "show")["events"]} == {"store"}
    assert run in {event["run"] for event in two.site.json("journal", "show", "--all-projects")["events"]}
    assert two.shop.json("tools", "stats")["tools"][0]["tool"] == "file.write"
    assert two.site.json("tools", "stats")["tools"] == []
    assert two.site.json("tools", "stats", "--all-projects")["tools"][0]["calls"] == 1


def test_two_projects_of_one_name_are_told_apart_by_their_folder(two: TwoProjects) -> None:
    (two.home.parent / "more").mkdir()
    other = two.project(two.home.parent / "more" / "shop")
    two.started()
    other.json("run", "start", other.write(ASKING), code=4)
    shown = two.site.run("run", "list", "--all-projects").stdout
    assert os.path.realpath(two.shop.folder) in shown
    assert os.path.realpath(other.folder) in shown


def test_a_plan_of_another_project_is_not_known_here(two: TwoProjects) -> None:
    two.shop.json("plan", "save", two.shop.write(ASKING))
    assert two.site.run("run", "start", "asking").exit_code == 3
    assert two.site.run("plan", "show", "asking").exit_code == 3
    two.site.json("plan", "save", two.site.write(ASKING.replace("Go on?", "Sure?")))
    assert two.site.json("plan", "show", "asking")["versions"][0]["version"] == 1
    assert "Go on?" in two.shop.run("plan", "show", "asking").stdout


# --- handrail project ----------------------------------------------------------------------------------


def test_the_list_of_projects_counts_their_runs_and_says_which_is_here(two: TwoProjects) -> None:
    assert two.site.run("project", "list").stderr.startswith("no projects yet")
    two.started()
    two.site.json("plan", "save", two.site.write(ASKING))
    shop, site = two.site.json("project", "list")["projects"]
    assert (shop["name"], shop["open"], shop["runs"], shop["exists"], shop["is_here"]) == ("shop", 1, 1, True, False)
    assert (site["name"], site["open"], site["runs"], site["is_here"]) == ("site", 0, 0, True)
    two.shop.folder.rename(two.home.parent / "moved")
    assert "GONE" in two.site.run("project", "list").stdout


def test_a_moved_project_goes_on_where_it_is_now(two: TwoProjects) -> None:
    run = two.started()
    (shop,) = two.shop.json("project", "list")["projects"]
    moved = Shell(two.home.parent / "moved")
    moved.home = two.home
    two.shop.folder.rename(moved.folder)
    assert moved.run("approve", run, "go", "--reason", "x").exit_code == 6
    assert moved.json("project", "move", shop["id"], str(moved.folder))["folder"] == os.path.realpath(moved.folder)
    assert moved.run("approve", run, "go", "--reason", "x", *moved.seen(run)).exit_code == 4
    assert moved.run("project", "move", shop["id"], str(two.home.parent / "nowhere")).exit_code == 3
    assert moved.run("project", "move", "prj_unknown2", str(moved.folder)).exit_code in {3, 6}


def test_a_project_is_not_moved_onto_another_that_has_runs(two: TwoProjects) -> None:
    two.started()
    two.site.json("run", "start", two.site.write(ASKING), code=4)
    shop, site = two.site.json("project", "list")["projects"]
    refused = two.site.run("project", "move", shop["id"], str(two.site.folder))
    assert refused.exit_code == 6
    assert f"{site['id']}, with 1 run" in refused.stderr
    assert two.site.json("project", "list")["projects"] == [shop, site]


def test_a_project_with_open_runs_is_forgotten_only_by_force_and_its_runs_wait_to_be_adopted(two: TwoProjects) -> None:
    run = two.started()
    (shop,) = two.shop.json("project", "list")["projects"]
    assert two.site.run("project", "forget", shop["id"]).exit_code == 6
    assert two.site.run("project", "forget", "prj_unknown2").exit_code == 3
    unasked = two.site.run("project", "forget", shop["id"], "--force")
    assert (unasked.exit_code, "add --yes" in unasked.stderr) == (1, True)
    assert two.site.json("project", "list")["projects"] == [shop | {"is_here": False}]
    forgotten = two.site.run("project", "forget", shop["id"], "--force", "--yes")
    assert forgotten.exit_code == 0
    assert f"adopt --from {shop['id']}" in forgotten.stderr
    refused = two.shop.run("approve", run, "go", "--reason", "x")
    assert (refused.exit_code, "was forgotten" in refused.stderr) == (6, True)
    assert f"handrail project adopt {run}" in refused.stderr
    assert two.site.json("project", "list")["projects"][-1]["name"] == "(forgotten)"
    assert f"{run}  waiting  " in two.site.run("project", "adopt", "--from", shop["id"]).stderr
    adopted = two.site.json("project", "adopt", "--from", shop["id"], "--yes")
    assert [one["run"] for one in adopted["adopted"]] == [run]
    assert adopted["project"]["name"] == "site"
    assert two.site.run("approve", run, "go", "--reason", "x", *two.site.seen(run)).exit_code == 4
    assert two.site.run("journal", "verify", "--replay").exit_code == 0


def test_a_run_from_before_waits_and_goes_on_in_the_project_that_adopts_it(two: TwoProjects) -> None:
    run = two.without_project()
    listed = two.shop.run("run", "list")
    assert "handrail project adopt --all" in listed.stderr
    assert two.shop.json("run", "show", run)["project"]["name"] == "none"
    refused = two.shop.run("approve", run, "go", "--reason", "x")
    assert (refused.exit_code, "belongs to no project" in refused.stderr) == (6, True)
    assert "handrail approve" not in two.shop.run("run", "show", run).output  # it would be refused
    unasked = two.shop.run("project", "adopt", run)
    assert unasked.exit_code == 1
    assert run in unasked.stderr
    assert "add --yes" in unasked.stderr
    assert two.shop.json("project", "list")["projects"][-1]["open"] == 1
    adopted = two.shop.run("project", "adopt", run, "--yes", "--reason", "it is the shop's")
    assert adopted.exit_code == 0, adopted.output
    assert f"{run} belongs to prj_" in adopted.stdout
    last: dict[str, Any] = two.shop.json("journal", "show", run)["events"][-1]
    assert (last["kind"], last["data"]["reason"]) == ("run_adopted", "it is the shop's")
    assert two.shop.run("run", "resume", run).exit_code == 4
    assert two.shop.run("approve", run, "go", "--reason", "x", *two.shop.seen(run)).exit_code == 4
    assert two.shop.run("journal", "verify", "--replay").exit_code == 0
    again = two.shop.run("project", "adopt", run, "--yes")
    assert (again.exit_code, "already" in again.stderr) == (6, True)
    assert two.site.run("project", "adopt", run, "--yes").exit_code == 6


def test_adopting_takes_names_or_all_and_ended_runs_on_request(two: TwoProjects) -> None:
    assert two.shop.run("project", "adopt").exit_code == 2
    assert two.shop.run("project", "adopt", "run_x", "--all").exit_code == 2
    assert two.shop.json("project", "adopt", "--all")["adopted"] == []
    assert two.shop.run("project", "adopt", "run_unknown2", "--yes").exit_code == 3
    run = two.without_project()
    assert two.shop.json("project", "adopt", "--all", "--yes")["adopted"][0]["run"] == run
    two.shop.json("run", "cancel", run, "--reason", "x")
    (shop,) = two.shop.json("project", "list")["projects"]
    two.shop.json("project", "forget", shop["id"])
    assert two.shop.json("project", "adopt", "--all")["adopted"] == []
    assert len(two.shop.json("project", "adopt", "--all", "--ended", "--yes")["adopted"]) == 1
    (shop,) = two.shop.json("project", "list")["projects"]
    assert two.shop.run("project", "adopt", "--from", shop["id"], "--yes").exit_code == 6


@pytest.mark.skipif(sys.platform == "win32", reason="terminals are a matter of POSIX")
def test_a_terminal_shows_what_would_be_adopted_and_asks(two: TwoProjects) -> None:
    run = two.without_project()
    assert "cancelled: nothing was changed" in two.shop.terminal("project", "adopt", "--all", typed="n\n")
    shown = two.shop.terminal("project", "adopt", "--all", typed="y\n")
    assert f"{run}  running  asking" in shown
    assert "belongs to prj_" in shown


def test_a_worker_serves_several_projects_each_in_its_own_folder(two: TwoProjects) -> None:
    plan = "id: p\nsteps:\n  - {id: w, tool: file.write, args: {path: made.txt, text: x}}\n"
    third = two.project(two.home.parent / "third")
    for shell in (two.shop, two.site, third):
        shell.json("run", "start", shell.write(plan), "--detach")
    alone = two.shop.run("worker", "--until-idle")
    assert alone.exit_code == 0, alone.output
    assert [(shell.folder / "made.txt").exists() for shell in (two.shop, two.site, third)] == [True, False, False]
    more = two.shop.run("worker", "--until-idle", "--also", str(two.site.folder))
    assert f"started in {os.path.realpath(two.site.folder)}" in more.stderr
    assert [(shell.folder / "made.txt").exists() for shell in (two.site, third)] == [True, False]
    two.site.folder.rename(two.home.parent / "gone")
    (two.shop.folder / ".handrail").mkdir()
    (two.shop.folder / ".handrail" / "config.toml").write_text("nonsense = 1\n")
    fourth = two.project(two.home.parent / "fourth")
    fifth = two.project(two.home.parent / "a fifth")  # sorted before those that work
    fifth.json("run", "start", fifth.write(plan), "--detach")
    fifth.write("[http]\nallow = 5\n", ".handrail/config.toml")
    every = fourth.run("worker", "--until-idle", "--all-projects")
    assert every.exit_code == 0, every.output
    assert (third.folder / "made.txt").exists()
    assert "is gone" in every.stderr
    assert "unknown setting" in every.stderr
    assert "[http] allow is not a list of hosts" in every.stderr
    assert two.shop.run("worker", "--also", "/no/such/folder").exit_code in {3, 5}
    assert third.run("worker", "--also", str(two.home.parent / "nowhere")).exit_code == 3


def test_a_worker_of_all_projects_also_serves_those_that_are_registered_later(two: TwoProjects) -> None:
    plan = "id: p\nsteps:\n  - {id: w, tool: file.write, args: {path: made.txt, text: x}}\n"
    with two.shop.process("worker", "--all-projects"):
        until(lambda: two.shop.json("project", "list")["projects"])
        two.site.json("run", "start", two.site.write(plan), "--detach")
        until((two.site.folder / "made.txt").exists)
    assert not (two.shop.folder / "made.txt").exists()


def test_looking_around_registers_no_project(two: TwoProjects) -> None:
    two.started()
    for words in (("run", "list"), ("approvals",), ("project", "list"), ("journal", "verify"), ("tools", "list")):
        two.site.run(*words)
    assert [one["name"] for one in two.site.json("project", "list")["projects"]] == ["shop"]


def test_a_plan_from_before_is_everyones(two: TwoProjects) -> None:
    two.without_project()
    assert [one["plan"] for one in two.site.json("plan", "list")["plans"]] == ["asking"]
    assert two.site.run("run", "start", "asking").exit_code == 4
    assert (two.site.folder / "a.txt").exists()
    (listed,) = two.site.json("plan", "list", "--all-projects")["plans"]
    assert listed["project"] == {"name": "none"}
    assert "(none)" in two.site.run("plan", "list", "--all-projects").stdout


def test_the_stream_of_a_plan_is_named_without_its_project(two: TwoProjects) -> None:
    for shell in (two.shop, two.site):
        shell.json("plan", "save", shell.write(ASKING), "--note", shell.folder.name)
    for shell in (two.shop, two.site):
        (event,) = shell.json("journal", "show", "plan/asking")["events"]
        assert event["data"]["note"] == shell.folder.name
        assert shell.json("journal", "verify", "plan/asking")["ok"]
        assert shell.run("journal", "export", "plan/asking").stdout.count("\n") == 1
    assert two.shop.run("journal", "show", "plan/unknown").exit_code == 3
    two.shop.json("journal", "erase", "plan/asking", "1", "--reason", "x", "--yes")
    assert two.site.json("journal", "show", "plan/asking")["events"][0]["data"]["note"] == "site"


def test_events_of_another_project_are_erased_only_when_all_projects_are_meant(two: TwoProjects) -> None:
    run = two.started()
    two.shop.json("plan", "save", two.shop.write(ASKING), "--note", "words")
    (shop,) = two.shop.json("project", "list")["projects"]
    before = two.shop.run("journal", "export").stdout
    for stream in (run, f"plan/{shop['id']}/asking"):
        words = ("journal", "erase", stream, "1", "--reason", "x")
        for more in ("--yes", "--dry-run"):
            refused = two.site.run(*words, more)
            assert (refused.exit_code, "belongs to another project: shop" in refused.stderr) == (6, True)
            assert "--all-projects" in refused.stderr
    assert two.shop.run("journal", "export").stdout == before
    assert two.site.json("journal", "erase", run, "1", "--reason", "x", "--yes", "--all-projects")["erased"]
    assert two.shop.json("journal", "erase", "plan/asking", "1", "--reason", "x", "--yes")["erased"]
    assert two.shop.run("journal", "verify", "--replay").exit_code == 0


@pytest.mark.skipif(sys.platform == "win32", reason="terminals are a matter of POSIX")
def test_a_terminal_is_not_shown_what_another_projects_run_asks(two: TwoProjects) -> None:
    run = two.started()
    shown = two.site.terminal("approve", run, "go", typed="y\nx\n")
    assert "Go on?" not in shown
    assert "belongs to another project: shop" in shown


# --- commands to type next --------------------------------------------------------------------------


def typed_in(text: str, start: str) -> list[str]:
    """The words of the command in a text that starts like this."""
    (line,) = {one for one in re.findall(r"^\s*(handrail .*?)(?:    |$)", text, re.MULTILINE) if f" {start} " in one}
    return shlex.split(line)[1:]


@pytest.mark.parametrize("way", ["--project", "HANDRAIL_PROJECT"])
def test_a_command_to_type_next_works_as_it_stands_where_the_user_is(tmp_path: Path, way: str) -> None:
    project, home, here = tmp_path / "it's my project", tmp_path / "a home", tmp_path / "elsewhere"
    for folder in (project, here):
        folder.mkdir()
    (project / "plan.yaml").write_text(ASKING, encoding="utf-8")
    chosen = ["--project", str(project)] if way == "--project" else []
    variables = {way: str(project)} if way != "--project" else {}
    words = ["--home", str(home), *chosen, "run", "start", str(project / "plan.yaml")]

    def run(*words: str, **environment: str) -> Result:
        with chdir(here):
            return CliRunner(env=environment).invoke(program, list(words), prog_name="handrail")

    started = run(*words, **variables)
    assert started.exit_code == 4, started.output
    approve = typed_in(started.stdout, "approve")
    refused = run(*approve, "--reason", "fine")
    (hinted,) = re.findall(r"`(handrail [^`]*approvals --json)`", refused.stderr)
    asked = json.loads(run(*shlex.split(hinted)[1:]).stdout)["approvals"]
    yes = run(*approve, "--reason", "fine", "--digest", asked[0]["digest"])
    assert yes.exit_code == 4, yes.output
    submit = typed_in(yes.stdout, "submit")
    assert run(*submit[:-2] if "--output" in submit else submit, "--output", '"x"').exit_code == 0
    assert (project / "b.txt").exists()
