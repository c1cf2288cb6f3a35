"""handrail as a library: a few names that a script author would guess, and an import that costs nothing."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import handrail

GUIDE = Path(__file__).parents[1] / "docs" / "guides" / "python.md"
SET = {"id": "set", "tool": "value.set", "args": {"value": 1}}
ASKING = {"id": "ask", "steps": [{"id": "look", "approve": "Go on?"}, SET]}


def definition(data: object) -> handrail.Definition:
    loaded = handrail.load_data(data)  # type: ignore[arg-type]
    assert loaded.definition is not None
    return loaded.definition


def test_every_public_name_is_there_and_listed() -> None:
    assert dir(handrail) == sorted(handrail.__all__)
    for name in handrail.__all__:
        assert callable(getattr(handrail, name))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        handrail.nothing  # type: ignore[attr-defined]  # noqa: B018


def test_the_guide_names_every_public_name() -> None:
    text = GUIDE.read_text(encoding="utf-8")
    assert not [name for name in handrail.__all__ if not re.search(rf"`{name}[(`]|`{name},|, `{name}`", text)]


def test_importing_the_package_imports_nothing_else() -> None:
    code = "import sys, handrail; print(*[name for name in sys.modules if name.startswith('handrail.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


EXAMPLES = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
PRINTED = (
    "waiting ['approval: look']\nPublish the notes? ['publish']\ncompleted True\n",
    "reserved lamp\nreleased lamp\ncompensated\nrun_compensated\n",
    "True completed\n",
)


@pytest.mark.parametrize(
    ("code", "printed"), list(zip(EXAMPLES, PRINTED, strict=True)), ids=["start", "undo", "submit"]
)
def test_the_examples_of_the_guide_run_as_they_stand(tmp_path: Path, code: str, printed: str) -> None:
    environment = {**os.environ, "HANDRAIL_HOME": str(tmp_path / "home")}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, printed), done.stderr


async def test_what_a_connection_starts_an_open_program_executes(tmp_path: Path) -> None:
    plan = definition({"id": "one", "steps": [SET]})
    async with handrail.connect(home=tmp_path / "home", project=tmp_path, actor="person:ada") as client:
        run = await client.runs.start(plan, key="k1")
        assert (await client.runs.start(plan, key="k1")).id == run.id
        assert (await run.status()).status == "running"
        with pytest.raises(TimeoutError):
            await run.finished(timeout_s=0.2)
        with pytest.raises(handrail.Invalid, match="runs no checks"):
            await run.submit("set")
    async with handrail.open(home=tmp_path / "home", project=tmp_path) as program:
        assert (await program.runs.get(run.id).finished(timeout_s=30)).status == "completed"
        assert (await program.verify(replay=True)).ok
        assert [one.run for one in await program.runs.list()] == [run.id]
        events = await run_events(program, run.id)
    assert events[0]["actor"] == "person:ada"


async def run_events(program: handrail.Program, run_id: str) -> list[dict[str, object]]:
    return await program.runs.get(run_id).events()


async def test_a_run_is_controlled_by_its_handle(tmp_path: Path) -> None:
    async with handrail.open(home=tmp_path / "home", project=tmp_path) as program:
        run = await program.runs.start(definition(ASKING), goal="try")
        assert (await run.finished()).status == "waiting"
        assert (await run.pause(reason="lunch")).status == "paused"
        assert (await run.resume(reason="back")).status == "waiting"
        with pytest.raises(handrail.Conflict):
            await run.retry("set", reason="nothing failed")
        await run.reject("look", reason="not yet")
        assert (await run.finished()).failure is not None
        other = await run.fork("look", reason="ask again")
        assert other.id != run.id
        assert (await run.cancel(reason="done with it")).status == "cancelled"
        await other.finished()
        await other.approve(reason="yes")
        assert (await other.finished(timeout_s=30)).status == "completed"


async def test_what_can_not_run_is_refused_with_all_that_is_wrong(tmp_path: Path) -> None:
    async with handrail.open(home=tmp_path / "home", project=tmp_path) as program:
        with pytest.raises(handrail.NotFound):
            await program.runs.start("no-such-workflow")
        with pytest.raises(handrail.Invalid) as refused:
            await program.runs.start(definition({"id": "x", "steps": [{"id": "a", "tool": "value.sett"}]}))
        assert refused.value.findings or refused.value.hint
        needs = definition({"id": "y", "inputs": {"n": {"type": "integer"}}, "steps": [{"id": "a", "prompt": "go"}]})
        with pytest.raises(handrail.Invalid, match="can't start with these inputs"):
            await program.runs.start(needs, {"n": "three"})
        assert await program.runs.list() == []
        file = tmp_path / "one.yaml"
        file.write_text("{id: one, steps: [{id: a, tool: value.set, args: {value: 2}}]}", encoding="utf-8")
        assert (await (await program.runs.start(str(file))).finished()).status == "completed"


@pytest.mark.parametrize("wrong", [{"goal": 3}, {"priority": 1.5}, {"priority": "x"}, {"priority": True}, {"key": 7}])
async def test_a_wrong_type_never_reaches_the_journal(tmp_path: Path, wrong: dict[str, object]) -> None:
    async with handrail.open(home=tmp_path / "home", project=tmp_path) as program:
        with pytest.raises(handrail.Invalid, match="must be of type"):
            await program.runs.start(definition(ASKING), **wrong)  # type: ignore[arg-type]
        for nothing in (None, {"id": "x"}):
            with pytest.raises(handrail.Invalid, match="is not a definition"):
                await program.runs.start(nothing)  # type: ignore[arg-type]
        assert await program.runs.list() == []
    with pytest.raises(handrail.Invalid, match="actor"):
        async with handrail.open(home=tmp_path / "home", project=tmp_path, actor=5):  # type: ignore[arg-type]
            pass


WORK = {"id": "work", "steps": [{"id": "write", "prompt": "Write."}, {"id": "look", "approve": "Go on?"}]}


async def test_a_wrong_type_in_a_call_about_a_run_is_refused_before_the_journal(tmp_path: Path) -> None:
    async with handrail.open(home=tmp_path / "home", project=tmp_path) as program:
        run = await program.runs.start(definition(WORK))
        await run.finished()
        before = await run.events()
        calls = (
            lambda: run.submit(3, "x"),  # type: ignore[arg-type]
            lambda: run.submit("write", "x", note=["n"]),  # type: ignore[arg-type]
            lambda: run.submit("write", "x", outcome=None),  # type: ignore[arg-type]
            lambda: run.submit("write", "x", confirmed=True),  # type: ignore[arg-type]
            lambda: run.pause(reason=5),  # type: ignore[arg-type]
            lambda: run.skip(("write",), reason="no"),  # type: ignore[arg-type]
            lambda: run.fork("write", reason=b"again"),  # type: ignore[arg-type]
            lambda: run.fork(None, reason="again"),  # type: ignore[arg-type]
        )
        for call in calls:
            with pytest.raises(handrail.Invalid, match="must be of type"):
                await call()
        with pytest.raises(handrail.Invalid, match="not an outcome"):
            await run.submit("write", "x", outcome="finished")
        assert await run.events() == before


async def test_a_program_is_bound_to_its_project_and_can_list_those_of_others(tmp_path: Path) -> None:
    home, shop, site = tmp_path / "home", tmp_path / "shop", tmp_path / "site"
    shop.mkdir()
    site.mkdir()
    async with handrail.open(home=home, project=shop) as own, handrail.open(home=home, project=site) as other:
        run = await own.runs.start(
            handrail.load_data({"id": "ask", "steps": [{"id": "go", "approve": "Go on?"}]}).definition or ""
        )
        await run.finished(timeout_s=30)
        foreign = other.runs.get(run.id)
        with pytest.raises(handrail.Conflict, match="belongs to another project: shop"):
            await foreign.approve("go", reason="not mine")
        seen = await foreign.status()
        assert seen.project is not None
        assert (seen.project.name, (await run.status()).project) == ("shop", None)
        assert await other.runs.list() == []
        (listed,) = await other.runs.list(all_projects=True)
        assert listed.project is not None
        assert (listed.run, listed.project.folder) == (run.id, str(shop.resolve()))
        assert (await run.approve("go", reason="mine")).status.value in {"running", "completed"}
