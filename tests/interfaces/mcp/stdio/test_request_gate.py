"""The gate lets a limited number of requests run, lets a limited number wait, and loses none."""

from __future__ import annotations

from handrail.interfaces.mcp.stdio.envelope import Request
from handrail.interfaces.mcp.stdio.request_gate import (
    LISTEN,
    LISTENING_MAX,
    RUNNING_MAX,
    WAITING_CHARACTERS_MAX,
    WAITING_MAX,
    Admission,
    RequestGate,
)


def request(request_id: int | str, method: str = "tools/call", text: str = "x") -> Request:
    return Request(request_id, method, {}, text)


def full_gate() -> RequestGate:
    gate = RequestGate()
    assert {gate.enter(request(number)) for number in range(RUNNING_MAX)} == {Admission.GO}
    return gate


def test_requests_beyond_the_limit_wait_and_go_in_their_order() -> None:
    gate = full_gate()
    assert gate.enter(request("first")) is Admission.WAIT
    assert gate.enter(request("second")) is Admission.WAIT
    assert [going.id for going in gate.leave(0)] == ["first"]
    assert [going.id for going in gate.leave(1)] == ["second"]
    assert gate.leave(2) == []


def test_an_id_that_is_not_answered_yet_is_refused() -> None:
    gate = full_gate()
    gate.enter(request("waits"))
    assert gate.enter(request(5)) is Admission.DUPLICATE
    assert gate.enter(request("5")) is Admission.DUPLICATE, "the SDK takes them for one"
    assert gate.enter(request("waits")) is Admission.DUPLICATE
    gate.leave("5")
    assert gate.enter(request(5)) is Admission.WAIT, "`waits` took its place"


def test_too_many_requests_are_refused_and_none_of_them_is_kept() -> None:
    gate = full_gate()
    for number in range(WAITING_MAX):
        assert gate.enter(request(f"w{number}")) is Admission.WAIT
    assert gate.enter(request("more")) is Admission.FULL
    assert gate.withdraw("w0")
    assert gate.enter(request("more")) is Admission.WAIT


def test_too_much_text_is_refused() -> None:
    gate = full_gate()
    big = "x" * (WAITING_CHARACTERS_MAX // 2)
    assert [gate.enter(request(name, text=big)) for name in "abc"] == [Admission.WAIT, Admission.WAIT, Admission.FULL]
    gate.leave(0)
    assert gate.enter(request("c", text=big)) is Admission.WAIT


def test_subscriptions_can_not_take_every_place() -> None:
    gate = RequestGate()
    assert {gate.enter(request(number, LISTEN)) for number in range(LISTENING_MAX)} == {Admission.GO}
    assert gate.enter(request("one more", LISTEN)) is Admission.FULL
    assert gate.enter(request("a call")) is Admission.GO


def test_a_request_that_waits_can_be_withdrawn_and_a_running_one_can_not() -> None:
    gate = full_gate()
    gate.enter(request("waits"))
    assert gate.withdraw("waits")
    assert not gate.withdraw("waits")
    assert not gate.withdraw(0)
    assert gate.leave(0) == []


def test_it_is_idle_when_only_the_client_can_continue() -> None:
    gate = RequestGate()
    assert gate.is_idle
    gate.enter(request("subscribed", LISTEN))
    assert gate.is_idle
    gate.enter(request("call"))
    assert not gate.is_idle
    gate.asked_client(1)
    assert gate.is_idle, "the call waits for an answer of the client"
    gate.client_answered(1)
    assert not gate.is_idle
    gate.leave("call")
    assert gate.is_idle
