"""No secret is written anywhere: agents, tools and commands carry stored secrets in every place and every spelling, and
then nothing in the home folder, nor in what was exported from it, holds one."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator, Mapping
from itertools import cycle
from pathlib import Path
from typing import Any

import httpx
import mcp_types as mt
import pytest

from domain.spellings import SPELLED
from handrail.assembly.opening import Assembly, open_assembly
from handrail.assembly.secrets import secrets_of
from handrail.domain.definition.authoring import definition_from
from handrail.domain.journal.mark import START
from handrail.domain.run.legal_controls import Action
from handrail.domain.run.status import RunStatus
from handrail.engine.known_secrets import LOOK_EVERY_S
from handrail.interfaces.http.contract.route import API, MediaType, Method
from handrail.interfaces.http.contract.routes import ROUTES
from handrail.interfaces.http.feed.event_feed import EventFeed
from handrail.logs import start_logging, stop_logging
from handrail.settings import read_settings
from handrail.tools.sdk import PythonTool, ToolContext, fail, tool
from interfaces.http.in_process import as_actor
from interfaces.mcp.surface.agent import KNOWN, Agent, Place, data_of, text_of
from interfaces.shell import Shell

SECRETS = {
    "TOKEN": "zQ7-Xk_92aB3cD4eF5",
    "ODD": 'pä"ss/w+o rd&\\x?=~',
    "WORDS": "correct horse battery",
    "PIN": "48291377",
}
EDGE = 6
"""Characters at either end of encoded data that also depend on what is beside the secret."""


def spellings() -> Iterator[str]:
    for value in SECRETS.values():
        for spell in SPELLED.values():
            yield spell(value)


EVERYTHING = " | ".join(spellings())
SHORTER = " | ".join(SPELLED[how](SECRETS["ODD"]) for how in list(SPELLED)[::3])
CORES = sorted({one if len(one) < 20 else one[EDGE:-EDGE] for one in spellings()} | set(SECRETS.values()))
GUIDED = {
    "id": "g",
    "inputs": {"a": {"default": ""}},
    "steps": [{"id": "p", "prompt": "Do it."}, {"id": "q", "prompt": "B."}],
}
UNDOABLE = {
    "id": "u",
    "on_failure": "compensate",
    "steps": [
        {"id": "w", "tool": "file.write", "args": {"path": "w.txt", "text": "w"}, "undo": {"prompt": "Undo it."}},
        {"id": "r", "tool": "file.read", "args": {"path": "missing"}},
    ],
}
BROKEN = {"id": "b", "steps": [{"id": "r", "tool": "file.read", "args": {"path": "missing"}, "undo": {"prompt": "U."}}]}


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place = Place(tmp_path)
    place.home.mkdir()
    (place.home / "config.toml").write_text('secrets_in = "file"\n')
    for name, value in SECRETS.items():
        secrets_of(place.settings()).keep(name, value, ["*"])
    place.workflow(GUIDED)
    start_logging(place.home / "logs", level="debug", days=3)
    yield place
    stop_logging()


def assert_clean(place: Place, *texts: str) -> None:
    """Nothing on disk except the secrets' own file has one of them, and neither have these texts."""
    files = [
        file for file in place.folder.rglob("*") if file.is_file() and file.name not in {"secrets.json", "leak.txt"}
    ]
    assert any(file.name == "journal.db" for file in files)
    found = {str(file.relative_to(place.folder)): file.read_bytes() for file in files}
    found |= {f"text {number}": text.encode() for number, text in enumerate(texts)}
    leaks = [(name, core) for name, content in found.items() for core in CORES if core.encode() in content]
    assert not leaks, leaks[:5]


# --- agents -----------------------------------------------------------------------------------------------


def values_for(schema: Mapping[str, Any], short: Iterator[str]) -> Iterator[Any]:
    """What this argument can carry: a short secret, and every spelling at once where there is room."""
    kinds = {kind.get("type") for kind in (schema, *schema.get("anyOf", ()))}
    if "enum" in schema or kinds <= {"integer", "boolean"}:
        return
    whole = {EVERYTHING: EVERYTHING, "list": [EVERYTHING, {next(short): next(short)}], "n": 48291377}
    if "object" in kinds:
        yield whole
    elif "array" in kinds:
        yield [next(short), next(short)]
    elif "string" in kinds:
        yield from (next(short), next(short))
        if schema.get("maxLength", 0) > len(EVERYTHING):
            yield EVERYTHING
    else:
        yield from (EVERYTHING, whole, 48291377)


