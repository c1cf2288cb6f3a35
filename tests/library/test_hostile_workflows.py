"""Workflow files that are made to hurt, in a library: each is refused with words that say why, and the rest is served.

Through the library, and through the tools that agents call. What the readers themselves refuse is tested in
test_hostile_documents.py."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from handrail.assembly.tools import library_of
from handrail.domain.errors import Invalid, NotFound
from handrail.library.loading import valid
from handrail.library.shelf.workflow_library import WorkflowLibrary
from interfaces.mcp.surface.agent import Place

CPU_S_MAX = 20.0  # all of them together need a fiftieth of it
TAIL = "\nid: bad\nsteps: [{id: a, prompt: x}]\n"
GOOD = "id: good\ninputs: {xs: {type: array, default: []}}\nsteps: [{id: a, prompt: 'Do it.'}]\n"
BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{name}: &{name} [{','.join([f'*{before}'] * 9)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=False)
)
LOOPS = [f"{{% for x{number} in inputs.xs %}}" for number in range(6)]

UNREADABLE: dict[str, tuple[str | bytes, str]] = {
    "aliases that grow": (BOMB + TAIL, "more than 200,000 values"),
    "aliases in keys that are merged": (f"x: &x {{a: 1}}\ny: {{<<: *x}}{TAIL}", "merge keys"),
    "a tag that runs Python": (f"description: !!python/object/apply:os.system ['exit 1']{TAIL}", "is not read"),
    "a tag that makes a Python object": (f"description: !!python/name:os.system{TAIL}", "is not read"),
    "ten megabytes": (f"description: {'x' * 10_000_000}{TAIL}", "larger than 1,000,000 bytes"),
    "a thousand levels": (f"x: {'[' * 1_000}{']' * 1_000}{TAIL}", "levels deep"),
    "a key that comes twice": (f"id: other{TAIL}", "is given twice"),
    "letters of another encoding": (b"name: caf\xe9" + TAIL.encode(), "not UTF-8"),
    "sixteen bits a letter": (f"name: x{TAIL}".encode("utf-16"), "UTF-16"),
    "a zero byte": (f"name: 'a\0b'{TAIL}", "U+0000"),
    "two documents": (f"---\na: 1\n---{TAIL}", "a second document"),
    "an anchor in itself": (f"x: &x [*x]{TAIL}", ""),
}
UNSOUND = {
    "an id that leaves the folder": ("id: ../../bad\nsteps: [{id: a, prompt: x}]\n", "is not an id"),
    "an id that is a path": ("id: /etc/bad\nsteps: [{id: a, prompt: x}]\n", "is not an id"),
    "a template over no list": ("id: bad\nsteps: [{id: a, prompt: '{% for x in run.id %}x{% endfor %}'}]\n", "a list"),
    "a template that never ends": ("id: bad\nsteps: [{id: a, prompt: '{% for x in [1] %}'}]\n", ""),
    "a template of templates": (f"id: bad\nsteps: [{{id: a, prompt: '{'{% if true %}' * 1_200}'}}]\n", ""),
    "a condition of brackets": (f"id: bad\nsteps: [{{id: a, prompt: x, when: '{'(' * 900}1{')' * 900}'}}]\n", ""),
    "a way into Python": ("id: bad\nsteps: [{id: a, prompt: x, when: inputs.__class__}]\n", "leading _"),
    "a workflow in itself": ("id: bad\nsteps: [{id: a, workflow: bad}]\n", "call each other"),
    "a heir of itself": ("id: bad\nextends: bad\nsteps: []\n", "extend each other"),
    "a loop without a bound": (
        "id: bad\nsteps: [{id: a, repeat: {times: 1000000000}, steps: [{id: b, prompt: x}]}]\n",
        "",
    ),
}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place(tmp_path)
    folder(place).mkdir(parents=True)
    (folder(place) / "good.yaml").write_text(GOOD)
    return place


def folder(place: Place) -> Path:
    return place.project / ".handrail" / "workflows"


def put(place: Place, content: str | bytes, name: str = "bad.yaml") -> Path:
    file = folder(place) / name
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return file


def case_of(place: Place) -> WorkflowLibrary:
    return library_of(place.settings())


def said_of(case: WorkflowLibrary, file: str) -> str:
    """Why a file can't be read."""
    return next((broken.message for broken in case.broken() if Path(broken.file).name == file), "")


