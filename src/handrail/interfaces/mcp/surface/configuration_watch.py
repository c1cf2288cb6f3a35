"""Notices that a configuration file has changed since this server read it: a running server keeps what it was started
with, so each caller reads once that it must be restarted, and again if a file changes again.

Only looks at the files' times and sizes; they are read in settings.py."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Final, TypeAlias

from handrail.foundation.bounded_cache import BoundedCache
from handrail.settings import CONFIG_NAME, PROJECT_FOLDER, TOOLS_NAME, Settings

TRUST_NAME: Final = "trust.json"
READERS_MAX: Final = 200
"""How many callers are remembered; one that is forgotten reads it a second time."""

Stamp: TypeAlias = tuple[int, int] | None


class ConfigurationWatch:
    """The configuration files of a server, as they were when it started."""

    def __init__(self, settings: Settings) -> None:
        folders = (settings.home, settings.project / PROJECT_FOLDER)
        files = [folder / name for folder in folders for name in (CONFIG_NAME, TOOLS_NAME)]
        if settings.trust.is_off:
            files.append(settings.home / TRUST_NAME)  # the agent may be waiting for this decision
        self._stamps = {file: _stamp(file) for file in files}
        self._seen: BoundedCache[str, dict[Path, Stamp]] = BoundedCache(READERS_MAX)

    def note(self) -> str:
        """What has changed, and that a restart is needed; empty if nothing has."""
        return _words(self._changed())

    def news(self, caller: str) -> str:
        """The same, if this caller has not read it yet; empty if it has."""
        changed = self._changed()
        if not changed or self._seen.get(caller) == changed:
            return ""
        self._seen.put(caller, changed)
        return _words(changed)

    def _changed(self) -> dict[Path, Stamp]:
        now = {file: _stamp(file) for file in self._stamps}
        return {file: stamp for file, stamp in now.items() if stamp != self._stamps[file]}


def _words(changed: Collection[Path]) -> str:
    if not changed:
        return ""
    have = "has" if len(changed) == 1 else "have"
    return f"restart: {', '.join(map(str, changed))} {have} changed; this server uses what it read when it was started"


def _stamp(file: Path) -> Stamp:
    try:
        seen = file.stat()
    except OSError:  # there is none, or it can't be seen: the same as before, as long as that does not change
        return None
    return seen.st_mtime_ns, seen.st_size