async def arguments(agent: Agent, name: str) -> dict[str, Any]:
    """Arguments of a tool with which it changes something."""
    guided = (await agent.call("workflow_next", workflow="g"))["run"]
    match name:
        case "workflow_get":
            return {"id": "g"}
        case "workflow_next":
            return {"run": guided, "step": "p", "output": "done"}
        case "workflow_validate":
            return {"run": guided, "step": "p", "output": "done"}
        case "save_plan" | "record_plan":
            return {"plan": {**GUIDED, "id": "plan"}}
        case "execute_plan":
            return {"definition": BROKEN, "wait": "5s"}
        case "control":
            return {"run": guided, "action": "pause", "reason": "r"}
        case "record_compensation":
            run = (await agent.call("execute_plan", definition=UNDOABLE, wait="5s"))["run"]
            return {"run": run, "step": "w", "description": "d"}
        case "record_execution_start":
            return {"plan": (await agent.call("record_plan", plan={**GUIDED, "id": "own"}))["plan"]}
        case "record_decision":
            return {"run": guided, "decision": "d", "reason": "r", "step": "p"}
        case "record_action":
            return {"run": guided, "description": "d"}
        case _:
            return {}


@pytest.mark.parametrize("name", KNOWN)
async def test_no_argument_of_any_tool_brings_a_secret_into_the_home(place: Place, name: str) -> None:
    short = cycle([one for one in spellings() if len(one) <= 200])
    answers: list[str] = []
    accepted = 0
    async with place.agent() as agent:
        for argument, schema in KNOWN[name].input["properties"].items():
            for value in values_for(schema, short):
                given = {**await arguments(agent, name), argument: value}
                result = await agent.answer(name, given)
                answers += (text_of(result), json.dumps(data_of(result), ensure_ascii=False))
                accepted += not result.is_error
    assert accepted or name in {"workflow_get", "status", "query_ledger", "record_plan"}
    assert_clean(place, *answers)


async def test_a_repeated_call_with_a_secret_is_still_known_as_the_same(place: Place) -> None:
    async with place.agent() as agent:
        run = (await agent.call("workflow_next", workflow="g"))["run"]
        said = {"run": run, "decision": f"use {SECRETS['TOKEN']}", "reason": EVERYTHING}
        first = await agent.call("record_decision", **said)
        assert await agent.call("record_decision", **said) == {**first, "repeated": True}


async def test_a_client_that_calls_itself_by_a_secret_is_not_recorded_by_it(place: Place) -> None:
    async with place.agent(name=SECRETS["TOKEN"]) as agent:
        run = (await agent.call("workflow_next", workflow="g"))["run"]
        await agent.call("record_decision", run=run, decision="d", reason="r")
    assert_clean(place)


# --- tools ------------------------------------------------------------------------------------------------


def leaking_tools() -> list[PythonTool]:
    @tool("leak.output", effect="none")
    def output(context: ToolContext) -> Any:
        """Return every secret, and say them on the way."""
        context.progress(EVERYTHING)
        logging.getLogger("handrail.test").warning("a tool said %s", EVERYTHING)
        return {EVERYTHING: [EVERYTHING, 48291377, {"deep": SECRETS["ODD"]}]}

    @tool("leak.failure", effect="none")
    def failure() -> Any:
        """Fail with every secret in its message."""
        fail("tool_error", EVERYTHING)

    @tool("leak.bug", effect="none")
    def bug() -> Any:
        """Raise an error with every secret in it."""
        raise ValueError(EVERYTHING)

    return [output, failure, bug]