async def hold_tools(place: Place, bad: str, message: str) -> None:
    """What agents see: the good one is listed and can be started, the bad one is refused, with the reason."""
    async with place.agent() as agent:
        listed = await agent.call("workflow_list")
        assert "good" in [entry["id"] for entry in listed["workflows"]]
        for tool, arguments in (("workflow_get", {"id": bad}), ("workflow_next", {"workflow": bad})):
            result = await agent.answer(tool, arguments)
            assert result.is_error
            data: dict[str, Any] = result.structured_content or {}
            assert data["name"] in {"invalid", "not_found"}
            assert message in f"{data['message']} {data.get('findings', '')}", data
        assert (await agent.call("workflow_get", id="good"))["id"] == "good"
        assert (await agent.call("workflow_next", workflow="good"))["step"]["prompt"] == "Do it."


@pytest.mark.parametrize("name", UNREADABLE)
async def test_a_file_that_can_not_be_read_is_refused_with_the_reason(place: Place, name: str) -> None:
    content, message = UNREADABLE[name]
    put(place, content)
    started = time.process_time()
    case = case_of(place)
    assert [entry.id for entry in case.entries()] == ["good"]
    assert message in said_of(case, "bad.yaml")
    assert said_of(case, "bad.yaml")
    with pytest.raises(NotFound) as refused:
        case.load("bad")
    assert message in str(refused.value)
    assert case.load("good").is_valid
    assert time.process_time() - started < CPU_S_MAX
    await hold_tools(place, "bad", message)


@pytest.mark.parametrize("name", UNSOUND)
async def test_a_workflow_that_is_not_valid_is_refused_with_the_reason(place: Place, name: str) -> None:
    text, message = UNSOUND[name]
    put(place, text)
    identity = text.splitlines()[0].removeprefix("id: ")
    case = case_of(place)
    loaded = case.load(identity)
    assert not loaded.is_valid
    with pytest.raises(Invalid):
        valid(loaded, identity)
    assert any(message in finding.message for finding in loaded.findings)
    assert case.load("good").is_valid
    await hold_tools(place, identity, message)


async def test_a_template_that_grows_with_its_inputs_is_stopped_and_the_server_goes_on(place: Place) -> None:
    prompt = "".join(LOOPS) + "much " + "{% endfor %}" * len(LOOPS)
    put(place, f"id: bad\ninputs: {{xs: {{type: array}}}}\nsteps: [{{id: a, prompt: '{prompt}'}}]\n")
    started = time.process_time()
    async with place.agent() as agent:
        result = await agent.answer("workflow_next", {"workflow": "bad", "inputs": {"xs": list(range(100))}})
        said = str(result.structured_content)
        assert "much much" not in said
        assert "can't be filled in" in said or result.is_error, said
        assert (await agent.call("workflow_next", workflow="good"))["step"]["id"] == "a"
    assert time.process_time() - started < CPU_S_MAX


async def test_a_pattern_that_backtracks_without_end_holds_nobody_up(place: Place) -> None:
    check = "{rule: matches, pattern: '^(a+)+$', severity: critical}"
    put(place, f"id: bad\nsteps: [{{id: a, prompt: x, checks: [{check}]}}]\n")
    started = time.process_time()
    async with place.agent() as agent:
        result = await agent.answer("workflow_next", {"workflow": "bad"})
        if not result.is_error:
            run = (result.structured_content or {})["run"]
            reply = await agent.call("workflow_next", run=run, step="a", output="a" * 5_000 + "!")
            assert reply["accepted"] is False
    assert time.process_time() - started < CPU_S_MAX


