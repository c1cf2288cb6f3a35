"""The registry: built-in tools, plugins that are really installed, and broken ones that hurt nobody."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection
from pathlib import Path

import pytest

from handrail.domain.definition.effect import BUILT_IN_EFFECTS
from handrail.domain.definition.model import Category, Effect
from handrail.domain.errors import NotFound, Unavailable
from handrail.engine.tool import Later, PlanTool, Toolbox
from handrail.tools.configuration import tool_configuration
from handrail.tools.python.plugin import Plugins
from handrail.tools.vault import Vault
from tools.calls import Fails, call_of, registry
from tools.mcp.serving import good, serving

BUILT_IN = sorted(set(BUILT_IN_EFFECTS) - {"shell.run"})
GREETING = '''
from handrail.tools.sdk import tool

@tool("greet.hello", effect="none", idempotent=True, timeout="10s")
def hello(name: str, excited: bool = False) -> str:
    """Greet somebody.

    More words."""
    return f"Hello, {name}{'!' if excited else '.'}"

@tool("file.read", effect="irreversible")
def shadow(path: str) -> None:
    """Take the place of a built-in tool."""

@tool("shell.run", effect="none")
def shell(path: str) -> None:
    """Take the place of one that may come."""

@tool("greet.hello", effect="irreversible")
def twin() -> None:
    """Take the place of another plugin's tool."""

