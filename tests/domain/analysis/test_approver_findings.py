"""Approvals that nobody known here can answer, or not as many people as they need."""

from __future__ import annotations

from typing import Any

from handrail.domain.analysis.local import Local, LocalPeople
from handrail.domain.analysis.whole import analyse
from handrail.domain.definition.authoring import definition_from


def approver_rules(people: LocalPeople | None, **keys: Any) -> set[str]:
    definition = definition_from({"id": "d", "steps": [{"id": "go", "approve": "Go?", **keys}]})
    return {flaw.rule for flaw in analyse(definition, Local(people=people))}


def test_an_approval_that_nobody_known_here_can_answer_is_reported() -> None:
    people = LocalPeople(groups={"leads": ["ann"], "empty": []}, person="me")
    assert approver_rules(people, by=["managers"]) == {"unknown_approver"}
    assert approver_rules(people, by=["empty"]) == {"unknown_approver"}
    for by in (["leads"], ["ann"], ["me"], ["managers", "leads"], []):
        assert approver_rules(people, by=by) == set()
    assert approver_rules(None, by=["managers"]) == set(), "where nothing is known of people, nothing is said"


def test_an_approval_that_needs_more_people_than_can_answer_is_reported() -> None:
    people = LocalPeople(groups={"leads": ["ann", "bob"]}, person="me")
    assert approver_rules(people, by=["leads"], approvals=3) == {"too_few_approvers"}
    assert approver_rules(people, by=["leads", "ann"], approvals=3) == {"too_few_approvers"}
    assert approver_rules(people, by=["leads", "me"], approvals=3) == set()
