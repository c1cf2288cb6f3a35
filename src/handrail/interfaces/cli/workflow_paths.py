"""What the path explorer found, in words and as data, beside what the tests have taken."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import click

from handrail.assembly import means_of_judging
from handrail.domain.rehearsing.branches import FORKS, Branch, branches_of
from handrail.domain.rehearsing.paths import Paths, explore
from handrail.interfaces.cli.workflow_rehearsal import Report


def explored(report: Report) -> Paths | None:
    """All paths of a workflow; None if it is not sound."""
    definition = report.loaded.definition
    return explore(definition, means_of_judging()) if definition is not None and report.loaded.is_valid else None


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


def tell_paths(found: Paths, taken: Collection[Branch]) -> None:
    """What was found, in words."""
    most = "" if found.is_whole else "at least "
    ends = ", ".join(sorted(found.ends))
    click.echo(f"  all paths: it can end {ends}; the longest has {most}{len(found.longest)} step(s)")
    _tell("no test takes", map(str, untested(found.reached, taken)), "yellow")
    _tell("never reached with any value that was tried", map(str, found.unreached), "yellow")
    _tell("missing on some path", (f"{one.step}: {one.message}" for one in found.missing), "red")
    _tell("changes the world, and nothing takes it back", found.without_undo, "yellow")
    _tell("not tried", found.not_tried, "yellow")


def tell_taken(report: Report) -> None:
    """How many of its forks the tests take."""
    if report.loaded.definition is None or not report.tests:
        return
    forks = [branch for branch in branches_of(report.loaded.definition) if branch.way in FORKS]
    left = untested(forks, report.taken)
    more = f"; the others: {'; '.join(map(str, left))}" if left else ""
    if forks:
        click.echo(f"  tests take {len(forks) - len(left)} of {len(forks)} branch(es){more}")


def _tell(what: str, lines: Any, color: str) -> None:
    told = list(lines)
    if told:
        click.secho(f"  {what}:", fg=color)
    for line in told:
        click.echo(f"    {line}")
