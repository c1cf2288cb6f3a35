"""All paths of a workflow, as text and as data, compared with the paths that its tests take."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from handrail.assembly.checks import judging_rules
from handrail.domain.plural import plural
from handrail.domain.rehearsal.branches import FORKS, Branch, branches_of
from handrail.domain.rehearsal.paths import Paths, explore
from handrail.interfaces.cli.words.excerpt import printable
from handrail.interfaces.cli.words.terminal_edge import say
from handrail.interfaces.cli.workflow.rehearsal import WorkflowReport


def explored(report: WorkflowReport) -> Paths | None:
    """All paths of a workflow; None if it is not valid."""
    definition = report.loaded.definition
    return explore(definition, judging_rules()) if definition is not None and report.loaded.is_valid else None


def untested(reachable: Collection[Branch], taken: Collection[Branch]) -> list[Branch]:
    """The branches that can be reached and should be tested, and that no test takes."""
    return [branch for branch in reachable if branch.way in FORKS and branch not in taken]


def paths_data(found: Paths, taken: Collection[Branch]) -> dict[str, Any]:
    """What was found, as data."""
    return {
        "states": found.states,
        "whole": found.is_whole,
        "ends": sorted(found.ends),
        "reached": found.reached,
        "unreached": found.unreached,
        "untested": untested(found.reached, taken),
        "missing": found.missing,
        "longest": found.longest,
        "without_undo": found.without_undo,
        "not_tried": found.not_tried,
    }


def print_paths(found: Paths, taken: Collection[Branch]) -> None:
    """Print what was found."""
    most = "" if found.is_whole else "at least "
    ends = ", ".join(sorted(found.ends))
    say(f"  all paths: it can end {ends}; the longest has {most}{plural(len(found.longest), 'step')}")
    _print("not covered by any test", map(str, untested(found.reached, taken)), "yellow")
    _print("not reached with any value that was tried", map(str, found.unreached), "yellow")
    _print("missing on some path", (f"{one.step}: {one.message}" for one in found.missing), "red")
    _print("has effects that nothing undoes", found.without_undo, "yellow")
    _print("not tried", found.not_tried, "yellow")


def print_coverage(report: WorkflowReport) -> None:
    """Print how many branches the tests cover."""
    if report.loaded.definition is None or not report.tests:
        return
    forks = [branch for branch in branches_of(report.loaded.definition) if branch.way in FORKS]
    left = untested(forks, report.taken)
    more = f"; not covered: {'; '.join(map(str, left))}" if left else ""
    if forks:
        say(f"  tests cover {len(forks) - len(left)} of {plural(len(forks), 'branch', 'branches')}{more}")


def _print(what: str, lines: Any, color: str) -> None:
    listed = list(lines)
    if listed:
        say(f"  {what}:", fg=color)
    for line in listed:
        say(f"    {printable(line)}")
