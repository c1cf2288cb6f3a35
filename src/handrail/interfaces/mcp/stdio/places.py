"""Places: the two folders of settings.py, found without importing it, because it costs what an answer may not cost.

A test holds that both find the same."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import NamedTuple


class Places(NamedTuple):
    """Where handrail keeps its state, and where it works."""

    home: str
    project: str

    @property
    def snapshots(self) -> str:
        """The folder of the snapshots."""
        return os.path.join(self.home, "cache", "mcp")


def find_places(flags: Mapping[str, str | None], environment: Mapping[str, str]) -> Places:
    """The folders that flags and environment name, or the usual ones."""
    home = flags.get("home") or environment.get("HANDRAIL_HOME") or usual_home(environment)
    project = flags.get("project") or environment.get("HANDRAIL_PROJECT") or os.curdir
    return Places(_absolute(home), _absolute(project))


def usual_home(environment: Mapping[str, str], platform: str = sys.platform) -> str:
    """The platform's folder for a program's data."""
    if platform == "darwin":
        return "~/Library/Application Support/handrail"
    if platform == "win32":
        return (environment.get("LOCALAPPDATA") or "~/AppData/Local") + "/handrail"
    return (environment.get("XDG_DATA_HOME") or "~/.local/share") + "/handrail"


def _absolute(path: str) -> str:
    return os.path.abspath(os.path.expanduser(path))
