"""Rehearsals: a workflow with the tests beside it, and their results.

test.py prints them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from handrail.assembly.checks import judging_rules
from handrail.domain.checks.finding import Finding, blocks
from handrail.domain.definition.model import Definition
from handrail.domain.errors import NotFound
from handrail.domain.rehearsal.branches import Branch
from handrail.domain.rehearsal.difference import Difference, differences
from handrail.domain.rehearsal.script import Script
from handrail.domain.rehearsal.walk import Walked, WalkParts, walk_through
from handrail.foundation.plain_file import NotPlain, read_plain, root_around
from handrail.interfaces.cli.workflow.definitions import load_file
from handrail.library.documents.document import DOCUMENT_BYTES_MAX
from handrail.library.loading import Loaded, check_inputs
from handrail.library.test_script import read_tests, suite_file
from handrail.settings import Settings


class WorkflowTestResult(Struct, frozen=True, kw_only=True):
    """One test, and its result."""

    __test__ = False
    name: str
    passed: bool
    differences: tuple[Difference, ...] = ()
    walked: Walked


class WorkflowReport(Struct, frozen=True, kw_only=True):
    """A workflow, and the results of all its tests."""

    file: str
    loaded: Loaded
    tests: tuple[WorkflowTestResult, ...] = ()
    findings: tuple[Finding, ...] = ()
    """What is wrong with the tests as they are written."""
    has_tests: bool = True

    @property
    def passed(self) -> bool:
        """Whether the workflow is valid, has tests, and passes them."""
        is_valid = self.loaded.is_valid and not blocks(self.findings)
        return is_valid and self.has_tests and all(test.passed for test in self.tests)

    @property
    def taken(self) -> frozenset[Branch]:
        """The branches that some test has taken."""
        return frozenset().union(*(test.walked.branches for test in self.tests))


def report_on(file: str, settings: Settings) -> WorkflowReport:
    """Load the workflow in a file and run each of its tests."""
    loaded = load_file(file, settings)
    if loaded.definition is None or not loaded.is_valid:
        return WorkflowReport(file=file, loaded=loaded)
    beside = suite_file(file)
    try:
        within = root_around(beside, settings.project)
        text = read_plain(beside, bytes_max=DOCUMENT_BYTES_MAX, within=within)
    except FileNotFoundError:
        return WorkflowReport(file=file, loaded=loaded, has_tests=False)
    except NotPlain as error:
        raise NotFound(str(error), hint="make it a readable, regular file, or remove it") from error
    tests = read_tests(text, name=str(beside), definition=loaded.definition)
    tested = tuple(_tested(loaded.definition, script) for script in tests.scripts)
    return WorkflowReport(file=file, loaded=loaded, tests=tested, findings=tests.findings)


def cast() -> WalkParts:
    """What every test needs: the checks of inputs and of outputs."""
    return WalkParts(check=_inputs_checked, rule_set=judging_rules())


def _tested(definition: Definition, script: Script) -> WorkflowTestResult:
    walked = walk_through(definition, script, cast())
    found = tuple(differences(script.expect, walked))
    return WorkflowTestResult(name=script.name, passed=not found, differences=found, walked=walked)


def _inputs_checked(definition: Definition, given: Mapping[str, Any]) -> tuple[Mapping[str, Any], Sequence[str]]:
    inputs, findings = check_inputs(definition, dict(given))
    return inputs, [f"{finding.where}: {finding.message}" for finding in findings]
