"""All declared servers together: met at once, each for itself, and what is known of their tools."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from handrail.domain.definition.model import Category, Effect, Retry
from handrail.engine.tool import CallLimits, ToolSpec
from handrail.tools.configuration import RetryChoice, tool_configuration
from handrail.tools.mcp import servers as module
from handrail.tools.mcp.connection import ServerConnection
from handrail.tools.mcp.declaration import Declared, ToolRule, UndoRule
from handrail.tools.mcp.servers import Servers
from tools.calls import Fails
from tools.mcp.serving import called, found, good, serving


def broken(name: str, program: str) -> Declared:
    return Declared(name=name, origin="tools.json", command=sys.executable, args=("-I", "-S", "-c", program))


def specs(servers: Servers) -> dict[str, ToolSpec]:
    return {spec.name.removeprefix("good."): spec for spec in servers.specs()}


async def test_servers_are_met_at_once_and_one_that_fails_hurts_no_other(tmp_path: Path) -> None:
    dead = broken("dead", "import sys; sys.exit('no license')")
    async with serving(tmp_path, good(tmp_path), dead) as servers:
        assert list(servers.names()) == ["dead", "good"]
        assert (servers.specs(), servers.find("git.log"), servers.find("good")) == ([], None, None)
        reasons = await servers.connect(["good", "dead", "goood"])
        assert sorted(reasons) == ["dead", "goood"]
        assert "did you mean `good`?" in reasons["goood"]
        assert "no license" in reasons["dead"]
        assert await called(servers, "say", {"words": ["still here"]}) == "still here"
        status = servers.status()
        assert (status["good"].status, status["good"].tools) == ("running", 12)
        assert "no license" in status["dead"].error
        with Fails(Category.TRANSIENT):
            await found(servers, "dead.any").ready()
    assert servers.status()["good"].status == "stopped"


async def test_effects_and_repeats_come_from_annotations_unless_a_person_says_otherwise(tmp_path: Path) -> None:
    async with serving(tmp_path) as servers:
        before = found(servers, "good.say").spec
        assert (before.effect, before.idempotent, before.description) == (Effect.IRREVERSIBLE, False, "")
        await servers.connect(["good"])
        told = specs(servers)
        assert (told["say"].effect, told["say"].idempotent) == (Effect.NONE, True)
        assert (told["create"].effect, told["create"].idempotent) == (Effect.COMPENSATABLE, False)
        assert (told["remove"].effect, told["remove"].idempotent) == (Effect.IRREVERSIBLE, True)
        assert (told["add"].effect, told["add"].idempotent) == (Effect.IRREVERSIBLE, False)
        # The undo may be repeated because the tool that does it says so.
        assert (told["create"].undo, told["create"].undo_idempotent) == ("good.remove", True)
        assert (told["say"].undo, told["say"].server, told["say"].shared) == ("", "good", None)
        assert found(servers, "good.say").effect({}) is Effect.NONE
    rules = {
        "say": ToolRule(effect=Effect.REVERSIBLE, idempotent=False),
        "add": ToolRule(undo=UndoRule(tool="say", idempotent=False)),
        "draw": ToolRule(undo=UndoRule(tool="nothing")),
    }
    all_ = ToolRule(effect=Effect.COMPENSATABLE, idempotent=True)
    async with serving(tmp_path, good(tmp_path, rule=all_, tools=rules)) as servers:
        await servers.connect(["good"])
        told = specs(servers)
        assert (told["say"].effect, told["say"].idempotent) == (Effect.REVERSIBLE, False)
        assert (told["add"].effect, told["add"].idempotent) == (Effect.COMPENSATABLE, True)
        assert (told["add"].undo, told["add"].undo_idempotent) == ("good.say", False)
        assert (told["remove"].effect, told["remove"].idempotent) == (Effect.COMPENSATABLE, True)


async def test_limits_come_from_the_tool_then_its_server_and_config_stands_over_both(tmp_path: Path) -> None:
    retry = RetryChoice(attempts=2, first="1s")
    rule = ToolRule(timeout="30s", concurrency=4, rate="10/s", retry=retry)
    tools = {"say": ToolRule(timeout="5s", concurrency=1, rate="1/s", retry=RetryChoice(attempts=7))}
    declared = good(tmp_path, rule=rule, tools=tools)
    async with serving(tmp_path, declared) as servers:
        say, add = found(servers, "good.say").spec, found(servers, "good.add").spec
        assert (say.timeout, say.concurrency, say.rate) == ("5s", 1, "1/s")
        assert say.retry == Retry(attempts=7, first="1s")
        assert (add.timeout, add.concurrency, add.rate) == ("30s", None, None)
        assert add.retry == Retry(attempts=2, first="1s")
        assert say.shared == add.shared == CallLimits(name="good", concurrency=4, rate="10/s")
    tables = {
        "tools": {"good.say": {"timeout": "7s", "rate": "2/s"}},
        "servers": {"good": {"concurrency": 2, "timeout": "99s", "retry": {"factor": 3}}},
    }
    async with serving(tmp_path, declared, configuration=tool_configuration(tables)) as servers:
        say, add = found(servers, "good.say").spec, found(servers, "good.add").spec
        assert (say.timeout, say.concurrency, say.rate, add.timeout) == ("7s", 1, "2/s", "30s")
        assert say.shared == add.shared == CallLimits(name="good", concurrency=2, rate="10/s")
        assert add.retry == Retry(attempts=2, first="1s", factor=3)
    async with serving(tmp_path, good(tmp_path), configuration=tool_configuration(tables)) as servers:
        add = found(servers, "good.add").spec
        assert (add.concurrency, add.shared) == (None, CallLimits(name="good", concurrency=2))
    only_timeout = tool_configuration({"servers": {"good": {"timeout": "3s"}}})
    async with serving(tmp_path, good(tmp_path), configuration=only_timeout) as servers:
        add = found(servers, "good.add").spec
        assert (add.timeout, add.shared) == ("3s", None)


async def test_a_server_that_never_tells_its_tools_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def for_ever(_: ServerConnection) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(ServerConnection, "listing", for_ever)
    monkeypatch.setattr(module, "CONNECT_GRACE_S", 0.05)
    async with serving(tmp_path, good(tmp_path, start_timeout="0s")) as servers:
        reasons = await servers.connect(["good"])
        assert reasons["good"].startswith("it did not list its tools within 0.05 s; its log is ")


async def test_all_servers_are_closed_although_one_can_not_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[ServerConnection] = []

    async def close(connection: ServerConnection) -> None:
        if connection.status.log.endswith("a.log"):
            raise OSError("it does not let go")
        for _ in range(5):  # the others take a while
            await asyncio.sleep(0)
        closed.append(connection)

    monkeypatch.setattr(ServerConnection, "close", close)
    with pytest.raises(OSError, match="let go"):
        async with serving(tmp_path, broken("a", ""), broken("b", ""), broken("c", "")):
            pass
    assert len(closed) == 2
