"""Writing new files from templates: all of them or none, and never over an existing file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from handrail.domain.errors import Conflict, Unavailable


def write_new(texts: Mapping[Path, str], *, hint: str) -> None:
    """Write all files, or none if one of them exists; `hint` says what to do instead."""
    for file in texts:
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
