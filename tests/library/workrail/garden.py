"""The garden: WorkRail files written for these tests, one for each version of the schema. Not a test file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from handrail.domain.checks.finding import Finding, Severity
from handrail.domain.language.expression import compile_condition
from handrail.domain.language.shape import ANY, NUMBER
from handrail.library.documents.document import document_of
from handrail.library.importing.importers import Imported, convert
from handrail.library.loading import Loaded, load_data

FILES = Path(__file__).parent / "files"
VERSIONS = ("v0.0.1", "v0.1.0", "v0.2.0", "v0.3.0")

Data = dict[str, Any]


def step(identity: str = "dig", **more: Any) -> Data:
    """A standard step."""
    return {"id": identity, "title": identity.capitalize(), "prompt": f"Do {identity}.", **more}


def workflow(*steps: Data, **more: Any) -> Data:
    """A workflow of theirs; the empty list makes it known as such."""
    head = {"id": "bed", "name": "Bed", "description": "A bed.", "version": "1.0.0", "metaGuidance": []}
    return {**head, **more, "steps": list(steps)}


def loop(kind: str, *body: Any, identity: str = "rounds", **config: Any) -> Data:
    """A loop step."""
    given = {"type": kind, "maxIterations": 5, **config}
    return {"id": identity, "type": "loop", "title": "Rounds", "loop": given, "body": list(body) or [step()]}


def converted(data: Any) -> Imported:
    """What becomes of data."""
    return convert(document_of(data, name="bed.json"))


def ours(data: Any) -> Data:
    """The result of converting valid data, which must also load."""
    found = converted(data)
    assert found.document is not None, found.flaws
    loaded = load_data(data)
    assert loaded.is_valid, loaded.findings
    assert isinstance(found.document.value, dict)
    return found.document.value


def first(data: Any) -> Data:
    """The first step of what becomes of data."""
    found: Data = ours(data)["steps"][0]
    return found


def faults(data: Any) -> list[tuple[str, str]]:
    """Where data is at fault, and why; it must not be usable."""
    loaded: Loaded = load_data(data)
    assert not loaded.is_valid
    return [(one.where, one.message) for one in _of_ours(loaded) if one.severity is Severity.CRITICAL]


def notes(data: Any) -> dict[str, str]:
    """What is noted about valid data, by place."""
    loaded = load_data(data)
    assert loaded.is_valid, loaded.findings
    return {one.where: one.message for one in _of_ours(loaded)}


def holds(source: str, variables: Data, **more: Any) -> bool:
    """Whether a condition holds for these variables."""
    condition = compile_condition(source, {"vars": ANY, "index": NUMBER, "item": ANY})
    return condition.evaluate({"vars": variables, **more}) is True


def _of_ours(loaded: Loaded) -> list[Finding]:
    return [one for one in loaded.findings if one.rule == "workrail"]
