"""The graph over one list of steps: cycles, order, waves, ancestry, chains."""

from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st

from domain.definitions import patient
from handrail.domain.definition.graph import ancestors, chains_below, cycle_in, cycles_in, order, waves
from handrail.domain.definition.model import Prompt, Step


def steps(**after: list[str]) -> tuple[Step, ...]:
    return tuple(Step(id=name, work=Prompt(prompt="do it"), after=tuple(needs)) for name, needs in after.items())


DIAMOND = steps(a=[], b=["a"], c=["a"], d=["b", "c"])
SHUFFLED = steps(d=["b", "c"], c=["a"], b=["a"], a=[])
CYCLE = steps(start=[], a=["c", "start"], b=["a"], c=["b"], end=["c"])


@st.composite
def acyclic(draw: st.DrawFn) -> tuple[Step, ...]:
    """Steps that wait for others, written in any order."""
    names = [f"s{number}" for number in range(draw(st.integers(0, 12)))]
    after = {name: draw(st.lists(st.sampled_from(names[:index]))) if index else [] for index, name in enumerate(names)}
    return steps(**{name: after[name] for name in draw(st.permutations(names))})


def test_a_graph_without_a_circle_has_no_cycle() -> None:
    assert cycle_in(DIAMOND) == ()


def test_a_cycle_is_named_in_order_from_its_first_written_step_and_back_to_it() -> None:
    assert cycle_in(CYCLE) == ("a", "b", "c", "a")


def test_a_step_that_waits_for_itself_is_a_cycle() -> None:
    assert cycle_in(steps(a=["a"])) == ("a", "a")


def test_several_cycles_are_found_up_to_the_number_asked_for() -> None:
    two = steps(a=["b"], b=["a"], c=["d"], d=["c"])
    assert [set(cycle) for cycle in cycles_in(two, most=9)] in ([{"a", "b"}, {"c", "d"}], [{"c", "d"}, {"a", "b"}])
    assert len(list(cycles_in(two, most=1))) == 1


def test_names_that_the_list_does_not_have_are_ignored() -> None:
    stray = steps(a=["nobody"], b=["a", "nobody"])
    assert cycle_in(stray) == ()
    assert order(stray) == ["a", "b"]
    assert waves(stray) == [["a"], ["b"]]


def test_a_wave_is_what_could_start_together_in_written_order() -> None:
    assert waves(DIAMOND) == [["a"], ["b", "c"], ["d"]]
    assert waves(SHUFFLED) == [["a"], ["c", "b"], ["d"]]
    assert waves(()) == []


def test_the_order_is_the_written_one_where_nothing_speaks_against_it() -> None:
    assert order(steps(a=[], b=[], c=["a"], d=[])) == ["a", "b", "c", "d"]
    assert order(SHUFFLED) == ["a", "c", "b", "d"]


def test_what_stands_in_a_cycle_or_behind_it_is_in_no_order_and_no_wave() -> None:
    assert order(CYCLE) == ["start"]
    assert waves(CYCLE) == [["start"]]


def test_ancestors_are_all_steps_that_must_have_ended_before() -> None:
    before = ancestors(DIAMOND)
    assert before.of("d") == {"a", "b", "c"}
    assert before.of("a") == frozenset()
    assert before.is_before("a", "d")
    assert not before.is_before("d", "a")
    assert not before.is_before("b", "c")
    assert not before.is_before("nobody", "a")


def test_a_step_in_a_cycle_has_every_step_before_it() -> None:
    assert ancestors(CYCLE).is_before("end", "a")


def test_the_chain_below_a_step_is_the_longest_one() -> None:
    assert chains_below(steps(a=[], b=["a"], c=["b"], d=["a"])) == {"a": 2, "b": 1, "c": 0, "d": 0}


@patient
@given(acyclic())
def test_every_step_stands_in_the_order_and_in_a_wave_after_all_its_ancestors(some: tuple[Step, ...]) -> None:
    ordered, before = order(some), ancestors(some)
    wave_of = {name: number for number, wave in enumerate(waves(some)) for name in wave}
    assert sorted(ordered) == sorted(wave_of) == sorted(step.id for step in some)
    for name in ordered:
        assert before.of(name) <= set(ordered[: ordered.index(name)])
        assert all(wave_of[earlier] < wave_of[name] for earlier in before.of(name))


@patient
@given(acyclic())
def test_ancestors_are_what_following_after_upwards_finds(some: tuple[Step, ...]) -> None:
    needs = {step.id: step.after for step in some}

    def upwards(name: str) -> set[str]:
        return set(needs[name]).union(*(upwards(earlier) for earlier in needs[name]))

    before = ancestors(some)
    assert all(before.of(name) == upwards(name) for name in needs)


def test_a_chain_of_5_000_steps_takes_a_moment() -> None:
    names = [f"s{number}" for number in range(5_000)]
    chain = steps(**{name: names[max(0, index - 1) : index] for index, name in enumerate(names)})
    began = time.process_time()
    assert cycle_in(chain) == ()
    assert len(waves(chain)) == len(names)
    assert chains_below(chain)["s0"] == len(names) - 1
    assert ancestors(chain).is_before("s0", "s4999")
    assert time.process_time() - began < 2
