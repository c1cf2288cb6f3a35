"""Known secrets: all stored values, also those that another process stores meanwhile, and those stored before."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from handrail.domain.errors import Invalid, Unavailable
from handrail.engine.known_secrets import LOOK_EVERY_S, UNREAD_RETRY_S, KnownSecrets
from handrail.engine.secrets import ReadSecrets
from handrail.storage.secret_file import SecretFile


class Stored:
    """Secrets that a test changes; counts how often they are read."""

    def __init__(self, **values: str) -> None:
        self.kept, self.unread, self.reads, self.looks = values, 0, 0, 0
        self.error: Unavailable | None = None

    def mark(self) -> object:
        self.looks += 1
        return tuple(self.kept.items())

    def values(self) -> ReadSecrets:
        self.reads += 1
        if self.error:
            raise self.error
        return ReadSecrets(values=dict(self.kept), unread=self.unread)


class Time:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def time() -> Time:
    return Time()


def test_a_secret_that_another_process_stores_is_known_at_the_next_look(tmp_path: Path, time: Time) -> None:
    known = KnownSecrets(SecretFile(tmp_path, choice="file"), now_s=time)
    assert known.scrubber().text("hunter22") == "hunter22"
    SecretFile(tmp_path, choice="file").keep("KEY", "hunter22", None)
    time.now_s += LOOK_EVERY_S
    assert known.scrubber().text("hunter22") == "[redacted]"


def test_the_store_is_read_only_when_it_has_changed_and_looked_at_only_so_often(time: Time) -> None:
    stored = Stored(KEY="hunter22")
    known = KnownSecrets(stored, now_s=time)
    first = known.scrubber()
    for _ in range(100):
        assert known.scrubber() is first
    assert (stored.reads, stored.looks) == (1, 1)
    time.now_s += LOOK_EVERY_S
    assert known.scrubber() is first
    assert (stored.reads, stored.looks) == (1, 2)


def test_an_older_value_stays_known(time: Time) -> None:
    stored = Stored(KEY="hunter22")
    known = KnownSecrets(stored, now_s=time)
    known.scrubber()
    stored.kept = {"KEY": "swordfish"}
    time.now_s += LOOK_EVERY_S
    assert known.scrubber().text("hunter22 swordfish") == "[redacted] [redacted]"
    stored.kept = {}
    time.now_s += LOOK_EVERY_S
    assert known.scrubber().text("hunter22 swordfish") == "[redacted] [redacted]"


def test_nothing_is_written_while_the_secrets_were_never_read(time: Time) -> None:
    stored = Stored(KEY="hunter22")
    stored.error = Unavailable("the disk is gone")
    known = KnownSecrets(stored, now_s=time)
    with pytest.raises(Unavailable, match="the disk is gone"):
        known.scrubber()
    stored.error = None
    time.now_s += LOOK_EVERY_S
    assert known.scrubber().text("hunter22") == "[redacted]"


def test_what_was_read_before_is_used_while_the_store_can_not_be_read(
    time: Time, caplog: pytest.LogCaptureFixture
) -> None:
    stored = Stored(KEY="hunter22")
    known = KnownSecrets(stored, now_s=time)
    known.scrubber()
    stored.error, stored.kept = Unavailable("locked"), {"KEY": "swordfish"}
    with caplog.at_level(logging.WARNING):
        for _ in range(5):
            time.now_s += 2
            assert known.scrubber().text("hunter22") == "[redacted]"
    assert [record.message for record in caplog.records] == [
        "the stored secrets can't be read again: locked; those read before are still removed"
    ]
    stored.error = None
    time.now_s += 2
    assert known.scrubber().text("swordfish") == "[redacted]"


def test_a_locked_keyring_is_reported_once_and_asked_again_later(time: Time, caplog: pytest.LogCaptureFixture) -> None:
    stored = Stored(KEY="hunter22")
    stored.unread = 2
    known = KnownSecrets(stored, now_s=time)
    with caplog.at_level(logging.WARNING):
        for _ in range(10):
            known.scrubber()
            time.now_s += LOOK_EVERY_S
    assert [record.message for record in caplog.records] == [
        "2 secrets can't be read from the keyring now, and are not recognised in what is kept"
    ]
    assert stored.reads == 1
    stored.unread, stored.kept["NEW"] = 0, "swordfish"
    time.now_s += UNREAD_RETRY_S
    assert known.scrubber().text("swordfish") == "[redacted]"


def test_logging_may_ask_for_the_scrubber_while_it_is_made(time: Time) -> None:
    stored = Stored(KEY="hunter22")
    stored.unread = 1
    known = KnownSecrets(stored, now_s=time)
    said: list[str] = []

    class Asking(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(known.scrubber().text(record.getMessage()))

    log = logging.getLogger("handrail.engine.known_secrets")
    log.addHandler(handler := Asking())
    try:
        assert known.scrubber().text("hunter22") == "[redacted]"
    finally:
        log.removeHandler(handler)
    assert len(said) == 1


def test_a_content_that_can_not_be_changed_is_refused_with_what_to_write() -> None:
    known = KnownSecrets(Stored(KEY="hunter22"), {"swordfish": "${env:FISH}"})
    known.require_absent(b"nothing", "the plan")
    with pytest.raises(Invalid, match=r"the plan contains the value of \$\{env:FISH\}, \$\{secret:KEY\}") as refused:
        known.require_absent(b"a swordfish and a hunter22", "the plan")
    assert "`${env:FISH}`" in refused.value.hint
    assert "swordfish" not in str(refused.value)


def test_short_values_are_never_searched_for() -> None:
    known = KnownSecrets(Stored(PIN="1234"), {"abc": "${env:A}"})
    known.add({"12345": "${env:B}"})
    assert known.scrubber().text("1234 abc 12345") == "1234 abc 12345"
