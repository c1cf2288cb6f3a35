"""Figures of tools: what the journal's events add up to, in every store, within bounds."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from handrail.domain.definition.model import Category
from handrail.domain.journal.chain import Head
from handrail.domain.journal.codec import entry_of
from handrail.domain.journal.event import (
    About,
    ApprovalRequested,
    AttemptFailed,
    AttemptLost,
    AttemptStarted,
    CompensationStarted,
    Event,
    How,
    Mode,
    RetryScheduled,
    RunStarted,
    StepBecameUncertain,
    StepCancelled,
    StepCompensated,
    StepCompleted,
    StepDeferred,
    StepHandedOut,
    UndoBecameUncertain,
    UndoFailed,
    UndoLost,
    UndoStarted,
)
from handrail.domain.journal.store_event import BreakerClosed, BreakerOpened, BreakerProbed
from handrail.domain.json import JsonObject, canonical_bytes, digest
from handrail.domain.scheduling.breaker import BreakerStatus
from handrail.engine import pinned_definitions
from handrail.engine.measuring import step_lookup
from handrail.engine.proving.stream_fold import change_of
from handrail.engine.reading import tool_tally
from handrail.engine.reading.tool_stats import EARLIER_MS, ToolReport, breakers_of, tool_figures
from handrail.engine.reading.tool_tally import Outage, Tally, Times, ToolFigures
from handrail.engine.record_writer import RecordWriter
from handrail.engine.stream_pages import records_of
from storage.conformance import STORES, Store
from support import START, seeded_entropy

PLAN: JsonObject = {
    "id": "a-plan",
    "steps": [
        {"id": "tag", "tool": "git.tag", "undo": {"tool": "git.untag"}},
        {"id": "write", "tool": "file.write"},
        {"id": "notes", "prompt": "Write them.", "undo": {"prompt": "Take them back."}},
        {"id": "build", "each": "[1, 2]", "steps": [{"id": "make", "tool": "ci.make"}]},
    ],
}
RUN = "run_aaaaaaaa"
BEGUN = RunStarted(definition=digest(PLAN), workflow="a-plan")


class Journalist:
    """Writes streams, event after event, at the instants it is told."""

    def __init__(self, store: Store) -> None:
        self.store, self.at = store, START
        self._scribe = RecordWriter(lambda: self.at, seeded_entropy())

    async def write(self, *events: Event, stream: str = RUN, after_ms: int = 0) -> None:
        self.at += after_ms
        before = await records_of(self.store, stream)
        head = Head(stream, before[-1].n, before[-1].hash) if before else Head(stream)
        records, _ = self._scribe.write(head, events, actor="handrail")
        change = change_of(stream, map(entry_of, [*before, *records]))
        await self.store.append(records, replace(change, definitions=((digest(PLAN), canonical_bytes(PLAN)),)))

    async def call(self, step: str, took_ms: int, *, stream: str = RUN, attempt: int = 1) -> None:
        await self.write(AttemptStarted(step=step, attempt=attempt), stream=stream)
        await self.write(StepCompleted(step=step), stream=stream, after_ms=took_ms)


@pytest.fixture(params=STORES)
async def journalist(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Journalist]:
    store = await STORES[request.param](tmp_path)
    yield Journalist(store)
    await store.close()


def by_tool(report: ToolReport) -> dict[str, ToolFigures]:
    return {f"{one.tool}{'!' if one.is_undo else ''}": one for one in report.tools}


def failed(step: str, category: Category, attempt: int = 1) -> AttemptFailed:
    return AttemptFailed(step=step, attempt=attempt, category=category, message="it said no")


async def test_calls_are_counted_with_times_failures_and_retries(journalist: Journalist) -> None:
    await journalist.write(BEGUN, AttemptStarted(step="tag", attempt=1))
    again = RetryScheduled(step="tag", attempt=2, due=START)
    await journalist.write(failed("tag", Category.TRANSIENT), again, after_ms=40)
    await journalist.call("tag", 60, attempt=2)
    await journalist.call("write", 5)
    report = await tool_figures(journalist.store)
    told = by_tool(report)
    tag = told["git.tag"]
    assert (tag.calls, tag.failures, tag.retries) == (2, {"transient": 1}, 1)
    assert (tag.p50_ms, tag.p95_ms, tag.p99_ms, tag.max_ms) == (40, 60, 60, 60)
    assert tag.last == START + 100
    assert (told["file.write"].calls, told["file.write"].p50_ms) == (1, 5)
    assert (report.is_cut, report.unread, report.unlisted) == (False, 0, 0)


async def test_what_the_engine_measured_wins_over_the_instants_of_events(journalist: Journalist) -> None:
    await journalist.write(BEGUN, AttemptStarted(step="tag", attempt=1))
    await journalist.write(StepCompleted(step="tag", took=7), after_ms=90)
    await journalist.write(AttemptStarted(step="write", attempt=1))
    await journalist.write(
        AttemptFailed(step="write", attempt=1, category=Category.TIMEOUT, message="", took=3), after_ms=90
    )
    told = by_tool(await tool_figures(journalist.store))
    assert (told["git.tag"].p50_ms, told["file.write"].p50_ms) == (7, 3)


async def test_undos_count_for_the_tool_that_undoes(journalist: Journalist) -> None:
    await journalist.write(BEGUN)
    await journalist.call("tag", 1)
    await journalist.call("write", 1)
    await journalist.write(CompensationStarted(reason="no", steps=("write", "tag")))
    await journalist.write(UndoStarted(step="write", attempt=1))
    await journalist.write(StepCompensated(step="write", how=How.EXECUTED), after_ms=11)
    await journalist.write(UndoStarted(step="tag", attempt=1))
    failure = UndoFailed(step="tag", attempt=1, category=Category.RATE_LIMITED, message="slow down", due=START)
    await journalist.write(failure, after_ms=12)
    await journalist.write(UndoStarted(step="tag", attempt=2))
    await journalist.write(StepCompensated(step="tag", how=How.EXECUTED), after_ms=13)
    told = by_tool(await tool_figures(journalist.store))
    assert (told["file.write"].calls, told["file.write!"].calls, told["file.write!"].p50_ms) == (1, 1, 11)
    untag = told["git.untag"]
    assert (untag.calls, untag.failures, untag.retries, untag.max_ms) == (2, {"rate_limited": 1}, 1, 13)


async def test_an_undo_by_other_hands_is_no_call(journalist: Journalist) -> None:
    await journalist.write(BEGUN)
    await journalist.call("tag", 1)
    await journalist.write(CompensationStarted(reason="no", steps=("tag",)))
    await journalist.write(StepCompensated(step="tag", how=How.RECORDED))
    assert set(by_tool(await tool_figures(journalist.store))) == {"git.tag"}


async def test_a_lost_undo_is_a_call_that_was_lost(journalist: Journalist) -> None:
    await journalist.write(BEGUN)
    await journalist.call("tag", 1)
    await journalist.write(CompensationStarted(reason="no", steps=("tag",)), UndoStarted(step="tag", attempt=1))
    await journalist.write(UndoLost(step="tag", attempt=1), UndoStarted(step="tag", attempt=2))
    await journalist.write(UndoBecameUncertain(step="tag", attempt=2))
    [undo] = [one for one in (await tool_figures(journalist.store)).tools if one.failures]
    assert (undo.calls, undo.failures, undo.retries) == (2, {"lost": 2}, 1)


async def test_all_rounds_of_a_loop_are_calls_of_one_tool(journalist: Journalist) -> None:
    await journalist.write(BEGUN)
    await journalist.call("build[0].make", 10)
    await journalist.call("build[1].make", 20)
    assert by_tool(await tool_figures(journalist.store))["ci.make"].calls == 2


async def test_what_agents_do_is_no_call_of_a_tool(journalist: Journalist) -> None:
    await journalist.write(BEGUN, StepHandedOut(step="notes", agent="ada"))
    await journalist.write(StepCompleted(step="notes", output="done"))
    recorded = "run_bbbbbbbb"
    await journalist.write(replace(BEGUN, mode=Mode.RECORD), stream=recorded)
    await journalist.call("tag", 5, stream=recorded)
    assert not (await tool_figures(journalist.store)).tools


async def test_lost_cancelled_and_deferred_calls_are_shown_without_times(journalist: Journalist) -> None:
    await journalist.write(BEGUN, AttemptStarted(step="tag", attempt=1))
    await journalist.write(AttemptLost(step="tag", attempt=1), after_ms=90_000)
    await journalist.write(AttemptStarted(step="tag", attempt=2))
    await journalist.write(StepBecameUncertain(step="tag", attempt=2))
    await journalist.write(AttemptStarted(step="write", attempt=1))
    await journalist.write(StepDeferred(step="write", attempt=1, due=START))
    await journalist.write(AttemptStarted(step="write", attempt=2))
    await journalist.write(StepCancelled(step="write"))
    await journalist.write(StepCancelled(step="build[0].make"))
    told = by_tool(await tool_figures(journalist.store))
    assert (told["git.tag"].failures, told["git.tag"].retries, told["git.tag"].p50_ms) == ({"lost": 2}, 1, None)
    assert (told["file.write"].calls, told["file.write"].failures) == (2, {"cancelled": 1})
    assert "ci.make" not in told, "nothing was under way"


async def test_a_call_that_asks_a_person_is_a_call_and_the_wait_is_not_its_time(journalist: Journalist) -> None:
    await journalist.write(BEGUN, AttemptStarted(step="tag", attempt=1))
    asked = ApprovalRequested(step="tag", digest="d", text="Which branch?", about=About.QUESTION)
    await journalist.write(asked, after_ms=10)
    journalist.at += 500_000
    await journalist.call("tag", 30, attempt=2)
    tag = by_tool(await tool_figures(journalist.store))["git.tag"]
    assert (tag.calls, tag.max_ms, tag.failures) == (2, 30, {})


async def test_a_start_time_leaves_out_older_calls_but_knows_when_later_ones_began(journalist: Journalist) -> None:
    await journalist.write(BEGUN)
    await journalist.call("build[0].make", 10)
    journalist.at += 3 * EARLIER_MS
    await journalist.call("build[1].make", 20)
    await journalist.write(AttemptStarted(step="tag", attempt=1))
    await journalist.write(BreakerOpened(server="git", failures=5, until=0, message="early"), stream="server/git")
    since = journalist.at + 1
    failure, again = failed("tag", Category.TRANSIENT), RetryScheduled(step="tag", attempt=2, due=START)
    await journalist.write(failure, again, after_ms=30)
    await journalist.write(BreakerClosed(server="git"), stream="server/git")
    report = await tool_figures(journalist.store, since=since)
    assert [(one.tool, one.calls, one.retries, one.p50_ms) for one in report.tools] == [("git.tag", 1, 1, 30)]
    assert not report.servers, "an outage that began before is not told by halves"
    events = (await journalist.store.end()).events
    assert report.events < events, "what is hours older is not even looked at"


async def test_a_start_time_behind_everything_finds_nothing(journalist: Journalist) -> None:
    await journalist.write(BEGUN)
    await journalist.call("tag", 10)
    assert (await tool_figures(journalist.store, since=journalist.at + 2 * EARLIER_MS)).events == 0


async def test_only_the_latest_events_are_looked_at_and_that_is_said(journalist: Journalist) -> None:
    await journalist.write(BEGUN)
    for number in range(5):
        await journalist.call(f"build[{number}].make", 10)
    report = await tool_figures(journalist.store, events_max=4)
    assert (report.events, report.is_cut) == (4, True)
    assert by_tool(report)["ci.make"].calls == 2, "the run's definition is found without its first event"


async def test_an_event_that_can_not_be_placed_hides_no_other(journalist: Journalist) -> None:
    await journalist.write(BEGUN)
    await journalist.call("tag", 10)
    await journalist.call("no-such-step", 10)
    lost = "run_cccccccc"
    await journalist.write(RunStarted(definition="sha256:none", workflow="gone"), stream=lost)
    await journalist.call("tag", 10, stream=lost)
    report = await tool_figures(journalist.store)
    assert by_tool(report)["git.tag"].calls == 1
    assert report.unread == 4


async def test_little_is_remembered_and_yet_all_is_found(
    journalist: Journalist, monkeypatch: pytest.MonkeyPatch
) -> None:
    for bound in ("RUNS_KEPT", "STEPS_KEPT"):
        monkeypatch.setattr(step_lookup, bound, 1)
    monkeypatch.setattr(pinned_definitions, "DEFINITIONS_KEPT", 1)
    monkeypatch.setattr(tool_tally, "OPEN_MAX", 1)
    other = "run_bbbbbbbb"
    await journalist.write(BEGUN)
    await journalist.write(BEGUN, stream=other)
    for stream in (RUN, other):
        await journalist.write(AttemptStarted(step="tag", attempt=1), stream=stream)
    for stream in (RUN, other):
        await journalist.write(StepCompleted(step="tag"), stream=stream, after_ms=50)
    for stream in (RUN, other):
        await journalist.call("write", 5, stream=stream)
    told = by_tool(await tool_figures(journalist.store))
    assert (told["git.tag"].calls, told["file.write"].calls) == (2, 2)
    assert told["git.tag"].p50_ms == 100, "of the two only the later beginning was remembered"


async def test_tools_beyond_the_bound_are_counted_together(
    journalist: Journalist, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tool_tally, "TOOLS_MAX", 1)
    await journalist.write(BEGUN, AttemptStarted(step="tag", attempt=1))
    await journalist.call("build[0].make", 1)
    failure, again = failed("tag", Category.TRANSIENT), RetryScheduled(step="tag", attempt=2, due=START)
    await journalist.write(failure, again)
    report = await tool_figures(journalist.store)
    assert ([one.tool for one in report.tools], report.unlisted) == (["ci.make"], 1)


async def test_outages_tell_when_why_and_how_long(journalist: Journalist) -> None:
    def opened(message: str, failures: int, until: int) -> BreakerOpened:
        return BreakerOpened(server="git", failures=failures, until=START + until, message=message)

    stream = "server/git"
    await journalist.write(BreakerProbed(server="git"), stream=stream)
    await journalist.write(opened("no answer", 5, 15_000), stream=stream)
    await journalist.write(BreakerProbed(server="git"), opened("still none", 6, 45_000), stream=stream, after_ms=15_000)
    await journalist.write(BreakerProbed(server="git"), BreakerClosed(server="git"), stream=stream, after_ms=30_000)
    await journalist.write(opened("x" * 500, 5, 90_000), stream=stream, after_ms=1_000)
    (git,) = (await tool_figures(journalist.store)).servers
    first, second = git.outages
    expected = Outage(
        opened=START, reason="no answer", failures=6, until=START + 45_000, openings=2, probes=2, closed=START + 45_000
    )
    assert first == expected
    assert (second.closed, second.reason) == (None, "x" * 199 + "…")
    breakers = await breakers_of(journalist.store, ["git", "other"])
    assert breakers["git"].status is BreakerStatus.OPEN
    assert breakers["other"].status is BreakerStatus.CLOSED


async def test_outages_and_servers_are_bounded(journalist: Journalist, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool_tally, "SERVERS_MAX", 1)
    for server in ("one", "two"):
        for _ in range(tool_tally.OUTAGES_MAX + 1):
            opened = BreakerOpened(server=server, failures=5, until=0, message="")
            await journalist.write(opened, BreakerClosed(server=server), stream=f"server/{server}", after_ms=1)
    (one,) = (await tool_figures(journalist.store)).servers
    assert (one.server, len(one.outages)) == ("one", tool_tally.OUTAGES_MAX)
    assert one.outages[0].opened == START + 2, "the oldest is gone"


def test_an_empty_tally_has_nothing_to_tell() -> None:
    tally = Tally()
    assert (tally.figures(), tally.history()) == ([], [])
    assert Times().at(50, 99) == [None, None]


@pytest.mark.parametrize(
    ("took", "told"),
    [
        ([1], [1, 1, 1]),
        (range(1, 101), [50, 95, 99]),
        (range(1, 1_001), [500, 950, 990]),
        ([12_344] * 10, [12_300, 12_300, 12_300]),
        ([-5, 10**12], [0, 10**10, 10**10]),
    ],
)
def test_percentiles_are_exact_below_a_second_and_to_three_digits_above(took: Any, told: list[int]) -> None:
    times = Times()
    for one in took:
        times.add(one)
    assert times.at(50, 95, 99) == told


def test_however_many_lengths_there_are_the_buckets_are_few() -> None:
    times = Times()
    for number in range(100_000):
        times.add(number * 997)
    assert len(times._buckets) < 7_000
    p50, _ = times.at(50, 99)
    assert p50 is not None
    assert abs(p50 / (50_000 * 997) - 1) < 0.005


async def test_calls_are_also_counted_over_time_and_by_server(journalist: Journalist) -> None:
    store = journalist.store
    await journalist.write(BEGUN)
    await journalist.call("tag", 40)
    await journalist.write(AttemptFailed(step="tag", attempt=2, category=Category.TIMEOUT, message="late", took=900))
    journalist.at += 3 * 60_000
    await journalist.call("write", 10)
    report = await tool_figures(store, slot_ms=60_000)
    (tag,) = [one for one in report.tools if one.tool == "git.tag"]
    (git,) = [one for one in report.by_server if one.tool == "git"]
    assert [(one.calls, one.failed, one.p95_ms) for one in tag.slots] == [(2, 1, 900)]
    assert (git.calls, git.failures, git.slots) == (tag.calls, tag.failures, tag.slots)
    (file,) = [one for one in report.by_server if one.tool == "file"]
    assert file.slots[0].start - git.slots[0].start == 3 * 60_000
    assert all(not one.slots for one in (await tool_figures(store)).tools)


async def test_a_line_over_time_is_bounded(journalist: Journalist, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool_tally, "SLOTS_MAX", 3)
    await journalist.write(BEGUN)
    for _ in range(5):
        await journalist.call("tag", 5)
        journalist.at += 60_000
    report = await tool_figures(journalist.store, slot_ms=60_000)
    (tag,) = [one for one in report.tools if one.tool == "git.tag"]
    assert (len(tag.slots), tag.calls) == (3, 5)
