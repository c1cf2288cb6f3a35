"""Every example is sound, and can be drawn and printed."""

from __future__ import annotations

from pathlib import Path

import pytest

from handrail.domain.authoring import definition_data
from handrail.domain.definition import Definition
from handrail.interfaces.pictures.terminal import terminal_picture
from handrail.library.loading import FolderCatalog, load_data, load_definition
from handrail.library.printing import yaml_text
from tidy.yardstick import ROOT

EXAMPLES = sorted(file for file in (ROOT / "examples").iterdir() if file.suffix in {".yaml", ".json"})


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
