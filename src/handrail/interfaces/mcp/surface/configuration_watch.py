"""Notices that a configuration file has changed since this server read it: a running server keeps what it was started
with, so answers say that it must be restarted.

Only looks at the files' times and sizes; they are read in settings.py."""

from __future__ import annotations

from pathlib import Path
from typing import Final, TypeAlias

from handrail.settings import CONFIG_NAME, PROJECT_FOLDER, TOOLS_NAME, Settings

TRUST_NAME: Final = "trust.json"

Stamp: TypeAlias = tuple[int, int] | None


class ConfigurationWatch:
    """The configuration files of a server, as they were when it started."""

    def __init__(self, settings: Settings) -> None:
        folders = (settings.home, settings.project / PROJECT_FOLDER)
        files = [folder / name for folder in folders for name in (CONFIG_NAME, TOOLS_NAME)]
        if settings.trust.is_off:
            files.append(settings.home / TRUST_NAME)  # the agent may be waiting for this decision
        self._stamps = {file: _stamp(file) for file in files}

    def note(self) -> str:
        """What has changed, and that a restart is needed; empty if nothing has."""
        changed = [str(file) for file, stamp in self._stamps.items() if _stamp(file) != stamp]
        if not changed:
            return ""
        have = "has" if len(changed) == 1 else "have"
        return f"restart: {', '.join(changed)} {have} changed; this server uses what it read when it was started"


def _stamp(file: Path) -> Stamp:
    try:
        seen = file.stat()
    except OSError:  # there is none, or it can't be seen: the same as before, as long as that does not change
        return None
    return seen.st_mtime_ns, seen.st_size
