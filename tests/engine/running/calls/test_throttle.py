"""The throttle: hands are shared, the urgent go first, and nobody starves."""

from __future__ import annotations

from handrail.domain.definition.model import Effect
from handrail.engine.running.calls.throttle import Throttle
from handrail.engine.tool import ToolSpec

DO = ToolSpec(name="x.do", description="", effect=Effect.NONE)
ONE = ToolSpec(name="x.one", description="", effect=Effect.NONE, concurrency=1)
PACED = ToolSpec(name="x.paced", description="", effect=Effect.NONE, rate="1/s")


def test_as_many_calls_as_there_are_hands_and_the_next_waits_for_its_turn() -> None:
    woken: list[str] = []
    throttle = Throttle(woken.append, calls_max=2)
    assert throttle.enter("a", 0, DO, now=0) is None
    assert throttle.enter("a", 0, DO, now=0) is None
    assert throttle.enter("a", 0, DO, now=0) is not None
    assert throttle.enter("b", 0, DO, now=0) is not None
    throttle.leave(DO)
    assert woken == ["a"]
    assert throttle.enter("b", 0, DO, now=0) is not None  # the place is a's
    assert throttle.enter("a", 0, DO, now=0) is None


def test_the_higher_priority_gets_the_next_place() -> None:
    woken: list[str] = []
    throttle = Throttle(woken.append, calls_max=1)
    throttle.enter("a", 0, DO, now=0)
    throttle.enter("b", 0, DO, now=0)
    throttle.enter("c", 5, DO, now=0)
    throttle.leave(DO)
    assert woken == ["c"]


def test_a_turn_that_is_not_used_goes_on_to_the_next() -> None:
    woken: list[str] = []
    throttle = Throttle(woken.append, calls_max=1)
    throttle.enter("a", 0, DO, now=0)
    throttle.enter("b", 0, DO, now=0)
    throttle.enter("c", 0, DO, now=0)
    throttle.leave(DO)
    throttle.give_back("b")
    assert woken == ["b", "c"]
    throttle.forget("c")
    assert throttle.enter("d", 0, DO, now=0) is None


def test_a_run_that_was_forgotten_gets_no_turn() -> None:
    woken: list[str] = []
    throttle = Throttle(woken.append, calls_max=1)
    throttle.enter("a", 0, DO, now=0)
    throttle.enter("b", 0, DO, now=0)
    throttle.forget("b")
    throttle.leave(DO)
    assert woken == []
    assert throttle.enter("c", 0, DO, now=0) is None


def test_a_tools_own_limit_wakes_who_waits_for_it() -> None:
    woken: list[str] = []
    throttle = Throttle(woken.append)
    assert throttle.enter("a", 0, ONE, now=0) is None
    held = throttle.enter("b", 0, ONE, now=0)
    assert held is not None
    assert "1 calls of x.one" in held.reason
    throttle.leave(ONE)
    assert woken == ["b"]


def test_a_pace_says_when_to_come_again() -> None:
    throttle = Throttle(lambda _: None)
    assert throttle.enter("a", 0, PACED, now=0) is None
    held = throttle.enter("a", 0, PACED, now=0)
    assert held is not None
    assert held.due is not None
    assert held.due >= 1_000
    assert throttle.enter("a", 0, PACED, now=held.due) is None


def test_a_place_that_was_offered_and_can_not_be_used_goes_on_to_the_next() -> None:
    """The first to wait for the tool has no turn when the place is free: the second must hear of it."""
    woken: list[str] = []
    throttle = Throttle(woken.append, calls_max=2)
    assert throttle.enter("a", 0, ONE, now=0) is None
    assert throttle.enter("b", 0, ONE, now=0) is not None
    assert throttle.enter("c", 0, ONE, now=0) is not None
    assert throttle.enter("d", 0, DO, now=0) is None
    assert throttle.enter("e", 0, DO, now=0) is not None  # it gets the next turn
    throttle.leave(ONE)
    assert woken == ["b", "e"]
    assert throttle.enter("b", 0, ONE, now=0) is not None
    assert woken == ["b", "e", "c"]
    throttle.forget("b")
    throttle.give_back("e")
    assert throttle.enter("c", 0, ONE, now=0) is None


def test_a_run_that_waits_for_a_place_again_is_not_woken_for_it() -> None:
    woken: list[str] = []
    throttle = Throttle(woken.append)
    assert throttle.enter("a", 0, ONE, now=0) is None
    assert throttle.enter("b", 0, ONE, now=0) is not None
    throttle.leave(ONE)
    assert throttle.enter("quick", 0, ONE, now=0) is None
    assert throttle.enter("b", 0, ONE, now=0) is not None
    assert woken == ["b"]
    throttle.leave(ONE)
    assert woken == ["b", "b"]
    assert throttle.enter("b", 0, ONE, now=0) is None
