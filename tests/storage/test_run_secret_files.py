"""Secrets of runs beside a journal in a file: who goes on with a run removes them, and nobody else can read them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from handrail.assembly.opening import open_writer
from handrail.domain.definition.authoring import definition_from
from handrail.domain.errors import Forbidden
from handrail.domain.run.command import CancelRun, RecordDecision
from handrail.settings import Settings, read_settings

ADA = "person:ada"
WORK = definition_from(
    {
        "id": "ship",
        "inputs": {"token": {"type": "string", "secret": True}},
        "steps": [{"id": "look", "prompt": "Look at it."}],
    }
)
TOKEN = "correct-horse-battery"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    (tmp_path / "project").mkdir()
    return read_settings({"home": str(tmp_path / "home"), "project": str(tmp_path / "project"), "store": ""}, {})


def sealed_files(settings: Settings) -> list[Path]:
    folder = settings.home / "run-secrets"
    return sorted(folder.iterdir()) if folder.is_dir() else []


async def test_a_process_that_goes_on_with_a_run_removes_its_secrets_until_it_has_ended(settings: Settings) -> None:
    async with open_writer(settings) as first:
        run = await first.dispatch.start(WORK, {"token": TOKEN}, actor=ADA)
    (file,) = sealed_files(settings)
    assert TOKEN.encode() not in file.read_bytes()
    if sys.platform != "win32":
        assert file.stat().st_mode & 0o077 == 0
    async with open_writer(settings) as second:
        said = RecordDecision(decision="use it", reason=f"the token is {TOKEN}")
        await second.dispatch.grant(run.id, said, actor=ADA)
        records = await second.reader.store.read(run.id)
        assert not any(TOKEN.encode() in record.body for record in records)
        await second.dispatch.grant(run.id, CancelRun(reason="enough"), actor=ADA)
    assert sealed_files(settings) == []


async def test_a_run_without_secrets_leaves_no_file(settings: Settings) -> None:
    plain = definition_from({"id": "plain", "steps": [{"id": "look", "prompt": "Look at it."}]})
    async with open_writer(settings) as writer:
        await writer.dispatch.start(plain, {}, actor=ADA)
    assert not (settings.home / "run-secrets").exists()


async def test_secrets_that_can_not_be_opened_keep_a_run_from_going_on_and_say_what_to_do(settings: Settings) -> None:
    async with open_writer(settings) as first:
        run = await first.dispatch.start(WORK, {"token": TOKEN}, actor=ADA)
    (file,) = sealed_files(settings)
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    said = RecordDecision(decision="use it", reason=f"the token is {TOKEN}")
    async with open_writer(settings) as second:
        with pytest.raises(Forbidden, match="can't be opened") as refused:
            await second.dispatch.grant(run.id, said, actor=ADA)
        assert f"remove {file}" in refused.value.hint
        file.unlink()
        await second.dispatch.grant(run.id, said, actor=ADA)
