"""The memory of rules: finds what it kept, forgets within bounds, and believes no file that it did not write."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from itertools import count
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from handrail.domain.checks.finding import Finding, Severity
from handrail.domain.checks.rule import CheckOutcome, Evidence
from handrail.domain.secrets.scrubbing import SecretScrubber
from handrail.storage.check_cache import PART_AGE_NS, RuleMemory

FINDING = Finding(rule="r", severity=Severity.MAJOR, where="a.py:1", message="bad", excerpt="x = 1")
EVIDENCE = Evidence(rule="tests_pass", version="1.2.0", passed=True, ran=("pytest",), exit=0, counts={"tests": 3})
GOOD, BAD, BARE = CheckOutcome(evidence=EVIDENCE), CheckOutcome(findings=(FINDING,)), CheckOutcome()


def ticking(start: int = 1_700_000_000_000_000_000) -> Callable[[], int]:
    ticks = count(start, 1_000_000)
    return lambda: next(ticks)


@pytest.fixture
def memory(tmp_path: Path) -> RuleMemory:
    return RuleMemory(tmp_path / "rules", now_ns=ticking())


async def test_what_was_kept_is_found_again_also_by_another_process(memory: RuleMemory, tmp_path: Path) -> None:
    assert await memory.find("k") is None
    await memory.keep("k", GOOD)
    await memory.keep("l", BAD)
    for one in (memory, RuleMemory(tmp_path / "rules")):
        assert await one.find("k") == GOOD
        assert await one.find("l") == BAD
        assert await one.find("m") is None
    await memory.keep("k", BARE)
    assert await memory.find("k") == BARE


async def test_files_are_their_owners_alone(memory: RuleMemory, tmp_path: Path) -> None:
    await memory.keep("../../etc/passwd\n", GOOD)
    await memory.keep("half a character \ud800", GOOD)
    assert await memory.find("half a character \ud800") is None
    await memory.keep("k", GOOD)
    assert stat.S_IMODE((tmp_path / "rules").stat().st_mode) == 0o700
    for path in (tmp_path / "rules").iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert len(path.name) == 69
    assert [path.name for path in tmp_path.iterdir()] == ["rules"]


async def test_the_least_recently_asked_is_forgotten_first(tmp_path: Path) -> None:
    memory = RuleMemory(tmp_path, entries_max=3, now_ns=ticking())
    for key in "abc":
        await memory.keep(key, GOOD)
    assert await memory.find("a") == GOOD
    await memory.keep("d", GOOD)
    assert [await memory.find(key) is not None for key in "abcd"] == [True, False, True, True]


async def test_all_that_is_remembered_stays_within_its_bytes(tmp_path: Path) -> None:
    memory = RuleMemory(tmp_path, bytes_max=1_000, now_ns=ticking())
    for number in range(20):
        await memory.keep(f"key {number}", BAD)
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 1_000
    assert await memory.find("key 19") == BAD
    await memory.keep("huge", CheckOutcome(findings=(msgspec.structs.replace(FINDING, message="x" * 2_000),)))
    assert await memory.find("huge") is None
    assert await memory.find("key 19") == BAD


@pytest.mark.parametrize("content", [b"", b"{", b"[" * 100_000, b'{"format":2}', b"\xff\xfe", b"null", b"\0" * 100])
async def test_a_broken_file_is_removed_and_not_believed(memory: RuleMemory, tmp_path: Path, content: bytes) -> None:
    await memory.keep("k", GOOD)
    [path] = (tmp_path / "rules").iterdir()
    path.write_bytes(content)
    assert await memory.find("k") is None
    assert not path.exists()


async def test_a_file_under_another_name_or_behind_a_link_is_not_believed(memory: RuleMemory, tmp_path: Path) -> None:
    await memory.keep("k", GOOD)
    [path] = (tmp_path / "rules").iterdir()
    await memory.keep("l", BAD)
    other = next(one for one in (tmp_path / "rules").iterdir() if one != path)
    kept = other.read_bytes()
    other.write_bytes(path.read_bytes())
    assert await memory.find("l") is None
    assert [card.key for card in await memory.cards()] == ["k"]
    outside = tmp_path / "outside"
    outside.write_bytes(kept)
    other.unlink()
    other.symlink_to(outside)
    assert await memory.find("l") is None
    assert not other.is_symlink()
    assert outside.exists()


async def test_what_does_not_belong_here_is_removed_but_not_what_another_is_writing(
    memory: RuleMemory, tmp_path: Path
) -> None:
    await memory.keep("k", GOOD)
    folder = tmp_path / "rules"
    for name in ("notes.txt", "young.part", "old.part"):
        (folder / name).write_text("x")
    (folder / "sub").mkdir()
    now = 1_700_000_000_000_000_000
    os.utime(folder / "young.part", ns=(now, now))
    os.utime(folder / "old.part", ns=(now - PART_AGE_NS, now - PART_AGE_NS))
    await memory.keep("l", GOOD)
    assert {path.name for path in folder.iterdir() if len(path.name) < 60} == {"young.part", "sub"}
    assert await memory.find("k") == GOOD


async def test_what_is_remembered_can_be_looked_at_and_cleared(memory: RuleMemory) -> None:
    assert await memory.cards() == []
    assert await memory.clear() == 0
    await memory.keep("k", GOOD)
    await memory.keep("l", BAD)
    await memory.keep("m", BARE)
    await memory.find("k")
    cards = await memory.cards()
    assert [(card.key, card.rule, card.version, card.passed) for card in cards] == [
        ("k", "tests_pass", "1.2.0", True),
        ("m", "", "", True),
        ("l", "r", "", False),
    ]
    assert cards[0].asked > cards[0].when == 1_700_000_000_000
    assert cards[0].bytes > 100
    assert await memory.clear() == 3
    assert await memory.find("k") is None


async def test_where_nothing_can_be_written_nothing_is_kept_and_nothing_fails(tmp_path: Path) -> None:
    (tmp_path / "rules").write_text("a file")
    memory = RuleMemory(tmp_path / "rules")
    await memory.keep("k", GOOD)
    assert await memory.find("k") is None
    assert await memory.cards() == []


async def test_a_write_that_fails_leaves_no_part_behind(
    memory: RuleMemory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await memory.keep("k", GOOD)

    def full(_part: str, _target: Path) -> None:
        raise OSError(28, "no space left")

    monkeypatch.setattr(os, "replace", full)
    await memory.keep("k", BAD)
    monkeypatch.undo()
    assert len(list((tmp_path / "rules").iterdir())) == 1
    assert await memory.find("k") == GOOD


async def test_a_file_that_another_process_forgets_meanwhile_is_passed_over(
    memory: RuleMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    await memory.keep("k", GOOD)

    def gone(path: Path) -> os.stat_result:
        raise FileNotFoundError(path)

    monkeypatch.setattr(Path, "lstat", gone)
    assert await memory.cards() == []


async def test_no_secret_is_cached(tmp_path: Path) -> None:
    mine = RuleMemory(tmp_path / "rules", clean=SecretScrubber({"hunter22": ""}).content)
    await mine.keep("k", CheckOutcome(findings=(replace(FINDING, excerpt="key = hunter22"),)))
    assert not any(b"hunter22" in file.read_bytes() for file in (tmp_path / "rules").iterdir())
    found = await mine.find("k")
    assert found is not None
    assert found.findings[0].excerpt == "key = [redacted]"
