"""The way of a text to a definition: all findings at once, in order, and kept as long as nothing changes."""

from __future__ import annotations

import os
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.definitions import Data, json_values, patient, shaped, sound, spoiled
from domain.places import survey_with
from handrail.domain.checks.finding import Severity
from handrail.domain.definition.authoring import content_hash, definition_data, definition_from
from handrail.domain.definition.model import Effect
from handrail.domain.errors import Invalid
from handrail.domain.json import canonical_bytes
from handrail.foundation.locked_cache import LockedCache
from handrail.library import loading
from handrail.library.documents.document import Document, read_document
from handrail.library.loading import FolderCatalog, check_inputs, load_data, load_definition
from handrail.library.shelf import catalog as catalog_module
from handrail.library.shelf.catalog import FILES_MAX, EmptyCatalog
from handrail.library.shelf.workflow_library import WorkflowLibrary
from handrail.library.workrail.recognising import looks_like_workrail
from library.shelf import Shelf

PLAN = dedent("""
    id: plan
    inputs:
      count: {type: integer, default: 3}
    steps:
      - {id: a, prompt: 'Count to {{ inputs.count }}.'}
""")


def test_a_valid_text_gives_its_definition_and_its_hash() -> None:
    loaded = load_definition(PLAN, name="plan.yaml")
    assert loaded.is_valid
    assert loaded.definition is not None
    assert loaded.definition.id == "plan"
    assert loaded.hash == content_hash(loaded.definition)


def test_a_text_that_cannot_be_read_gives_its_findings_and_no_definition() -> None:
    loaded = load_definition("id: [", name="plan.yaml")
    assert (loaded.definition, loaded.hash, loaded.is_valid) == (None, "", False)
    assert loaded.findings


def test_a_text_of_the_wrong_structure_gives_its_findings_and_no_definition() -> None:
    loaded = load_definition("id: plan\nstepps: []\n", name="plan.yaml")
    assert (loaded.definition, loaded.is_valid) == (None, False)
    assert any(finding.at and finding.at.line == 2 for finding in loaded.findings)


def test_all_findings_come_at_once_in_the_order_of_the_text() -> None:
    text = dedent("""
        id: plan
        inputs: {count: {type: integer, default: many}}
        steps:
          - {id: a, prompt: 'Hi {{ nobody }}', after: [b]}
          - {id: b, tool: shell.run, args: {argv: [x]}, when: 'inputs.cuont > 3'}
          - {id: b, workflow: nowhere}
        outputs: {x: steps.c.output}
    """)
    loaded = load_definition(text, name="plan.yaml")
    places = [(finding.at.line, finding.at.column) for finding in loaded.findings if finding.at]
    assert places == sorted(places)
    rules = [finding.rule for finding in loaded.findings]
    assert rules[0] == "default"
    assert set(rules) == {"default", "template", "expression", "duplicate_id", "workflow", "no_undo"}
    assert loaded.definition is not None
    assert not loaded.is_valid


def test_findings_of_other_files_come_after_the_documents_own() -> None:
    text = "id: main\nsteps:\n  - {id: a, workflow: a-called}\n  - {id: b, prompt: 'Hi {{ nobody }}'}\n"
    called = "id: a-called\nsteps:\n  - Hi {{ nobody }}.\n"
    loaded = load_definition(text, name="z.yaml", catalog=Shelf(called))
    assert [str(finding.at) for finding in loaded.findings] == ["z.yaml:3:23", "z.yaml:4:28", "a-called.yaml:3:11"]


def test_a_note_does_not_block() -> None:
    loaded = load_definition("{id: plan, steps: [{id: a, tool: shell.run, args: {argv: [x]}}]}", name="plan.yaml")
    assert [finding.severity for finding in loaded.findings] == [Severity.MINOR]
    assert loaded.is_valid


def test_known_tools_are_held_against_the_calls() -> None:
    text = "{id: plan, steps: [{id: a, tool: git.tga, effect: none}]}"
    assert load_definition(text, name="plan.yaml").is_valid
    assert not load_definition(text, name="plan.yaml", survey=survey_with({"git.tag": Effect.NONE})).is_valid
    assert load_definition(text, name="plan.yaml", survey=survey_with({"git.tga": Effect.NONE})).is_valid


def test_a_default_that_does_not_fit_its_schema_is_refused_where_it_stands() -> None:
    (finding,) = load_definition(
        "id: plan\ninputs:\n  n: {type: integer, default: x}\nsteps: [Go.]\n", name="p.yaml"
    ).findings
    assert (finding.rule, finding.severity) == ("default", Severity.CRITICAL)
    assert str(finding.at) == "p.yaml:3:31"


