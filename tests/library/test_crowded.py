"""Keys that can't be right, in any number: refused in time, and the first of them listed."""

from __future__ import annotations

import time
from typing import Any

import pytest

from handrail.library.documents.document import FINDINGS_MAX
from handrail.library.loading import load_data

MANY, CPU_S_MAX = 20_000, 5.0
CROWD = {f"key_{number}": 1 for number in range(MANY)}


@pytest.mark.parametrize(
    "wrong",
    [
        {"steps": [{"id": "a", "prompt": "x", **CROWD}]},
        {"steps": [{"id": "a", "prompt": "x", "undo": {"prompt": "y", **CROWD}}]},
        {"steps": [{"id": "a", "each": "[1]", "steps": [{"id": "b", "prompt": "x", **CROWD}]}]},
        {"steps": [{"id": "a", "prompt": "x", "model": CROWD}]},
        {"inputs": {f"no name {key}": {} for key in CROWD}},
        CROWD,
    ],
    ids=["step", "undo", "inner step", "model", "inputs", "top"],
)
def test_any_number_of_wrong_keys_is_refused_in_time(wrong: dict[str, Any]) -> None:
    """The time grew with the square of the keys: these took minutes, and take a tenth of a second."""
    started = time.process_time()
    loaded = load_data({"id": "p", "steps": [{"id": "a", "prompt": "x"}], **wrong})
    assert time.process_time() - started < CPU_S_MAX
    assert not loaded.is_valid
    assert len(loaded.findings) == FINDINGS_MAX + 1
    assert "no more errors are listed" in loaded.findings[-1].message


def test_a_few_wrong_keys_are_all_reported_and_the_rest_is_still_checked() -> None:
    keys = {f"key_{number}": 1 for number in range(FINDINGS_MAX - 1)}
    loaded = load_data({"id": "p", "steps": [{"id": "a", "prompt": "{{ steps.nothing.output }}", **keys}]})
    assert len([one for one in loaded.findings if one.rule == "unknown_key"]) == FINDINGS_MAX - 1
    assert [one.where for one in loaded.findings if one.rule != "unknown_key"] == ["steps[0].prompt"]
