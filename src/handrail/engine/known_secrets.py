"""Known secrets: the values that must be written nowhere, and the scrubber that finds them.

Everything that people have stored, allowed variables of the environment, and what was given to tools. The stored ones
are read again when another process has changed them; a value that was known once stays known until the process ends.
domain/secrets/scrubbing.py has the search, storage/secret_file.py the values."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Final

from handrail.domain.errors import HandrailError, Invalid
from handrail.domain.secrets.scrubbing import NOTHING_KNOWN, SecretScrubber, is_scrubbed
from handrail.engine.secrets import SecretValues

LOOK_EVERY_S: Final = 0.01
"""How old the answer to "has the store changed?" may be: asking takes longer than encoding an event."""
UNREAD_RETRY_S: Final = 60.0
VALUES_MAX: Final = 5_000
CHARACTERS_MAX: Final = 5_000_000
"""How much is remembered; beyond that, values that are not stored any more are forgotten first, the oldest of them."""

log = logging.getLogger(__name__)


class KnownSecrets:
    """All values of one home folder that must be written nowhere; threads can share it."""

    def __init__(
        self,
        stored: SecretValues | None = None,
        given: Mapping[str, str] | None = None,
        *,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """`given` are further values, each with what refers to it."""
        self._stored = stored
        self._now_s = now_s
        self._lock = threading.RLock()  # logging asks for the scrubber, too
        self._mark: object = None
        self._current: Mapping[str, str] = {}
        self._others = {value: name for value, name in (given or {}).items() if is_scrubbed(value)}
        self._scrubber = NOTHING_KNOWN
        self._is_stale = bool(self._others)
        self._look_s = -1.0
        self._retry_s = float("inf")
        self._is_read = stored is None

    def scrubber(self) -> SecretScrubber:
        """The scrubber for everything that is known now."""
        if self._stored is not None and (now_s := self._now_s()) >= self._look_s:
            with self._lock:
                self._look(self._stored, now_s)
        if self._is_stale:
            with self._lock:
                self._build()
        return self._scrubber

    def add(self, values: Mapping[str, str]) -> None:
        """Remember values that are given to a tool, each with what refers to it."""
        with self._lock:
            for value, name in values.items():
                if is_scrubbed(value) and value not in self._current:
                    self._is_stale |= self._others.pop(value, None) is None
                    self._others[value] = name  # the last ones used are last in the order

    def require_absent(self, content: bytes, what: str) -> None:
        """Invalid if a content that can't be changed before it is stored has a secret in it."""
        names = [name for name in self.scrubber().names_in(content) if name]
        if names:
            raise Invalid(
                f"{what} contains the value of {', '.join(names[:5])}, and would be stored with it",
                hint=f"write `{names[0]}` in its place: the value is filled in when a tool is called",
            )

    def _look(self, stored: SecretValues, now_s: float) -> None:
        self._look_s = now_s + LOOK_EVERY_S
        try:
            mark = stored.mark()
            if mark == self._mark and self._is_read and now_s < self._retry_s:
                return
            found = stored.values()
        except HandrailError as error:
            if not self._is_read:
                raise  # nothing is written without knowing what to leave out
            is_first = self._retry_s == float("inf")
            self._retry_s, self._look_s = now_s + UNREAD_RETRY_S, now_s + 1
            if is_first:
                log.warning("the stored secrets can't be read again: %s; those read before are still removed", error)
            return
        self._take(found.values, found.unread, now_s)
        self._mark, self._is_read = mark, True

    def _take(self, values: Mapping[str, str], unread: int, now_s: float) -> None:
        is_first = self._retry_s == float("inf")
        self._retry_s = now_s + UNREAD_RETRY_S if unread else float("inf")
        current = {value: f"${{secret:{name}}}" for name, value in values.items() if is_scrubbed(value)}
        if current.keys() != self._current.keys():
            self._others |= self._current  # an older value is still a secret
            self._current = current
            self._is_stale = True
        if unread and is_first:
            log.warning("%d secrets can't be read from the keyring now, and are not recognised in what is kept", unread)

    def _build(self) -> None:
        others = {value: name for value, name in self._others.items() if value not in self._current}
        size = sum(map(len, others))
        while others and (len(others) > VALUES_MAX or size > CHARACTERS_MAX):
            oldest = next(iter(others))
            size -= len(oldest)
            del others[oldest]
        self._others, self._is_stale = others, False
        values = {**others, **self._current}
        self._scrubber = SecretScrubber(values) if values else NOTHING_KNOWN


NO_SECRETS: Final = KnownSecrets()
