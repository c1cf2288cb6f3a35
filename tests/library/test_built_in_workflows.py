"""Every workflow that comes with handrail: valid, described, short enough to be read, tested in all its branches."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from pathlib import Path

import pytest

from handrail.domain.checks.finding import Severity
from handrail.domain.definition.model import Definition, Prompt
from handrail.domain.definition.work_items import works_in
from handrail.domain.rehearsal.branches import Branch, Way
from handrail.domain.rehearsal.paths import Paths, explore
from handrail.interfaces.cli.workflow.rehearsal import WorkflowReport, cast, report_on
from handrail.library.test_script import TESTS_SUFFIX, suite_file
from handrail.rules.cards import BUILT_IN_CARDS
from handrail.settings import read_settings
from tidy.yardstick import ROOT

FOLDER = Path(str(files("handrail.library").joinpath("workflows")))
FILES = sorted(path for path in FOLDER.rglob("*.yaml") if not path.name.endswith(TESTS_SUFFIX))
CATEGORIES = {"delivery", "quality", "investigation", "operations", "design", "knowledge", "change"}
WORKFLOWS_MIN = 24
PROMPT_WORDS_MAX = 400
STATES_MAX = 2_000
ROUNDS = {Way.ONE_ROUND, Way.ROUNDS}
BOTH_WAYS = {Way.TRUE, Way.FALSE, Way.YES, Way.NO}

each_file = pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)


@cache
def report(file: Path) -> WorkflowReport:
    nowhere = str(FOLDER / "nowhere")
    return report_on(str(file), read_settings({"home": nowhere, "project": nowhere, "log_level": None}, {}))


@cache
def paths(file: Path) -> Paths:
    return explore(definition(file), cast().rule_set, most=STATES_MAX)


def definition(file: Path) -> Definition:
    found = report(file).loaded.definition
    assert found is not None, report(file).loaded.findings
    return found


def test_there_are_enough_of_them() -> None:
    assert len(FILES) >= WORKFLOWS_MIN


def test_the_readme_counts_them_as_they_are_listed() -> None:
    routines = [file for file in FILES if file.stem.startswith("routine-")]
    told = f"{len(FILES) - len(routines)} workflows and {len(routines)} routines"
    assert told in " ".join((ROOT / "README.md").read_text().replace("> ", "").split())


def test_no_tests_stand_there_without_their_workflow() -> None:
    beside = {suite_file(file) for file in FILES}
    assert not [path.name for path in FOLDER.rglob(f"*{TESTS_SUFFIX}") if path not in beside]


@each_file
def test_it_is_valid_without_any_finding(file: Path) -> None:
    assert report(file).loaded.findings == ()
    assert definition(file).id == file.stem


@each_file
def test_it_is_in_the_folder_of_its_category(file: Path) -> None:
    assert file.parent == FOLDER / definition(file).category


@each_file
def test_it_says_what_it_is_for_and_what_it_needs(file: Path) -> None:
    workflow = definition(file)
    assert workflow.category in CATEGORIES
    for name in ("name", "version", "description", "tags", "license", "inputs", "outputs", "preconditions"):
        assert getattr(workflow, name), f"{name} is missing"
    assert not [name for name, schema in workflow.inputs.items() if not schema.get("description")]


@each_file
def test_its_prompts_are_short_enough_to_be_read(file: Path) -> None:
    prompts = [work.prompt for _, work in works_in(definition(file)) if isinstance(work, Prompt)]
    assert not [prompt[:60] for prompt in prompts if len(prompt.split()) > PROMPT_WORDS_MAX]


@each_file
def test_its_tests_are_there_and_pass(file: Path) -> None:
    tested = report(file)
    assert tested.has_tests
    assert tested.findings == ()
    failed = {test.name: [str(one) for one in test.differences] for test in tested.tests if not test.passed}
    assert not failed
    assert tested.tests


@each_file
def test_its_tests_take_every_branch_that_can_be_reached(file: Path) -> None:
    taken, reachable = report(file).taken, paths(file).reached
    assert not [str(branch) for branch in reachable if branch.way in BOTH_WAYS and branch not in taken]
    loops = {branch.step for branch in reachable if branch.way in ROUNDS}
    assert not [loop for loop in loops if not any(Branch(loop, way) in taken for way in ROUNDS)]


@each_file
def test_every_condition_can_come_out_both_ways(file: Path) -> None:
    assert not [str(branch) for branch in paths(file).unreached if branch.way in BOTH_WAYS]


@each_file
def test_no_value_is_missing_on_any_path(file: Path) -> None:
    assert not [f"{one.step}: {one.message}" for one in paths(file).missing]


@each_file
def test_nothing_has_an_effect_that_can_not_be_undone(file: Path) -> None:
    assert paths(file).without_undo == ()


@each_file
def test_what_refuses_a_step_is_a_rule_that_exists(file: Path) -> None:
    used = {
        check.rule: check for _, work in works_in(definition(file)) if isinstance(work, Prompt) for check in work.checks
    }
    assert not used.keys() - BUILT_IN_CARDS.keys()
    assert all(isinstance(check.severity, Severity) for check in used.values())
