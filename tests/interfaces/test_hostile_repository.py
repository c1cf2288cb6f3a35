"""A hostile repository, opened with every command, every MCP tool and every route of the API there is: nothing starts,
nothing outside is read, nothing hangs. The lists come from the program, so a new one is covered without being added."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import click
import pytest

from handrail.interfaces import cli
from handrail.interfaces.cli.program import program
from handrail.interfaces.cli.workflow.new import SCHEMA_FILE
from handrail.interfaces.http.contract.route import API, MediaType
from handrail.interfaces.http.contract.routes import ROUTES
from handrail.interfaces.mcp.surface.handlers.catalog import TOOLS
from interfaces.hostile_repository import CANARY, KINDS, HostileRepository
from interfaces.http.in_process import as_actor
from interfaces.mcp.surface.agent import Place
from library.workrail.garden import FILES as WORKRAIL

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pipes and links are POSIX's")

LIMIT_S = 60
SERVING = frozenset({("mcp",), ("serve",), ("open",), ("worker",)})
"""Commands that last: started as processes of their own."""
ELSEWHERE = {("init",): "changes clients of the user", ("demo",): "works in a project of its own"}
NAMES = {"number": "1", "run_id": "run_aaaabbbb", "plan_id": "evil", "stream": "run_aaaabbbb", "step": "a"}
FILES = frozenset({"file", "name", "new", "old", "source", "target", "targets"})
"""Arguments that may name a file."""


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HostileRepository:
    monkeypatch.setenv("HOME", str(tmp_path / "person"))  # clients' settings of the person who runs the tests
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "person"))
    found = HostileRepository(tmp_path)
    monkeypatch.chdir(found.project)
    return found


@contextmanager
def within_limit() -> Iterator[None]:
    """Fail instead of hanging."""

    def give_up(_number: int, _frame: FrameType | None) -> None:
        raise AssertionError(f"it took longer than {LIMIT_S} seconds")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(LIMIT_S)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def leaves(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command that does something."""
    if not isinstance(command, click.Group):
        yield path, command
        return
    if command.invoke_without_command:
        yield path, command
    context = click.Context(command)
    for name in command.list_commands(context):
        inner = command.get_command(context, name)
        assert inner is not None
        yield from leaves(inner, (*path, name))


COMMANDS = dict(leaves(program))


def calls_of(path: tuple[str, ...], command: click.Command, files: list[str]) -> Iterator[list[str]]:
    """The command with a value for each argument: an id, and, where it may be a file, each of these files."""
    arguments = [one for one in command.params if isinstance(one, click.Argument) and one.name]
    plain = [NAMES.get(str(one.name), "evil") for one in arguments]
    yield [*path, *plain]
    if any(one.name in FILES for one in arguments):
        for file in files:
            yield [*path, *(file if one.name in FILES else word for one, word in zip(arguments, plain, strict=True))]


def all_calls(files: list[str]) -> Iterator[list[str]]:
    for path, command in COMMANDS.items():
        if path not in SERVING and path not in ELSEWHERE:
            yield from calls_of(path, command, files)


def test_every_command_is_opened_and_starts_nothing(hostile: HostileRepository) -> None:
    files = [str(file) for file in sorted((hostile.own / "workflows").iterdir()) if file.name.endswith("l.yaml")]
    files += [f".handrail/workflows/{kind}.yaml" for kind in KINDS]
    opened = set()
    for words in all_calls(files):
        with within_limit():
            result = hostile.shell.run(*words, stdin="")
        assert result.exception is None or isinstance(result.exception, SystemExit), (words, result.exception)
        assert CANARY not in result.output, words
        opened.add(words[0])
        if words[:2] not in (["tools", "check"], ["run", "start"], ["tools", "call"]):
            assert hostile.started == [], words
    assert opened == {path[0] for path in COMMANDS} - {path[0] for path in (*SERVING, *ELSEWHERE)}
    # Commands that are there to start servers have started the user's own, and none of the project's.
    assert set(hostile.started) <= {"of-the-user"}
    assert hostile.seen_canary() == []


