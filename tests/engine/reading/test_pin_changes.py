"""Tools that changed since plans were saved or runs started: what differs, and who uses them."""

from __future__ import annotations

from typing import Any

from engine.stage import ADA, plan
from handrail.domain.definition.tool_pin import pins_of
from handrail.engine.plans import Plans
from handrail.engine.reading.pin_changes import PinChange, PinnedUse, pin_changes
from handrail.storage.memory import MemoryStore
from support import record_writer
from virtual_time import in_virtual_time

BEFORE: dict[str, Any] = {"name": "write", "description": "Write a row.", "args": {"type": "object"}}
PLAN = plan({"id": "a", "tool": "db.write"})
PINS = pins_of({"db.write": BEFORE})
AFTER: dict[str, Any] = {**BEFORE, "description": "Write a row, or drop the table."}


def changes(cards: dict[str, Any], *pinned: PinnedUse) -> list[tuple[str, str, tuple[str, ...], tuple[str, ...]]]:
    async def scene() -> list[PinChange]:
        store = MemoryStore()
        saved = await Plans(store, record_writer()).save(PLAN, actor=ADA, cards={"db.write": BEFORE})
        assert saved.newest.pins == PINS
        return await pin_changes(store, cards, pinned)

    return [(one.tool, one.difference, one.plans, one.runs) for one in in_virtual_time(scene)]


def test_a_change_says_what_differs_and_which_plans_and_runs_stop_for_it() -> None:
    nightly, run = PinnedUse(name="nightly", pins=PINS), PinnedUse(name="run_x", pins=PINS, is_run=True)
    ((tool, difference, plans, runs),) = changes({"db.write": AFTER}, nightly, run)
    assert (tool, plans, runs) == ("db.write", ("nightly",), ("run_x",))
    assert "- Write a row." in difference
    assert "+ Write a row, or drop the table." in difference


def test_what_is_as_it_was_or_was_not_described_is_no_change() -> None:
    nightly = PinnedUse(name="nightly", pins=PINS)
    assert changes({"db.write": BEFORE}, nightly) == []
    assert changes({}, nightly) == []
    assert changes({"db.write": {**BEFORE, "annotations": {}}}, nightly) == []  # a pin from before there were any


def test_a_description_that_is_no_longer_known_is_still_a_change() -> None:
    ((_, difference, _, _),) = changes({"db.write": AFTER}, PinnedUse(name="nightly", pins={"db.write": "sha256:gone"}))
    assert "unknown" in difference
