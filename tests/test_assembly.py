"""The assembly: what the program is put together from works together."""

from __future__ import annotations

from pathlib import Path

import pytest

from handrail.assembly import bookcase_of, working
from handrail.domain.status import RunStatus
from handrail.engine.guide import HandIn
from handrail.library.loading import valid
from handrail.settings import Settings, read_settings

WRITE = """
id: write
version: 1.0.0
steps:
  - {id: draft, prompt: "write {{ inputs.what }}", output: {type: object, required: [file]}}
  - {id: set, tool: value.set, args: {value: "{{ steps.draft.output.file }}"}}
inputs: {what: {type: string}}
"""


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    folder = tmp_path / ".handrail" / "workflows"
    folder.mkdir(parents=True)
    (folder / "write.yaml").write_text(WRITE)
    return read_settings({"home": str(tmp_path / "home"), "project": str(tmp_path)}, {})


async def test_a_workflow_of_the_project_is_guided_to_its_end(settings: Settings) -> None:
    async with working(settings) as at_work:
        definition = valid(at_work.books.load("write"), "write")
        run = await at_work.worker.start(definition, {"what": "a poem"}, actor="agent:claude")
        seen = await at_work.guide.look(run.id, within_s=10)
        assert seen.step == "draft"
        refused = await at_work.guide.hand_in(run.id, HandIn(step="draft", output={}), actor="agent:claude")
        assert [finding.where for finding in refused.findings] == ["output"]
        given = HandIn(step="draft", output={"file": "a.txt"})
        assert (await at_work.guide.hand_in(run.id, given, actor="agent:claude")).accepted
        ended = await at_work.worker.settled(run.id)
        assert (ended.status, ended.step("set").output) == (RunStatus.COMPLETED, "a.txt")
        assert (await at_work.lookout.run(run.id)).status is RunStatus.COMPLETED


def test_the_projects_workflows_go_before_the_users(settings: Settings) -> None:
    own = settings.home / "workflows"
    own.mkdir(parents=True)
    (own / "write.yaml").write_text(WRITE.replace("id: write", "id: write\nname: mine"))
    (own / "read.yaml").write_text(WRITE.replace("id: write", "id: read"))
    books = {book.id: book for book in bookcase_of(settings).books()}
    assert [(books[one].name, books[one].source) for one in ("read", "write")] == [
        ("read", "user"),
        ("write", "project"),
    ]
    assert books["write"].shadows == ("user",)
    assert books["code-review"].source == "built in"


def test_more_folders_can_be_named_and_what_is_built_in_left_out(tmp_path: Path) -> None:
    more = tmp_path / "more"
    more.mkdir()
    (more / "read.yaml").write_text(WRITE.replace("id: write", "id: read"))
    flags = {"home": str(tmp_path / "home"), "project": str(tmp_path), "library": str(more), "built_in": "false"}
    assert [(book.id, book.source) for book in bookcase_of(read_settings(flags, {})).books()] == [("read", "more")]
