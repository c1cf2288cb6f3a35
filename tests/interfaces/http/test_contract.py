"""The contract: one table, its document, and a client that is generated from nothing but the document."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import jsonschema_rs
import pytest

from handrail.interfaces.http.api.handlers import HANDLERS
from handrail.interfaces.http.contract.openapi import FILE, encoded
from handrail.interfaces.http.contract.route import MediaType, Method
from handrail.interfaces.http.contract.routes import ROUTES
from interfaces.http.live_console import PLAN, PROMPTED, LiveConsole, serving

DOCUMENT: dict[str, Any] = json.loads(FILE.read_bytes())


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveConsole]:
    with serving(tmp_path_factory.mktemp("contract")) as live:
        yield live


@pytest.fixture(scope="module")
def known(console: LiveConsole) -> dict[str, str]:
    """A value for every parameter in a path."""
    run, other = console.started(), console.started(inputs={"name": "y"})
    with console.script() as script:
        assert script.post("/api/v1/plans", json={"plan": PLAN}).status_code == 201
    named = {"run": run, "other": other, "step": "ask", "n": "1", "action": "compensate"}
    return {**named, "plan": "ship-it", "workflow": "bug-fix-test-first", "rule": "file_exists", "server": "nowhere"}


def test_the_shipped_document_is_that_of_the_table() -> None:
    assert FILE.read_bytes() == encoded(), "run: python -m handrail.interfaces.http.contract.openapi"


def test_every_route_has_a_handler_and_every_handler_a_route() -> None:
    assert {route.name for route in ROUTES if route.form is not MediaType.EVENTS} == set(HANDLERS)
    assert len({route.name for route in ROUTES}) == len(ROUTES)
    assert len({(route.method, route.path) for route in ROUTES}) == len(ROUTES)


def test_the_document_is_valid_openapi_3_1() -> None:
    assert DOCUMENT["openapi"] == "3.1.0"
    for schema in DOCUMENT["components"]["schemas"].values():
        jsonschema_rs.meta.validate({"$schema": "https://json-schema.org/draft/2020-12/schema", **schema})
    named = set(DOCUMENT["components"]["schemas"])
    assert {ref.rpartition("/")[2] for ref in refs_in(DOCUMENT)} <= named


def test_only_what_happened_says_how_it_is_undone(console: LiveConsole) -> None:
    steps = [("made", "file.mkdir", {"path": "kept"}), ("failed", "file.append", {"path": "kept", "text": "x"})]
    run = console.started({"id": "w", "steps": [{"id": one, "tool": tool, "args": args} for one, tool, args in steps]})
    with console.script() as script:
        made, failed = (script.get(f"/api/v1/runs/{run}/steps/{one}").json() for one, *_ in steps)
    assert made["undo"]["call"]["own_undo"]
    assert "undo" not in failed


def refs_in(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from (one for name, one in value.items() if name == "$ref")
        for one in value.values():
            yield from refs_in(one)
    elif isinstance(value, list):
        for one in value:
            yield from refs_in(one)


# --- a client made from the document ----------------------------------------------------------------


GETS = [path for path, operations in DOCUMENT["paths"].items() if "get" in operations]
NEEDS_QUERY = {"/api/v1/runs/{run}/values": {"a": "note", "b": "ship"}}
ENDLESS = "/api/v1/events"
MISSING = "/api/v1/tools/{server}"
"""No tool server is declared: the answer is problem details."""


def call(client: httpx.Client, method: str, path: str, known: dict[str, str], **more: Any) -> httpx.Response:
    """Call an operation as a generated client would, and hold the answer against the document."""
    operation = DOCUMENT["paths"][path][method]
    allowed = {one["name"] for one in operation["parameters"] if one["in"] == "query"}
    assert set(more.get("params", {})) <= allowed
    answer = client.request(method, path.format(**known), **more)
    responses = operation["responses"]
    expected = responses.get(str(answer.status_code), responses["default"])
    media, _, _ = answer.headers["content-type"].partition(";")
    assert media in expected["content"], (answer.status_code, answer.text)
    schema = expected["content"][media].get("schema")
    if schema is not None:
        whole = {**schema, "components": DOCUMENT["components"]}
        for line in answer.text.splitlines() if media == "application/x-ndjson" else [answer.text]:
            jsonschema_rs.validator_for(whole).validate(json.loads(line))
    return answer


@pytest.mark.parametrize("path", [path for path in GETS if path != ENDLESS])
def test_every_get_answers_as_the_document_says(console: LiveConsole, known: dict[str, str], path: str) -> None:
    with console.script() as client:
        answer = call(client, "get", path, known, params=NEEDS_QUERY.get(path, {}))
    assert answer.status_code == (404 if path == MISSING else 200), answer.text


def test_writes_answer_as_the_document_says(console: LiveConsole, known: dict[str, str]) -> None:
    with console.script() as client:
        body = {"definition": PROMPTED, "goal": "a word"}
        dry = call(client, "post", "/api/v1/runs", known, json=body, params={"dry_run": "1"})
        assert (dry.status_code, dry.json()["waves"][0][0]["id"]) == (200, "write")
        started = call(client, "post", "/api/v1/runs", known, json=body)
        assert started.status_code == 201
        here = {**known, "run": started.json()["run"]}
        short = {"step": "write", "output": {"word": "x"}}
        refused = call(client, "post", "/api/v1/runs/{run}/submit", here, json=short)
        assert (refused.json()["accepted"], refused.json()["findings"][0]["rule"]) == (False, "length")
        noted = {"decision": "a longer word", "reason": "the check says so"}
        assert call(client, "post", "/api/v1/runs/{run}/decision", here, json=noted).json()["receipt"]
        seen = call(client, "post", "/api/v1/runs/{run}/pause", here, json={}, params={"dry_run": "1"}).json()
        assert (seen["legal"], seen["becomes"], seen["cli"].split()[:3]) == (
            True,
            "paused",
            ["handrail", "run", "pause"],
        )
        paused = call(client, "post", "/api/v1/runs/{run}/pause", here, json={"reason": "wait"}).json()
        assert paused["status"] == "paused"
        again = call(client, "post", "/api/v1/runs/{run}/pause", here, json={"reason": "wait"})
        assert (again.status_code, again.json()["name"]) == (409, "conflict")
        assert again.json()["next"] == {"method": "GET", "path": f"/api/v1/runs/{here['run']}"}
        call(client, "post", "/api/v1/runs/{run}/resume", here, json={"reason": "go on"})
        good = {"step": "write", "output": {"word": "handrail"}}
        accepted = call(client, "post", "/api/v1/runs/{run}/submit", here, json=good).json()
        assert (accepted["accepted"], accepted["status"]) == (True, "completed")
        checked = call(client, "post", "/api/v1/plans/check", known, json={"definition": {"id": "x", "steps": []}})
        assert checked.json()["valid"] is False
        proven = call(client, "get", "/api/v1/journal/bundle/{run}", here).content
        media = {"content-type": "application/octet-stream"}
        account = call(client, "post", "/api/v1/journal/bundle/verify", known, content=proven, headers=media)
        assert (account.json()["run"], account.json()["status"]) == (here["run"], "completed")


def test_an_unknown_run_says_which_was_meant(console: LiveConsole, known: dict[str, str]) -> None:
    run = known["run"][:-1] + ("2" if known["run"][-1] != "2" else "3")
    with console.script() as client:
        answer = call(client, "get", "/api/v1/runs/{run}", {**known, "run": run})
    assert answer.status_code == 404
    assert known["run"] in answer.json()["hint"]
    assert answer.json()["next"]["path"] == "/api/v1/runs"


# --- pages, twins, tags, cursors --------------------------------------------------------------------


PAGES = [route for route in ROUTES if route.page]


@pytest.mark.parametrize("route", PAGES, ids=lambda route: route.page)
def test_the_twin_of_a_page_is_the_very_answer(console: LiveConsole, known: dict[str, str], route: Any) -> None:
    def filled(path: str) -> str:
        return path.replace(":path}", "}").replace(":int}", "}").format(**known)

    query = "?a=note&b=ship" if route.name == "compare_values" else ""
    page = "/index" if route.page == "/" else filled(route.page)
    with console.script() as client:
        twin = client.get(f"{page}.json{query}")
        answer = client.get(f"/api/v1{filled(route.path)}{query}")
        shown = client.get(filled(route.page))
    assert (twin.status_code, twin.json().keys()) == (answer.status_code, answer.json().keys())
    assert shown.headers["content-type"].startswith("text/html")
    changing = {"doctor", "about", "proof_of_run", "show_approval", "list_steps", "show_step", "run_timeline"}
    if route.name not in changing | {"list_clients", "list_nodes", "list_settings", "compare_runs", "show_server"}:
        assert twin.content == answer.content


def test_an_answer_that_the_client_has_is_not_sent_again(console: LiveConsole, known: dict[str, str]) -> None:
    with console.script() as client:
        first = client.get(f"/api/v1/runs/{known['run']}/definition")
        same = client.get(first.request.url.path, headers={"if-none-match": f'"other", {first.headers["etag"]}'})
        other = client.get(first.request.url.path, headers={"if-none-match": '"other"'})
    assert int(first.headers["handrail-at"]) > 0
    assert (same.status_code, same.content, same.headers["etag"]) == (304, b"", first.headers["etag"])
    assert (other.status_code, other.content) == (200, first.content)


def test_a_list_goes_on_where_it_ended(console: LiveConsole, known: dict[str, str]) -> None:
    with console.script() as client:
        whole = client.get("/api/v1/runs", params={"limit": 50}).json()["runs"]
        seen: list[str] = []
        cursor = ""
        for _ in range(50):
            page = client.get("/api/v1/runs", params={"limit": 1, **({"cursor": cursor} if cursor else {})}).json()
            seen += [run["run"] for run in page.get("runs", [])]
            cursor = page.get("cursor", "")
            if not cursor:
                break
    assert seen == [run["run"] for run in whole]
    started = [datetime.fromisoformat(run["started"]) for run in whole]
    assert started == sorted(started, reverse=True)


@pytest.mark.parametrize(
    "query",
    [
        "cursor=nonsense",
        "cursor=WzFd",
        "cursor=W251bGxd",
        "cursor=" + "A" * 600,
        "limit=0",
        "limit=501",
        "limit=many",
        "limit=1&limit=2",
        "state=x&nothing=1",
        "since=yesterday",
    ],
)
def test_a_query_that_is_wrong_is_refused_with_a_hint(console: LiveConsole, query: str) -> None:
    with console.script() as client:
        answer = client.get(f"/api/v1/runs?{query}")
    assert (answer.status_code, answer.json()["name"]) == (400, "invalid"), answer.text
    assert answer.json()["hint"]


@pytest.mark.parametrize(
    ("path", "query", "near"),
    [
        ("runs", "state=complted", "completed"),
        ("runs/{run}/steps", "state=pendng", "pending"),
        ("journal", "run={wrong}", "{run}"),
        ("events", "run={wrong}", "{run}"),
    ],
)
def test_a_filter_that_names_nothing_says_which_was_meant(
    console: LiveConsole, known: dict[str, str], path: str, query: str, near: str
) -> None:
    named = {"run": known["run"], "wrong": known["run"][:-1] + "_"}
    with console.script() as client:
        answer = client.get(f"/api/v1/{path.format(**named)}?{query.format(**named)}")
    assert (answer.status_code, answer.json()["name"]) == (400, "invalid"), answer.text
    assert near.format(**named) in answer.json()["hint"]


def test_an_empty_array_is_there_at_every_depth(console: LiveConsole, known: dict[str, str]) -> None:
    with console.script() as client:
        assert client.get("/api/v1/runs?workflow=nothing").json()["runs"] == []
        assert client.get("/api/v1/journal?actor=agent:nobody").json()["events"] == []
        (step,) = client.get(f"/api/v1/runs/{known['run']}/steps?state=waiting").json()["steps"]
        assert step["checks"] == []
        asked = client.get("/api/v1/approvals").json()
    assert asked["approvals"][0]["by"] == []
    schemas = DOCUMENT["components"]["schemas"]
    for name in ("RunPage", "StepView", "ApprovalPage", "Home", "Guided"):
        arrays = {one for one, schema in schemas[name]["properties"].items() if schema.get("type") == "array"}
        assert arrays <= set(schemas[name]["required"]), name
    assert "state" not in schemas["RunsQuery"].get("required", []), "what is asked stays optional"


def test_runs_are_found_by_their_state_workflow_words_and_starter(console: LiveConsole, known: dict[str, str]) -> None:
    def found(**query: str) -> set[str]:
        with console.script() as client:
            return {run["run"] for run in client.get("/api/v1/runs", params=query).json().get("runs", [])}

    mine = {known["run"], known["other"]}
    assert mine <= found(state="waiting")
    assert not mine & found(state="completed,failed")
    assert mine <= found(workflow="ship-it", since="1h")
    assert found(workflow="ship-it", until="1h") == set()
    assert found(q=known["run"]) == {known["run"]}
    assert mine <= found(by="person:" + Path.home().owner())
    assert found(by="agent:nobody") == set()


def test_the_methods_of_a_route_are_those_of_the_table(console: LiveConsole) -> None:
    with console.script() as client:
        for route in ROUTES:
            if any(other.path == route.path and other.method is not route.method for other in ROUTES):
                continue
            wrong = "POST" if route.method is Method.GET else "GET"
            path = (
                route.path.replace(":path}", "}")
                .replace(":int}", "}")
                .format(
                    run="run_x",
                    step="s",
                    n=1,
                    other="o",
                    action="a",
                    plan="p",
                    workflow="w",
                    rule="r",
                    server="s",
                    node="n",
                )
            )
            answer = client.request(wrong, f"/api/v1{path}", json={} if wrong == "POST" else None)
            assert answer.status_code in (404, 405), (wrong, path, answer.status_code)
            assert answer.headers["content-type"] == "application/problem+json", path
            assert (answer.json()["status"], bool(answer.json()["hint"])) == (answer.status_code, True)


def test_a_wrong_method_is_a_problem_that_says_which_are_right(console: LiveConsole) -> None:
    run = console.started()
    cases = {
        ("POST", "/api/v1/home"): "GET, HEAD",
        ("DELETE", "/api/v1/runs"): "GET, HEAD, POST",
        ("PUT", f"/runs/{run}"): "GET, HEAD",
        ("PATCH", "/api/v1/ticket"): "POST",
        ("POST", "/livez"): "GET, HEAD",
    }
    with console.script() as script:
        for (method, path), allowed in cases.items():
            answer = script.request(method, path)
            assert (answer.status_code, answer.headers["allow"]) == (405, allowed), path
            problem = answer.json()
            assert (problem["status"], problem["name"], problem["hint"]) == (405, "invalid", f"use {allowed}")
        assert script.request("DELETE", "/nowhere").status_code == 404


def test_every_page_that_has_an_answer_has_its_twin(console: LiveConsole) -> None:
    with console.script() as script:
        for page in ("doctor", "clients", "workers", "projects", "secrets", "configuration", "about"):
            twin = script.get(f"/settings/{page}.json")
            assert (twin.status_code, twin.headers["content-type"]) == (200, "application/json"), page


def test_secrets_are_listed_by_name_and_never_by_value(console: LiveConsole) -> None:
    console.shell.run("secrets", "set", "REGISTRY_TOKEN", "--for", "git.*", stdin="s3cret-value")
    with console.script() as script:
        answer = script.get("/api/v1/secrets")
    (one,) = answer.json()["secrets"]
    assert (one["name"], one["given_to"]) == ("REGISTRY_TOKEN", ["git.*"])
    assert "s3cret-value" not in answer.text


def test_list_and_detail_of_a_workflow_count_the_same_runs(console: LiveConsole) -> None:
    flow = {"id": "count-me", "name": "Count me", "version": "1.0.0", "steps": [{"id": "ask", "approve": "Go?"}]}
    console.shell.write(json.dumps(flow), ".handrail/workflows/count-me.yaml")
    with console.script() as script:
        runs = [script.post("/api/v1/runs", json={"workflow": "count-me"}).json()["run"] for _ in range(3)]
        script.post(f"/api/v1/runs/{runs[0]}/cancel", json={"reason": "enough"})
        listed = script.get("/api/v1/library", params={"q": "count-me"}).json()["workflows"][0]
        shown = script.get("/api/v1/library/count-me").json()
    assert (listed["runs"], listed["ended"], listed.get("completed", 0)) == (3, 1, 0)
    assert (len(shown["runs"]), shown["ended"], shown.get("completed", 0)) == (3, 1, 0)