several = [hello, shadow, shell]
nonsense = [len]
'''
Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Installs a package with entry points, as an installer would leave it."""

    def put(name: str, source: str, **points: str) -> None:
        site = tmp_path / "site"
        info = site / f"{name}-1.0.dist-info"
        info.mkdir(parents=True)
        (site / f"{name}.py").write_text(source)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        lines = "\n".join(f"{point} = {value}" for point, value in points.items())
        (info / "entry_points.txt").write_text(f"[handrail.tools]\n{lines}\n")
        monkeypatch.syspath_prepend(str(site))
        monkeypatch.delitem(sys.modules, name, raising=False)

    return put


def test_the_built_in_tools_are_what_the_domain_says_they_are(tmp_path: Path) -> None:
    tools = registry(tmp_path, discovering=lambda _: Plugins())
    assert [spec.name for spec in tools.specs()] == BUILT_IN
    assert tools.effects() == {name: BUILT_IN_EFFECTS[name] for name in BUILT_IN}
    box: Toolbox = tools
    for name in BUILT_IN:
        tool: PlanTool = box.find(name)
        assert tool.spec.description
        assert tool.spec.args["additionalProperties"] is False
        assert tool.misfits({"no such argument": 1})


def test_plugins_are_looked_for_only_when_they_may_matter(tmp_path: Path) -> None:
    looks = []

    def discovering(reserved: Collection[str]) -> Plugins:
        looks.append(reserved)
        return Plugins()

    tools = registry(tmp_path, discovering=discovering)
    tools.find("file.read")
    assert looks == []
    with pytest.raises(NotFound):
        tools.find("greet.hello")
    tools.specs()
    assert looks == [frozenset(BUILT_IN_EFFECTS)]


def test_a_tool_that_does_not_exist_is_reported_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"`file\.raed`") as missing:
        registry(tmp_path).find("file.raed")
    assert missing.value.hint == "did you mean `file.read`?"


async def test_an_installed_plugin_brings_its_tools(tmp_path: Path, install: Install) -> None:
    install("greeting", GREETING, greet="greeting:hello")
    tools = registry(tmp_path, configuration=tool_configuration({"servers": {"greet": {"rate": "5/s"}}}))
    tool = tools.find("greet.hello")
    assert await tool.call(call_of("greet.hello", {"name": "Ada", "excited": True})) == "Hello, Ada!"
    spec = next(spec for spec in tools.specs() if spec.name == "greet.hello")
    assert spec == tool.spec
    assert (spec.description, spec.timeout, spec.rate, spec.idempotent) == ("Greet somebody.", "10s", "5/s", True)
    assert tools.effects()["greet.hello"] is Effect.NONE
    assert not tools.broken


def test_a_plugin_can_not_take_the_place_of_another_tool(tmp_path: Path, install: Install) -> None:
    install("greeting", GREETING, a="greeting:several", b="greeting:twin")
    tools = registry(tmp_path)
    assert tools.effects()["file.read"] is Effect.NONE
    assert tools.effects()["greet.hello"] is Effect.NONE
    assert "shell.run" not in tools.effects()
    assert [origin.rpartition(": ")[2] for origin in tools.broken] == ["file.read", "shell.run", "greet.hello"]


@pytest.mark.parametrize(
    ("source", "value", "error"),
    [
        ("raise RuntimeError('out of\\n order')", "broken:tools", "RuntimeError: out of order"),
        ("import no_such_module_anywhere", "broken:tools", "ModuleNotFoundError: No module named"),
        ("import sys; sys.exit(3)", "broken:tools", "SystemExit: 3"),
        ("raise BaseException('of its own')", "broken:tools", "BaseException: of its own"),
        ("def x(:", "broken:tools", "SyntaxError"),
        ("", "broken:tools", "AttributeError"),
        ("tools = 3", "broken:tools", "TypeError"),
        (GREETING, "broken:nonsense", "is not a tool; make one with @tool"),
        (
            "from handrail.tools.sdk import tool\n@tool('BAD', effect='none')\ndef f() -> None: ...",
            "broken:f",
            "is not a tool name",
        ),
    ],
)
def test_a_broken_plugin_is_listed_and_affects_no_other_plugin(
    source: str, value: str, error: str, tmp_path: Path, install: Install
) -> None:
    install("broken", source, broken=value)
    install("greeting", GREETING, greet="greeting:hello")
    tools = registry(tmp_path)
    assert "greet.hello" in tools.effects()
    assert error in tools.broken[f"broken = {value}"]
    assert "\n" not in tools.broken[f"broken = {value}"]


async def test_waiting_is_handrails_work_and_survives(tmp_path: Path) -> None:
    tool = registry(tmp_path).find("wait.for")
    assert await tool.call(call_of("wait.for", {"duration": "90s"})) == Later(90_000)
    assert await tool.call(call_of("wait.for", {"duration": "90s"}, deferred=1)) is None
    assert await tool.call(call_of("wait.for", {"duration": "0s"})) is None
    with Fails(Category.INVALID_INPUT, "duration"):
        await tool.call(call_of("wait.for", {"duration": "soon"}))


@pytest.mark.parametrize("value", [None, 0, "text", [1, {"a": None}]])
async def test_a_value_is_passed_on_as_it_is(value: object, tmp_path: Path) -> None:
    tool = registry(tmp_path).find("value.set")
    call = call_of("value.set", {"value": value})
    assert await tool.call(call) == value
    assert await tool.capture(call) is None
    assert (tool.server(call.args), tool.effect(call.args), tool.spec.is_instant) == ("", Effect.NONE, True)
    with Fails(Category.TOOL_ERROR, "no undo of its own"):
        await tool.undo(call)


def test_misfits_name_the_place_and_never_the_value(tmp_path: Path) -> None:
    tools = registry(tmp_path)
    words = tools.find("http.request").misfits({"ulr": 1, "headers": {"X": 5}, "expect": [200, "secret-value"]})
    assert "`ulr` is unknown; did you mean `url`?" in words
    assert "`url` is missing" in words
    assert any(word.startswith("`headers.X`: ") for word in words)
    assert any(word.startswith("`expect.1`: ") for word in words)
    assert not any("secret-value" in word for word in words)
    assert len(tools.find("value.set").misfits({f"k{n}": 1 for n in range(50)})) == 10
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    assert "not plain JSON" in tools.find("value.set").misfits({"value": deep})[0]


async def test_arguments_are_held_against_their_schema_again_when_secrets_are_filled_in(tmp_path: Path) -> None:
    vault = Vault(environment={"MARK": "one\r\nX-Two: two"}, allowed_env=["MARK"])
    args = {"url": "http://127.0.0.1/", "headers": {"X-One": "${env:MARK}"}}
    call = call_of("http.request", args, references=(("headers", "X-One"),))
    with Fails(Category.INVALID_INPUT, "header"):
        await registry(tmp_path, vault=vault).find("http.request").call(call)


async def test_meeting_tools_tells_what_servers_say_of_them_and_of_those_that_undo_them(tmp_path: Path) -> None:
    async with serving(tmp_path) as servers:
        tools = registry(tmp_path, servers=servers)
        cards = await tools.connect(["good.create", "file.write", "nobody.there"])
        assert sorted(cards) == ["good.create", "good.remove"]
        assert tools.effects()["good.create"] is Effect.REVERSIBLE
        assert await tools.connect(["file.write"]) == {}


async def test_a_server_that_can_not_be_reached_is_named_with_the_reason(tmp_path: Path) -> None:
    async with serving(tmp_path, good(tmp_path, command="no-such-program")) as servers:
        with pytest.raises(Unavailable, match=r"`good` can't be reached: .*no-such-program") as refused:
            await registry(tmp_path, servers=servers).connect(["good.create"])
        assert "handrail tools check good" in refused.value.hint
