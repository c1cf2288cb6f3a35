"""A run in a repository: what counts is what changed since the run or the step began, committed or not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from interfaces.mcp.surface.agent import Agent, Place, joined
from rules.on_project import committed, git, write

GATES = [
    {"rule": "files_changed", "paths": ["src"]},
    {"rule": "files_unchanged", "paths": ["LICENSE"]},
    {"rule": "diff_within", "paths": ["src", "LICENSE"]},
    {"rule": "no_secrets"},
]
WORKFLOW = {
    "id": "fix-it",
    "version": "1.0.0",
    "steps": [
        {"id": "fix", "prompt": "Mend it, and commit.", "checks": GATES},
        {"id": "note", "prompt": "Add a note.", "checks": [{"rule": "files_changed", "paths": ["."], "since": "step"}]},
    ],
}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place(tmp_path)
    committed(place.project, {"src/a.py": "a\n", "LICENSE": "mine\n", ".gitignore": ".handrail\n"})
    write(place.project, {"todo.txt": "mine, never committed\n"})
    place.workflow(WORKFLOW)
    return place


async def rules_against(agent: Agent, run: str, step: str) -> list[str]:
    said = await agent.call("workflow_next", run=run, step=step, output={"claim": "done"})
    return sorted(found["rule"] for found in said.get("findings", ()))


def commit(place: Place, files: dict[str, str | bytes]) -> None:
    write(place.project, files)
    git(place.project, "add", "--", *files)
    git(place.project, "commit", "-q", "-m", "work")


async def records(agent: Agent, run: str) -> list[dict[str, Any]]:
    page = await agent.call("query_ledger", run=run, kinds=["project_recorded"])
    return [event["data"] for event in page["events"]]


async def test_commit_then_submit_works_and_committed_lies_are_found(place: Place) -> None:
    async with place.serving(checks="run") as server, joined(server) as agent:
        run = (await agent.call("workflow_next", workflow="fix-it"))["run"]
        assert await rules_against(agent, run, "fix") == ["files_changed"]
        commit(place, {"src/a.py": "key = 'AKIAZ7QW3ERT5YUI9OPL'\n", "LICENSE": "yours\n", "stray.md": "x\n"})
        assert await rules_against(agent, run, "fix") == ["diff_within", "files_unchanged", "no_secrets"]
    async with place.serving(checks="run") as server, joined(server) as agent:  # the run goes on in another process
        git(place.project, "reset", "-q", "--hard", "HEAD~1")
        commit(place, {"src/a.py": "A\n"})
        assert await rules_against(agent, run, "fix") == []
        seen = await agent.call("status", run=run, detail="full")
        assert seen["steps"][0]["proof"] == "verified"


async def test_a_step_is_compared_with_when_it_was_first_given_out(place: Place) -> None:
    async with place.serving(checks="run") as server, joined(server) as agent:
        run = (await agent.call("workflow_next", workflow="fix-it"))["run"]
        first = git(place.project, "rev-parse", "HEAD")
        commit(place, {"src/a.py": "A\n"})
        assert await rules_against(agent, run, "fix") == []
        assert await rules_against(agent, run, "note") == ["files_changed"], "what `fix` changed is not its work"
        commit(place, {"note.md": "a note\n"})
        await agent.call("workflow_next", run=run)  # given out again: it still began before the note
        assert await rules_against(agent, run, "note") == []
        baseline, fix, note = await records(agent, run)
    assert (baseline["commit"], baseline["branch"], set(baseline["dirty"])) == (
        first,
        "main",
        {"todo.txt", ".git/info/exclude"},
    )
    assert baseline["tree"].startswith("sha256:")
    assert fix == {}, "nothing had changed: the record says only that"
    assert note["commit"] != first


async def test_a_project_without_git_works_as_before(place: Place) -> None:
    for path in sorted((place.project / ".git").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    (place.project / ".git").rmdir()
    async with place.serving(checks="run") as server, joined(server) as agent:
        run = (await agent.call("workflow_next", workflow="fix-it"))["run"]
        assert (await records(agent, run))[0]["missing"] == "there was no repository then"
        said = await agent.call("workflow_next", run=run, step="fix", output={})
        assert "not in a readable git repository" in said["findings"][0]["message"]


async def test_what_handrail_itself_did_before_a_first_step_is_not_the_step_s_work(place: Place) -> None:
    """The look at the project for the start of a run also counts for its first step, unless something happened."""
    made = {"id": "make", "tool": "file.write", "args": {"path": "made.txt", "text": "by handrail"}}
    place.workflow({**WORKFLOW, "id": "make-first", "steps": [made, WORKFLOW["steps"][1]]})
    async with place.serving(checks="run") as server, joined(server) as agent:
        run = (await agent.call("workflow_next", workflow="make-first"))["run"]
        assert (place.project / "made.txt").is_file()
        assert await rules_against(agent, run, "note") == ["files_changed"]
        write(place.project, {"made.txt": "changed"})
        assert await rules_against(agent, run, "note") == []