async def test_nothing_that_a_tool_says_brings_a_secret_into_the_home(place: Place) -> None:
    (place.project / "leak.txt").write_text(EVERYTHING, encoding="utf-8")
    steps = [
        {"id": "read", "tool": "file.read", "args": {"path": "leak.txt"}},
        {"id": "say", "tool": "leak.output", "args": {}},
        {"id": "over", "tool": "file.write", "args": {"path": "leak.txt", "text": "harmless"}},
        {"id": "fail", "tool": "leak.failure", "args": {}},
    ]
    bug = {"id": "bug", "on_failure": "stop", "steps": [{"id": "bug", "tool": "leak.bug", "args": {}}]}
    async with open_assembly(place.settings(), tools=leaking_tools()) as parts:
        await parts.worker.settled((await parts.worker.start(definition_from(bug), {}, actor="person:ada")).id)
        plan = definition_from({"id": "leak", "on_failure": "ask", "steps": steps})
        run = await parts.worker.start(plan, {}, actor="person:ada")
        await parts.worker.settled(run.id)
        assert (place.project / "leak.txt").read_text() == "harmless"
        assert any((place.home / "kept").rglob("*.sealed"))
        assert_clean(place)
        # What an undo needs is kept exactly, but can't be read by who finds the file.
        await parts.control.act(run.id, Action.COMPENSATE, reason=SHORTER, actor="person:ada")
        end = await parts.worker.settled(run.id)
        assert end.status is RunStatus.COMPENSATED
        assert (place.project / "leak.txt").read_text(encoding="utf-8") == EVERYTHING
    assert_clean(place)


# --- commands ---------------------------------------------------------------------------------------------


def test_no_command_brings_a_secret_into_the_home_or_an_export(place: Place) -> None:
    shell = Shell(place.folder)
    file = shell.write((place.project / ".handrail" / "workflows" / "g.yaml").read_text(), "g.yaml")
    stop_logging()
    said = SECRETS["ODD"] + EVERYTHING
    run = shell.json("--log-level", "debug", "run", "start", file, "-i", f"a={said}", "--goal", said, code=4)["run"]
    words = ("--log-level", "debug", "run")
    assert shell.run(*words, "submit", run, "p", "--output", json.dumps({said: said}), "--note", said).exit_code == 4
    assert shell.run(*words, "submit", run, "q", "--vars", json.dumps({"v": said}), "--output", "1").exit_code == 0
    other = shell.json("run", "start", file, code=4)["run"]
    assert shell.run(*words, "cancel", other, "--reason", SHORTER).exit_code == 0
    assert shell.run(*words, "show", said).exit_code == 3
    assert shell.run("journal", "erase", run, "2", "--yes", "--reason", SHORTER).exit_code == 0
    shown = [shell.run("journal", "export").stdout, shell.run("run", "show", run).output]
    bundle = place.folder / "run.proof"
    assert shell.run("journal", "export", run, "--bundle", str(bundle)).exit_code == 0
    assert "[redacted]" in shown[0]
    assert_clean(place, *shown)


@pytest.mark.parametrize("name", SECRETS)
def test_a_definition_with_a_secret_in_it_is_refused_with_what_to_write(place: Place, name: str) -> None:
    shell = Shell(place.folder)
    step = {"id": "p", "prompt": f"Log in with {SECRETS[name]}."}
    file = shell.write(json.dumps({"id": "plan", "name": "Plan", "steps": [step]}), "plan.json")
    for words in (("plan", "save", file), ("run", "start", file)):
        error = shell.json(*words, code=5)["error"]
        assert f"${{secret:{name}}}" in error["message"]
        assert f"`${{secret:{name}}}`" in error["hint"]
        assert SECRETS[name] not in json.dumps(error, ensure_ascii=False)
    (place.folder / "plan.json").unlink()
    assert_clean(place)


# --- what was journaled before its secret was stored ------------------------------------------------------


CHECKED = {
    "id": "c",
    "name": "Checked",
    "steps": [
        {"id": "p", "prompt": "Do it."},
        {"id": "q", "prompt": "B.", "checks": [{"rule": "equals", "value": "right"}]},
        {"id": "go", "approve": "Use {{ steps.p.output }}?"},
    ],
}


