"""An undo that the author declares is a call of its own: it does what it says, whatever the first call had found."""

from __future__ import annotations

from pathlib import Path

from handrail.assembly.opening import open_assembly
from handrail.domain.definition.authoring import definition_from
from handrail.domain.run.status import RunStatus
from handrail.settings import read_settings

BOOKED = {
    "id": "book",
    "on_failure": "compensate",
    "steps": [
        {
            "id": "pay",
            "tool": "file.append",
            "args": {"path": "ledger.txt", "text": "paid 10\n"},
            "undo": {"tool": "file.append", "args": {"path": "ledger.txt", "text": "refunded 10\n"}},
        },
        {"id": "print", "tool": "file.read", "args": {"path": "no-such-printer"}},
    ],
}


async def test_a_declared_undo_by_the_same_tool_is_done_and_not_taken_for_the_tools_own(tmp_path: Path) -> None:
    settings = read_settings({"home": str(tmp_path / "home"), "project": str(tmp_path)}, {})
    (tmp_path / "ledger.txt").write_text("opened\n")
    async with open_assembly(settings) as parts:
        run = await parts.worker.start(definition_from(BOOKED), {}, actor="person:ada")
        end = await parts.worker.settled(run.id)
    assert end.status is RunStatus.COMPENSATED
    assert (tmp_path / "ledger.txt").read_text() == "opened\npaid 10\nrefunded 10\n"
