"""Where servers are started: those of the user never in a project, unless the user says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from handrail.domain.definition.model import Category
from handrail.engine.tool import ToolFailed
from handrail.tools.mcp.declaration import ToolsText, declared_servers
from handrail.tools.mcp.working_folder import ServerPlaces
from tools.calls import Fails
from tools.mcp.servers_at_hand import call, connected, declared


def places(tmp_path: Path) -> ServerPlaces:
    project = tmp_path / "project"
    (project / "sub").mkdir(parents=True, exist_ok=True)
    return ServerPlaces(project, tmp_path / "home" / "servers")


@pytest.mark.parametrize(
    ("more", "folder"),
    [
        ({}, "home/servers"),
        ({"cwd": "."}, "project"),
        ({"cwd": "sub"}, "project/sub"),
        ({"cwd": "${project}/sub"}, "project/sub"),
        ({"is_projects": True}, "project"),
        ({"is_projects": True, "cwd": "sub"}, "project/sub"),
    ],
)
async def test_a_server_of_the_user_is_started_in_a_folder_of_ours(
    more: dict[str, Any], folder: str, tmp_path: Path
) -> None:
    found = connected(tmp_path, declared(**more), places=places(tmp_path))
    try:
        told = json.loads(await call(found, "environment"))
    finally:
        await found.close()
    assert told["cwd"] == str(tmp_path / folder)


async def test_a_module_of_the_project_is_not_taken_for_the_users_server(tmp_path: Path) -> None:
    """`python -m name` looks into the current folder first, as `npx` does into node_modules."""
    where = places(tmp_path)
    (where.project / "ours.py").write_text("open('started', 'w').close()")
    found = connected(tmp_path, declared(args=("-m", "ours")), places=where)
    with Fails(Category.TRANSIENT, "No module named ours"):
        await found.listing()
    await found.close()
    assert not list(tmp_path.rglob("started"))


async def test_the_projects_folder_can_be_named_and_its_name_is_no_reference(tmp_path: Path) -> None:
    project = tmp_path / "${secret:X}"
    project.mkdir()
    where = ServerPlaces(project, tmp_path)
    server = declared("${project}", "--root=${project}/sub", env={"ROOT": "${project}"})
    found = connected(tmp_path, server, places=where, fill=lambda text: text.replace("${secret:X}", "the secret"))
    try:
        told = json.loads(await call(found, "environment"))
    finally:
        await found.close()
    assert (told["argv"], told["env"]["ROOT"]) == ([str(project), f"--root={project}/sub"], str(project))


@pytest.mark.parametrize("argument", [".", "..", "./sub", "../sub", "--root=.", "--root=./x"])
@pytest.mark.parametrize("more", [{}, {"cwd": "."}, {"is_projects": True}])
def test_a_relative_argument_says_what_to_write_instead(argument: str, more: dict[str, Any], tmp_path: Path) -> None:
    server = declared(**{"args": ("server", argument), **more})
    if more:
        assert places(tmp_path).folder(server) == tmp_path / "project"
        return
    with Fails(Category.NOT_FOUND, f"its argument `{argument}` is relative") as refused:
        places(tmp_path).folder(server)
    assert refused.failed.message.endswith("write `${project}` for the project's folder")


@pytest.mark.parametrize("argument", ["...", ".env", "-", "a.b", "--pattern=.*", "https://x/./y", "--level=.5", ""])
def test_an_argument_that_only_has_a_dot_is_left_alone(argument: str, tmp_path: Path) -> None:
    assert places(tmp_path).folder(declared(args=(argument,))) == tmp_path / "home" / "servers"


@pytest.mark.parametrize("command", ["./server", "bin/server", "../server"])
def test_a_relative_command_is_not_looked_for_in_a_project(command: str, tmp_path: Path) -> None:
    with Fails(Category.NOT_FOUND, f"the command `{command}` is relative"):
        places(tmp_path).folder(declared(command=command))


def test_a_folder_that_can_not_be_made_is_reported(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file")
    with pytest.raises(ToolFailed, match="can't be made"):
        places(tmp_path).folder(declared())


def test_only_a_text_of_the_project_makes_a_server_the_projects(tmp_path: Path) -> None:
    entry = json.dumps({"mcpServers": {"git": {"command": "git"}}}).encode()
    (tmp_path / "tools.json").write_bytes(entry)
    theirs = ToolsText(file=tmp_path / "project.json", content=entry, is_projects=True)
    assert not declared_servers([tmp_path / "tools.json"])["git"].is_projects
    assert declared_servers([theirs])["git"].is_projects
    assert not declared_servers([tmp_path / "tools.json", theirs])["git"].is_projects