async def leaked(client: httpx.AsyncClient) -> str:
    """A run that knows every secret, from before any was stored."""
    run = str((await client.post("/api/v1/runs", json={"definition": CHECKED, "goal": SHORTER})).json()["run"])
    for step, output in (("p", EVERYTHING), ("q", "right")):
        body = {"step": step, "output": output, "note": SHORTER, "vars": {"v": 48291377}}
        answer = await client.post(f"/api/v1/runs/{run}/submit", json=body)
        assert answer.json()["accepted"], answer.text
    return run


def leaks_in(*texts: str) -> list[str]:
    return [core for text in texts for core in CORES if core in text or json.dumps(core)[1:-1] in text]


async def test_no_answer_of_the_api_and_no_event_of_its_feed_has_a_secret_from_before_it_was_stored(
    tmp_path: Path,
) -> None:
    settings = read_settings(
        {"home": str(tmp_path / "home"), "project": str(tmp_path)}, {"HANDRAIL_SECRETS_IN": "file"}
    )
    async with as_actor(tmp_path, "person:ada") as (client, parts):
        run = await leaked(client)
        known = {"run": run, "other": run, "step": "p", "n": "3", "action": "cancel"}
        known |= {"plan": "p", "workflow": "c", "rule": "equals", "server": "s"}
        paths = [
            API + route.path.replace(":path}", "}").replace(":int}", "}").format(**known)
            for route in ROUTES
            if route.method is Method.GET and route.form is MediaType.JSON and route.name != "doctor"
        ]
        before = [(await client.get(path)).text for path in paths]
        assert len({path for path, text in zip(paths, before, strict=True) if leaks_in(text)}) > 5, "it does leak"
        for name, value in SECRETS.items():
            secrets_of(settings).keep(name, value, ["*"])
        await asyncio.sleep(2 * LOOK_EVERY_S)
        for path in (*paths, f"{API}/runs/{SECRETS['TOKEN']}", f"{API}/approvals/{run}/go"):
            answer = await client.get(path)
            assert isinstance(answer.json(), dict), path
            assert not leaks_in(answer.text), path
        frames = await EventFeed(lambda: opened(parts)).stored_after(START)
        assert b"[redacted]" in b"".join(frame.data for frame in frames)
        assert not leaks_in(*(frame.data.decode() for frame in frames))
        checked = {"run": run, "step": "q", "output": EVERYTHING}
        for path, body in (
            (f"{API}/plans/check", checked),
            (f"{API}/runs/{run}/skip", {"reason": "", "step": SHORTER}),
        ):
            answer = await client.post(path, json=body)
            assert not leaks_in(answer.text), path
    shell = Shell(tmp_path)
    for kind in ("--html", "--md"):
        report = await asyncio.to_thread(shell.run, "run", "report", run, kind, "-")
        assert report.exit_code == 0, report.output
        assert "redacted" in report.stdout
        assert not leaks_in(report.stdout), kind


async def opened(parts: Assembly) -> Assembly:
    return parts


async def test_no_resource_and_no_question_has_a_secret_from_before_it_was_stored(tmp_path: Path) -> None:
    asked: list[str] = []

    async def person(_: object, params: Any) -> mt.ElicitResult:
        asked.append(params.message)
        return mt.ElicitResult(action="cancel")

    place = Place(tmp_path)
    place.home_config('secrets_in = "file"\n')
    place.workflow(CHECKED)
    async with place.agent(elicitation_callback=person) as agent:
        run = (await agent.call("workflow_next", workflow="c", goal=SHORTER))["run"]
        await agent.call("workflow_next", run=run, step="p", output=EVERYTHING)
        await agent.call("workflow_next", run=run, step="q", output="right")
        uris = [f"handrail://runs/{run}", f"handrail://runs/{run}/journal", "handrail://runs"]
        assert leaks_in(await content(agent, uris[1]))
        for name, value in SECRETS.items():
            secrets_of(place.settings()).keep(name, value, ["*"])
        await asyncio.sleep(2 * LOOK_EVERY_S)
        for uri in uris:
            assert not leaks_in(await content(agent, uri)), uri
        await agent.refused("control", "forbidden", run=run, action="approve", reason="r")
    assert "[redacted]" in asked[0]
    assert not leaks_in(*asked)


async def content(agent: Agent, uri: str) -> str:
    (one,) = (await agent.client.read_resource(uri)).contents
    return str(getattr(one, "text", ""))
