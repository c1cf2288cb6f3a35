"""Writing files that a person asked for: where a stranger's repository can't lead them somewhere else; and new files
from templates, all of them or none, and never over an existing file."""

from __future__ import annotations

import stat
from collections.abc import Mapping
from pathlib import Path

from handrail.domain.errors import Conflict, Invalid, Unavailable
from handrail.foundation.plain_file import is_within, root_around

ELSEWHERE = "remove it, or name a file somewhere else"


def require_direct(file: Path, project: Path) -> None:
    """Refuse a file of the project that is a link, a pipe or a device, or whose folder is a link out of the project.

    A repository can contain links: what is written there would change a file of the user's. Outside of the project a
    person's links are their own."""
    if root_around(file, project) is None:
        return
    if not is_within(file.parent, project):
        raise Invalid(f"{file} leads out of the project: nothing was written", hint=ELSEWHERE)
    try:
        mode = file.lstat().st_mode
    except OSError:  # nothing is there, or writing will say what is wrong
        return
    if not stat.S_ISREG(mode):
        kind = "a link" if stat.S_ISLNK(mode) else "not a regular file"
        raise Invalid(f"{file} is {kind}: nothing was written", hint=ELSEWHERE)


def write_new(texts: Mapping[Path, str], *, project: Path, hint: str) -> None:
    """Write all files, or none if one of them exists; `hint` says what to do instead."""
    for file in texts:
        require_direct(file, project)
        if file.exists():
            raise Conflict(f"{file} already exists", hint=hint)
    try:
        for file, text in texts.items():
            file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("x", encoding="utf-8", newline="\n") as stream:
                stream.write(text)
    except OSError as error:
        message = f"{file} can't be written: {error.strerror}"
        raise Unavailable(message, hint="choose a writable folder") from error
