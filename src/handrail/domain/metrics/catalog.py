"""The catalogue of metrics: every name that `/metrics` shows, with its meaning, its labels and its buckets.

The one table: the exporter, the reference page, the dashboards' tests and the alert rules' tests read it. Names that
start with `handrail_process_` are about one process, so that they can be added up over processes. All others are about
the whole store: every process that exports them says the same, so that the largest of them is taken, never the sum.
Labels are words from closed or bounded sets; no label has an id."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from msgspec import Struct

OTHER: Final = "_OTHER"
"""The label of everything beyond the bound of a label."""
LABEL_VALUES_MAX: Final = 200
"""How many different values a label has that is not from a closed set: tools, rules, servers."""

SHORT_S: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
"""Calls, as OpenTelemetry divides the durations of MCP requests."""
LONG_S: Final = (1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3_600.0, 14_400.0, 86_400.0, 604_800.0)
"""Runs, and steps of agents and people."""
SYNC_S: Final = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 1.0, 5.0)
LAG_S: Final = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)
SIZES: Final = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0)
AGES: Final = (("5m", 300), ("1h", 3_600), ("1d", 86_400), ("7d", 604_800))
"""Up to which age, in seconds, something counts under which label; older is `older`."""
OLDER: Final = "older"


class MetricKind(StrEnum):
    """How a metric behaves."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Metric(Struct, frozen=True):
    """One metric."""

    name: str
    kind: MetricKind
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()

    @property
    def exposed(self) -> str:
        """The name of its samples, as queries write it; a histogram's have further endings."""
        return f"{self.name}_total" if self.kind is MetricKind.COUNTER else self.name


def _counter(name: str, help_: str, *labels: str) -> Metric:
    return Metric(name, MetricKind.COUNTER, help_, labels)


def _gauge(name: str, help_: str, *labels: str) -> Metric:
    return Metric(name, MetricKind.GAUGE, help_, labels)


def _histogram(name: str, help_: str, buckets: tuple[float, ...], *labels: str) -> Metric:
    return Metric(name, MetricKind.HISTOGRAM, help_, labels, buckets)


# --- the store: what the journal says happened since the process started to look ------------------

EVENTS: Final = _counter("handrail_events", "Events that were appended to the journal.", "kind")
RUNS_STARTED: Final = _counter("handrail_runs_started", "Runs that started.")
RUNS_ENDED: Final = _counter("handrail_runs_ended", "Runs that ended, by how.", "status")
RUN_SECONDS: Final = _histogram("handrail_run_duration_seconds", "From a run's start to its end.", LONG_S, "status")
STEPS_ENDED: Final = _counter("handrail_steps_ended", "Steps that ended, by their kind and how.", "kind", "outcome")
STEP_SECONDS: Final = _histogram(
    "handrail_step_duration_seconds", "From a step's first start to its completion, with all waits.", LONG_S, "kind"
)
ATTEMPTS: Final = _counter(
    "handrail_attempts", "Calls of tools that ended, by outcome: ok, an error category, lost.", "tool", "outcome"
)
ATTEMPT_SECONDS: Final = _histogram("handrail_attempt_duration_seconds", "How long tools took.", SHORT_S, "tool")
UNDOS: Final = _counter("handrail_undos", "Calls of tools to undo a step that ended, by outcome.", "tool", "outcome")
RETRIES: Final = _counter("handrail_retries", "Attempts that were scheduled again after a failure.", "tool")
CHECKS: Final = _counter("handrail_checks", "Checks of outputs, by rule and result.", "rule", "result")
CHECK_SECONDS: Final = _histogram("handrail_check_duration_seconds", "How long checks took.", SHORT_S, "rule")
CHECK_CACHE: Final = _counter(
    "handrail_check_cache", "Checks whose outcome was known from identical inputs (hit), or not (miss).", "result"
)
APPROVALS_ANSWERED: Final = _counter("handrail_approvals_answered", "Approvals that ended, by how.", "answer")
BREAKER_CHANGES: Final = _counter("handrail_breaker_changes", "Changes of circuit breakers of tool servers.", "state")

# --- the store: how it is now ----------------------------------------------------------------------

RUNS: Final = _gauge("handrail_runs", "Runs in the store, by stored status.", "status")
RUNS_OPEN: Final = _gauge(
    "handrail_runs_open", "Runs that have not ended, by shown state and age; of the latest 1,000.", "state", "age"
)
RUN_OLDEST: Final = _gauge("handrail_run_open_oldest_seconds", "Age of the oldest open run, by shown state.", "state")
APPROVALS: Final = _gauge("handrail_approvals_waiting", "Approvals that wait for a person, by age.", "age")
APPROVAL_OLDEST: Final = _gauge("handrail_approval_waiting_oldest_seconds", "How long the oldest approval waits.")
RUNS_UNASSIGNED: Final = _gauge("handrail_runs_unassigned", "Runs that are ready and that no node has taken.")
NODES: Final = _gauge("handrail_nodes", "Nodes of the store, by state.", "state")
BREAKER: Final = _gauge(
    "handrail_breaker_state", "Circuit breaker of a tool server: 0 closed, 1 half open, 2 open.", "server"
)
JOURNAL_EVENTS: Final = _gauge("handrail_journal_events", "Events in the journal.")
JOURNAL_BYTES: Final = _gauge("handrail_journal_bytes", "Size of the journal's files; only of a store in a file.")
CHECKPOINT_AGE: Final = _gauge("handrail_checkpoint_age_seconds", "Age of the last signed checkpoint.")
UNSIGNED: Final = _gauge("handrail_checkpoint_unsigned_events", "Events that this process wrote since then.")
VERIFY_AGE: Final = _gauge(
    "handrail_verify_age_seconds", "How long ago the whole journal was verified last; -1: never on this machine."
)
VERIFY_OK: Final = _gauge("handrail_verify_ok", "Whether the last verification of the whole journal found nothing.")
BACKUP_AGE: Final = _gauge("handrail_backup_age_seconds", "Age of the newest backup; -1: there is none.")
HEALTH: Final = _gauge("handrail_health", "The checks of /healthz: 0 ok, 1 warn, 2 fail; the worst of a name.", "check")
BEHIND: Final = _gauge("handrail_figures_behind_events", "Events that are in the journal and not yet in the counters.")