def test_data_without_a_text_is_judged_the_same() -> None:
    loaded = load_data({"name": "Two things", "steps": ["One.", "Two {{ nobody }}."]})
    assert loaded.definition is not None
    assert loaded.definition.id == "two-things"
    assert [finding.rule for finding in loaded.findings] == ["template"]


def test_data_that_no_document_may_hold_gives_findings() -> None:
    loaded = load_data({"id": "plan", "steps": [{"id": "a", "tool": "value.set", "args": {"value": 2**70}}]})
    assert (loaded.definition, loaded.is_valid) == (None, False)
    assert loaded.findings


def test_data_can_extend_a_file_and_findings_are_shown_in_the_file() -> None:
    base = "id: base\ninputs: {n: {default: 1}}\nsteps:\n  - {id: a, prompt: 'Hi {{ nobody }}'}\n"
    loaded = load_data({"id": "child", "extends": "base", "inputs": {"m": {}}}, catalog=Shelf(base))
    assert [str(finding.at) for finding in loaded.findings] == ["base.yaml:4:28"]


# WorkRail


WORKRAIL: Data = {
    "id": "w",
    "name": "W",
    "description": "d",
    "version": "0.1.0",
    "metaGuidance": ["Be kind."],
    "steps": [{"id": "a", "title": "A", "prompt": "x", "agentRole": "You."}],
}


def test_a_workrail_file_is_converted_and_goes_the_same_way() -> None:
    loaded = load_data(WORKRAIL)
    assert loaded.is_valid
    assert loaded.definition is not None
    assert loaded.definition.guidance == ("Be kind.",)
    faulty = load_data({**WORKRAIL, "steps": []})
    assert (faulty.definition, [finding.rule for finding in faulty.findings]) == (None, ["workrail"])


@pytest.mark.parametrize(
    ("data", "is_workrail"),
    [
        ({"clarificationPrompts": []}, True),
        ({"steps": ["text", {"id": "a", "runCondition": {}}]}, True),
        ({"steps": [{"id": "a", "prompt": "x"}]}, False),
        ({"steps": 3}, False),
        ([], False),
        (None, False),
    ],
)
def test_workrail_files_are_known_by_keys_that_ours_never_had(data: Any, is_workrail: bool) -> None:
    assert looks_like_workrail(data) is is_workrail


# Any input


@patient
@given(
    spoiled()
    | json_values(max_leaves=30)
    | st.fixed_dictionaries({"id": json_values(), "steps": st.lists(json_values())})
)
def test_any_json_is_answered_with_findings(data: Any) -> None:
    loaded = load_data(data)
    assert loaded.is_valid or loaded.findings


@patient
@given(st.text() | st.binary())
def test_any_text_is_answered_with_findings(text: str | bytes) -> None:
    loaded = load_definition(text, name="any.yaml")
    assert loaded.is_valid or loaded.findings


@patient
@given(shaped())
def test_any_definition_of_the_right_structure_becomes_a_definition_with_findings(data: Data) -> None:
    loaded = load_data(data)
    assert loaded.definition is not None, loaded.findings


@patient
@given(sound())
def test_a_valid_definition_loads_and_prints_and_loads_again_as_the_same(data: Data) -> None:
    loaded = load_data(data)
    assert loaded.is_valid, loaded.findings
    assert loaded.definition == definition_from(data)
    assert loaded.definition is not None
    again = load_definition(canonical_bytes(definition_data(loaded.definition)), name="again.json")
    assert (again.definition, again.hash) == (loaded.definition, loaded.hash)


# What is kept


def test_the_same_text_is_loaded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    first = load_definition(PLAN, name="once.yaml")
    monkeypatch.setattr(loading, "read_any", None)
    assert load_definition(PLAN.encode(), name="once.yaml") is first
    assert load_data({"id": "x", "steps": ["y"]}) is load_data({"steps": ["y"], "id": "x"})


def test_another_name_text_or_set_of_tools_is_loaded_again() -> None:
    first = load_definition(PLAN, name="one.yaml")
    assert load_definition(PLAN, name="two.yaml") is not first
    assert load_definition(PLAN + "\n", name="one.yaml") is not first
    assert load_definition(PLAN, name="one.yaml", survey=survey_with()) is not first
    assert load_definition(PLAN, name="one.yaml", catalog=Shelf("{id: other, steps: [x]}")) is first


def test_what_depends_on_other_workflows_is_loaded_again_when_they_change() -> None:
    text, called = "{id: main, steps: [{id: a, workflow: other}]}", "{id: other, steps: [One.]}"
    first = load_definition(text, name="main.yaml", catalog=Shelf(called))
    assert load_definition(text, name="main.yaml", catalog=Shelf(called)) is first
    changed = load_definition(text, name="main.yaml", catalog=Shelf(called.replace("One", "Two")))
    assert changed.hash != first.hash
    assert not load_definition(text, name="main.yaml").is_valid