def test_workflows_that_double_at_every_level_are_loaded_or_refused_soon(place: Place) -> None:
    for level in range(30):
        both = f"[{{id: a, workflow: l{level + 1}}}, {{id: b, workflow: l{level + 1}}}]"
        put(place, f"id: l{level}\nsteps: {both}\n", f"l{level}.yaml")
    put(place, "id: l30\nsteps: [{id: a, prompt: x}]\n", "l30.yaml")
    started = time.process_time()
    loaded = case_of(place).load("l0")
    assert loaded.findings or loaded.definition is not None
    assert time.process_time() - started < CPU_S_MAX


# --- what stands in the folder, and is no file of it --------------------------------------------------------


async def test_a_link_out_of_the_project_is_not_read_and_says_nothing_of_what_it_leads_to(place: Place) -> None:
    outside = place.folder / "secret.yaml"
    outside.write_text(f"password: hunter2{TAIL}")
    (folder(place) / "bad.yaml").symlink_to(outside)
    put(place, "id: thief\nsteps: [{id: a, workflow: bad}]\n", "thief.yaml")
    case = case_of(place)
    assert [entry.id for entry in case.entries()] == ["good", "thief"]
    assert "link out of the project" in said_of(case, "bad.yaml")
    assert not case.load("thief").is_valid
    assert "password" not in str(case.load("thief").findings)
    await hold_tools(place, "bad", "link out of the project")


def test_a_link_inside_the_project_and_links_in_the_users_own_folder_are_read(place: Place) -> None:
    shared = place.project / "shared.yaml"
    shared.write_text("id: shared\nsteps: [{id: a, prompt: x}]\n")
    (folder(place) / "shared.yaml").symlink_to(shared)
    dotfiles, own = place.folder / "dotfiles.yaml", place.home / "workflows"
    dotfiles.write_text("id: mine\nsteps: [{id: a, prompt: x}]\n")
    own.mkdir(parents=True)
    (own / "mine.yaml").symlink_to(dotfiles)
    case = case_of(place)
    assert [entry.id for entry in case.entries()] == ["good", "mine", "shared"]
    assert case.load("shared").is_valid
    assert case.load("mine").is_valid


def _circle(file: Path) -> None:
    file.symlink_to(file.name)


def _nowhere(file: Path) -> None:
    file.symlink_to("nowhere.yaml")


def _pipe(file: Path) -> None:
    os.mkfifo(file)


def _device(file: Path) -> None:
    file.symlink_to("/dev/zero")


@pytest.mark.skipif(os.name == "nt", reason="pipes and links of POSIX")
@pytest.mark.parametrize("make", [_circle, _nowhere, _pipe, _device, Path.mkdir])
def test_what_is_no_file_hides_no_file_and_holds_nobody_up(place: Place, make: Callable[[Path], None]) -> None:
    make(folder(place) / "bad.yaml")
    case = case_of(place)
    assert [entry.id for entry in case.entries()] == ["good"]
    assert case.load("good").is_valid
    with pytest.raises(NotFound):
        case.load("bad")


@pytest.mark.parametrize(
    "asked", ["../good", "../../etc/passwd", "good.yaml", "/etc/passwd", "..", "good/../good", "a\0b"]
)
async def test_an_id_is_never_taken_for_a_path(place: Place, asked: str) -> None:
    (place.project / "good.yaml").write_text(GOOD.replace("good", "outer"))
    with pytest.raises(NotFound):
        case_of(place).load(asked)
    async with place.agent() as agent:
        await agent.refused("workflow_get", "not_found", id=asked)
        await agent.refused("workflow_next", "not_found", workflow=asked)


def test_a_folder_that_is_stuffed_with_files_hides_no_other_folder(place: Place) -> None:
    for number in range(2_100):
        (folder(place) / f"a{number}.yaml").write_text("x: y\n")
    own = place.home / "workflows"
    own.mkdir(parents=True)
    (own / "mine.yaml").write_text("id: mine\nsteps: [{id: a, prompt: x}]\n")
    assert "mine" in [entry.id for entry in case_of(place).entries()]
