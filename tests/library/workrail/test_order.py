"""Order: an imported workflow does the same steps in the same order as their engine, whatever the variables become."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handrail.domain.rehearsal.question import DoneResult
from handrail.domain.rehearsal.stage import SimulatedRun, started
from handrail.domain.scheduling.agenda import Agenda
from handrail.library.loading import load_data
from library.workrail.garden import Data, loop, step, workflow
from library.workrail.their_engine import TheirEngine

STEPS_MAX = 60

NAMES = st.sampled_from(["size", "mood", "count"])
VALUES: list[Any] = ["large", "Large ", "small", "", "yes", "No", True, False, 0, 1, 3, 2.5, "3", None]
ASKED = st.one_of(
    st.fixed_dictionaries({"var": NAMES, "equals": st.sampled_from(["Large", "small", "yes", True, False, 3, None])}),
    st.fixed_dictionaries({"var": NAMES, "not_equals": st.sampled_from(["Large", True, 3])}),
    st.fixed_dictionaries({"var": NAMES, "gt": st.sampled_from([0, 2])}),
    st.fixed_dictionaries({"var": NAMES, "lte": st.sampled_from([1, 2.5])}),
    st.fixed_dictionaries({"var": NAMES, "contains": st.sampled_from(["arg", "s"])}),
    st.fixed_dictionaries({"var": NAMES, "startsWith": st.sampled_from(["LA", "3"])}),
    st.fixed_dictionaries({"var": NAMES}),
)
CONDITIONS = st.recursive(
    ASKED,
    lambda inner: st.one_of(
        st.fixed_dictionaries({"and": st.lists(inner, min_size=1, max_size=2)}),
        st.fixed_dictionaries({"or": st.lists(inner, min_size=1, max_size=2)}),
        st.fixed_dictionaries({"not": inner}),
    ),
    max_leaves=3,
)
CONDITIONAL = st.one_of(st.just({}), st.fixed_dictionaries({"runCondition": CONDITIONS}))


@st.composite
def workflows(draw: st.DrawFn) -> Data:
    def one(identity: str) -> Data:
        return step(identity, **draw(CONDITIONAL))

    def rounds(identity: str) -> Data:
        kind = draw(st.sampled_from(["while", "until", "for", "forEach"]))
        body = [one(f"{identity}{number}") for number in range(draw(st.integers(1, 3)))]
        by: dict[str, Data] = {"for": {"count": draw(st.integers(1, 4))}, "forEach": {"items": "beds"}}
        config = by.get(kind) or {"condition": draw(CONDITIONS)}
        return {**loop(kind, *body, identity=identity, maxIterations=3, **config), **draw(CONDITIONAL)}

    makers = draw(st.lists(st.sampled_from([one, one, rounds]), min_size=1, max_size=5))
    return workflow(*(make(f"s{number}") for number, make in enumerate(makers)))


CHANGES = st.lists(st.dictionaries(NAMES, st.sampled_from(VALUES), max_size=2), min_size=STEPS_MAX, max_size=STEPS_MAX)


def our_order(data: Data, given_at_start: Data, changes: list[Data]) -> list[str]:
    loaded = load_data(data)
    assert loaded.definition is not None
    assert loaded.is_valid, loaded.findings
    run = SimulatedRun(
        loaded.definition,
        started(loaded.definition, {}, given_at_start),
        check=lambda _, inputs: (inputs, ()),
    )
    order: list[str] = []
    for change in changes:
        question = run.advance()
        assert run._agenda.ready == Agenda(loaded.definition, run.run).ready
        if question is None:
            assert run.run.status == "completed", run.run
            return order
        order.append(question.path)
        run.answer(question, DoneResult("done"), variables=change)
    return order


def their_order(data: Data, given_at_start: Data, changes: list[Data]) -> list[str]:
    engine, order = TheirEngine(data, dict(given_at_start)), list[str]()
    for change in changes:
        path = engine.next()
        if not path:
            return order
        order.append(path)
        engine.done(path, change)
    return order


@settings(deadline=None, max_examples=150)
@given(data=workflows(), start=st.dictionaries(NAMES, st.sampled_from(VALUES)), changes=CHANGES)
def test_the_order_is_theirs_whatever_the_variables_become(data: Data, start: Data, changes: list[Data]) -> None:
    beds = {"beds": ["a", "b", "c", "d"]}
    assert our_order(data, {**start, **beds}, changes) == their_order(data, {**start, **beds}, changes)


A, B = {"var": "size", "equals": "a"}, {"var": "size", "equals": "b"}


@pytest.mark.parametrize(
    ("steps", "changes", "order"),
    [
        ([step("one", runCondition=A), step("two"), step("three")], [{"size": "a"}, {}, {}], ["two", "one", "three"]),
        (
            [
                loop("while", step("in"), condition=B, identity="round") | {"runCondition": A},
                step("two"),
                step("three"),
            ],
            [{"size": "a"}, {}],
            ["two", "three"],
        ),
        (
            [step("zero"), loop("until", step("a"), step("b"), condition=A, identity="round"), step("last")],
            [{}, {}, {}, {"size": "a"}, {}],
            ["zero", "round[0].a", "round[0].b", "round[1].a", "last"],
        ),
        (
            [loop("while", step("in"), condition={"not": A}, identity="round", maxIterations=2), step("last")],
            [{}] * 3,
            ["round[0].in", "round[1].in", "last"],
        ),
        (
            [loop("forEach", step("in"), items="beds", identity="round", maxIterations=2), step("last")],
            [{}] * 3,
            ["round[0].in", "round[1].in", "last"],
        ),
    ],
    ids=["a skipped step", "a loop that is passed", "a round that ends early", "the most rounds", "the most items"],
)
def test_what_is_special_about_their_order(steps: list[Data], changes: list[Data], order: list[str]) -> None:
    data, beds = workflow(*steps), {"beds": ["a", "b", "c"]}
    changes = [*changes, *([{}] * 5)]
    assert our_order(data, beds, changes) == order
    assert their_order(data, beds, changes) == order
