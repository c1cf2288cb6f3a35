"""Traces, end to end: real processes, a real collector, a tool server and an API that note what they were sent."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from handrail.domain.journal.event import AttemptStarted
from interfaces.http.live_console import LiveConsole, serving
from interfaces.mcp.stdio.client import LEGACY, Client
from interfaces.metrics.load import journal_of, plan
from interfaces.shell import Shell, until
from interfaces.tracing.collector import Collector, SeenSpan, collecting
from interfaces.tracing.noting_server import WORDS
from interfaces.tracing.scene import AGENT, CONTEXT, TRACE, NotingApi, agent, call, declare, logged, metas, noting_api


@dataclass
class Traced:
    """A server that several tests share, with what it talks to."""

    folder: Path
    collector: Collector
    api: NotingApi
    console: LiveConsole


@pytest.fixture(scope="module", autouse=True)
def _soon() -> Iterator[None]:
    """Spans are sent at once instead of every five seconds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OTEL_BSP_SCHEDULE_DELAY", "100")
        yield


@pytest.fixture(scope="module")
def traced(_soon: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Traced]:
    folder = tmp_path_factory.mktemp("traced")
    with collecting() as collector, noting_api() as api:
        declare(folder, collector.url)
        with serving(folder) as console:
            yield Traced(folder, collector, api, console)


def chain(collector: Collector, name: str) -> list[str]:
    """The names of a span and of those around it, from the inside; the last is an id that no span here has."""
    by_id = {one.id: one for one in collector.spans}
    one: SeenSpan | None = collector.one(name)
    names = []
    while one is not None:
        names.append(one.name)
        above, one = one.parent, by_id.get(one.parent)
    return [*names, above]


def test_a_trace_leads_from_the_agent_through_the_run_to_whatever_it_calls(traced: Traced) -> None:
    collector, api = traced.collector, traced.api
    ship = plan(
        "ship",
        {"id": "branch", "tool": "git.create_branch", "args": {"name": "b1"}},
        {"id": "ping", "tool": "http.request", "args": {"url": f"{api.url}ship"}},
    )
    with agent(traced.console) as client:
        run = call(client, "execute_plan", {"definition": ship, "wait": "20s"}, CONTEXT)["run"]
        assert call(client, "conjure-anything", {}, CONTEXT)["code"] == -32602
    until(lambda: collector.named("invoke_workflow ship") and collector.named("tools/call _OTHER"))
    assert {one.trace for one in collector.spans if one.attributes.get("handrail.run.id") == run} == {TRACE}
    around = ["attempt branch", "step branch", "invoke_workflow ship", "tools/call execute_plan", AGENT]
    assert chain(collector, "execute_tool git.create_branch") == ["execute_tool git.create_branch", *around]
    assert chain(collector, "MCP send tools/call create_branch")[1:] == ["execute_tool git.create_branch", *around]
    assert chain(collector, "execute_tool http.request")[1:3] == ["attempt ping", "step ping"]
    assert collector.one("invoke_workflow ship").service == "handrail"
    (meta,) = metas(traced.folder)
    sent = collector.one("MCP send tools/call create_branch")
    assert meta["traceparent"] == f"00-{TRACE}-{sent.id}-01"
    (headers,) = api.got("/ship")
    assert headers["traceparent"] == f"00-{TRACE}-{collector.one('execute_tool http.request').id}-01"
    for carried in (meta, headers):
        assert (carried["tracestate"], carried["baggage"]) == ("vendor=a1", "team=blue")
    # Each request has one span, and no name that a caller made up.
    requests = Counter(one.name for one in collector.spans if one.kind == SERVER)
    assert (requests["tools/call execute_plan"], requests["tools/call _OTHER"]) == (1, 1)
    assert b"conjure-anything" not in b"".join(collector.raw)
    calls = [line for line in logged(traced.folder) if line.get("run") == run and line["message"].startswith("call of")]
    assert len(calls) == 2
    assert {line["trace_id"] for line in calls} == {TRACE}


SERVER = 2
"""The kind of a span that answers a request, in OTLP."""


