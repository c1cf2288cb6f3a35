"""Reads what a witness has: a file, a saved copy of one (also a log of syslog), or a git repository."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from handrail.domain.errors import IntegrityBroken, Limited, NotFound
from handrail.domain.journal.witnessed import Copies, Witnessed, witnessed_from
from handrail.storage.witnesses.git_witness import git_lines

BYTES_MAX: Final = 1_000_000_000
LINE_BYTES_MAX: Final = 50_000_000


def witnessed_in(where: str) -> Copies:
    """The checkpoints that a witness has, in its order; `where` is a path, with or without its kind in front."""
    kind, _, rest = where.partition(":")
    path = Path(rest if kind in {"file", "git"} and rest else where).expanduser()
    if kind == "git" or path.is_dir():
        return _parsed(git_lines(path))
    return _parsed(_file_lines(path, where))


def _file_lines(path: Path, where: str) -> Iterator[bytes]:
    hint = "name the file of a witness, a saved copy, or a git repository"
    if not path.is_file():  # a pipe would block, a device may never end
        raise NotFound(f"there is no witness {where!r}", hint=hint)
    try:
        if path.stat().st_size > BYTES_MAX:
            raise Limited(
                f"{where} is larger than {BYTES_MAX // 1_000_000} MB", hint="save only handrail's lines of it"
            )
        with path.open("rb") as file:
            yield from iter(lambda: file.readline(LINE_BYTES_MAX), b"")
    except OSError as error:
        raise NotFound(f"the witness {where!r} can't be read: {error.strerror}", hint=hint) from error


def _parsed(lines: Iterable[bytes]) -> Copies:
    found, damaged = list[Witnessed](), list[int]()
    for number, line in enumerate(lines, 1):
        try:
            one = witnessed_from(line)
        except IntegrityBroken:  # torn by a crash while it was written, or damaged: other lines still count
            damaged.append(number)
        else:
            found += [one] if one else []
    return Copies(found=tuple(found), damaged=tuple(damaged))
