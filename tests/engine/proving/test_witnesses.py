"""Witnesses: what they have is compared, and they get all that they do not have, whatever fails in between."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from engine.history import KEY, OTHER_KEY, RUN_B, fill, notary_of, write
from handrail.domain.errors import NotFound, Unavailable
from handrail.domain.journal.checkpoint import SealedCheckpoint, checkpoint_line
from handrail.domain.journal.event import RunPaused, RunResumed
from handrail.domain.journal.witnessed import WITNESS, Copies, Witnessed, short_line, witnessed_from
from handrail.engine.proving.audit import verify
from handrail.engine.proving.checkpointer import Checkpointer
from handrail.engine.proving.witness_check import BREAKS_MAX, WitnessAgreement, compare_witness
from handrail.engine.proving.witness_courier import WitnessCourier
from handrail.storage.checkpoint_log import CheckpointFile
from handrail.storage.memory import MemoryStore
from handrail.storage.witnesses.register import WitnessRegister
from support import ticking_clock


class Notebook:
    """A witness that fails as often as it is told to."""

    name = "notebook"

    def __init__(self, *, failures: int = 0, hangs: bool = False) -> None:
        self.kept: list[SealedCheckpoint] = []
        self.failures, self.hangs, self.tries = failures, hangs, 0

    async def copy(self, sealed: Sequence[SealedCheckpoint]) -> None:
        self.tries += 1
        if self.hangs:
            await asyncio.sleep(60)
        if self.tries <= self.failures:
            raise Unavailable("out of ink")
        self.kept += sealed

    @property
    def copies(self) -> Copies:
        return copies_of(self.kept)

    @property
    def numbers(self) -> list[int]:
        return [one.checkpoint.number for one in self.kept]


def copies_of(sealed: Sequence[SealedCheckpoint], *, short: bool = False) -> Copies:
    lines = [short_line(one) if short else checkpoint_line(one) for one in sealed]
    return Copies(found=tuple(one for line in lines if (one := witnessed_from(line)) is not None))


class Scene:
    """A store with a checkpointer and a courier to one witness."""

    def __init__(self, folder: Path, notebook: Notebook) -> None:
        self.store, self.folder, self.notebook = MemoryStore(), folder, notebook
        self.log, self.register = CheckpointFile(folder), WitnessRegister(folder)
        self.courier = self.new_courier()
        self.checkpointer = Checkpointer(self.store, self.log, KEY, ticking_clock(), lambda: self.courier.wake())

    def new_courier(self) -> WitnessCourier:
        clock = ticking_clock()
        return WitnessCourier(self.log, [self.notebook], self.register, clock, retry_s=0.01, close_s=0.3)

    async def sealed(self, count: int = 1) -> None:
        """Write a bit and sign it, so many times."""
        if not (await self.store.end()).events:
            self.by = await fill(self.store)
            await self.checkpointer.seal()
            count -= 1
        for _ in range(count):
            await write(self.store, RUN_B, RunPaused(reason="lunch"), RunResumed(reason="back"), by=self.by)
            await self.checkpointer.seal()


async def test_every_checkpoint_is_copied_soon_after_it_is_signed(tmp_path: Path) -> None:
    scene = Scene(tmp_path, Notebook())
    await scene.sealed(3)
    await scene.courier.close()
    assert scene.notebook.numbers == [1, 2, 3]
    state = (await scene.register.all())["notebook"]
    assert (state.number, state.reason) == (3, "")
    assert state.at > 0


async def test_a_failure_is_tried_again_and_noted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    scene = Scene(tmp_path, Notebook(failures=2))
    await scene.sealed()
    async with asyncio.timeout(5):
        while not scene.notebook.kept:
            await asyncio.sleep(0.005)
    await scene.courier.close()
    assert (scene.notebook.numbers, scene.notebook.tries) == ([1], 3)
    assert sum("out of ink" in record.message for record in caplog.records) == 2
    assert (await scene.register.all())["notebook"].reason == ""


async def test_what_one_process_could_not_copy_the_next_one_does(tmp_path: Path) -> None:
    scene = Scene(tmp_path, Notebook(failures=10_000))
    await scene.sealed(2)
    await scene.courier.close()
    assert (await scene.register.all())["notebook"].reason == "out of ink"
    scene.notebook.failures = 0
    scene.courier = scene.new_courier()
    scene.courier.wake()
    await scene.courier.close()
    assert scene.notebook.numbers == [1, 2]


async def test_a_witness_that_hangs_holds_up_neither_signing_nor_the_end(tmp_path: Path) -> None:
    scene = Scene(tmp_path, Notebook(hangs=True))
    async with asyncio.timeout(5):
        await scene.sealed(2)
        await scene.courier.close()
    assert scene.notebook.numbers == []


async def test_a_restarted_log_is_copied_from_its_start(tmp_path: Path) -> None:
    scene = Scene(tmp_path, Notebook())
    await scene.sealed(2)
    await scene.courier.close()
    scene.courier = scene.new_courier()
    await scene.checkpointer.seal(restart=True)
    await scene.courier.close()
    assert scene.notebook.numbers == [1, 2, 1]
    found = await compare_witness(scene.store, scene.log, KEY, scene.notebook.copies)
    assert (found.breaks, found.notes) == ((), ())
    assert found.agreement == WitnessAgreement(3, 1)


async def test_a_register_that_cannot_be_written_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    scene = Scene(tmp_path, Notebook())
    (tmp_path / "no").write_text("a file, not a folder")
    scene.register = WitnessRegister(tmp_path / "no" / "folder")
    scene.courier = scene.new_courier()
    await scene.sealed()
    await scene.courier.close()
    assert any("could not be noted" in record.message for record in caplog.records)


async def test_a_witness_of_an_untouched_store_agrees(tmp_path: Path) -> None:
    scene = Scene(tmp_path, Notebook())
    await scene.sealed(3)
    await scene.courier.close()
    for short in (False, True):
        result = await verify(scene.store, scene.log, KEY, witnessed=copies_of(scene.notebook.kept, short=short))
        assert result.ok, result.breaks
    lagging = await verify(scene.store, scene.log, KEY, witnessed=copies_of(scene.notebook.kept[:1]))
    assert lagging.ok
    assert "the witness does not have 2 checkpoints of the log" in lagging.notes


async def test_a_replaced_key_log_and_database_agree_with_each_other_but_not_with_the_witness(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "real", Notebook())
    await scene.sealed(2)
    await scene.courier.close()
    forged = MemoryStore()  # the same store id, other events, another key: all of it the attacker's own
    await fill(forged, key=OTHER_KEY.public, seed=7)
    forger = notary_of(forged, tmp_path / "forged", key=OTHER_KEY)
    await forger.seal()
    assert (await verify(forged, forger.log, OTHER_KEY)).ok, "without a witness nobody can tell"
    for short in (False, True):
        copies = copies_of(scene.notebook.kept, short=short)
        seen = await verify(forged, forger.log, OTHER_KEY, witnessed=copies)
        assert not seen.ok
        assert seen.first_bad is not None
        assert seen.first_bad.stream == WITNESS
        assert "the key was replaced" in seen.first_bad.reason


async def test_a_rewritten_log_under_the_same_key_differs_from_the_witness(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "real", Notebook())
    await scene.sealed(2)
    await scene.courier.close()
    forged = MemoryStore()
    await fill(forged, seed=7)
    forger = notary_of(forged, tmp_path / "forged")
    await forger.seal()
    seen = await verify(forged, forger.log, KEY, witnessed=scene.notebook.copies)
    reasons = [one.reason for one in seen.breaks]
    assert "it was rewritten" in reasons[0]
    assert "replaced by an older copy" in reasons[1]


async def test_another_store_differs_from_the_witness_also_if_it_went_on_writing_there(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "real", Notebook())
    await scene.sealed(1)
    await scene.courier.close()
    other = MemoryStore()
    await fill(other, name="st_two")
    checkpointer = notary_of(other, tmp_path / "other")
    await checkpointer.seal()
    last = await checkpointer.log.last()
    assert last is not None
    seen = await verify(other, checkpointer.log, KEY, witnessed=copies_of([*scene.notebook.kept, last]))
    assert [one.n for one in seen.breaks] == [1]
    assert "the database was replaced" in seen.breaks[0].reason


async def test_a_copy_that_was_edited_in_the_witness_is_named(tmp_path: Path) -> None:
    scene = Scene(tmp_path, Notebook())
    await scene.sealed(1)
    await scene.courier.close()
    (one,) = scene.notebook.kept
    edited = replace(one, checkpoint=replace(one.checkpoint, events=3))
    seen = await verify(scene.store, scene.log, KEY, witnessed=copies_of([edited]))
    assert "was edited" in seen.breaks[0].reason


async def test_what_an_accepted_restart_left_behind_is_a_note(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "real", Notebook())
    await scene.sealed(2)
    await scene.courier.close()
    cut = MemoryStore()  # an older copy: the second checkpoint's events are gone
    await fill(cut)
    clock = ticking_clock(scene.notebook.kept[-1].checkpoint.at + 1_000)
    checkpointer = Checkpointer(cut, CheckpointFile(tmp_path / "new"), KEY, clock)
    await checkpointer.seal(restart=True)
    last = await checkpointer.log.last()
    assert last is not None
    result = await verify(cut, checkpointer.log, KEY, witnessed=copies_of([*scene.notebook.kept, last]))
    assert result.ok, result.breaks
    assert any("gone or changed since" in note for note in result.notes)


async def test_an_empty_witness_proves_nothing_and_says_so(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="has no checkpoint"):
        await compare_witness(MemoryStore(), CheckpointFile(tmp_path), KEY, Copies())


async def test_breaks_are_bounded_and_damaged_lines_are_noted(tmp_path: Path) -> None:
    found = tuple(
        Witnessed(number=n, store=f"st_{n}", at=n, events=n, digest=str(n), key="k", is_restart=False)
        for n in range(1, 51)
    )
    store = MemoryStore()
    await fill(store)
    (tmp_path / "log.jsonl").write_text("broken\n")
    copies = Copies(found=found, damaged=(3,))
    seen = await compare_witness(store, CheckpointFile(tmp_path), None, copies)
    assert len(seen.breaks) == BREAKS_MAX + 1
    last = seen.breaks[-1]
    assert (last.n, last.reason) == (21, "this checkpoint of the witness differs, and so do 29 more")
    assert seen.notes == ("line 3 of the witness can't be read",)
    assert seen.agreement == WitnessAgreement()


async def test_what_differs_for_the_same_reason_is_said_once(tmp_path: Path) -> None:
    store = MemoryStore()
    await fill(store)
    found = tuple(
        Witnessed(number=n, store="st_x", at=n, events=n, digest=str(n), key="k", is_restart=False)
        for n in range(1, 51)
    )
    seen = await compare_witness(store, CheckpointFile(tmp_path), None, Copies(found=found))
    (one,) = seen.breaks
    assert one.n == 1
    assert one.reason.endswith("the database was replaced (and 49 more checkpoints)")
