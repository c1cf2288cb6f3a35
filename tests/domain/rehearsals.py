"""Rehearsals for tests: definitions from YAML, scripts from plain words. Not a test file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import dedent
from typing import Any

from handrail.assembly.checks import judging_rules
from handrail.domain.definition.model import Definition
from handrail.domain.rehearsal.difference import differences
from handrail.domain.rehearsal.paths import Paths, explore
from handrail.domain.rehearsal.script import Expected, Script
from handrail.domain.rehearsal.walk import Walked, WalkParts, walk_through
from handrail.library.loading import check_inputs, load_definition, valid
from library.shelf import Shelf


def workflow(text: str, *shelf: str) -> Definition:
    loaded = load_definition(dedent(text), name="a.yaml", catalog=Shelf(*shelf))
    return valid(loaded, "a.yaml")


def walked(definition: Definition, **script: Any) -> Walked:
    return walk_through(
        definition, Script(name="a test", **script), WalkParts(check=_checked, rule_set=judging_rules())
    )


def differing(definition: Definition, expect: Expected, **script: Any) -> list[str]:
    return [str(one) for one in differences(expect, walked(definition, **script))]


def explored(definition: Definition, **terms: Any) -> Paths:
    return explore(definition, judging_rules(), **terms)


def _checked(definition: Definition, given: Mapping[str, Any]) -> tuple[Mapping[str, Any], Sequence[str]]:
    inputs, findings = check_inputs(definition, dict(given))
    return inputs, [f"{one.where}: {one.message}" for one in findings]
