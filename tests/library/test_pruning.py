"""A fault in the structure does not hide the faults of meaning behind it, unless they may be its fault."""

from __future__ import annotations

from handrail.library.loading import load_definition

PLAN = """\
id: ship
steps:
  - id: notes
    prompt: Write.
    {first}
  - id: tag
    tool: value.set
    {second}
    after: [nots]
"""


def rules(first: str, second: str) -> list[str]:
    loaded = load_definition(PLAN.format(first=first, second=second), name="p.yaml")
    assert not loaded.is_valid
    return [finding.rule for finding in loaded.findings]


def test_a_misspelled_quiet_key_and_an_unknown_step_are_found_together() -> None:
    assert rules("rol: You are careful.", "timeot: 3s") == ["unknown_key", "unknown_key", "unknown_step"]


def test_a_bad_value_of_a_quiet_key_is_cut_off_whole() -> None:
    assert rules("title: 7", "retry: {attempts: 0, first: soon}")[-1] == "unknown_step"


def test_what_may_have_been_meant_to_order_or_to_name_stops_the_judgement() -> None:
    assert rules("title: Notes", "aftr: [notes]") == ["unknown_key"]
    assert "unknown_step" not in rules("output: 7", "timeout: 3s")
    assert rules("inputs: {}", "timeout: 3s") == ["unknown_key"]


def test_a_document_that_stays_invalid_is_not_judged() -> None:
    loaded = load_definition("id: 7\ntitel: x\nsteps: []\n", name="p.yaml")
    assert loaded.definition is None
    assert len(loaded.findings) >= 2
