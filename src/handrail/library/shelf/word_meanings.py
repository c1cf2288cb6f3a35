"""Words of the same meaning, as people name their tasks, and words that say nothing about one. Values only."""

from __future__ import annotations

from typing import Final

_STOP_WORDS: Final = """
    a about an and any are as at be been but by can cannot could do does doing for from get gets getting has have help
    her his how i if in into is it its just let like make me my need needs no not of on or our out please should so some
    something t than that the their them then there they this to too up us use want was we were what when which who will
    with would you your
"""
STOP_WORDS: Final = frozenset(_STOP_WORDS.split())

MEANINGS: Final = tuple(
    tuple(line.split())
    for line in """
    slow slowly sluggish lag laggy latency performance fast speed throughput bottleneck optimise optimize profile \
profiling benchmark memory leak hang
    down outage incident unavailable unreachable offline downtime alert alarm pager emergency hurts
    prod production live
    bug defect error exception fault crash broken broke wrong misbehave fail failure regression problem
    fix repair correct solve patch
    investigate debug diagnose cause why analyse analyze troubleshoot strange weird
    flaky intermittent unstable sporadic random randomly sometimes nondeterministic
    upgrade update bump newer outdated
    dependency package library framework module npm pip
    docs doc documentation document readme manual changelog
    test tests coverage unittest pytest untested
    review inspect feedback audit
    pr pull merge branch
    refactor refactoring restructure cleanup clean tidy simplify legacy debt messy
    security vulnerability vulnerable threat exploit cve abuse hacked injection pentest
    database db sql postgres mysql sqlite schema table column migration
    release deploy ship publish rollout canary
    rollback revert undo
    infrastructure terraform kubernetes k8s cloud cluster network ansible aws
    feature implement functionality capability
    architecture decision adr choose choice tradeoff
    research study survey compare comparison evaluate sources
    handover handoff resume continue takeover
    onboarding unfamiliar codebase newcomer understand learn
    conflict rebase merge
    postmortem mortem retrospective lessons
    api interface endpoint contract rest graphql
    bulk codemod everywhere mass rename hundreds
    specification spec requirement
    workflow procedure process checklist
    approve approval permission consent
    site website webpage page app service server
    ci pipeline build
    verify proof prove evidence confirm
    """.strip().splitlines()
)
"""Groups of words: each line means about the same. A word may be in several."""
