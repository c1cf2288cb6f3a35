"""The assembly: what the program is put together from works together."""

from __future__ import annotations

from pathlib import Path

import pytest

from handrail.assembly.checks import sandbox_of
from handrail.assembly.opening import open_assemblies, open_assembly
from handrail.assembly.secrets import known_secrets_of
from handrail.assembly.tools import library_of, toolbox_of
from handrail.domain.definition.authoring import definition_from
from handrail.domain.definition.model import Category
from handrail.domain.errors import Invalid
from handrail.domain.run.status import RunStatus
from handrail.domain.run.submission import Submission
from handrail.engine.tool import ToolFailed
from handrail.library.loading import valid
from handrail.settings import Settings, read_settings
from handrail.tools.sandbox.unconfined import Unconfined

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
    async with open_assembly(settings) as parts:
        definition = valid(parts.library.load("write"), "write")
        run = await parts.worker.start(definition, {"what": "a poem"}, actor="agent:claude")
        seen = await parts.guide.look(run.id, within_s=10)
        assert seen.step == "draft"
        refused = await parts.guide.submit(run.id, Submission(step="draft", output={}), actor="agent:claude")
        assert [finding.where for finding in refused.findings] == ["output"]
        given = Submission(step="draft", output={"file": "a.txt"})
        assert (await parts.guide.submit(run.id, given, actor="agent:claude")).accepted
        ended = await parts.worker.settled(run.id)
        assert (ended.status, ended.step("set").output) == (RunStatus.COMPLETED, "a.txt")
        assert (await parts.run_reader.run(run.id)).status is RunStatus.COMPLETED


def test_the_projects_workflows_go_before_the_users(settings: Settings) -> None:
    own = settings.home / "workflows"
    own.mkdir(parents=True)
    (own / "write.yaml").write_text(WRITE.replace("id: write", "id: write\nname: mine"))
    (own / "read.yaml").write_text(WRITE.replace("id: write", "id: read"))
    books = {book.id: book for book in library_of(settings).entries()}
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
    assert [(book.id, book.source) for book in library_of(read_settings(flags, {})).entries()] == [("read", "more")]


# --- what only the owner of the home may say --------------------------------------------------------


def said(tmp_path: Path, *, home: str = "", project: str = "") -> Settings:
    """Settings with what the two config files say."""
    for folder, text in ((tmp_path / "home", home), (tmp_path / ".handrail", project)):
        folder.mkdir(exist_ok=True)
        (folder / "config.toml").write_text(text)
    return read_settings({"home": str(tmp_path / "home"), "project": str(tmp_path)}, {})


def test_commands_of_checks_leave_the_sandbox_only_by_the_owners_word(tmp_path: Path) -> None:
    off = '[checks]\nsandbox = "off"\n'
    assert isinstance(sandbox_of(said(tmp_path, home=off)), Unconfined)
    with pytest.raises(Invalid, match=r"a project may not set \[checks\] sandbox"):
        said(tmp_path, project=off)
    wrong = ("[checks]\nsandbox = 3\n", '[checks]\nsandbox = "of"\n', '[checks]\nsandboxes = "off"\n')
    for text in wrong:
        with pytest.raises(Invalid, match=r"\[checks\]") as refused:
            said(tmp_path, home=text)
        assert "did you mean" in refused.value.hint or "known: required, off" in refused.value.hint


async def test_a_plan_may_read_the_environment_only_by_the_owners_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REGION", "north-west")
    allowed = '[secrets]\nenv = ["REGION"]\n'
    step = {"id": "a", "tool": "file.write", "args": {"path": "a.txt", "text": "${env:REGION}"}}
    plan = definition_from({"id": "p", "on_failure": "stop", "steps": [step]})
    for home, status in ((allowed, RunStatus.COMPLETED), ("", RunStatus.FAILED)):
        async with open_assembly(said(tmp_path, home=home)) as parts:
            run = await parts.worker.start(plan, {}, actor="person:ada")
            assert (await parts.worker.settled(run.id)).status is status
    with pytest.raises(Invalid, match=r"a project may not set \[secrets\]"):
        said(tmp_path, project=allowed)
    assert (tmp_path / "a.txt").read_text() == "north-west"


async def test_what_an_inlined_workflow_is_given_is_data_and_no_reference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REGION", "north-west")
    write = {"id": "a", "tool": "file.write", "args": {"path": "b.txt", "text": "{{ inputs.text }}"}}
    inner = {"id": "inner", "version": "1.0.0", "inputs": {"text": {"type": "string"}}, "steps": [write]}
    call = {"id": "k", "workflow": "inner@1.0.0", "with": {"text": "${env:REGION}"}}
    plan = definition_from({"id": "p", "steps": [call], "pinned": {"inner@1.0.0": inner}})
    async with open_assembly(said(tmp_path, home='[secrets]\nenv = ["REGION"]\n')) as parts:
        run = await parts.worker.start(plan, {}, actor="person:ada")
        assert (await parts.worker.settled(run.id)).status is RunStatus.COMPLETED
    assert (tmp_path / "b.txt").read_text() == "${env:REGION}"


def test_a_secrets_table_that_nobody_can_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="takes a list of names"):
        toolbox_of(said(tmp_path, home="[secrets]\nenv = 3\n"))


async def test_a_run_can_ask_for_an_address_only_through_the_guard(tmp_path: Path) -> None:
    async with open_assembly(said(tmp_path)) as parts:
        with pytest.raises(ToolFailed) as refused:
            await parts.toolbox.status("http://127.0.0.1:9/", 30.0)
        assert refused.value.category is Category.PERMISSION
        with pytest.raises(ToolFailed):
            await parts.toolbox.status("ftp://example.com/", 1.0)


async def test_projects_on_one_store_know_the_same_secrets(tmp_path: Path) -> None:
    """What a tool of one project was given must not be written by another one either."""
    folders = [tmp_path / name for name in ("shop", "site")]
    for folder in folders:
        folder.mkdir()
    shop, site = (read_settings({"home": str(tmp_path / "home"), "project": str(one)}, {}) for one in folders)
    async with open_assemblies(shop, actor="handrail") as projects:
        opened = [await projects.open(one) for one in (shop, site)]
        assert len({id(one.toolbox.secrets) for one in opened} | {id(opened[0].writer.record_writer.secrets)}) == 1
        assert len({one.writer.reader.project.id for one in opened}) == 2


def test_what_opens_an_address_of_the_home_is_a_secret_like_those_that_are_stored(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.toml").write_text(
        'store = "postgresql://ann:swordfish-1@127.0.0.1/x"\ntrace_endpoint = "http://ann:swordfish-2@127.0.0.1:4318"\n'
        '[witnesses]\ntargets = ["https://w.example/in?sig=swordfish-3"]\n'
    )
    known = known_secrets_of(read_settings({"home": str(home), "project": str(tmp_path)}, {}))
    said = known.scrubber().text("swordfish-1, swordfish-2 and swordfish-3 at w.example")
    assert "swordfish" not in said
    assert "w.example" in said