def test_headers_count_where_meta_says_nothing(traced: Traced) -> None:
    collector = traced.collector
    context = {**CONTEXT, "traceparent": f"00-{OTHER}-{AGENT}-01"}
    with agent(traced.console, **context) as client:
        call(client, "execute_plan", {"definition": plan("by-mcp", SET), "wait": "20s"})
    with traced.console.script(**context) as script:
        assert script.post("/api/v1/runs", json={"definition": plan("by-api", SET)}).status_code == 201
    until(lambda: len(collector.named("invoke_workflow by-")) == 2)
    by_mcp, by_api = (collector.named(f"invoke_workflow {name}") for name in ("by-mcp", "by-api"))
    (request,) = [one for one in collector.named("tools/call execute_plan") if one.trace == OTHER]
    assert [(one.trace, one.parent) for one in by_mcp] == [(OTHER, request.id)]
    assert request.parent == AGENT
    assert [(one.trace, one.parent) for one in by_api] == [(OTHER, AGENT)]


OTHER = "0af7651916cd43dd8448eb211c80319c"
SET = {"id": "set", "tool": "value.set", "args": {"value": 1}}


def test_another_process_goes_on_with_the_trace_of_a_run(tmp_path: Path) -> None:
    with collecting() as collector, noting_api() as api:
        declare(tmp_path, collector.url)
        get = plan("get", SET, {"id": "ping", "tool": "http.request", "args": {"url": api.url}, "timeout": "50s"})
        api.hangs = True
        with serving(tmp_path) as console, agent(console) as client:
            call(client, "execute_plan", {"definition": get}, CONTEXT)
            until(lambda: api.headers and collector.named("step set"))
            until(
                lambda: any(
                    isinstance(one.event, AttemptStarted) and one.event.step == "ping" for one in journal_of(console)
                )
            )
            console.process.kill()
        api.hangs = False
        with serving(tmp_path):
            until(lambda: collector.named("invoke_workflow"))
        attempts = collector.named("attempt ping")
        outcomes = [(one.attributes["handrail.attempt.outcome"], one.error) for one in attempts]
        assert sorted(outcomes) == [("lost", True), ("ok", False)]
        (step,) = collector.named("step ping")
        assert {one.parent for one in attempts} == {step.id}
        run = collector.one("invoke_workflow get")
        assert {one.parent for one in collector.named("step ")} == {run.id}
        # The request's own span was lost with its process; that it was there is known from its id.
        assert run.parent != AGENT
        assert {one.trace for one in collector.named("step ") + attempts + [run]} == {TRACE}
        assert [headers["traceparent"].split("-")[1] for headers in api.headers] == [TRACE, TRACE]
        assert run.start <= collector.one("step set").start
        assert run.end >= step.end >= max(one.end for one in attempts)


def test_over_stdio_each_request_has_a_span_too(tmp_path: Path) -> None:
    with collecting() as collector:
        declare(tmp_path, collector.url)
        command = ["mcp", "--home", str(tmp_path / "home"), "--project", str(tmp_path)]
        client = Client([sys.executable, "-m", "handrail", *command], tmp_path)
        hello = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
        client.ask(1, "initialize", hello, modern=False)
        client.answer(1)
        client.tell("notifications/initialized")
        asked = {"name": "execute_plan", "arguments": {"definition": plan("quick", SET), "wait": "20s"}}
        client.ask(2, "tools/call", {**asked, "_meta": CONTEXT}, modern=False)
        run = client.answer(2)["result"]["structuredContent"]["run"]
        client.ask(3, "tools/call", {"name": "status", "arguments": {"run": run}, "_meta": CONTEXT}, modern=False)
        client.answer(3)
        assert client.end() == 0, client.stderr
        assert chain(collector, "execute_tool value.set")[1:] == [
            *("attempt set", "step set", "invoke_workflow quick", "tools/call execute_plan"),
            AGENT,
        ]
        assert collector.one("tools/call status").attributes["handrail.run.id"] == run


def test_what_was_said_in_a_run_is_in_no_span(tmp_path: Path) -> None:
    with collecting() as collector:
        declare(tmp_path, collector.url)
        shell = Shell(tmp_path)
        told = plan(
            "told",
            {"id": "note", "tool": "file.write", "args": {"path": "a.txt", "text": "argument-4711"}},
            {"id": "bad", "tool": "git.create_branch", "args": {"name": "broken"}, "effect": "none"},
            on_failure="compensate",
        )
        with shell.process("run", "start", shell.write(json.dumps(told), "told.json"), "--json") as process:
            code, said, complaint = process.end()
        assert code == 9, complaint
        assert WORDS in said
        until(lambda: collector.named("invoke_workflow"))
        raw = b"".join(collector.raw)
        assert b"argument-4711" not in raw
        assert WORDS.encode() not in raw
        assert {one.words for one in collector.spans} == {""}
        run = collector.one("invoke_workflow told")
        assert (run.error, run.attributes["error.type"]) == (True, "compensated")
        assert chain(collector, "undo note")[1:3] == ["compensate", "invoke_workflow told"]
        assert collector.one("attempt bad").attributes["error.type"] == "tool_error"


