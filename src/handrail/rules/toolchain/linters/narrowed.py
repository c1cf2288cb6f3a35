"""Judges a linter's findings only where something has changed. Pure, but for names of files."""

from __future__ import annotations

import re

from msgspec.structs import replace

from handrail.domain.checks.changed_lines import ChangedLines
from handrail.engine.sandbox import Ran
from handrail.rules.toolchain.site import Site
from handrail.rules.toolchain.task import PROBLEMS_MAX, Problem, Result, Task

_unread = re.compile(
    r"(?:fatal )?error: |syntax\b|invalid-syntax|parse\b|parse-error|astroid-error|E9\d\d\b|error TS1\d{3}\b"
)


def narrowed(task: Task, changed: ChangedLines, site: Site) -> Task:
    """The same task; its problems in lines that have not changed are only counted."""

    def counts(problem: Problem) -> bool:
        # What has no place, or keeps a linter from reading a file, may hide what is wrong with the changed lines.
        is_anywhere = not problem.file or _unread.match(problem.message)
        return bool(is_anywhere) or changed.has(site.shown(problem.file), problem.line)

    def read(ran: Ran) -> Result:
        result = task.read(ran)
        kept = tuple(filter(counts, result.problems))
        elsewhere = len(result.problems) - len(kept)
        # If more were found than are kept, one in a changed line may be among those that were cut off.
        is_whole = result.is_whole and len(result.problems) < PROBLEMS_MAX
        numbers = {**result.counts, "problems": len(kept), "problems_elsewhere": elsewhere}
        return replace(result, problems=kept, elsewhere=elsewhere, is_whole=is_whole, counts=numbers)

    return replace(task, read=read)
