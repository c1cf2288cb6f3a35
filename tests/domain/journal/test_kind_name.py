"""Kinds of events as readers name them."""

from __future__ import annotations

import pytest

from handrail.domain.errors import Invalid
from handrail.domain.journal.codec import KINDS
from handrail.domain.journal.kind_name import kinds_named


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("decision_recorded", {"decision_recorded"}),
        ("decision", {"decision_recorded"}),
        ("Decisions", {"decision_recorded"}),
        ("action", {"action_recorded"}),
        ("step completed", {"step_completed"}),
        ("step-failed", {"step_failed"}),
        ("uncertain", {"step_became_uncertain", "undo_became_uncertain"}),
    ],
)
def test_a_kind_is_named_in_full_or_by_its_words(name: str, meant: set[str]) -> None:
    assert kinds_named([name]) == meant


def test_every_kind_is_named_by_itself_and_several_count_together() -> None:
    assert all(kinds_named([kind]) == {kind} for kind in KINDS)
    assert kinds_named(["decision", "action"]) == {"decision_recorded", "action_recorded"}
    assert kinds_named([]) == frozenset()


@pytest.mark.parametrize("name", ["", "_", "s", "cision", "no_such_kind", "x" * 200])
def test_a_name_that_means_no_kind_is_an_error(name: str) -> None:
    with pytest.raises(Invalid, match="there is no kind of event") as refused:
        kinds_named([name])
    assert refused.value.hint
