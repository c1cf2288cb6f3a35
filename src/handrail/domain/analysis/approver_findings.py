"""Findings about who can answer approvals: people who are not known here, and too few of them.

Pure. Notes, not errors: the definition may be meant for another installation. An answer by somebody else is refused all
the same (policy/answering.py)."""

from __future__ import annotations

from collections.abc import Iterator

from handrail.domain.analysis.local import Local, LocalPeople
from handrail.domain.checks.finding import Flaw, Path, Severity
from handrail.domain.definition.model import Approve, Definition, walk


def approver_notes(definition: Definition, local: Local) -> Iterator[Flaw]:
    """Approvals that no person known here can answer, or not as many people as they need."""
    if local.people is None:
        return
    for path, step in walk(definition.steps):
        if isinstance(step.work, Approve) and step.work.by:
            yield from _notes(step.id, step.work, (*path, "by"), local.people)


def _notes(step: str, work: Approve, path: Path, people: LocalPeople) -> Iterator[Flaw]:
    known = {person for who in work.by for person in _members(who, people)}
    names = ", ".join(work.by)
    if not known:
        yield Flaw(
            rule="unknown_approver",
            severity=Severity.MINOR,
            path=path,
            message=f"no person or group is known here as {names}: `{step}` can't be answered",
            fix="name a person or group that is known here, or ask the person who runs handrail here to add the group",
        )
    elif len(known) < work.approvals:
        yield Flaw(
            rule="too_few_approvers",
            severity=Severity.MINOR,
            path=path,
            message=f"`{step}` needs {work.approvals} approvals, and {len(known)} of {names} can answer",
            fix="name more people or groups in `by:`, or lower `approvals:`",
        )


def _members(who: str, people: LocalPeople) -> set[str]:
    """The people that a name stands for; none if it is not known here."""
    if who in people.groups:
        return set(people.groups[who])
    everyone = {name for members in people.groups.values() for name in members} | {people.person}
    return {who} & everyone
