"""`query_ledger`: every filter, pages without loss, large events in parts, and proof."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from interfaces.mcp.surface.agent import Agent, Place, joined, read, write

PAGES_MAX = 500
PLAN = {"name": "My work", "steps": ["one", "two", "three"]}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


async def started(agent: Agent) -> str:
    await agent.call("record_plan", plan=PLAN)
    return str((await agent.call("record_execution_start", plan="my-work"))["run"])


async def pages(agent: Agent, **asked: Any) -> list[dict[str, Any]]:
    """Every page of a query, to the end."""
    found = [await agent.call("query_ledger", **asked)]
    while "cursor" in found[-1]:
        assert len(found) < PAGES_MAX
        found.append(await agent.call("query_ledger", **asked, cursor=found[-1]["cursor"]))
    return found


async def every(agent: Agent, **asked: Any) -> list[dict[str, Any]]:
    return [event for page in await pages(agent, **asked) for event in page["events"]]


def stored(place: Place) -> list[tuple[str, int]]:
    """Every event on disk, newest first."""
    with closing(sqlite3.connect(place.home / "journal.db")) as database:
        return database.execute("select stream, n from event order by seq desc").fetchall()


def spoil(place: Place, run: str, n: int) -> None:
    """Change one event on disk, as anyone with the file can."""
    with closing(sqlite3.connect(place.home / "journal.db")) as database, database:
        triggers = database.execute("select name from sqlite_schema where type = 'trigger'").fetchall()
        for (name,) in triggers:
            database.execute(f"drop trigger {name}")
        (body,) = database.execute("select body from event where stream = ? and n = ?", (run, n)).fetchone()
        changed = bytes(body).replace(b"honest", b"forged")
        assert changed != bytes(body)
        database.execute("update event set body = ? where stream = ? and n = ?", (changed, run, n))


async def test_an_event_is_shown_as_the_contract_shows_it(place: Place) -> None:
    async with place.agent() as agent:
        run = await started(agent)
        await agent.call("record_decision", run=run, decision="go", reason="why", step="step-1", alternatives=["stay"])
        (event,) = await every(agent, run=run, kinds=["decision_recorded"])
        assert event.pop("at").endswith("Z")
        assert len(event.pop("hash")) == 64
        assert event == {
            "run": run,
            "n": 2,
            "kind": "decision_recorded",
            "actor": "agent:claude",
            "step": "step-1",
            "data": {"decision": "go", "reason": "why", "alternatives": ["stay"]},
        }


async def test_an_unknown_kind_is_an_error_with_a_suggestion(place: Place) -> None:
    async with place.agent() as agent:
        await started(agent)
        refused = await agent.refused("query_ledger", "invalid", kinds=["desicion"])
        assert refused["message"] == "there is no kind of event 'desicion'"
        assert refused["hint"] == "did you mean `decision`?"
        assert "decision" in (await agent.refused("query_ledger", "invalid", kinds=["decision", "zzz"]))["hint"]


async def test_every_filter_finds_just_what_it_names(place: Place) -> None:
    async with place.serving() as server, joined(server, name="ann") as ann, joined(server, name="bob") as bob:
        run = await started(ann)
        await ann.call("record_decision", run=run, decision='Use "quotes"', reason="r", step="step-1")
        await bob.call("record_action", run=run, description="Ünïcode done", step="step-1", outcome="done")
        await bob.call("record_action", run=run, description="the second", step="step-2", outcome="started")
        other = await started(bob)
        filters: list[tuple[Mapping[str, Any], Any]] = [
            ({"run": run}, lambda event: event["run"] == run),
            ({"run": other}, lambda event: event["run"] == other),
            ({"kinds": ["run_started"]}, lambda event: event["kind"] == "run_started"),
            (
                {"kinds": ["run_started", "plan_saved"]},
                lambda event: event["kind"] in {"run_started", "plan_saved"},
            ),
            ({"step": "step-1"}, lambda event: event.get("step") == "step-1"),
            ({"actor": "agent:bob"}, lambda event: event["actor"] == "agent:bob"),
            ({"text": "ünïCODE"}, lambda event: "Ünïcode" in json.dumps(event["data"], ensure_ascii=False)),
            ({"text": 'use "quotes"'}, lambda event: event["data"].get("decision") == 'Use "quotes"'),
            ({"run": run, "actor": "agent:bob", "step": "step-2"}, lambda event: event.get("step") == "step-2"),
            ({"kinds": ["breaker_opened"]}, lambda _: False),
            ({"kinds": ["decision"]}, lambda event: event["kind"] == "decision_recorded"),
            ({"kinds": ["started"]}, lambda event: event["kind"].endswith("_started")),
            ({"actor": "nobody"}, lambda _: False),
        ]
        whole = await every(ann)
        assert [(event["run"], event["n"]) for event in whole] == stored(place)
        for asked, fits in filters:
            wanted = [(event["run"], event["n"]) for event in whole if fits(event)]
            found = [(event["run"], event["n"]) for event in await every(ann, **asked)]
            assert sorted(found) == sorted(wanted), asked


def instant(event: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(event["at"])


async def test_since_and_until_bound_the_time(place: Place) -> None:
    async with place.agent() as agent:
        run = await started(agent)
        for n in range(5):
            await agent.call("record_decision", run=run, decision=f"d{n}", reason="r")
        events = await every(agent, run=run)
        middle = events[3]["at"]
        assert {event["n"] for event in await every(agent, run=run, since=middle)} == {
            event["n"] for event in events if instant(event) >= instant(events[3])
        }
        assert {event["n"] for event in await every(agent, run=run, until=middle)} == {
            event["n"] for event in events if instant(event) <= instant(events[3])
        }
        assert await every(agent, run=run, since="2999-01-01T00:00:00Z") == []
        assert await every(agent, run=run, until="1999-01-01T00:00:00+02:00") == []


@pytest.mark.parametrize("instant", ["yesterday", "2026-13-01T00:00:00Z", "1", "2026-11-15T18:04:11Zx", "\x00"])
async def test_an_invalid_time_is_refused(place: Place, instant: str) -> None:
    async with place.agent() as agent:
        for name in ("since", "until"):
            await agent.refused("query_ledger", "invalid", **{name: instant})


@pytest.mark.parametrize("limit", [1, 3, 7, 100])
async def test_pages_neither_lose_nor_repeat_an_event(place: Place, limit: int) -> None:
    async with place.agent() as agent:
        run = await started(agent)
        for n in range(20):
            await agent.call("record_decision", run=run, decision=f"d{n}", reason="r" * (n * 90 + 1))
        in_order = [event["n"] for event in await every(agent, run=run, limit=limit)]
        assert in_order == list(range(1, 22))
        newest_first = [(event["run"], event["n"]) for event in await every(agent, limit=limit)]
        assert newest_first == stored(place)
        decisions = [event["n"] for event in await every(agent, run=run, limit=limit, kinds=["decision_recorded"])]
        assert decisions == list(range(2, 22))


async def test_pages_stay_correct_while_others_write(place: Place) -> None:
    async with place.agent() as agent:
        run = await started(agent)
        for n in range(6):
            await agent.call("record_decision", run=run, decision=f"d{n}", reason="r")
        before = stored(place)
        first = await agent.call("query_ledger", limit=4)
        await agent.call("record_decision", run=run, decision="late", reason="r")
        seen, cursor = [*first["events"]], first.get("cursor")
        while cursor:
            page = await agent.call("query_ledger", limit=4, cursor=cursor)
            seen += page["events"]
            cursor = page.get("cursor")
        assert [(event["run"], event["n"]) for event in seen] == before


async def test_an_event_too_large_for_one_answer_comes_in_parts_that_add_up(place: Place) -> None:
    details = {"log": 'a "quoted" line\n' * 3_000, "emoji": "🪜" * 2_000}
    async with place.agent() as agent:
        run = await started(agent)
        await agent.call("record_decision", run=run, decision="before", reason="r")
        await agent.call("record_decision", run=run, decision="large", reason="r", details=details)
        await agent.call("record_decision", run=run, decision="after", reason="r")
        for asked in ({"run": run}, {}):
            found = await every(agent, **asked)
            parts = [event["data"]["part"] for event in found if "part" in event["data"]]
            assert len(parts) > 3
            text = "".join(part["text"] for part in parts)
            assert {part["of"] for part in parts} == {len(text)}
            assert [part["from"] for part in parts] == [
                sum(len(one["text"]) for one in parts[:n]) for n in range(len(parts))
            ]
            assert json.loads(text) == {"decision": "large", "reason": "r", "details": details}
            whole = [event["data"].get("decision") for event in found if "part" not in event["data"]]
            assert {"before", "after"} <= set(whole)
            assert len(whole) == len({(event["run"], event["n"]) for event in found}) - 1


@pytest.mark.parametrize("cursor", ["x", "-1", "1+", "+", "1+x", "1.5", "9" * 19, "\u0663", "1 ", "1+1+1"])
async def test_an_invented_cursor_is_refused_or_harmless(place: Place, cursor: str) -> None:
    async with place.agent() as agent:
        run = await started(agent)
        for asked in ({"run": run}, {}):
            result = await agent.answer("query_ledger", {**asked, "cursor": cursor})
            if result.is_error:
                assert (result.structured_content or {})["name"] == "invalid"


async def test_an_unknown_run_is_not_found(place: Place) -> None:
    async with place.agent() as agent:
        refused = await agent.refused("query_ledger", "not_found", run="run_nothere")
        assert refused["next"] == {"tool": "status", "arguments": {}}


async def test_an_intact_journal_is_verified_for_one_run_and_for_all(place: Place) -> None:
    async with place.agent() as agent:
        run = await started(agent)
        await agent.call("execute_plan", definition={"name": "P", "steps": [write(), read("r", "a.txt")]}, wait="10s")
        one = await agent.call("query_ledger", run=run, verify=True)
        assert one["verified"] == {"ok": True, "events": place.events(run)}
        everything = await agent.call("query_ledger", verify=True, limit=1)
        assert everything["verified"] == {"ok": True, "events": place.events()}
        assert "verified: ok" in await agent.said("query_ledger", run=run, verify=True)


async def test_a_tampered_journal_is_detected_and_the_first_bad_event_is_named(place: Place) -> None:
    async with place.agent() as agent:
        run = await started(agent)
        await agent.call("record_decision", run=run, decision="honest", reason="r")
        await agent.call("record_decision", run=run, decision="later", reason="r")
        spoil(place, run, 2)
        for asked in ({"run": run}, {}):
            found = await agent.call("query_ledger", **asked, verify=True)
            assert found["verified"]["ok"] is False
            assert found["verified"]["first_bad"]["stream"] == run
            assert found["verified"]["first_bad"]["n"] == 2
        assert "BROKEN" in await agent.said("query_ledger", run=run, verify=True)


async def test_reading_writes_nothing(place: Place) -> None:
    async with place.agent() as agent:
        run = await started(agent)
        before = place.events()
        await pages(agent, limit=1)
        await agent.call("query_ledger", run=run, verify=True)
        assert place.events() == before
