"""What counts as a trace context, and which ids a run's spans have."""

from __future__ import annotations

import pytest

from handrail.domain.tracing.trace_context import (
    BAGGAGE_MAX,
    carried,
    carried_by_headers,
    own_trace_id,
    span_id,
    trace_id_in,
)

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = f"00-{TRACE}-00f067aa0ba902b7-01"


def test_a_context_is_taken_as_it_is_and_nothing_beside_it() -> None:
    context = {"traceparent": PARENT, "tracestate": "a=1", "baggage": "team=blue"}
    assert carried({**context, "progressToken": 3}) == context
    assert trace_id_in(context) == TRACE


@pytest.mark.parametrize(
    "wrong",
    [
        "",
        7,
        None,
        f"ff-{TRACE}-00f067aa0ba902b7-01",
        f"00-{'0' * 32}-00f067aa0ba902b7-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE.upper()}-00f067aa0ba902b7-01",
        f"{PARENT}-more",
        f"{PARENT}\n",
        f" {PARENT}",
        PARENT[:-1],
    ],
)
def test_what_is_no_traceparent_leaves_nothing(wrong: object) -> None:
    assert carried({"traceparent": wrong, "tracestate": "a=1", "baggage": "b=2"}) == {}
    assert trace_id_in({"traceparent": wrong}) == ""


def test_a_later_version_is_read_as_the_first_which_it_begins_with() -> None:
    assert carried({"traceparent": f"cc{PARENT[2:]}-what-the-future-adds"}) == {"traceparent": PARENT}


def test_what_is_too_long_or_not_printable_is_left_out() -> None:
    given = {"traceparent": PARENT, "tracestate": "a" * 513, "baggage": "b" * (BAGGAGE_MAX + 1)}
    assert carried(given) == {"traceparent": PARENT}
    assert carried({"traceparent": PARENT, "tracestate": "a\r\nb", "baggage": {"a": 1}}) == {"traceparent": PARENT}
    assert carried({"traceparent": PARENT, "baggage": "b" * BAGGAGE_MAX})["baggage"]


def test_an_erased_context_is_none() -> None:
    assert carried({"erased": True}) == {}
    assert carried(None) == {}


def test_headers_are_read_as_a_server_gets_them() -> None:
    assert carried_by_headers([(b"host", b"a"), (b"traceparent", PARENT.encode())]) == {"traceparent": PARENT}
    assert carried_by_headers([(b"host", b"a")]) == {}
    assert carried_by_headers([(b"baggage", b"a=1")]) == {}


def test_ids_are_the_same_wherever_they_are_computed_and_differ_for_different_things() -> None:
    trace = own_trace_id("run_a", 1)
    assert (trace, len(trace)) == (own_trace_id("run_a", 1), 32)
    assert trace != own_trace_id("run_a", 2)
    ids = {span_id(trace, run, key) for run in ("run_a", "run_b") for key in ("run", "step:a:1", "step:a:2")}
    assert len(ids) == 6
    assert all(0 < one < 2**64 for one in ids)
