"""Every example is sound, and can be drawn and printed; those that say how to try them are really run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from handrail.domain.definition.authoring import definition_data
from handrail.domain.definition.model import Definition
from handrail.interfaces.pictures.terminal import terminal_picture
from handrail.library.documents.printing import yaml_text
from handrail.library.loading import FolderCatalog, load_data, load_definition
from interfaces.shell import Shell
from tidy.yardstick import ROOT

EXAMPLES = sorted(file for file in (ROOT / "examples").iterdir() if file.suffix in {".yaml", ".json"})

TRY = re.compile(r"^# Try it: handrail (.+?)   \(exits with (\d)\)$", re.MULTILINE)
RUNNABLE = [file for file in EXAMPLES if TRY.search(file.read_text(encoding="utf-8"))]


def load(file: Path) -> Definition:
    loaded = load_definition(file.read_bytes(), name=file.name, catalog=FolderCatalog([file.parent]))
    assert loaded.is_valid, "\n".join(map(str, loaded.findings))
    assert loaded.definition is not None
    return loaded.definition


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.name)
def test_an_example_is_sound_and_can_be_drawn(file: Path) -> None:
    definition = load(file)
    assert all(step.id in terminal_picture(definition, width=120) for step in definition.steps)


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.name)
def test_what_is_printed_of_an_example_reads_back_as_the_same(file: Path) -> None:
    data = definition_data(load(file))
    data.pop("pinned", None)
    again = load_definition(yaml_text(data), name="again.yaml", catalog=FolderCatalog([file.parent]))
    assert again.definition == load_data(data, catalog=FolderCatalog([file.parent])).definition
    assert again.hash == load_definition(file.read_bytes(), name=file.name, catalog=FolderCatalog([file.parent])).hash


def test_the_hotfix_puts_its_question_behind_the_notes() -> None:
    steps = {step.id: step for step in load(ROOT / "examples" / "hotfix.yaml").steps}
    assert steps["second-look"].after == ("notes",)
    assert steps["tag"].after == ("notes",), "the base spells this out, so it stays"


def try_it(file: Path, shell: Shell) -> str:
    """Run an example in an empty project, just as it says of itself: the run."""
    (found,) = TRY.findall(file.read_text(encoding="utf-8"))
    words = [str(ROOT / word) if word.startswith("examples/") else word for word in found[0].split()]
    told = shell.json(*words, code=int(found[1]))
    return str(told["run"])


def test_some_examples_can_be_tried() -> None:
    assert len(RUNNABLE) >= 3


@pytest.mark.parametrize("file", RUNNABLE, ids=lambda file: file.name)
def test_an_example_ends_as_it_says(file: Path, tmp_path: Path) -> None:
    run = try_it(file, Shell(tmp_path))
    assert run.startswith("run_")


def test_the_report_has_a_page_for_each_topic(tmp_path: Path) -> None:
    try_it(ROOT / "examples" / "weekly-report.yaml", Shell(tmp_path))
    pages = {page.name for page in (tmp_path / "report-46").iterdir()}
    assert pages == {"index.md", "shipped.md", "planned.md", "blocked.md"}
    assert "- [planned](planned.md)" in (tmp_path / "report-46" / "index.md").read_text(encoding="utf-8")


def test_the_old_setting_is_deleted_when_somebody_has_said_yes(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    run = try_it(ROOT / "examples" / "rename-setting.yaml", shell)
    assert (tmp_path / "settings.ini.before").exists()
    assert shell.json("approve", run, "--reason", "looks right", *shell.seen(run))["status"] == "completed"
    assert not (tmp_path / "settings.ini.before").exists()


def test_nothing_is_left_of_half_a_transfer(tmp_path: Path) -> None:
    try_it(ROOT / "examples" / "all-or-nothing.yaml", Shell(tmp_path))
    assert not (tmp_path / "ledger.txt").exists()
