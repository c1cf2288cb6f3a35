"""Writes: once for each key, approvals bound to what was shown, and nothing around the policy."""

from __future__ import annotations

import ast
import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from handrail.assembly.people import passphrase_of
from handrail.domain.policy.act import Act
from handrail.domain.policy.table import TABLE, may
from handrail.domain.policy.verdict import Allowed
from handrail.domain.run.legal_controls import ANSWERS, Action
from handrail.interfaces.http.contract.route import Method, Route
from handrail.interfaces.http.contract.routes import ROUTES
from handrail.interfaces.http.contract.run_routes import CONTROLS
from handrail.settings import read_settings
from interfaces.http.in_process import as_actor
from interfaces.http.live_console import PLAN, PROMPTED, LiveConsole, serving
from tidy.yardstick import SOURCE

WRITES = [route for route in ROUTES if route.is_write]


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveConsole]:
    with serving(tmp_path_factory.mktemp("writes")) as live:
        yield live


def asked(client: httpx.Client, run: str) -> dict[str, Any]:
    answer: dict[str, Any] = client.get(f"/api/v1/approvals/{run}/ask").json()
    return answer


# --- keys -----------------------------------------------------------------------------------------------


def test_the_same_key_with_the_same_request_happens_once(console: LiveConsole) -> None:
    key = {"idempotency-key": "start-1"}
    with console.script() as client:
        first = client.post("/api/v1/runs", json={"definition": PLAN}, headers=key)
        again = client.post("/api/v1/runs", json={"definition": PLAN}, headers=key)
        assert (again.status_code, again.json()["run"]) == (201, first.json()["run"])
        assert again.headers["idempotent-replayed"] == "true"
        other = client.post("/api/v1/runs", json={"definition": PROMPTED}, headers=key)
        assert (other.status_code, other.json()["name"]) == (409, "conflict")
        long = client.post("/api/v1/runs", json={"definition": PLAN}, headers={"idempotency-key": "k" * 201})
        assert long.status_code == 400


def test_a_refusal_is_repeated_under_its_key_too(console: LiveConsole) -> None:
    with console.script() as client:
        answers = [
            client.post("/api/v1/runs/run_none/pause", json={"reason": "x"}, headers={"idempotency-key": "k"})
            for _ in range(2)
        ]
    assert [one.status_code for one in answers] == [404, 404]
    assert answers[0].content == answers[1].content


async def test_two_requests_at_once_under_one_key_are_one(console: LiveConsole) -> None:
    headers = {"authorization": f"Bearer {console.key}", "idempotency-key": "at-once"}
    async with httpx.AsyncClient(base_url=console.url, headers=headers, trust_env=False, timeout=30) as client:
        calls = [client.post("/api/v1/runs", json={"definition": PLAN}) for _ in range(5)]
        answers = await asyncio.gather(*calls)
    assert len({one.json()["run"] for one in answers}) == 1


def test_a_start_keeps_its_key_over_a_restart(tmp_path: Path) -> None:
    runs = []
    for _ in range(2):
        with serving(tmp_path) as live, live.script() as client:
            body = {"definition": PLAN, "inputs": {"name": "z"}}
            runs.append(client.post("/api/v1/runs", json=body, headers={"idempotency-key": "k"}).json())
            live.process.kill()
    assert runs[0]["run"] == runs[1]["run"]
    assert runs[1]["repeated"] is True


# --- approvals ------------------------------------------------------------------------------------------


def test_an_approval_shows_what_follows_and_takes_only_its_own_digest(console: LiveConsole) -> None:
    run = console.started()
    with console.browser() as browser:
        shown = asked(browser, run)
        assert (shown["text"], shown["may_answer"], shown["needs_passphrase"]) == ("Ship x?", True, False)
        assert [one["step"] for one in shown["effects"]] == ["ship"]
        path = f"/api/v1/approvals/{run}/ask"
        blind = browser.post(path, json={"answer": "approve", "reason": "fine"})
        assert (blind.status_code, blind.json()["name"]) == (400, "invalid")
        stale = browser.post(path, json={"answer": "approve", "reason": "fine", "digest": "sha256:" + "0" * 64})
        assert (stale.status_code, stale.json()["name"]) == (409, "conflict")
        answer = {"answer": "approve", "reason": "looks right", "digest": shown["digest"]}
        assert browser.post(path, json=answer).status_code == 200
        late = browser.post(path, json=answer)
        assert late.status_code in (404, 409)
        (given,) = browser.get(f"/api/v1/runs/{run}/journal", params={"kind": "approval_given"}).json()["events"]
    assert (given["data"]["channel"], given["data"]["reason"]) == ("console", "looks right")


def test_a_script_answers_by_another_channel_that_can_be_closed(tmp_path: Path) -> None:
    config = '[approvals]\nchannels = ["terminal", "console"]\n'
    with serving(tmp_path, config=config) as live:
        run = live.started()
        with live.script() as script, live.browser() as browser:
            seen = asked(script, run)
            assert (seen["may_answer"], "command" in seen["why_not"]) == (False, True)
            answer = {"answer": "approve", "reason": "fine", "digest": seen["digest"]}
            refused = script.post(f"/api/v1/approvals/{run}/ask", json=answer)
            assert (refused.status_code, refused.json()["name"]) == (403, "forbidden")
            assert asked(browser, run)["may_answer"] is True
            assert browser.post(f"/api/v1/approvals/{run}/ask", json=answer).status_code == 200