@pytest.mark.parametrize(
    ("name", "kind"),
    # A tools.json in another encoding is a regular file: only commands that need its servers say what is wrong with it.
    [
        (name, kind)
        for name in ("config.toml", "tools.json")
        for kind in KINDS
        if (name, kind) != ("tools.json", "latin")
    ],
)
def test_a_file_that_is_none_is_an_error_at_once_for_every_command(
    hostile: HostileRepository, name: str, kind: str
) -> None:
    hostile.place(kind, hostile.own / name)
    for words in all_calls([]):
        with within_limit():
            result = hostile.shell.run(*words, stdin="")
        assert result.exit_code != 0, words
        assert name in result.output or "Usage" in result.output, (words, result.output)
        assert CANARY not in result.output, words
    assert hostile.started == []


def test_a_folder_that_leads_out_is_not_read(hostile: HostileRepository) -> None:
    hostile.own.rename(hostile.outside / "own")
    hostile.own.symlink_to(hostile.outside / "own")
    result = hostile.shell.run("config", "show")
    assert result.exit_code == 5
    assert "leads out of" in result.output
    hostile.own.unlink()
    hostile.own.mkdir()
    (hostile.own / "workflows").symlink_to(hostile.outside)
    listed = hostile.shell.run("workflow", "list", "--json")
    assert CANARY not in listed.output
    assert "secret" not in listed.output  # not even its name
    assert "is a link out of the project" in listed.output


def test_what_lasts_starts_nothing_either(hostile: HostileRepository) -> None:
    assert COMMANDS.keys() >= SERVING
    chosen = ["--home", str(hostile.home), "--project", str(hostile.project)]
    processes = [serving(name, chosen, hostile.project) for (name,) in SERVING]
    for name, process in processes:
        try:
            assert process.stderr is not None
            assert name == "mcp" or process.stderr.readline()  # it is there
            process.terminate()
            said = b"".join(process.communicate(timeout=LIMIT_S))
        finally:
            process.kill()
        assert CANARY.encode() not in said
    assert hostile.started == []


def serving(name: str, chosen: list[str], folder: Path) -> tuple[str, subprocess.Popen[bytes]]:
    """A command that lasts, in a process of its own that is started in the project."""
    words = [name, *chosen] if name == "mcp" else [*chosen, name, *(["--port", "0"] if name == "serve" else [])]
    pipe = subprocess.PIPE
    command = [sys.executable, "-m", "handrail", *words]
    return name, subprocess.Popen(command, cwd=folder, stdin=pipe, stdout=pipe, stderr=pipe)


def sample(name: str, schema: dict[str, Any], run: str) -> Any:
    """A value for an argument of an MCP tool."""
    plan = {"id": "evil-plan", "steps": [{"id": "a", "tool": "evil.steal", "args": {}}]}
    known = {"run": run, "plan": "evil-plan", "workflow": "evil", "id": "evil", "definition": plan, "step": "c"}
    if "enum" in schema:
        return schema["enum"][0]
    kinds = {"object": {}, "array": [], "integer": 1, "boolean": False, "string": known.get(name, "evil")}
    is_plan = name in ("definition", "plan") and schema.get("type") == "object"
    return plan if is_plan else kinds.get(schema.get("type", ""))


async def test_every_mcp_tool_is_called_and_starts_nothing(hostile: HostileRepository) -> None:
    place = Place(hostile.project.parent)
    assert (place.home, place.project) != (hostile.home, hostile.project)
    place.home = hostile.home
    async with place.agent() as agent:
        run = (await agent.call("record_plan", plan={"id": "mine", "steps": [{"id": "c", "prompt": "Say it"}]}))["plan"]
        for tool in TOOLS:
            schemas = tool.input["properties"]
            whole = {name: sample(name, schema, run) for name, schema in schemas.items()}
            tries = [whole, {name: whole[name] for name in tool.input["required"]}]
            tries += [{**tries[1], name: whole[name]} for name in schemas]
            for arguments in tries:
                result = await agent.answer(tool.name, arguments)
                assert CANARY not in str(result), (tool.name, arguments)
                assert hostile.started == [], (tool.name, arguments)


