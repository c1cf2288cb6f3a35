"""Files beside: routines that replace a step with a template; ids as they were written; keys that are given twice."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from handrail.definitions import load_file
from handrail.domain.checks.finding import Severity
from handrail.library.importing.import_file import imported_file
from handrail.library.loading import load_definition, unsurveyed
from handrail.library.shelf.catalog import FolderCatalog
from handrail.library.shelf.workflow_library import WorkflowLibrary
from handrail.library.workrail.recognising import SHARED_KEYS, looks_like_workrail
from interfaces.mcp.surface.agent import Place
from library.workrail.garden import Data, loop, step, workflow

ROUTINE = workflow(
    step("look", prompt="Look at {bed} for {{guest}} in {minutes} min.", title="Look at {bed}", guidance=["Slowly."]),
    step("note", prompt="Note it.", runCondition={"var": "seen", "equals": "yes"}, agentRole="You watch."),
    id="routine-inspect",
    metaGuidance=["Touch nothing."],
)
CALL = {"templateId": "wr.templates.routine.inspect", "args": {"bed": "bed 3", "minutes": 5}}


def called(**more: Any) -> Data:
    return {"id": "phase-1", "title": "Inspect", "templateCall": CALL, **more}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "routines").mkdir()
    (tmp_path / "routines" / "inspect.json").write_text(json.dumps(ROUTINE), encoding="utf-8")
    return tmp_path


def put(folder: Path, *steps: Data, **more: Any) -> Path:
    file = folder / "garden.json"
    file.write_text(json.dumps(workflow(*steps, **{"id": "garden.walk", **more})), encoding="utf-8")
    return file


def steps_in(file: Path, catalog: FolderCatalog) -> list[Any]:
    loaded = load_definition(file.read_bytes(), name=str(file), catalog=catalog)
    assert loaded.is_valid, loaded.findings
    assert loaded.definition is not None
    return list(loaded.definition.steps)


def test_a_template_is_replaced_by_the_steps_of_its_routine(folder: Path) -> None:
    file = put(folder, step("before"), called(runCondition={"var": "go"}), step("after"))
    before, look, note, after = steps_in(file, FolderCatalog([folder]))
    assert [one.id for one in (before, look, note, after)] == ["before", "phase-1-look", "phase-1-note", "after"]
    assert look.title == "Look at bed 3"
    assert look.work.prompt.startswith('Look at bed 3 for {{ default(vars.guest, "<guest>") }} in 5 min.')
    assert look.guidance == ("Slowly.", "Touch nothing.")
    assert "vars.go" in look.when
    assert note.work.role == "You watch."
    assert "vars.seen" in note.when
    assert "vars.go" not in note.when


def test_a_template_in_a_loop_is_replaced_too(folder: Path) -> None:
    file = put(folder, loop("for", called(), count=2))
    (rounds,) = steps_in(file, FolderCatalog([], beside=folder))
    assert [one.id for one in rounds.body] == ["phase-1-look", "phase-1-note"]


def test_what_the_template_leaves_out_or_lacks_is_noted(folder: Path) -> None:
    short = {**CALL, "args": {"bed": "bed 3"}}
    file = put(folder, called(templateCall=short, requireConfirmation=True))
    loaded = load_definition(file.read_bytes(), name=str(file), catalog=FolderCatalog([folder]))
    said = [finding.message for finding in loaded.findings]
    assert "the template has no argument `minutes`: it stays in the text" in said
    assert "the steps of the template replace this step: `requireConfirmation` is left out" in said


def test_without_its_routine_a_template_is_kept_as_text(tmp_path: Path) -> None:
    file = put(tmp_path, called())
    (only,) = steps_in(file, FolderCatalog([tmp_path]))
    assert "whose text is not here" in only.work.prompt


def test_a_library_follows_a_routine_that_changes(folder: Path) -> None:
    put(folder, called())
    library = WorkflowLibrary([folder])
    assert {entry.id: entry.steps for entry in library.entries()}["garden/walk"] == 2
    (folder / "routines" / "inspect.json").write_text(
        json.dumps({**ROUTINE, "steps": ROUTINE["steps"][:1]}), encoding="utf-8"
    )
    loaded = library.load("garden.walk")
    assert loaded.definition is not None
    assert [one.id for one in loaded.definition.steps] == ["phase-1-look"]
    (candidate,) = library.catalog.find("garden/walk")
    assert isinstance(candidate.document.value, dict)
    assert [one["id"] for one in candidate.document.value["steps"]] == ["phase-1-look"]


def test_a_file_that_is_imported_or_named_finds_its_routines(folder: Path) -> None:
    file = put(folder, called())
    found = imported_file(file.read_bytes(), name=str(file), catalog=FolderCatalog([], beside=folder))
    assert found is not None
    assert "phase-1-look" in found.text
    loaded = load_file(str(file), WorkflowLibrary([]), unsurveyed)
    assert loaded.definition is not None
    assert len(loaded.definition.steps) == 2


@pytest.mark.skipif(os.name == "nt", reason="links need a right there")
def test_routines_behind_a_link_out_of_the_project_are_not_read(folder: Path, tmp_path_factory: Any) -> None:
    project = tmp_path_factory.mktemp("project")
    (project / "routines").symlink_to(folder / "routines")
    file = put(project, called())
    catalog = FolderCatalog([], beside=project, within={str(project): str(project)})
    (only,) = steps_in(file, catalog)
    assert only.id == "phase-1"


async def test_a_workflow_starts_by_the_id_that_its_author_gave(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.workflow(workflow(step("plant"), id="wr.coding-task"))
    place.workflow(workflow(step("water"), id="wr.Water_Task", version="2.0.0"))
    async with place.agent() as agent:
        reply = await agent.call("workflow_next", workflow="wr.coding-task")
        assert reply["step"]["id"] == "plant"
        reply = await agent.call("workflow_next", workflow="wr.Water_Task@2")
        assert reply["step"]["id"] == "water"


@pytest.mark.parametrize("key", sorted(SHARED_KEYS))
def test_a_workflow_is_known_by_keys_that_others_could_have_unless_it_has_one_of_ours(key: str) -> None:
    theirs: Data = {"id": "x", "name": "X", key: [], "steps": [{"id": "a", "title": "A", "prompt": "x"}]}
    assert looks_like_workrail(theirs)
    assert not looks_like_workrail({**theirs, "inputs": {}})
    assert not looks_like_workrail({**theirs, "steps": [{"id": "a", "prompt": "x", "when": "true"}]})
    assert not looks_like_workrail({**theirs, "steps": ["do it"]})


TWICE = (
    '{"id": "bed", "metaGuidance": [], "steps": [{"id": "a", "title": "A",'
    ' "prompt": "1",\n "prompt": "2", "prompt": "3"}]}'
)


def test_a_key_that_is_given_twice_is_a_finding_and_the_last_counts(tmp_path: Path) -> None:
    file = tmp_path / "bed.json"
    file.write_text(TWICE, encoding="utf-8")
    for loaded in (load_definition(TWICE, name="bed.json"), WorkflowLibrary([tmp_path]).load("bed")):
        assert loaded.is_valid, loaded.findings
        assert loaded.definition is not None
        assert loaded.definition.steps[0].work.prompt == "3"  # type: ignore[union-attr]
        twice = [finding for finding in loaded.findings if "given twice" in finding.message]
        assert {finding.severity for finding in twice} == {Severity.MINOR}
        assert {finding.where for finding in twice} == {"steps[0].prompt"}
        assert all(finding.at is not None and finding.at.line == 2 for finding in twice)


def test_a_key_of_ours_that_is_given_twice_is_an_error_as_before() -> None:
    ours = '{"id": "bed", "steps": [{"id": "a", "prompt": "1", "prompt": "2"}]}'
    assert not load_definition(ours, name="bed.json").is_valid
    broken = TWICE[:-1]
    assert not load_definition(broken, name="bed.json").is_valid
