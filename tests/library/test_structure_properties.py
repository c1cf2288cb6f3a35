"""The structure check on random data and on spoilt workflows: it always answers, and never breaks."""

from __future__ import annotations

import copy
import json
from pathlib import Path as File
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from handrail.domain.definition.authoring import definition_from
from handrail.domain.errors import Invalid
from handrail.domain.json import Json
from handrail.library.documents.document import Document, document_of, read_document
from handrail.library.schemas.structure import check_structure, schema_text

SHIP_RELEASE = File(__file__).with_name("ship-release.yaml")
SOUND: Any = read_document(SHIP_RELEASE.read_bytes(), name="ship-release.yaml").value
DEFINITIONS = json.loads(schema_text())["definitions"]
KEYS = sorted(
    {*DEFINITIONS["step_keys"]["properties"], *SOUND, "extends", "$ref", "type", "1", "", "xyz", "\ud800", "é"}
)

scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(KEYS)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=3), inner, max_size=5)
    ),
    max_leaves=25,
)


@given(values, st.booleans())
def test_any_data_is_answered_with_findings(value: Json, merged: bool) -> None:
    assert_answered(Document("<plan>", value), merged=merged)


@given(st.data(), st.booleans())
def test_a_spoilt_workflow_is_answered_with_findings(data: st.DataObject, merged: bool) -> None:
    spoilt = copy.deepcopy(SOUND)
    for _ in range(data.draw(st.integers(1, 4))):
        spoil(spoilt, data)
    assert_answered(Document("<plan>", spoilt), merged=merged)


@given(st.data())
def test_a_spoilt_workflow_is_reported_where_its_text_is_wrong(data: st.DataObject) -> None:
    spoilt = copy.deepcopy(SOUND)
    spoil(spoilt, data)
    try:
        document = read_document(json.dumps(spoilt, indent=1), name="x.json")
    except Invalid:
        return
    for finding in check_structure(document):
        assert finding.at is not None
        assert finding.message


@given(st.data())
def test_what_passes_can_be_made_a_definition_of(data: st.DataObject) -> None:
    spoilt = copy.deepcopy(SOUND)
    spoil(spoilt, data)
    try:
        document = document_of(spoilt, name="<plan>")
    except Invalid:
        return
    if not check_structure(document, merged=True):
        definition_from(document.value)  # type: ignore[arg-type]


def spoil(value: Any, data: st.DataObject) -> None:
    """Changes one thing, anywhere: a value, a key more, or a key less."""
    held = [inner for inner in collections(value) if inner or isinstance(inner, dict)]
    target = data.draw(st.sampled_from(held))
    if isinstance(target, list):
        target[data.draw(st.integers(0, len(target) - 1))] = data.draw(values)
    elif target and data.draw(st.booleans()):
        del target[data.draw(st.sampled_from(sorted(target)))]
    else:
        key = data.draw(st.sampled_from(sorted(target)) | st.sampled_from(KEYS) if target else st.sampled_from(KEYS))
        target[key] = data.draw(values)


def collections(value: Any) -> list[Any]:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    own = [value] if isinstance(value, dict | list) else []
    return own + [found for item in inner for found in collections(item)]


def assert_answered(document: Document, *, merged: bool) -> None:
    findings = check_structure(document, merged=merged)
    assert all(finding.rule and finding.message and finding.where for finding in findings)
    assert len({str(finding) for finding in findings}) == len(findings)
