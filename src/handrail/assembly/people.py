"""People: who may do what here, whose answers count, and who is known.

Part of the only place that knows which parts the program is made of; nothing is decided here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from handrail.domain.analysis.local import LocalPeople
from handrail.domain.errors import Invalid
from handrail.domain.policy.actor import name_of
from handrail.domain.policy.answering import CHANNELS, USUAL_CHANNELS, AnswerRules
from handrail.domain.policy.table import OwnerPolicy
from handrail.engine.clock import system_clock
from handrail.settings import Settings, local_person
from handrail.storage.passphrase_file import PassphraseFile


def policy_of(settings: Settings) -> OwnerPolicy:
    """What the owner of HANDRAIL_HOME lets agents do."""
    table = settings.home_tables.get("policy", {})  # not the project's: what was cloned must not speak for its owner
    may_skip = table.get("agents_may_skip_checks", False)
    if set(table) - {"agents_may_skip_checks"} or not isinstance(may_skip, bool):
        raise Invalid(
            "config.toml: [policy] takes one key, agents_may_skip_checks", hint="write: agents_may_skip_checks = true"
        )
    return OwnerPolicy(answers=answer_rules(settings), agents_may_skip_checks=may_skip)


def answer_rules(settings: Settings) -> AnswerRules:
    """Who may answer approvals, and how; only HANDRAIL_HOME says so: what was cloned must not."""
    table = settings.home_tables.get("approvals", {})
    channels, passphrase = table.get("channels", list(USUAL_CHANNELS)), table.get("passphrase", False)
    is_list = isinstance(channels, list) and all(
        isinstance(one, str) and one.partition(":")[0] in CHANNELS for one in channels
    )
    if set(table) - {"channels", "passphrase"} or not is_list or not isinstance(passphrase, bool):
        hint = f"write: channels = [{', '.join(map(repr, CHANNELS))}], passphrase = true or false"
        raise Invalid("config.toml: [approvals] takes two keys, channels and passphrase", hint=hint)
    return AnswerRules(
        agents_may_approve=settings.choices.agents_may_approve,
        groups=groups_of(settings),
        channels=tuple(channels),
        passphrase=passphrase,
    )


def groups_of(settings: Settings) -> Mapping[str, Sequence[str]]:
    """The members of the groups that may answer approvals; a project may add groups once it is trusted, and change none
    of the owner's."""
    _groups(settings.project_tables)  # also while they don't count: a flaw is shown early
    return {**_groups(settings.tables), **_groups(settings.home_tables)}


def _groups(tables: Mapping[str, Any]) -> Mapping[str, Sequence[str]]:
    groups: Mapping[str, Sequence[str]] = tables.get("groups", {})
    if not all(isinstance(names, list) and all(isinstance(name, str) for name in names) for names in groups.values()):
        raise Invalid("config.toml: [groups] is not lists of names", hint='write: release-managers = ["ann", "bob"]')
    return groups


def people_of(settings: Settings) -> LocalPeople:
    """Who is known here: the groups, their members, and the user of this machine."""
    return LocalPeople(groups=groups_of(settings), person=name_of(local_person()))


def passphrase_of(settings: Settings) -> PassphraseFile:
    """The passphrase that approvals may require."""
    return PassphraseFile(settings.keys, system_clock)