def test_what_its_caller_does_not_sample_is_not_sent_and_passed_on_as_such(traced: Traced) -> None:
    collector, api = traced.collector, traced.api
    ping = {"id": "ping", "tool": "http.request", "args": {"url": f"{api.url}unsampled"}}
    with traced.console.script(traceparent=f"00-{UNSAMPLED}-{AGENT}-00") as script:
        script.post("/api/v1/runs", json={"definition": plan("unsampled", ping)})
    until(lambda: api.got("/unsampled"))
    with traced.console.script() as script:
        script.post("/api/v1/runs", json={"definition": plan("afterwards", SET)})
    until(lambda: collector.named("invoke_workflow afterwards"))
    assert UNSAMPLED not in {one.trace for one in collector.spans}
    assert [headers["traceparent"][:36] for headers in api.got("/unsampled")] == [f"00-{UNSAMPLED}-"]
    assert [headers["traceparent"][-3:] for headers in api.got("/unsampled")] == ["-00"]


UNSAMPLED = "1af7651916cd43dd8448eb211c80319c"


def test_without_a_collector_the_caller_s_context_is_passed_on_and_logged(tmp_path: Path) -> None:
    with noting_api() as api:
        declare(tmp_path, "")
        ship = plan(
            "ship",
            {"id": "branch", "tool": "git.create_branch", "args": {"name": "b1"}},
            {"id": "ping", "tool": "http.request", "args": {"url": api.url}},
        )
        with serving(tmp_path) as console, agent(console) as client:
            run = call(client, "execute_plan", {"definition": ship, "wait": "20s"}, CONTEXT)["run"]
            until(lambda: console.shell.json("run", "show", run)["status"] == "completed")
            # Another request, of another trace, must not change what is passed on.
            call(client, "execute_plan", {"definition": {**ship, "id": "plain"}, "wait": "20s"})
            until(lambda: len(api.headers) == 2)
        first, second = metas(tmp_path)
        assert {name: first[name] for name in CONTEXT} == CONTEXT
        assert not set(CONTEXT) & set(second)
        assert {name: api.headers[0][name] for name in CONTEXT} == CONTEXT
        assert not set(CONTEXT) & set(api.headers[1])
        calls = [line for line in logged(tmp_path) if line["message"].startswith("call of")]
        assert [line.get("trace_id") for line in calls] == [TRACE, TRACE, None, None]


LOOK = """
import sys
from click.testing import CliRunner
from handrail.interfaces.cli.program import program
result = CliRunner().invoke(program, ["run", "start", "plan.json"])
assert result.exit_code == 0, result.output
print(sorted(name for name in sys.modules if name.startswith(("opentelemetry", "handrail.traces", "requests"))))
"""


def test_without_a_collector_nothing_of_it_is_imported(tmp_path: Path) -> None:
    Shell(tmp_path).write(json.dumps(plan("quick", SET)), "plan.json")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    environment["HANDRAIL_HOME"] = str(tmp_path / "home")
    done = subprocess.run(
        [sys.executable, "-c", LOOK], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "['handrail.traces', 'handrail.traces.address']"


def test_a_collector_that_is_away_costs_a_warning_and_no_run(tmp_path: Path) -> None:
    environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "HANDRAIL_HOME": str(tmp_path / "home")}
    Shell(tmp_path).write(json.dumps(plan("quick", SET)), "plan.json")
    done = started_with(tmp_path, environment)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.count("spans can't be sent") <= 1


def test_an_address_that_makes_no_sense_costs_a_warning_and_no_run(tmp_path: Path) -> None:
    Shell(tmp_path).write(json.dumps(plan("quick", SET)), "plan.json")
    done = started_with(tmp_path, {"HANDRAIL_TRACE_ENDPOINT": "localhost", "HANDRAIL_HOME": str(tmp_path / "home")})
    assert done.returncode == 0, done.stderr
    assert "nothing is traced: trace_endpoint is no address of a collector" in done.stderr


def started_with(folder: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command: list[Any] = [sys.executable, "-m", "handrail", "run", "start", "plan.json"]
    given = {**os.environ, **environment}
    return subprocess.run(command, cwd=folder, env=given, capture_output=True, text=True, check=False)
