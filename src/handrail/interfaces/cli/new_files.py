"""Files that a command writes for somebody to go on with: all of them, and over none that is there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from handrail.domain.errors import Conflict, Unavailable


def write_new(texts: Mapping[Path, str], *, hint: str) -> None:
    """Write all files, or none if one of them is there already; `hint` says what to choose instead."""
    for file in texts:
        if file.exists():
            raise Conflict(f"{file} is there already", hint=hint)
    try:
        for file, text in texts.items():
            file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("x", encoding="utf-8", newline="\n") as stream:
                stream.write(text)
    except OSError as error:
        message = f"{file} can't be written: {error.strerror}"
        raise Unavailable(message, hint="choose a folder you may write to") from error