# --- this process ----------------------------------------------------------------------------------

CALLS_RUNNING: Final = _gauge("handrail_process_calls_running", "Calls of tools under way.")
CALLS_MAX: Final = _gauge("handrail_process_calls_max", "How many calls may be under way at once.")
CALLS_QUEUED: Final = _gauge("handrail_process_calls_queued", "Calls that wait for a limit, a breaker or a node.")
CALL_WAIT: Final = _histogram(
    "handrail_process_call_wait_seconds", "How long calls waited for a limit or a breaker before they started.", SHORT_S
)
RUNS_EXECUTED: Final = _gauge("handrail_process_runs", "Runs that this process executes.")
SLOTS: Final = _gauge("handrail_process_slots", "Slots for runs: used, and total (0: as many as come).", "state")
COMMITS: Final = _counter("handrail_process_commits", "Transactions that this process wrote to the store.")
COMMIT_APPENDS: Final = _histogram(
    "handrail_process_commit_appends", "Appends that shared a transaction, and its sync.", SIZES
)
COMMIT_SECONDS: Final = _histogram(
    "handrail_process_commit_seconds", "How long a transaction took, with its sync to the disk.", SYNC_S
)
FEED_READERS: Final = _gauge("handrail_process_feed_readers", "Readers of the live feed (SSE).")
SESSIONS: Final = _gauge("handrail_process_mcp_sessions", "MCP sessions over HTTP that are open.")
HTTP_REQUESTS: Final = _counter(
    "handrail_process_http_requests", "HTTP requests that ended, by part of the site, method and status.",
    "part", "method", "code",
)  # fmt: skip
HTTP_SECONDS: Final = _histogram(
    "handrail_process_http_request_seconds", "How long HTTP requests took; without endless streams.", SHORT_S, "part"
)
MCP_REQUESTS: Final = _counter(
    "handrail_process_mcp_tool_calls", "Tool calls of agents over MCP, by tool and outcome.", "tool", "outcome"
)
MCP_SECONDS: Final = _histogram(
    "handrail_process_mcp_tool_call_seconds", "How long tool calls of agents over MCP took.", SHORT_S, "tool"
)
LOOP_LAG: Final = _histogram(
    "handrail_process_loop_lag_seconds", "How late the event loop came round, looked at twice a second.", LAG_S
)
CACHE_REQUESTS: Final = _counter(
    "handrail_process_cache_requests", "What caches were asked for: had it (hit), or not (miss).", "cache", "result"
)
CACHE_SECONDS: Final = _counter(
    "handrail_process_cache_seconds", "Time in caches: reading a hit, or making what was missing.", "cache", "result"
)
CACHE_MADE: Final = _counter("handrail_process_cache_made", "Misses whose time was measured.", "cache")
CACHE_ENTRIES: Final = _gauge("handrail_process_cache_entries", "Entries of caches in memory.", "cache")
BUILD: Final = _gauge("handrail_process_info", "Version of handrail and of Python; always 1.", "version", "python")

OF_STORE: Final = (
    EVENTS, RUNS_STARTED, RUNS_ENDED, RUN_SECONDS, STEPS_ENDED, STEP_SECONDS, ATTEMPTS, ATTEMPT_SECONDS, UNDOS, RETRIES,
    CHECKS, CHECK_SECONDS, CHECK_CACHE, APPROVALS_ANSWERED, BREAKER_CHANGES, RUNS, RUNS_OPEN, RUN_OLDEST, APPROVALS,
    APPROVAL_OLDEST, RUNS_UNASSIGNED, NODES, BREAKER, JOURNAL_EVENTS, JOURNAL_BYTES, CHECKPOINT_AGE, UNSIGNED,
    VERIFY_AGE, VERIFY_OK, BACKUP_AGE, HEALTH, BEHIND,
)  # fmt: skip
OF_PROCESS: Final = (
    CALLS_RUNNING, CALLS_MAX, CALLS_QUEUED, CALL_WAIT, RUNS_EXECUTED, SLOTS, COMMITS, COMMIT_APPENDS, COMMIT_SECONDS,
    FEED_READERS, SESSIONS, HTTP_REQUESTS, HTTP_SECONDS, MCP_REQUESTS, MCP_SECONDS, LOOP_LAG, CACHE_REQUESTS,
    CACHE_SECONDS, CACHE_MADE, CACHE_ENTRIES, BUILD,
)  # fmt: skip
METRICS: Final = (*OF_STORE, *OF_PROCESS)
FROM_LIBRARY: Final = ("process_resident_memory_bytes", "process_open_fds", "process_start_time_seconds")
"""What the Prometheus library itself adds about the process, under the names that all programs share."""


def age_label(age_s: float) -> str:
    """The label of an age."""
    return next((label for label, most_s in AGES if age_s <= most_s), OLDER)
