"""Step paths, as the journal names steps."""

from __future__ import annotations

import pytest

from handrail.domain.definition.authoring import definition_from
from handrail.domain.errors import NotFound
from handrail.domain.run.step_path import locate

INNER = {"id": "tell", "version": "1.0.0", "steps": [{"id": "post", "tool": "chat.post"}]}
NESTED = definition_from(
    {
        "id": "p",
        "steps": [
            {"id": "build", "each": "inputs.t", "steps": [{"id": "again", "repeat": {"times": 2}, "steps": ["do it"]}]},
            {"id": "announce", "workflow": "tell@1.0.0"},
        ],
        "pinned": {"tell@1.0.0": INNER},
    }
)


def test_a_path_leads_through_loops_and_inlined_workflows() -> None:
    assert locate(NESTED, "build").step.id == "build"
    found = locate(NESTED, "build[2].again[0].step-1")
    assert (found.step.id, found.parent, found.prefix) == ("step-1", "build[2].again", "build[2].again[0].")
    assert locate(NESTED, "announce.post").prefix == "announce."


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("bild", "build"),
        ("build.again", "build[0]"),
        ("build[x].again", "build[2].make"),
        ("announce[0].post", ""),
        ("build[0].again[0].step-1.deeper", ""),
        ("announce.pots", "post"),
        ("", "build"),
    ],
)
def test_a_path_to_nowhere_is_refused_with_what_is_near(path: str, hint: str) -> None:
    with pytest.raises(NotFound) as refused:
        locate(NESTED, path)
    assert hint in refused.value.hint
