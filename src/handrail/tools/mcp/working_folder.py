"""The folder that a server is started in, and what its declaration may say relative to it.

A server of HANDRAIL_HOME is started for every project, also for untrusted ones. `npx name`, `python -m name`
and a relative command look into the current folder first, so started in the project they would run the project's
program under the user's name. Such a server gets a folder of handrail's own, unless its declaration says `cwd`. The
servers of a project are started in it: they are started only once a person has trusted them."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from msgspec import Struct

from handrail.domain.definition.model import Category
from handrail.engine.tool import ToolFailed
from handrail.foundation.atomic_file import make_private_folder
from handrail.tools.mcp.declaration import Declared

PROJECT: Final = "${project}"
"""What a declaration writes for the project's folder."""

# `.`, `..`, `./x` and `../x`, alone or after an option (`--root=.`).
_relative = re.compile(r"(?:-[^=]*=)?(?P<path>\.\.?(?:[/\\].*)?)", re.DOTALL)


class ServerPlaces(Struct, frozen=True):
    """The folders that servers are started in."""

    project: Path
    neutral: Path

    def folder(self, declared: Declared) -> Path:
        """Where a server is started if its declaration does not say; it exists afterwards."""
        if declared.is_projects or declared.cwd:
            return self.project
        if flaw := _flaw(declared):
            raise ToolFailed(Category.NOT_FOUND, flaw)
        try:
            if not self.neutral.is_dir():
                make_private_folder(self.neutral)
        except OSError as error:
            raise ToolFailed(Category.TRANSIENT, f"{self.neutral} can't be made: {error.strerror or error}") from error
        return self.neutral

    def filled(self, text: str) -> str:
        """A string of a declaration with the project's folder in it."""
        return text.replace(PROJECT, str(self.project))


def _flaw(declared: Declared) -> str:
    """Why a declaration can't be meant for a folder of handrail's own; empty if it can."""
    if not Path(declared.command).is_absolute() and ("/" in declared.command or os.sep in declared.command):
        return f"the command `{declared.command}` is relative, and {_WHERE}: write its whole path"
    found = next(filter(None, map(_relative.fullmatch, declared.args)), None)
    if found is None:
        return ""
    return f"its argument `{found[0]}` is relative, and {_WHERE}: write `{PROJECT}` for the project's folder"


_WHERE: Final = "servers in HANDRAIL_HOME are not started in the project"
