"""Trust decisions are kept privately in the home, one for each folder."""

from __future__ import annotations

import stat
import sys
import threading
from pathlib import Path

import pytest

from handrail.domain.errors import Invalid, Limited, Unavailable
from handrail.domain.trust.decision import TrustDecision, TrustItem
from handrail.storage import trust_file
from handrail.storage.trust_file import TRUST_NAME, TrustFile


def decision(project: str, digest: str = "sha256:a") -> TrustDecision:
    return TrustDecision(project=project, digest=digest, by="person:ada", at="now", items=(TrustItem("a", "1"),))


def test_a_decision_is_kept_replaced_and_removed(tmp_path: Path) -> None:
    kept = TrustFile(tmp_path / "home")
    assert kept.find("/p") is None
    kept.keep(decision("/p"))
    kept.keep(decision("/a"))
    kept.keep(decision("/p", "sha256:b"))
    assert [(one.project, one.digest) for one in TrustFile(tmp_path / "home").all()] == [
        ("/a", "sha256:a"),
        ("/p", "sha256:b"),
    ]
    assert kept.remove("/p")
    assert not kept.remove("/p")
    assert kept.find("/a") == decision("/a")


@pytest.mark.skipif(sys.platform == "win32", reason="modes are POSIX's")
def test_only_the_owner_can_read_it(tmp_path: Path) -> None:
    TrustFile(tmp_path / "home").keep(decision("/p"))
    assert stat.S_IMODE((tmp_path / "home" / TRUST_NAME).stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "home").stat().st_mode) == 0o700


def test_projects_that_are_trusted_at_the_same_time_do_not_lose_each_other(tmp_path: Path) -> None:
    kept = TrustFile(tmp_path)
    threads = [threading.Thread(target=kept.keep, args=(decision(f"/p{number}"),)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(kept.all()) == 8


@pytest.mark.parametrize("text", ["{", "[]", '{"decisions": [{"project": 3}]}', '{"format": 2}', "\udcff"])
def test_a_file_that_can_not_be_read_trusts_nothing_and_says_so(tmp_path: Path, text: str) -> None:
    (tmp_path / TRUST_NAME).write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(Invalid) as refused:
        TrustFile(tmp_path).find("/p")
    assert refused.value.hint


def test_the_number_of_decisions_has_a_limit_and_a_full_disk_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = TrustFile(tmp_path)
    kept.keep(decision("/p"))
    monkeypatch.setattr(trust_file, "DECISIONS_MAX", 1)
    with pytest.raises(Limited):
        kept.keep(decision("/q"))

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(trust_file, "write_whole", full)
    with pytest.raises(Unavailable, match="No space left"):
        kept.keep(decision("/p"))