EVIL_PLAN = {"id": "evil-plan", "steps": [{"id": "a", "tool": "evil.steal", "args": {}}]}
BODIES: dict[str, Any] = {"plan": EVIL_PLAN, "definition": EVIL_PLAN, "reason": "x", "answer": "approve", "step": "c"}


async def test_every_route_of_the_api_is_called_and_starts_nothing(hostile: HostileRepository) -> None:
    folder = hostile.project.parent
    async with as_actor(folder, "person:ann", home=hostile.home, project=hostile.project) as (client, _):
        plan = {"id": "mine", "steps": [{"id": "c", "prompt": "Say it"}]}
        run = (await client.post("/api/v1/runs", json={"definition": plan})).json()["run"]
        for kind in ("evil", *KINDS):
            known = {"run": run, "other": run, "step": "c", "n": "1", "action": "cancel", "plan": kind}
            known |= {"workflow": kind, "rule": kind, "server": kind, "node": kind}
            for route in ROUTES:
                if route.form is MediaType.EVENTS or route.takes_bytes or (kind != "evil" and "{" not in route.path):
                    continue
                path = API + route.path.replace(":path}", "}").replace(":int}", "}").format(**known)
                fields = route.body.__struct_fields__ if route.body is not None else ()
                body = {name: value for name, value in BODIES.items() if name in fields}
                if "definition" in body:  # exactly one of both
                    body.pop("plan", None)
                with within_limit():
                    answer = await client.request(route.method.value, path, json=body if route.body else None)
                assert answer.status_code < 500, (path, answer.text)
                assert CANARY not in answer.text, path
                assert hostile.started == [], path
    assert hostile.seen_canary() == []


async def test_an_agent_is_refused_with_the_command_that_a_person_runs(hostile: HostileRepository) -> None:
    place = Place(hostile.project.parent)
    place.home = hostile.home
    plan = {"id": "p", "steps": [{"id": "a", "tool": "evil.steal", "args": {}}]}
    async with place.agent() as agent:
        for refused in (
            await agent.refused("execute_plan", "forbidden", definition=plan),
            await agent.refused("save_plan", "forbidden", plan=plan),
        ):
            assert "`handrail trust`" in refused["hint"]
            assert "evil" in refused["message"]
        found = (await agent.call("workflow_validate", definition=plan))["findings"]
        assert [one["rule"] for one in found] == ["untrusted_server", "unknown_effect"]
        shell = {"id": "p", "steps": [{"id": "a", "tool": "shell.run", "args": {"argv": ["true"]}}]}
        run = await agent.call("execute_plan", definition=shell, wait="5s")
        failure = run["failure"]["message"]
        assert "only a person can allow" in failure
        assert "config.toml" not in failure
    assert hostile.started == []


async def test_a_look_starts_no_server_even_of_a_trusted_project(hostile: HostileRepository) -> None:
    hostile.shell.trust()
    place = Place(hostile.project.parent)
    place.home = hostile.home
    plan = {"id": "p", "steps": [{"id": "a", "tool": "evil.steal", "args": {}}]}
    async with place.agent() as agent:
        found = (await agent.call("workflow_validate", definition=plan))["findings"]
        assert "unasked_server" in {one["rule"] for one in found}
        await agent.call("workflow_list")
        await agent.call("workflow_get", id="evil")
    assert hostile.started == []


