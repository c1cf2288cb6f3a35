"""Whole files: one for each version of the schema, from folders and one by one, and files that are hostile."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.definitions import json_values, patient
from handrail.domain.checks.finding import Severity
from handrail.domain.definition.authoring import definition_data
from handrail.domain.errors import Invalid
from handrail.library.documents.document import document_of
from handrail.library.importing.import_file import imported_file
from handrail.library.loading import load_data, load_definition
from handrail.library.shelf.catalog import FolderCatalog
from handrail.library.shelf.workflow_library import WorkflowLibrary
from handrail.library.workrail.recognising import KEYS, STEP_KEYS, looks_like_workrail
from handrail.library.workrail.whole import convert
from library.workrail.garden import FILES, VERSIONS, faults, first, loop, notes, ours, step, workflow


@pytest.mark.parametrize("version", VERSIONS)
def test_a_file_of_each_version_loads_as_it_is(version: str) -> None:
    file = FILES / f"{version}.json"
    loaded = load_definition(file.read_bytes(), name=str(file))
    assert loaded.is_valid, loaded.findings
    assert {finding.severity for finding in loaded.findings} <= {Severity.MINOR}
    assert all(finding.at is not None and finding.at.file == str(file) for finding in loaded.findings)


RENAMED = {"currentIteration", "bedNumber", "currentBed"}
"""Names that loops give, which are `index` and the like in ours."""


@pytest.mark.parametrize("version", VERSIONS)
def test_every_text_of_a_file_is_kept_or_noted(version: str) -> None:
    """Nothing is dropped silently: each word of an author stands in what comes out, or under a note."""
    data = json.loads((FILES / f"{version}.json").read_text("utf-8"))
    loaded = load_data(data)
    assert loaded.definition is not None
    kept = json.dumps(definition_data(loaded.definition), ensure_ascii=False).lower()
    noted = [finding.where for finding in loaded.findings]
    for where, text in _texts(data, ""):
        words = [word for word in text.replace("{{", " ").replace("}}", " ").split() if word.isalpha()]
        missing = [word for word in words if word.lower() not in kept and word not in RENAMED]
        assert not missing or any(where.startswith(one) for one in noted), (where, missing)


def _texts(value: Any, where: str) -> list[tuple[str, str]]:
    if isinstance(value, str):
        structural = (".type", ".id", ".loopId", ".kind", ".scope", ".pattern", ".iterationVar")
        return [] if where.endswith(structural) else [(where, value)]
    if isinstance(value, list):
        return [one for index, item in enumerate(value) for one in _texts(item, f"{where}[{index}]")]
    if isinstance(value, dict):
        return [one for key, item in value.items() for one in _texts(item, f"{where}.{key}".removeprefix("."))]
    return []


@pytest.fixture
def shelf(tmp_path: Path) -> Path:
    shutil.copytree(FILES, tmp_path / "shelf")
    return tmp_path / "shelf"


def test_a_folder_of_them_is_a_library(shelf: Path) -> None:
    library = WorkflowLibrary([shelf])
    assert [(entry.id, entry.version, entry.steps) for entry in library.entries()] == [
        ("garden-rounds", "0.1.0", 6),
        ("garden/open-day", "1.3.0", 4),
        ("garden/plan-a-bed", "0.2.0", 3),
        ("plant-a-tree", "0.0.1", 4),
    ]
    for entry in library.entries():
        assert library.load(f"{entry.id}@{entry.version}").is_valid
    assert [entry.id for entry in library.search("neighbours")] == ["garden/plan-a-bed"]


def test_ours_may_call_and_extend_theirs(shelf: Path) -> None:
    catalog = FolderCatalog([shelf])
    calling: Any = {"id": "caller", "steps": [{"id": "day", "workflow": "garden/open-day@^1"}]}
    assert load_data(calling, catalog=catalog).is_valid
    extending: Any = {"id": "more", "extends": "plant-a-tree", "steps": [{"id": "sing", "prompt": "Sing."}]}
    extended = load_data(extending, catalog=catalog)
    assert extended.is_valid, extended.findings
    assert extended.definition is not None
    assert [one.id for one in extended.definition.steps][-2:] == ["plant-it", "sing"]


def test_a_broken_one_hides_nothing_and_tells_what_is_wrong(shelf: Path) -> None:
    broken = workflow(step(runCondition={"nonsense": 1}), id="garden.broken")
    (shelf / "broken.json").write_text(json.dumps(broken), encoding="utf-8")
    library = WorkflowLibrary([shelf])
    assert len(library.entries()) == 5
    loaded = library.load("garden/broken")
    assert [finding.where for finding in loaded.findings if finding.severity is Severity.CRITICAL] == [
        "steps[0].runCondition.nonsense"
    ]
    calling: Any = {"id": "caller", "steps": [{"id": "day", "workflow": "garden/broken"}]}
    assert not load_data(calling, catalog=library.catalog).is_valid


@pytest.mark.parametrize("key", sorted(KEYS))
def test_a_workflow_is_known_by_its_keys(key: str) -> None:
    assert looks_like_workrail({"id": "x", key: [], "steps": []})


@pytest.mark.parametrize("key", sorted(STEP_KEYS))
def test_a_workflow_is_known_by_the_keys_of_its_steps(key: str) -> None:
    assert looks_like_workrail({"id": "x", "steps": ["text", {"id": "a", key: None}]})


def test_a_workflow_is_known_by_loops_and_dotted_ids_and_ours_is_never_taken_for_one() -> None:
    assert looks_like_workrail({"id": "garden.bed", "steps": []})
    assert looks_like_workrail({"id": "x", "steps": [{"id": "a", "type": "loop", "loop": {}}]})
    assert not looks_like_workrail({"id": "garden/bed", "steps": [{"id": "a", "title": "A", "prompt": "x"}]})
    assert not looks_like_workrail({"id": "x", "steps": [{"id": "a", "each": "inputs.a", "steps": []}]})
    odds: list[Any] = [None, 3, "x", [], [{"runCondition": 1}], {"steps": 3}, {"id": 3, "steps": {}}]
    for odd in odds:
        assert not looks_like_workrail(odd)


@pytest.mark.parametrize(
    ("theirs", "here"),
    [("garden.bed", "garden/bed"), ("My_Bed", "my-bed"), ("a.b.c", "a/b-c"), ("myBed", "my-bed"), ("bed", "bed")],
)
def test_ids_are_written_as_ours(theirs: str, here: str) -> None:
    assert ours(workflow(step(), id=theirs))["id"] == here


def test_the_ids_of_steps_are_made_fit_and_unique() -> None:
    names = ["1-dig", "Dig_Deep", "dig deep", "output", "x" * 90, "x" * 91, "dig-deep-2"]
    found = [one["id"] for one in ours(workflow(*(step(name, title="T") for name in names)))["steps"]]
    assert found[:4] == ["step-1-dig", "dig-deep", "dig-deep-2", "step-output"]
    assert len(set(found)) == len(names)
    assert "called `step-1-dig` here" in notes(workflow(step("1-dig", title="T")))["steps[0].id"]


def test_what_is_said_of_the_whole_is_kept_or_noted() -> None:
    more = {
        "clarificationPrompts": ["Which tree?"],
        "metaGuidance": ["Slowly."],
        "about": "About it.",
        "examples": ["Plant an oak."],
        "references": [{"title": "The map", "source": "map.md"}],
        "recommendedPreferences": {"autonomy": "guided"},
        "metricsProfile": "x",
        "nobodyKnows": 1,
    }
    found = ours(workflow(step(), **more))
    assert found["clarify"] == ["Which tree?"]
    assert found["description"] == "A bed.\n\nAbout it.\n\nExamples:\n- Plant an oak."
    assert found["guidance"][0] == "Slowly."
    assert any("map.md" in one for one in found["guidance"])
    assert any("guided" in one for one in found["guidance"])
    assert {"references", "recommendedPreferences", "metricsProfile", "nobodyKnows"} <= set(
        notes(workflow(step(), **more))
    )


def test_words_for_their_own_tools_are_translated_once() -> None:
    found = ours(workflow(step(prompt="Set it in the `context` of continue_workflow."), metaGuidance=["Slowly."]))
    assert "`context` is `vars` here" in found["guidance"][0]
    assert found["guidance"][1:] == ["Slowly."]


def test_what_is_too_long_for_the_description_is_noted() -> None:
    assert "left out" in notes(workflow(step(), about="x" * 3_000))["about"]


@pytest.mark.parametrize(
    ("data", "where"),
    [
        (workflow(), "steps"),
        ({**workflow(step()), "steps": 3}, "steps"),
        (workflow(step(), 3), "steps[1]"),  # type: ignore[arg-type]
        (workflow({"title": "x", "agentRole": "y"}), "steps[0]"),
        (workflow(step(prompt=3)), "steps[0].prompt"),
        (workflow(step(guidance=["a", 3])), "steps[0].guidance[1]"),
        (workflow(step(promptBlocks={"goal": 3})), "steps[0].promptBlocks.goal"),
        (workflow(step(promptBlocks={"procedure": [{"kind": "x"}, [3]]})), "steps[0].promptBlocks.procedure[0]"),
        (workflow(step(type="dance")), "steps[0].type"),
        (workflow(step(), metaGuidance="x"), "metaGuidance"),
        (workflow(step(), functionDefinitions=[{"definition": "x"}]), "functionDefinitions[0]"),
        (workflow(step(), id=3, name=""), "id"),
    ],
)
def test_values_of_the_wrong_type_are_faults_with_their_place(data: Any, where: str) -> None:
    assert where in [place for place, _ in faults(data)]


def test_a_finding_of_ours_points_into_their_text() -> None:
    long = {"or": [{"var": f"variable{number}", "equals": True} for number in range(60)]}
    text = json.dumps(workflow(step("a"), step("b", runCondition=long)), indent=1)
    loaded = load_definition(text, name="bed.json")
    (finding, *_) = [one for one in loaded.findings if one.severity is Severity.CRITICAL]
    assert finding.at is not None
    assert '"runCondition"' in text.splitlines()[finding.at.line - 1]


KEYS_SEEN = sorted({*KEYS, *STEP_KEYS, "id", "title", "prompt", "loop", "body", "type", "steps", "var", "and", "not"})


def _mutated() -> st.SearchStrategy[Any]:
    """JSON that is nearly a workflow of theirs."""
    values = st.recursive(
        json_values(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS_SEEN), inner, max_size=4),
        max_leaves=12,
    )
    steps = st.lists(st.dictionaries(st.sampled_from(KEYS_SEEN), values, max_size=5) | values, max_size=4)
    return st.builds(
        lambda head, body: {**head, "steps": body}, st.dictionaries(st.sampled_from(KEYS_SEEN), values), steps
    )


@patient
@given(_mutated() | json_values())
def test_no_json_whatever_makes_the_conversion_crash(data: Any) -> None:
    try:
        document = document_of(data, name="any.json")
    except Invalid:
        return
    found = convert(document)
    assert all(flaw.message for flaw in found.flaws)
    load_data({**data, "metaGuidance": []} if isinstance(data, dict) else data)


_file = json.loads((FILES / "v0.1.0.json").read_text("utf-8"))


@patient
@given(st.data(), json_values())
def test_a_file_with_one_value_spoiled_is_converted_or_refused(data: st.DataObject, spoiled: Any) -> None:
    whole = json.loads(json.dumps(_file))
    holder: Any = whole
    while True:
        key = data.draw(st.sampled_from(list(holder) if isinstance(holder, dict) else range(len(holder))))
        inner = holder[key]
        if not isinstance(inner, dict | list) or not inner or data.draw(st.booleans()):
            break
        holder = inner
    holder[key] = spoiled
    loaded = load_data(whole)
    assert loaded.is_valid or loaded.findings


def test_the_deepest_document_that_can_be_read_is_converted() -> None:
    condition: Any = {"var": "x"}
    for _ in range(50):
        condition = {"not": condition}
    assert not load_data(workflow(step(runCondition=condition))).is_valid, "deeper than our expressions go"
    for _ in range(5_000):
        condition = [condition]
    assert not load_data(workflow(step(runCondition=condition))).is_valid


def test_what_is_said_of_a_file_has_an_end() -> None:
    data = workflow({**step(), **{f"key{number}": 1 for number in range(5_000)}})
    assert len(load_data(data).findings) == 201
    assert "of 5,000 in all" in notes(data)["the document"]


def test_texts_that_all_steps_share_do_not_grow_without_end() -> None:
    functions = [{"name": "f", "definition": "x" * 200_000}]
    steps = [step(f"s{number}", prompt="Call f().") for number in range(500)]
    found = faults(workflow(*steps, functionDefinitions=functions))
    assert any("all prompts together are too long" in why for _, why in found)


@pytest.mark.parametrize("version", VERSIONS)
def test_an_imported_file_reads_back_as_the_same(version: str) -> None:
    file = FILES / f"{version}.json"
    found = imported_file(file.read_bytes(), name=str(file))
    assert found is not None
    again = load_definition(found.text, name="again.yaml")
    assert again.hash == load_definition(file.read_bytes(), name=str(file)).hash
    assert not looks_like_workrail(first(json.loads(file.read_text("utf-8"))))
    assert all(f"#   {one.where}: {one.message}" in found.text for one in found.kept)


def test_only_workrail_files_are_imported() -> None:
    assert imported_file(b"id: x\nsteps: [do it]\n", name="x.yaml") is None
    with pytest.raises(Invalid):
        imported_file(b"{", name="x.json")
    faulty = imported_file(json.dumps(workflow(loop("forever"))).encode(), name="x.json")
    assert faulty is not None
    assert not faulty.text
