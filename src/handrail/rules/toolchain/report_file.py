"""Results in files: a runner that can write them to a file does so outside the project, and only that file is read.

So a test, a setup file or a reporter of the project that prints what looks like results, or ends the process early,
is not believed. Build tools write theirs into the project: older ones are removed first."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Final

from handrail.rules.toolchain.task import REPORT

SCRIPT: Final = """report=$1
shift
"$@" >&2
code=$?
cat "$report" 2> /dev/null
rm -f "$report"
exit $code
"""
"""Runs a command, and prints the file that it wrote; what it printed itself goes to standard error."""
BETWEEN: Final = "\x1e"
"""Before each of several reports: no XML may contain it."""
PRINTED: Final = """find . -type f \\( {names} \\) -exec rm -f {{}} +
"$@" >&2
code=$?
find . -type f \\( {names} \\) -exec printf '\\036' \\; -exec cat {{}} \\;
exit $code
"""
"""Runs a command, and prints the files of these names that it wrote."""


def reporting(argv: Sequence[str], reports: Sequence[str] = ()) -> tuple[str, ...]:
    """The command, with a new name for its report, or such that it prints several; as it is if it writes none."""
    if reports:
        names = " -o ".join(f"-path '{pattern}'" for pattern in reports)
        return ("/bin/sh", "-c", PRINTED.format(names=names), "sh", *argv)
    if not any(REPORT in word for word in argv):
        return tuple(argv)
    path = f"/tmp/{REPORT}-{secrets.token_hex(8)}"  # noqa: S108 - its name can not be guessed, and it is removed
    return ("/bin/sh", "-c", SCRIPT, "sh", path, *(word.replace(REPORT, path) for word in argv))
