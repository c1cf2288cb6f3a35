"""The rules of retention, as an owner writes them, and what they say of one run. Pure.

Archiving itself is in engine/retention/; reading the table [retention] is in assembly/retention/."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Annotated, Final

from msgspec import Meta, Struct

from handrail.domain.definition.duration import duration_ms
from handrail.domain.errors import Invalid
from handrail.domain.journal.projection import RunRow
from handrail.domain.run.status import RUN_ENDED, RunStatus
from handrail.domain.suggestion import did_you_mean

NEVER: Final = "never"
RULES_MAX: Final = 200
PATTERN_LENGTH_MAX: Final = 200
AFTER_MS_MIN: Final = 3_600_000
"""Nothing leaves the journal in the hour in which it ended: people still look at it."""
EVERY_MS_MIN: Final = 60_000

Pattern = Annotated[str, Meta(min_length=1, max_length=PATTERN_LENGTH_MAX)]


class RetentionRule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """After how long some runs are archived: those of a workflow, with an outcome, or both."""

    archive_after: str
    """A duration, or `never`."""
    workflow: Pattern = "*"
    """A workflow's id, with `*` for any characters."""
    outcome: tuple[str, ...] = ()
    """The ways in which the run ended; any if there are none."""


class RetentionRules(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The table [retention]: the first rule that is about a run counts, then `archive_after`."""

    archive_after: str = NEVER
    """For all runs that no rule is about."""
    rules: Annotated[tuple[RetentionRule, ...], Meta(max_length=RULES_MAX)] = ()
    every: str = "1d"
    """How often servers and workers look."""
    abandoned_after: str = NEVER
    """After how long without an agent a run counts as abandoned, and somebody is asked."""
    answer_within: str = "3d"
    """How long an abandoned run then waits for an answer before it is ended."""


class Abandonment(StrEnum):
    """What happens with an open run without an agent."""

    STAY = "stay"
    ASK = "ask"
    END = "end"


def require_sensible(rules: RetentionRules) -> None:
    """Refuse durations that are none, or too short, and outcomes that no run has."""
    for name, text in _durations(rules):
        if text != NEVER and duration_ms(text) < AFTER_MS_MIN:
            raise Invalid(f"[retention]: {name} = {text!r} is too short", hint="write 1h or more, such as 90d")
    if duration_ms(rules.every) < EVERY_MS_MIN:
        raise Invalid(f"[retention]: every = {rules.every!r} is too often", hint="write 1m or more")
    known = sorted(status.value for status in RUN_ENDED)
    for outcome in dict.fromkeys(one for rule in rules.rules for one in rule.outcome):
        _require_outcome(outcome, known)


def _require_outcome(outcome: str, known: Sequence[str]) -> None:
    if outcome not in known:
        raise Invalid(f"[retention]: {outcome!r} is no outcome of a run", hint=did_you_mean(outcome, known))


def archive_after_ms(rules: RetentionRules, row: RunRow) -> int | None:
    """After how long this run is archived; None for never."""
    after = next((rule.archive_after for rule in rules.rules if _is_about(rule, row)), rules.archive_after)
    return None if after == NEVER else duration_ms(after)


def is_due(rules: RetentionRules, row: RunRow, *, now: int) -> bool:
    """Whether a run is to be archived now."""
    after = archive_after_ms(rules, row)
    return row.ended is not None and after is not None and now - row.ended >= after


def abandonment_of(
    rules: RetentionRules, row: RunRow, *, now: int, waits_for_agent: bool, was_asked: bool
) -> Abandonment:
    """What happens with an open run; `was_asked` if it is paused because no agent worked on it."""
    if rules.abandoned_after == NEVER or row.ended is not None:
        return Abandonment.STAY
    silent_ms = now - row.updated
    if was_asked:
        return Abandonment.END if silent_ms >= duration_ms(rules.answer_within) else Abandonment.STAY
    is_abandoned = waits_for_agent and silent_ms >= duration_ms(rules.abandoned_after)
    return Abandonment.ASK if is_abandoned else Abandonment.STAY


def outcomes() -> Sequence[RunStatus]:
    """How a run can end."""
    return sorted(RUN_ENDED)


def _is_about(rule: RetentionRule, row: RunRow) -> bool:
    workflow, _, _ = row.workflow.partition("@")
    return fnmatchcase(workflow, rule.workflow) and (not rule.outcome or row.status in rule.outcome)


def _durations(rules: RetentionRules) -> list[tuple[str, str]]:
    named = [("archive_after", rules.archive_after), ("abandoned_after", rules.abandoned_after)]
    named += [("answer_within", rules.answer_within)]
    return named + [("archive_after", rule.archive_after) for rule in rules.rules]
