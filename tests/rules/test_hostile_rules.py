"""Rules that mean harm, in the real sandbox: none hurts the store, the project, the machine or handrail, and none
passes."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from handrail.domain.checks import finding as check
from handrail.domain.checks.rule import CheckOutcome
from handrail.engine.checking.rule import RuleUnavailable
from handrail.engine.sandbox import Sandbox
from handrail.rules.plugins import plugin_host as host
from handrail.rules.plugins.plugin_rule import PluginSandbox, RuleBroken, described
from rules.guests import cell, door, guest, setting

if not sys.platform.startswith("linux"):
    pytest.skip("hostile rules were not tried: the sandbox needs Linux", allow_module_level=True)


class World:
    """A project, a store beside it and one inside it, and a door to knock at."""

    def __init__(self, folder: Path, listener: socket.socket) -> None:
        self.project = folder / "project"
        self.stores = (folder / "home", self.project / "state")
        self.listener = listener
        for store in self.stores:
            (store / "keys").mkdir(parents=True)
            (store / "journal.db").write_text("the journal")
            (store / "keys" / "key").write_text("the secret key")
        (self.project / "a.txt").write_text("the project")
        self.sandbox: Sandbox = cell(self.project, private=self.stores)
        self.house = PluginSandbox(self.sandbox)

    async def apply(self, name: str, target: str = "", **card: Any) -> CheckOutcome:
        assert await self.sandbox.trial() == ""
        parameters = {"target": target} if target else {}
        where = setting(self.project, self.sandbox, private=self.stores)
        return await guest(name, self.house, **card).apply(parameters, where)

    def kept(self) -> dict[str, str]:
        places = [self.project, *self.stores]
        files = {file for place in places for file in place.rglob("*") if file.is_file()}
        return {str(file): file.read_text() for file in files}

    def is_reached(self) -> bool:
        try:
            self.listener.accept()[0].close()
        except BlockingIOError:
            return False
        return True


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        yield World(tmp_path, listener)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("crashes", r"RuntimeError: no luck \[2J"),
        ("dies", r"ended without an answer \(exit 139\)"),
        ("exits", "SystemExit: 0"),
        ("exits_hard", r"ended without an answer \(exit 0\)"),
        ("forks", "it started more than 32 processes|it took longer"),
        ("eats", "more than 512 MiB|MemoryError|ended without an answer"),
        ("prints", "it wrote more than 1,000,000 bytes; its last output: "),
        ("floods", "it wrote more than 1,000,000 bytes"),
        ("sleeps", "it took longer than 500ms"),
        ("returns_a_number", "TypeError: returns_a_number returned int; yield findings"),
        ("returns_nothing", "returned NoneType"),
        ("finds_words", "TypeError: finds_words found str; make each with"),
        ("patches", "its answer is not valid"),
        ("no_such_rule", "AttributeError"),
    ],
)
async def test_a_rule_that_breaks_is_reported_and_harms_nothing(world: World, name: str, words: str) -> None:
    before, blocks, findings_of = world.kept(), check.blocks, host.findings_of
    timeout = {"sleeps": "500ms"}.get(name, "10s")
    with pytest.raises(RuleBroken, match=words):
        await world.apply(name, timeout=timeout)
    assert world.kept() == before
    assert (check.blocks, host.findings_of) == (blocks, findings_of)


async def test_a_rule_that_writes_to_the_store_or_the_project_writes_nothing(world: World) -> None:
    before = world.kept()
    for target in (*world.stores, world.project):
        outcome = await world.apply("writes", str(target))
        assert len(outcome.findings) == 3, outcome
    assert world.kept() == before


async def test_a_rule_does_not_see_what_is_private(world: World) -> None:
    for store in world.stores:
        assert (await world.apply("peeks", str(store))).findings == ()
    seen = (await world.apply("peeks", str(world.project))).findings
    assert [found.message for found in seen] == ["the project"]


async def test_a_rule_has_no_network(world: World) -> None:
    outcome = await world.apply("calls_home", str(world.listener.getsockname()[1]))
    assert outcome.findings[0].message.startswith("could not connect")
    assert not world.is_reached()
    socket.create_connection(world.listener.getsockname()).close()
    assert world.is_reached(), "the same from out here gets through"


async def test_a_rule_that_kills_its_parents_kills_nothing_outside(world: World) -> None:
    with suppress(RuleBroken):  # it may have ended itself
        await world.apply("kills", str(os.getpid()))
    assert (await world.apply("finds_for_ever")).findings, "and the next rule runs as ever"


async def test_a_rule_that_never_ends_finding_is_cut_short(world: World) -> None:
    outcome = await world.apply("finds_for_ever")
    assert len(outcome.findings) == 51
    assert outcome.findings[-1].message == "there are more findings, which are not listed"
    assert outcome.evidence is not None
    assert not outcome.evidence.passed


async def test_what_a_rule_says_moves_no_cursor_and_has_an_end(world: World) -> None:
    (found,) = (await world.apply("escapes_words")).findings
    assert found.message.startswith(" [2Jgone x")
    assert (len(found.message), found.where, found.fix, found.excerpt) == (1_000, "output", " ", "two\nlines")


@pytest.mark.parametrize("said", ["{", '{"findings": [{}]}'])
async def test_an_answer_that_is_none_never_passes(world: World, said: str) -> None:
    with pytest.raises(RuleBroken, match="answer"):
        await world.apply("says_nonsense", said)


async def test_a_rule_that_asks_for_a_retry_may_be_asked_again(world: World) -> None:
    with pytest.raises(RuleUnavailable, match="the moon is full"):
        await world.apply("asks_to_retry")


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("other_name", "hostile_rules:other_name", "its entry point is called other_name but the rule is called"),
        ("on_the_network", "hostile_rules:on_the_network", "which plugin rules can't reach"),
        ("no_version", "hostile_rules:no_version", "write three numbers"),
        ("talkative", "hostile_rules:talkative", "its card has more than 100,000 bytes"),
        ("requires_more", "hostile_rules:requires_more", "it requires `nothing`"),
        ("raises", "hostile_import:raises", "OSError: not today"),
        ("no_rule", "hostile_rules:require_sandbox", "is not a rule but function"),
        ("nowhere", "no.such.module:rule", "ModuleNotFoundError"),
    ],
)
async def test_a_rule_that_lies_about_itself_can_not_be_used(world: World, name: str, value: str, words: str) -> None:
    with pytest.raises(RuleBroken, match=words):
        await described(door(name, value), world.house)


async def test_a_package_whose_import_never_ends_is_not_waited_for(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("handrail.rules.plugins.plugin_rule.DESCRIBE_MS", 700)
    with pytest.raises(RuleBroken, match="it took longer than 700ms"):
        await described(door("hangs", "hostile_hang:hangs"), world.house)
