"""Finds the home and project folders without importing settings.py, which would delay the first answer.

A test checks that both modules find the same folders."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import NamedTuple


class Folders(NamedTuple):
    """Where handrail keeps its state, and the project it works on."""

    home: str
    project: str

    @property
    def snapshots(self) -> str:
        """The folder with the snapshot files."""
        return os.path.join(self.home, "cache", "mcp")


def find_folders(flags: Mapping[str, str | None], environment: Mapping[str, str]) -> Folders:
    """The folders named by flags or environment, or the defaults."""
    home = flags.get("home") or environment.get("HANDRAIL_HOME") or default_home(environment)
    project = flags.get("project") or environment.get("HANDRAIL_PROJECT") or os.curdir
    return Folders(_absolute(home), _absolute(project))


def default_home(environment: Mapping[str, str], platform: str = sys.platform) -> str:
    """The platform's folder for a program's data."""
    if platform == "darwin":
        return "~/Library/Application Support/handrail"
    if platform == "win32":
        return (environment.get("LOCALAPPDATA") or "~/AppData/Local") + "/handrail"
    return (environment.get("XDG_DATA_HOME") or "~/.local/share") + "/handrail"


def _absolute(path: str) -> str:
    return os.path.abspath(os.path.expanduser(path))
