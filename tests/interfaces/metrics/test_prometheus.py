"""Every metric of the catalogue, scraped by a real Prometheus during a scripted load, beside what the journal says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from handrail.domain.journal import event as events
from handrail.domain.journal.codec import kind_of
from handrail.domain.journal.event import Entry
from handrail.domain.metrics.catalog import FROM_LIBRARY, METRICS, Metric, MetricKind
from interfaces.http.live_console import serving
from interfaces.metrics.live_prometheus import LivePrometheus, watching
from interfaces.metrics.load import declare_server, journal_of, put_load_on
from interfaces.shell import until

ENDS: dict[Any, str] = {
    events.RunCompleted: "completed",
    events.RunFailed: "failed",
    events.RunCancelled: "cancelled",
    events.RunCompensated: "compensated",
}


def test_each_metric_is_scraped_and_agrees_with_the_journal(tmp_path: Path) -> None:
    gone = declare_server(tmp_path)
    with serving(tmp_path) as console:
        token = console.shell.home / "metrics-token"
        with watching(tmp_path / "prometheus", console.url, token=token) as live:
            with console.script() as script, script.stream("GET", "/api/v1/events"):
                put_load_on(console, gone)
                until(lambda: live.value("handrail_process_feed_readers") == 1)
            journal = journal_of(console)
            until(lambda: sum(live.by("handrail_events_total", "kind").values()) == len(journal))
            agrees_in_counts(live, journal)
            agrees_in_calls(live, journal)
            agrees_in_durations(live, journal)
            agrees_now(live, journal)
            known = live.metrics()
            assert [one.name for one in METRICS if not samples_of(one) <= known] == []
            assert set(FROM_LIBRARY) <= known


def samples_of(metric: Metric) -> set[str]:
    if metric.kind is MetricKind.HISTOGRAM:
        return {f"{metric.name}_{ending}" for ending in ("bucket", "count", "sum")}
    return {metric.exposed}


def counted(entries: Iterable[Entry], key: Callable[[Any], str | None]) -> dict[tuple[str, ...], int]:
    found = Counter(key(one.event) for one in entries)
    return {(name,): count for name, count in found.items() if name is not None}


def agrees_in_counts(live: LivePrometheus, journal: list[Entry]) -> None:
    assert live.by("handrail_events_total", "kind") == counted(journal, kind_of)
    started = sum(isinstance(one.event, events.RunStarted) for one in journal)
    assert live.value("handrail_runs_started_total") == started
    ended = counted(journal, lambda one: ENDS.get(type(one)))
    assert set(ended) == {("completed",), ("failed",), ("cancelled",), ("compensated",)}
    assert live.by("handrail_runs_ended_total", "status") == ended
    answers: dict[Any, str] = {events.ApprovalGiven: "given", events.ApprovalRejected: "rejected"}
    asked = live.by("handrail_approvals_answered_total", "answer")
    assert {name: count for name, count in asked.items() if name[0] in {"given", "rejected"}} == counted(
        journal, lambda one: answers.get(type(one))
    )
    evidence = [
        proof
        for one in journal
        if isinstance(one.event, events.StepCompleted | events.OutputRefused)
        for proof in one.event.evidence
    ]
    results = Counter((proof["rule"], "passed" if proof["passed"] else "failed") for proof in evidence)
    assert live.by("handrail_checks_total", "rule", "result") == results
    assert {result for _, result in results} == {"passed", "failed"}
    hits = sum(bool(proof.get("cached")) for proof in evidence)
    assert hits
    assert live.value('handrail_check_cache_total{result="hit"}') == hits
    assert live.value('handrail_check_cache_total{result="miss"}') == len(evidence) - hits


def agrees_in_calls(live: LivePrometheus, journal: list[Entry]) -> None:
    failed = [one.event for one in journal if isinstance(one.event, events.AttemptFailed)]
    attempts = live.by("handrail_attempts_total", "outcome")
    assert sum(count for (outcome,), count in attempts.items() if outcome not in {"ok", "lost"}) == len(failed)
    retried = sum(isinstance(one.event, events.RetryScheduled) for one in journal)
    assert retried
    assert live.value("sum(handrail_retries_total)") == retried
    undone = sum(isinstance(one.event, events.StepCompensated) for one in journal)
    assert undone
    assert live.by("handrail_undos_total", "tool", "outcome") == {("file.write", "ok"): undone}
    assert live.value('handrail_breaker_changes_total{state="open"}') >= 1
    calls = {("status", "ok"): 1, ("status", "not_found"): 1, ("_OTHER", "unknown"): 1}
    until(lambda: live.by("handrail_process_mcp_tool_calls_total", "tool", "outcome") == calls)  # by the next scrape


def agrees_in_durations(live: LivePrometheus, journal: list[Entry]) -> None:
    taken = sum(one.event.took for one in journal if isinstance(one.event, events.AttemptFailed | events.StepCompleted))
    assert abs(live.value("sum(handrail_attempt_duration_seconds_sum)") - taken / 1_000) < 0.001
    starts = {one.stream: one.at for one in journal if isinstance(one.event, events.RunStarted)}
    lasted = sum(one.at - starts[one.stream] for one in journal if type(one.event) in ENDS)
    assert abs(live.value("sum(handrail_run_duration_seconds_sum)") - lasted / 1_000) < 0.001
    steps = sum(isinstance(one.event, events.StepCompleted) for one in journal)
    assert live.value("sum(handrail_step_duration_seconds_count)") == steps


def agrees_now(live: LivePrometheus, journal: list[Entry]) -> None:
    ended = counted(journal, lambda one: ENDS.get(type(one)))
    stored = live.by("handrail_runs", "status")
    assert {name: count for name, count in stored.items() if name != ("running",)} == ended
    opened = sum(isinstance(one.event, events.RunStarted) for one in journal) - sum(ended.values())
    assert live.by("handrail_runs_open", "state", "age") == {("waiting", "5m"): opened}
    assert live.by("handrail_approvals_waiting", "age") == {("5m",): 1}
    assert live.value("handrail_approval_waiting_oldest_seconds") > 0
    assert live.value('handrail_breaker_state{server="git"}') == 0
    assert live.value("handrail_figures_behind_events") == 0
    assert live.value("handrail_verify_ok") == 1
    assert 0 <= live.value("handrail_verify_age_seconds") < 600
    # In one query, so of one scrape: workers beat all the time. One may be written between the two lines.
    assert abs(live.value("handrail_process_commits_total - handrail_process_commit_seconds_count")) <= 1