def test_the_users_servers_are_started_and_a_module_of_the_repository_is_not(hostile: HostileRepository) -> None:
    for name in ("named", "own"):
        assert hostile.shell.run("tools", "check", name).exit_code != 0, "neither is a server"
    assert hostile.started == ["of-the-user"]


def test_a_list_of_tools_starts_no_server_even_of_a_trusted_project(hostile: HostileRepository) -> None:
    hostile.shell.trust()
    assert hostile.shell.json("tools", "list")["unasked"] == ["evil", "named", "other", "own"]
    assert "ask with --connect" in hostile.shell.run("tools", "list").stderr
    assert hostile.started == []


def test_a_person_who_trusts_it_gets_what_it_declares_but_not_in_place_of_their_own(
    hostile: HostileRepository,
) -> None:
    hostile.shell.trust()
    seen = hostile.shell.run("tools", "check", "--json")
    assert seen.exit_code == 8, seen.output  # they leave their mark, and end
    assert hostile.started == ["evil", "of-the-user", "other"]


def test_a_new_workflow_is_written_past_a_pipe_in_place_of_the_schema(hostile: HostileRepository) -> None:
    with within_limit():
        assert hostile.shell.run("workflow", "new", "fresh").exit_code == 0
    assert (hostile.own / SCHEMA_FILE).is_file()


WRITING = {
    "workflow new": ["workflow", "new", "fresh", "-o", "{file}"],
    "workflow new, by its id": ["workflow", "new", "target"],
    "rules new": ["rules", "new", "a_rule", "--folder", "{file}"],
    "workflow import": ["workflow", "import", "legacy.json", "-o", "{file}", "--force"],
    "run report": ["run", "report", "{run}", "--html", "{file}"],
    "journal export": ["journal", "export", "-o", "{file}"],
    "a bundle": ["journal", "export", "{run}", "--bundle", "{file}"],
}


@pytest.mark.parametrize("kind", ["dangling", "outside", "pipe", "folder that leads out"])
@pytest.mark.parametrize("name", WRITING)
def test_no_command_writes_through_what_a_repository_has_put_there(
    hostile: HostileRepository, name: str, kind: str
) -> None:
    (hostile.own / "config.toml").unlink()
    (hostile.project / "legacy.json").write_bytes((WORKRAIL / "v0.1.0.json").read_bytes())
    plan = hostile.shell.write(json.dumps({"id": "mine", "steps": [{"id": "p", "prompt": "Say it"}]}), "mine.json")
    run = hostile.shell.json("run", "start", plan, code=4)["run"]
    file = hostile.own / "workflows" / "target.yaml"
    match kind:
        case "dangling":
            file.symlink_to(hostile.outside / "new.yaml")
        case "folder that leads out":
            (hostile.own / "workflows").rename(hostile.own / "kept")
            (hostile.own / "workflows").symlink_to(hostile.outside)
        case _:
            hostile.place(kind, file)
    before = {path.name: path.read_bytes() for path in hostile.outside.iterdir()}
    words = [word.format(file=file.relative_to(hostile.project), run=run) for word in WRITING[name]]
    with within_limit():
        result = hostile.shell.run(*words, stdin="")
    assert result.exit_code in {5, 6, 8}, result.output
    assert {path.name: path.read_bytes() for path in hostile.outside.iterdir()} == before


def test_every_command_that_writes_a_file_asks_first_whether_it_is_led_elsewhere() -> None:
    writes = re.compile(r"\.write_text\(|\.write_bytes\(|open_file\(.*\"wb?\"|\.open\(\"[wax]|write_new\(")
    rooms = [file for file in Path(cli.__file__).parent.rglob("*.py") if "demo" not in file.parts]
    writing = {file.name: file.read_text() for file in rooms if writes.search(file.read_text())}
    assert writing.keys() >= {"import_.py", "report.py", "bundle.py", "group.py", "new.py", "new_files.py"}
    asking = {name for name, text in writing.items() if "require_direct(" in text or "write_new(" in text}
    assert asking == writing.keys()