def test_only_so_much_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "_recent", LockedCache(len(PLAN) * 2))
    first = load_definition(PLAN, name="0.yaml")
    for number in range(3):
        load_definition(PLAN, name=f"{number}.yaml")
    assert load_definition(PLAN, name="0.yaml") is not first


# Folders


def write(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(exist_ok=True)
    file = folder / name
    file.write_text(dedent(text))
    return file


def test_a_folder_gives_the_workflows_in_its_files_by_id(tmp_path: Path) -> None:
    write(tmp_path, "a.yaml", "{id: ship, version: 1.0.0, steps: [{id: sub, prompt: x}]}")
    write(tmp_path, "b.yml", "id: ship\nversion: 1.1.0\nsteps: [x]\n")
    write(tmp_path, "c.json", '{"steps": [{"id": "sub", "prompt": "x"}], "id": "team/other"}')
    write(tmp_path, "d.txt", "id: ship\n")
    catalog = FolderCatalog([tmp_path])
    assert [candidate.version for candidate in catalog.find("ship")] == ["1.0.0", "1.1.0"]
    assert [candidate.version for candidate in catalog.find("team/other")] == [""]
    assert catalog.find("sub") == []
    assert catalog.ids() == ("ship", "sub")


def test_a_broken_file_never_hides_a_good_one(tmp_path: Path) -> None:
    write(tmp_path, "a.yaml", "id: ship\nsteps: [")
    write(tmp_path, "b.yaml", "- id: ship\n")
    write(tmp_path, "c.yaml", f"id: huge\nsteps: [x]\n{'#' * 1_000_001}")
    (tmp_path / "d.yaml").mkdir()
    (tmp_path / "e.yaml").symlink_to(tmp_path / "nowhere.yaml")
    (tmp_path / "f.yaml").write_bytes(b"id: ship\n\xff\xfe")
    write(tmp_path, "g.yaml", "id: ship\nsteps: [x]\n")
    catalog = FolderCatalog([tmp_path / "missing", tmp_path])
    assert [Path(candidate.document.name).name for candidate in catalog.find("ship")] == ["g.yaml"]
    assert catalog.ids() == ("ship",)


def test_earlier_folders_go_first_and_no_folder_is_read_twice(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write(tmp_path / name, "a.yaml", f"id: ship\nversion: 1.0.0\nsteps: [{name}]\n")
    catalog = FolderCatalog([tmp_path / "two", tmp_path / "one", tmp_path / "one" / ".." / "two"])
    found = catalog.find("ship")
    assert [Path(candidate.document.name).parent.name for candidate in found] == ["two", "one"]
    main = load_definition("{id: main, steps: [{id: a, workflow: ship}]}", name="m.yaml", catalog=catalog).definition
    assert main is not None
    assert definition_data(main.pinned["ship@1.0.0"])["steps"][0]["prompt"] == "two"


def test_a_changed_file_is_seen_and_changes_the_fingerprint(tmp_path: Path) -> None:
    file = write(tmp_path, "a.yaml", "id: ship\nsteps: [x]\n")
    catalog = FolderCatalog([tmp_path])
    before = catalog.fingerprint()
    assert catalog.find("ship")
    assert catalog.fingerprint() == before
    write(tmp_path, "a.yaml", "id: shop\nsteps: [x]\n")
    os.utime(file, ns=(1, 1))
    assert catalog.fingerprint() != before
    assert catalog.find("ship") == []
    assert catalog.find("shop")
    file.unlink()
    assert catalog.find("shop") == []


def test_a_folder_is_read_up_to_a_number_of_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("handrail.library.shelf.catalog.FILES_MAX", 1)
    for name in ("a", "b"):
        write(tmp_path, f"{name}.yaml", f"id: {name}\nsteps: [x]\n")
    assert FolderCatalog([tmp_path]).ids() == ("a",)
    assert FILES_MAX == 2_000
    (said,) = WorkflowLibrary([tmp_path]).broken()
    assert (said.file, said.message.partition(";")[0]) == (
        str(tmp_path),
        "it has more than 1 files: the others are not read",
    )
    (tmp_path / "b.yaml").unlink()
    assert WorkflowLibrary([tmp_path]).broken() == [], "exactly as many are all read"


def test_sub_folders_are_read_after_the_files_above_them(tmp_path: Path) -> None:
    for name in ("z.yaml", "delivery/b.yaml", "change/deep/c.yaml", "change/a.yaml", ".git/hidden.yaml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"id: {Path(name).stem}\nsteps: []\n")
    assert FolderCatalog([tmp_path]).ids() == ("z", "a", "b", "c")
    assert [one.folder for one in FolderCatalog([tmp_path / "delivery", tmp_path]).find("b")] == [0, 1]


def test_the_folder_beside_a_file_is_read_first_and_without_its_sub_folders(tmp_path: Path) -> None:
    for name in ("here/a.yaml", "here/node_modules/b.yaml", "library/c.yaml", "library/more/d.yaml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"id: {Path(name).stem}\nsteps: []\n")
    library = tmp_path / "library"
    assert FolderCatalog([library], beside=tmp_path / "here").ids() == ("a", "c", "d")
    assert FolderCatalog([library], beside=library).ids() == ("c", "d")


@pytest.mark.skipif(os.name == "nt", reason="links of POSIX")
def test_folders_that_are_links_are_not_followed(tmp_path: Path) -> None:
    outside, library = tmp_path / "outside", tmp_path / "library"
    outside.mkdir()
    library.mkdir()
    (outside / "a.yaml").write_text("id: a\nsteps: []\n")
    (library / "b.yaml").write_text("id: b\nsteps: []\n")
    (library / "out").symlink_to(outside)
    (library / "around").symlink_to(library)
    assert FolderCatalog([library]).ids() == ("b",)


def test_a_folder_is_read_up_to_a_number_of_sub_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog_module, "FOLDERS_MAX", 2)
    for name in ("a/a/a.yaml", "b/b.yaml", "c/c.yaml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"id: {Path(name).stem}\nsteps: []\n")
    assert FolderCatalog([tmp_path]).ids() == ("b",)
    (said,) = WorkflowLibrary([tmp_path]).broken()
    assert "it has more than 2 sub-folders" in said.message
    assert FolderCatalog([], beside=tmp_path).left_out == {}, "its sub-folders are not read at all"


def test_a_file_is_read_once_while_it_is_the_same_and_parsed_only_if_it_names_the_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    parsed: list[str] = []

    def content(path: Path, **_: Any) -> bytes:
        read.append(str(path))
        return path.read_bytes()

    def document(text: bytes, *, name: str) -> Document:
        parsed.append(name)
        return read_document(text, name=name)

    monkeypatch.setattr(catalog_module, "read_plain", content)
    monkeypatch.setattr(catalog_module, "read_any", document)
    a, b = (str(write(tmp_path, f"{name}.yaml", f"id: {name}\nsteps: [x]\n")) for name in ("a", "b"))
    catalog = FolderCatalog([tmp_path])
    assert catalog.find("a")[0].document is catalog.find("a")[0].document
    assert (sorted(read), parsed) == ([a, a, b], [a])


def test_a_file_that_went_away_has_no_workflow(tmp_path: Path) -> None:
    catalog = FolderCatalog([tmp_path])
    gone = catalog.document(str(tmp_path / "gone.yaml"), 1, 1, 0)
    assert isinstance(gone, Invalid)
    assert "the document is empty" in str(gone)


def test_an_empty_catalog_has_nothing() -> None:
    empty = EmptyCatalog()
    assert (empty.find("a"), empty.ids(), empty.fingerprint()) == ((), (), "")


# Inputs


NEEDY = {
    "id": "ship",
    "inputs": {
        "version": {"type": "string", "pattern": "^[0-9]+$", "description": "what to ship"},
        "targets": {"type": "array", "items": {"type": "string"}, "default": ["linux"]},
    },
    "steps": ["Ship it."],
}


def test_inputs_that_fit_come_back_with_the_defaults_filled_in() -> None:
    values, findings = check_inputs(definition_from(NEEDY), {"version": "12"})
    assert (values, findings) == ({"version": "12", "targets": ["linux"]}, [])


def test_what_is_missing_unknown_or_of_another_type_is_found_at_once() -> None:
    _, findings = check_inputs(definition_from(NEEDY), {"targets": [1], "verison": "12"})
    found = {finding.where: finding for finding in findings}
    assert set(found) == {"inputs.targets[0]", "inputs.verison", "inputs.version"}
    assert found["inputs.verison"].fix == "did you mean `version`?"
    assert "what to ship" in found["inputs.version"].fix
    assert all(finding.severity is not Severity.MINOR for finding in findings)


def test_a_workflow_without_inputs_takes_none() -> None:
    _, (finding,) = check_inputs(definition_from({"id": "a", "steps": ["x"]}), {"more": 1})
    assert "no inputs" in finding.fix


def test_inputs_that_no_journal_could_keep_are_refused() -> None:
    deep: Any = "x"
    for _ in range(100):
        deep = [deep]
    _, findings = check_inputs(definition_from(NEEDY), {"version": "1", "targets": deep})
    assert findings


def test_an_input_without_a_word_about_it_is_still_asked_for() -> None:
    _, (finding,) = check_inputs(definition_from({"id": "a", "inputs": {"x": {}}, "steps": ["x"]}), {})
    assert (finding.rule, finding.fix) == ("missing_input", "give it")