def test_where_a_passphrase_is_needed_an_answer_without_it_does_not_count(tmp_path: Path) -> None:
    settings = read_settings({"home": str(tmp_path / "home"), "project": str(tmp_path)}, {})
    with serving(tmp_path, config="[approvals]\npassphrase = true\n") as live:
        passphrase_of(settings).keep("open sesame, please", old=None)
        run = live.started()
        with live.browser() as browser:
            seen = asked(browser, run)
            assert seen["needs_passphrase"] is True
            answer = {"answer": "approve", "reason": "fine", "digest": seen["digest"]}
            path = f"/api/v1/approvals/{run}/ask"
            assert browser.post(path, json=answer).status_code == 403
            assert browser.post(path, json={**answer, "passphrase": "wrong"}).status_code == 403
            skip = {"reason": "no time", "step": "ask"}
            assert browser.post(f"/api/v1/runs/{run}/skip", json=skip).status_code == 403
            assert asked(browser, run)["digest"] == seen["digest"]


# --- the policy -----------------------------------------------------------------------------------------


def filled(route: Route, **known: str) -> str:
    path = route.path.replace(":path}", "}").replace(":int}", "}")
    return "/api/v1" + path.format(
        **{"run": "run_none", "step": "ask", "plan": "p", "workflow": "w", "node": "n", **known}
    )


@pytest.mark.parametrize("actor", ["agent:claude", "handrail", "worker:w-1"])
async def test_a_route_that_the_policy_closes_to_an_actor_is_closed(tmp_path: Path, actor: str) -> None:
    """The matrix of the table: who may do none of the acts of a route is refused before anything is looked up."""
    async with as_actor(tmp_path, actor) as (client, parts):
        before = (await parts.writer.reader.store.end()).events
        refused = set()
        for route in WRITES:
            answer = await client.post(filled(route), json={})
            if answer.status_code == 403:
                refused.add(route.name)
        after = (await parts.writer.reader.store.end()).events
    policy = parts.writer.dispatch.policy
    closed = {
        route.name for route in WRITES if not any(isinstance(may(actor, act, policy), Allowed) for act in route.acts)
    }
    assert refused == closed
    assert closed, "the table closes something to everybody but people"
    assert before == after


async def test_dispatch_asks_again_with_the_run_before_it(tmp_path: Path) -> None:
    """An agent may skip some steps, but not this one; and it may not answer, whatever the route lets through."""
    async with as_actor(tmp_path, "agent:claude") as (client, _):
        gated = {**PROMPTED, "steps": [{**PROMPTED["steps"][0], "skippable": "person"}]}
        started = await client.post("/api/v1/runs", json={"definition": gated})
        run = started.json()["run"]
        body = {"step": "write", "outcome": "skipped", "note": "no time"}
        answer = await client.post(f"/api/v1/runs/{run}/submit", json=body)
        assert (answer.status_code, answer.json()["name"]) == (403, "forbidden")
        waiting = (await client.post("/api/v1/runs", json={"definition": PLAN})).json()["run"]
        async with asyncio.timeout(30):
            while (seen := await client.get(f"/api/v1/approvals/{waiting}/ask")).status_code == 404:
                await asyncio.sleep(0.02)
        assert seen.json()["may_answer"] is False
        yes = {"answer": "approve", "reason": "me", "digest": seen.json()["digest"]}
        refused = await client.post(f"/api/v1/approvals/{waiting}/ask", json=yes)
        assert (refused.status_code, refused.json()["name"]) == (403, "forbidden")


def test_every_write_names_what_it_is_to_the_policy() -> None:
    changing = {route.name for route in ROUTES if route.method is Method.POST} - {"check_plan", "verify_bundle"}
    assert {route.name for route in WRITES} == changing
    named = {act for route in WRITES for act in route.acts}
    beyond = {Act.EXECUTE, Act.ADOPT, Act.ARCHIVE, Act.DELETE_ARCHIVED, Act.NOTIFY}  # workers, and the command line
    assert named == set(TABLE) - beyond, "an act that no route names, or a route that names none"
    assert {action for action in Action if action not in ANSWERS} == set(CONTROLS)


WRITING = {"append", "grant", "start", "act", "save", "retire", "record", "record_compensation", "submit", "seal"}
ASKED = {"grant", "start", "act", "save", "retire", "record", "record_compensation", "submit"}
"""The engine's entrances: each asks the policy itself (tests/tidy/test_policy.py)."""
OWN_CHECK = {"proving.py": "seal: a checkpoint changes no event; its route is for operators"}


def test_no_handler_writes_around_the_engine() -> None:
    """Handlers reach what changes a store only through the entrances that ask the policy."""
    for file in sorted((SOURCE / "interfaces" / "http").rglob("*.py")):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            on = ast.unparse(node.func.value)
            is_of_store = any(word in on for word in ("store", "journal", "record_writer", "dispatch", "writer"))
            if node.func.attr in WRITING and is_of_store and not on.endswith(".watchers"):
                assert node.func.attr in ASKED or file.name in OWN_CHECK, f"{file.name}:{node.lineno} {on}"
    source = (SOURCE / "interfaces" / "http" / "edge" / "api_part.py").read_text(encoding="utf-8")
    assert source.count("self.handlers[") == 1, "one way to a handler"
    assert source.index("require_act(route") < source.index("self.handlers[")


def test_bodies_are_decoded_strictly() -> None:
    for route in ROUTES:
        if route.body is not None:
            with pytest.raises(msgspec.ValidationError):
                msgspec.json.decode(b'{"no_such_field": 1}', type=route.body)
