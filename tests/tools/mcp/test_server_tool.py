"""A tool of a real server: called, asked about, failed and undone, as the engine does it."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import os
import signal
from pathlib import Path
from typing import Any

import msgspec
import pytest

from handrail.domain.definition.model import Category
from handrail.domain.run.tool_question import PersonReply, ToolQuestion
from handrail.engine.tool import ToolAsks, ToolFailed
from handrail.tools.mcp.declaration import ToolRule
from handrail.tools.mcp.servers import Servers
from handrail.tools.vault import Vault
from tools.calls import Fails
from tools.mcp.serving import UNDO, Pocket, called, found, good, made, serving


async def undone(servers: Servers, args: dict[str, Any], **more: Any) -> Any:
    """Undo a call of `create`, whose capture has been through the journal."""
    tool = found(servers, "good.create")
    capture = msgspec.json.decode(msgspec.json.encode(await tool.capture(made("create", args))))
    return await tool.undo(made("create", args, capture=capture, key="undo-key", **more))


async def test_answers_of_every_form_become_outputs_and_travel_on_to_later_calls(tmp_path: Path) -> None:
    async with serving(tmp_path) as servers:
        assert await called(servers, "say", {"words": ["a", "b"]}) == "a\nb"
        assert await called(servers, "add", {"a": 1, "b": 2}) == {"sum": 3, "of": [1, 2]}
        picture = await called(servers, "draw")
        assert (picture["media_type"], picture["form"]) == ("image/png", "blob")
        assert await called(servers, "draw", {"title": "x"}) == ["x", picture]
        note, blob, link = await called(servers, "resources")
        assert (note["text"], blob["sha256"], link["uri"]) == ("a note", picture["sha256"], "file:///far/away")
        measured = await called(servers, "measure", {"value": picture})
        content = next(file for file in (tmp_path / "kept").rglob("*") if file.is_file()).read_bytes()
        in64 = base64.b64encode(content)
        assert measured == {"length": len(in64), "sha256": hashlib.sha256(in64).hexdigest(), "is_text": True}
        large = await called(servers, "fill", {"length": 200_000})
        assert (large["form"], large["bytes"]) == ("text", 400_000)
        assert (await called(servers, "measure", {"value": large}))["length"] == 200_000
        typed = await called(servers, "fill", {"length": 200_000, "structured": True})
        assert (typed["form"], typed["bytes"] > 400_000) == ("json", True)
        assert (await called(servers, "measure", {"value": typed}))["length"] > 200_000
        # Of another run: data, as it stands.
        assert (await called(servers, "measure", {"value": large}, run="run_another"))["length"] < 2_000


async def test_arguments_are_judged_before_the_server_sees_them(tmp_path: Path) -> None:
    async with serving(tmp_path) as servers:
        tool = found(servers, "good.create")
        assert tool.misfits({}) == []  # nobody knows yet
        await tool.ready()
        assert tool.misfits({"name": "x"}) == []
        assert tool.misfits({}) == ["`name` is missing"]
        with Fails(Category.INVALID_INPUT, "good.create: `name` is missing"):
            await called(servers, "create")
        # What stands for something else is judged when it is filled in.
        long = await called(servers, "fill", {"length": 200_000})
        assert tool.misfits({"name": long}) == []
        with Fails(Category.INVALID_INPUT, "longer than 50 characters"):
            await called(servers, "create", {"name": long})
        assert tool.misfits({"name": "${secret:A}" + "x" * 50}) == []
        assert tool.misfits({"name": ["${env:A}"]}) == []
        assert tool.misfits({"name": ["x", ("y", 1)]})
        assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) in ([], ["eras.json"])


async def test_failures_keep_their_category_and_their_words(tmp_path: Path) -> None:
    async with serving(tmp_path) as servers:
        with Fails(Category.TOOL_ERROR, "it broke"):
            await called(servers, "fail", {"words": "it broke"})
        with Fails(Category.PERMISSION, "not yours"):
            await called(servers, "fail", {"words": "not yours", "says": {"name": "forbidden"}})
        with Fails(Category.NOT_FOUND, "did you mean `good.create`?"):
            await called(servers, "creat", {"name": "x"})
        with Fails(Category.TOOL_ERROR, "has no undo of its own"):
            await found(servers, "good.say").undo(made("say", {}))
        assert await found(servers, "good.say").capture(made("say", {})) is None


async def test_progress_is_passed_on_and_questions_wait_for_a_person(tmp_path: Path) -> None:
    told: list[str] = []
    async with serving(tmp_path) as servers:
        assert await called(servers, "climb", {"steps": 3}, progress=told.append) == "at the top"
        assert told[-1] == "3/3 step 3"
        with pytest.raises(ToolAsks) as asks:
            await called(servers, "ask", {"name": "me"})
        question: ToolQuestion = asks.value.question
        assert (question.text, question.schema["required"]) == ("Which color for me?", ["color"])
        yes = {question.digest: PersonReply(agreed=True, content={"color": "red"})}
        assert await called(servers, "ask", {"name": "me"}, answers=yes) == "accept\nred"
        no = {question.digest: PersonReply(agreed=False)}
        assert await called(servers, "ask", {"name": "me"}, answers=no) == "decline\n-"
        with pytest.raises(ToolAsks):  # another question than the one that was answered
            await called(servers, "ask", {"name": "you"}, answers=yes)


async def test_an_undo_by_the_undo_map_may_be_repeated_unless_the_map_says_no(tmp_path: Path) -> None:
    async with serving(tmp_path) as servers:
        assert found(servers, "good.create").spec.undo_idempotent, "whatever is known of the tool that undoes it"


async def test_a_call_is_undone_by_the_undo_map_under_a_key_of_its_own(tmp_path: Path) -> None:
    async with serving(tmp_path) as servers:
        output = await called(servers, "create", {"name": "a"}, key="key-of-the-step")
        assert (tmp_path / "a").read_text() == "key-of-the-step"
        with Fails(Category.INVALID_INPUT, "which is not known"):
            await undone(servers, {"name": "a"})
        assert await undone(servers, {"name": "a"}, output=output) == "removed"
        assert not (tmp_path / "a").exists()
        assert (tmp_path / "removed.txt").read_text() == "{'name': 'a'} undo-key"
        with Fails(Category.INVALID_INPUT, "good.remove: `name`"):
            await undone(servers, {"name": "a"}, output={"made": 1})
        # An output that was kept apart is looked into.
        typed = await called(servers, "fill", {"length": 200_000, "structured": True})
        capture = {"undo": {"tool": "good.remove", "args": {"name": "{{ output.name }}"}, "idempotent": True}}
        await found(servers, "good.create").undo(made("create", {}, capture=capture, output=typed))
        assert "'filled'" in (tmp_path / "removed.txt").read_text()
        gone = {"undo": {"tool": "good.vanished", "args": {}, "idempotent": True}}
        with Fails(Category.NOT_FOUND, "no tool `vanished`"):
            await found(servers, "good.create").undo(made("create", {}, capture=gone))


async def test_lists_keep_tools_out_of_sight_and_out_of_reach(tmp_path: Path) -> None:
    declared = good(tmp_path, allow=("s*", "create"), deny=("*sa*",))
    async with serving(tmp_path, declared) as servers:
        assert await servers.connect(["good"]) == {}
        assert [spec.name for spec in servers.specs()] == ["good.create"]
        with Fails(Category.PERMISSION, "good.say may not be called: the person who declared"):
            await called(servers, "say", {"words": []})
        with Fails(Category.PERMISSION, "good.remove may not be called"):
            await found(servers, "good.remove").ready()
        # Its owner has named it as the undo of `create`: for that it may be called, and for nothing else.
        output = await called(servers, "create", {"name": "a"})
        assert await undone(servers, {"name": "a"}, output=output) == "removed"
        old = {"undo": {"tool": "good.fail", "args": {}, "idempotent": False}}
        with Fails(Category.PERMISSION, "good.fail may not be called"):
            await found(servers, "good.create").undo(made("create", {}, capture=old))


async def test_secrets_reach_the_server_and_no_other(tmp_path: Path) -> None:
    vault = Vault(Pocket(GIT="s3cret-of-git", PLAN="s3cret-of-plan"), {})
    declared = good(tmp_path, env={"TOKEN": "${secret:GIT}"}, tools={"create": ToolRule(undo=UNDO)})
    (tmp_path / "words.txt").write_text("It was started with s3cret-of-git.")
    told: list[str] = []
    async with serving(tmp_path, declared, vault=vault) as servers:
        assert await called(servers, "environment", {"name": "TOKEN"}) == "it is [redacted]"
        card = found(servers, "good.say").card
        assert card is not None
        assert (card["description"], card["name"]) == ("It was started with [redacted].", "say")
        args = {"words": ["${secret:PLAN}", "${secret:PLAN}"]}
        # Only where an author wrote it: elsewhere the same words are data.
        assert await called(servers, "say", args, references=(("words", 0),)) == "[redacted]\n${secret:PLAN}"
        secret = {"name": "${secret:PLAN}"}
        with pytest.raises(ToolAsks, match=r"Which color for \[redacted\]\?") as asks:
            await called(servers, "ask", secret, references=(("name",),))
        yes = {asks.value.question.digest: PersonReply(agreed=True, content={"color": "red"})}
        assert await called(servers, "ask", secret, references=(("name",),), answers=yes) == "accept\nred"
        with Fails(Category.TOOL_ERROR, "[redacted] is wrong"):
            await called(servers, "fail", {"words": "s3cret-of-git is wrong"})
        await called(servers, "climb", {"steps": 1, "word": "s3cret-of-git"}, progress=told.append)
        assert told == ["1/1 [redacted] 1"]
        with Fails(Category.NOT_FOUND, "there is no secret `NONE`"):
            await called(servers, "say", {"words": "${secret:NONE}"}, references=(("words",),))


async def test_a_server_that_can_not_be_reached_says_why_without_its_secrets(tmp_path: Path) -> None:
    vault = Vault(Pocket(GIT="s3cret-of-git"), {})
    program = "import os, sys; sys.exit(os.environ['TOKEN'])"
    declared = good(tmp_path, env={"TOKEN": "${secret:GIT}"}, args=("-I", "-S", "-c", program))
    async with serving(tmp_path, declared, vault=vault) as servers:
        with pytest.raises(ToolFailed) as failed:
            await found(servers, "good.say").ready()
        assert "s3cret" not in failed.value.message
        with pytest.raises(ToolFailed) as undoing:
            await undone(servers, {"name": "a"}, output={"made": "a"})
        assert (undoing.value.category, "s3cret" in undoing.value.message) == (Category.TRANSIENT, False)
        assert "s3cret" not in str(servers.status())
    async with serving(tmp_path, good(tmp_path, command="no-${secret:GIT}"), vault=vault) as servers:
        (reason,) = (await servers.connect(["good"])).values()
        assert "no-[redacted]" in reason
        assert "no-[redacted]" in servers.status()["good"].error


async def test_a_server_that_was_restarted_lists_its_tools_again(tmp_path: Path) -> None:
    async with serving(tmp_path) as servers:
        tool = found(servers, "good.say")
        assert tool.card is None
        await tool.ready()
        before, spec = tool.card, tool.spec
        hints = {"read_only": True, "idempotent": False, "destructive": True}
        assert before == {"name": "say", "description": "Does say.", "args": spec.args, "annotations": hints}
        await tool.ready()
        assert tool.spec is spec
        (tmp_path / "words.txt").write_text("Does something else.")
        os.kill(servers.status()["good"].pid, signal.SIGKILL)
        async with asyncio.timeout(20):
            while tool.card == before:
                await asyncio.sleep(0.05)
                try:
                    await tool.ready()
                except ToolFailed as resting:
                    assert resting.category is Category.TRANSIENT  # noqa: PT017 - it may come or not
        assert (tool.spec.description, tool.server({})) == ("Does something else.", "good")
