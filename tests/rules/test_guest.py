"""Rules of packages: found by metadata, met and applied in a process of their own, and believed in nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from handrail.domain.checks.rule import Reads
from handrail.domain.definition.model import Category, Check, Definition, Prompt, Step
from handrail.domain.run.state import Run
from handrail.domain.run.step_path import top_lane
from handrail.engine.checking.gate import QualityGate
from handrail.engine.checking.rule import NoMemory, Rule, RuleUnavailable
from handrail.engine.sandbox import Ran, Sandbox
from handrail.engine.tool import ToolFailed
from handrail.rules.plugins.card_cache import CardCache
from handrail.rules.plugins.plugin_discovery import PluginRules, rule_entries, visible
from handrail.rules.plugins.plugin_host import HostQuestion, answer_to
from handrail.rules.plugins.plugin_rule import PluginSandbox, RuleBroken, command, described
from handrail.rules.registry import RuleRegistry
from handrail.tools.sandbox.unconfined import Unconfined
from rules.guests import HOSTILE, Said, cell, door, guest, setting

SOURCE = '''
from handrail.rules.sdk import Context, Finding, rule

@rule("no_todo", version="2.1.0", reads="project", timeout="20s", example={"path": "a.py"})
def no_todo(context: Context, *, path: str) -> list[Finding]:
    """No TODO is left."""
    print("looking")
    lines = context.read_text(path).splitlines()
    return [Finding("a TODO", f"{path}:{n}", "do it") for n, line in enumerate(lines, 1) if "TODO" in line]

@rule("polite", version="1.0.0")
def polite(context: Context) -> list[Finding]:
    """It says please."""
    return [] if "please" in str(context.output) else [Finding("it is not polite")]
'''
CARD = {
    "name": "polite",
    "summary": "s",
    "version": "1.0.0",
    "reads": "output",
    "timeout": "5s",
}
Install = Callable[..., Path]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Installs a package with entry points, as an installer would leave it."""

    def put(name: str, source: str, *, direct: str = "", **points: str) -> Path:
        site = tmp_path / "site"
        info = site / f"{name}-1.5.dist-info"
        info.mkdir(parents=True)
        (site / f"{name}.py").write_text(source)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.5\n")
        (info / "RECORD").write_text(f"{name}.py,sha256=abc,3\n")
        if direct:
            (info / "direct_url.json").write_text(direct)
        lines = "\n".join(f"{point} = {value}" for point, value in points.items())
        (info / "entry_points.txt").write_text(f"[handrail.rules]\n{lines}\n")
        if str(site) not in sys.path:
            monkeypatch.syspath_prepend(str(site))
        return site

    return put


async def test_an_installed_rule_is_found_met_and_applied(install: Install, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "a.py").write_text("x = 1\n# TODO: more\n")
    install("acme", SOURCE, no_todo="acme:no_todo", polite="acme:polite", matches="acme:polite", gone="acme:gone")
    sandbox = cell(project, read=[tmp_path / "site"])
    guests = PluginRules(lambda _: sandbox, reserved=["matches"])
    assert sorted(guests.names()) == ["gone", "no_todo", "polite"]
    assert "acme" not in sys.modules

    found = await guests.find("no_todo")
    assert found is not None
    rule: Rule = found
    assert (rule.card.version, rule.card.origin, rule.card.reads) == ("2.1.0", "acme 1.5", Reads.PROJECT)
    where = setting(project, sandbox)
    outcome = await rule.apply({"path": "a.py", "timeout": "5s"}, where)
    assert [(one.rule, one.where, one.message, one.fix) for one in outcome.findings] == [
        ("no_todo", "a.py:2", "a TODO", "do it")
    ]
    evidence = outcome.evidence
    assert evidence is not None
    assert (evidence.rule, evidence.version, evidence.passed, evidence.exit) == ("no_todo", "2.1.0", False, 0)
    assert evidence.tools["acme"] == "1.5"
    assert evidence.ran[-1] == "acme:no_todo"

    before = await rule.inputs({"path": "a.py"}, where)
    (project / "a.py").write_text("x = 1\n")
    assert before != await rule.inputs({"path": "a.py"}, where) != ""
    assert (await rule.apply({"path": "a.py"}, where)).findings == ()

    assert [one.card.name for one in await guests.all()] == ["no_todo", "polite"]
    assert guests.broken["matches"] == "acme 1.5: there is a rule matches already; give this one another name"
    assert guests.broken["gone"].startswith("acme 1.5: AttributeError")
    assert await guests.find("gone") is None
    assert await guests.find("nobody") is None
    assert "acme" not in sys.modules


async def test_names_are_reported_without_starting_anything(install: Install) -> None:
    install("acme", SOURCE, polite="acme:polite")
    install("rival", SOURCE, polite="rival:polite")
    guests = PluginRules(lambda _: Said())
    assert list(guests.names()) == []
    assert guests.broken == {"polite": "two packages provide a rule of this name; remove one of them"}
    assert await guests.all() == []


async def test_what_a_rule_said_of_itself_is_known_later_without_starting_anything(
    install: Install, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    site = install("acme", SOURCE, no_todo="acme:no_todo")
    cache = CardCache(tmp_path / "cards")

    def never(_folders: object) -> Sandbox:
        raise AssertionError("nothing is started")

    assert RuleRegistry(plugins=PluginRules(never, cache=cache)).known(["no_todo"]).cards == {"no_todo": None}
    described = PluginRules(lambda _: cell(project, read=[site]), cache=cache)
    assert await described.find("no_todo") is not None
    known = RuleRegistry(plugins=PluginRules(never, cache=cache)).known(["no_todo", "contains", "nobody"])
    assert sorted(known.cards) == ["contains", "no_todo"]
    card = known.cards["no_todo"]
    assert card is not None
    assert (card.required, card.origin) == (("path",), "acme 1.5")
    (site / "acme-1.5.dist-info" / "RECORD").write_text("acme.py,sha256=def,3\n")
    assert PluginRules(never, cache=cache).known("no_todo") is None, "its files have changed"


def test_a_package_that_is_being_written_is_never_remembered(install: Install, tmp_path: Path) -> None:
    direct = json.dumps({"url": (tmp_path / "my code").as_uri(), "dir_info": {"editable": True}})
    install("acme", SOURCE, polite="acme:polite", direct=direct)
    install("fixed", SOURCE, no_todo="fixed:no_todo", direct="[nonsense")
    found = rule_entries()
    written, fixed = found["polite"], found["no_todo"]
    assert not isinstance(written, str)
    assert not isinstance(fixed, str)
    assert (written.content, written.path[1]) == ("", str(tmp_path / "my code"))
    assert fixed.content.startswith("sha256:")


async def test_what_can_not_be_reported_apart_is_not_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    house, where = PluginSandbox(Said()), setting(tmp_path, Said(), {"a": 1})
    assert await guest("crashes", house).inputs({}, where) == ""
    fixed = guest("crashes", house, reads=Reads.OUTPUT)
    fixed._entry = door("crashes", content="sha256:1")
    assert (await fixed.inputs({}, where)).startswith("sha256:")
    assert await fixed.inputs({}, where) != await fixed.inputs({}, setting(tmp_path, Said(), {"a": 2}))

    async def unknown(*_: Any, **__: Any) -> str:
        return ""

    monkeypatch.setattr("handrail.rules.plugins.plugin_rule.tree_of", unknown)
    vast = guest("crashes", house)
    vast._entry = door("crashes", content="sha256:1")
    assert await vast.inputs({}, where) == ""


def test_a_guest_sees_python_handrail_and_its_package_but_no_whole_home(tmp_path: Path) -> None:
    seen = visible([door("a"), door("b", folder=Path.home()), door("c", folder=Path("/")), door("d", folder=tmp_path)])
    assert {HOSTILE, tmp_path.resolve(), Path(sys.base_prefix).resolve()} <= set(seen)
    assert not {Path("/"), Path.home().resolve()} & set(seen)


def test_a_user_that_is_unknown_has_no_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def nobody() -> Path:
        raise RuntimeError("no home")

    monkeypatch.setattr(Path, "home", nobody)
    assert tmp_path.resolve() in visible([door("d", folder=tmp_path)])


@pytest.mark.parametrize(
    "said",
    [
        *("", "null", "[]", "{", '{"findings": 3}', '{"findings": [{}]}', '{"card": {}}', "{}", "\0", '{"a":' * 5_000),
        *('{"findings": [{"message": 1}]}', json.dumps({"findings": [{"message": "m"}] * 52})),
        json.dumps({"card": CARD}),
    ],
)
async def test_an_answer_that_is_none_is_never_a_pass(tmp_path: Path, said: str) -> None:
    box = Said(said)
    with pytest.raises(RuleBroken, match="answer"):
        await guest("crashes", PluginSandbox(box)).apply({}, setting(tmp_path, box))


@pytest.mark.parametrize(
    ("ran", "words"),
    [
        (Ran(exit=3, stdout='{"findings":[]}', stderr="a\n\x1b[b", took_ms=1), r"exit 3\); its last output: a  \[b"),
        (Ran(exit=137, stdout="", stderr="", took_ms=1, stopped="memory"), "more than 512 MiB of memory$"),
        (Ran(exit=137, stdout='{"findings":[]}', stderr="", took_ms=1, stopped="processes"), "more than 32 processes"),
        (ToolFailed(Category.PERMISSION, "no sandbox"), "no sandbox"),
    ],
)
async def test_what_ends_badly_is_never_a_pass(tmp_path: Path, ran: Ran | ToolFailed, words: str) -> None:
    box = Said(ran)
    with pytest.raises(RuleBroken, match=words):
        await guest("crashes", PluginSandbox(box)).apply({}, setting(tmp_path, box))


async def test_a_rule_that_fails_or_can_not_be_started_may_be_retried(tmp_path: Path) -> None:
    box = Said('{"failed": "later"}', ToolFailed(Category.TRANSIENT, "busy"))
    for words in ("later", "busy"):
        with pytest.raises(RuleUnavailable, match=words):
            await guest("crashes", PluginSandbox(box)).apply({}, setting(tmp_path, box))
    busy = Said(ToolFailed(Category.TRANSIENT, "busy"), json.dumps({"card": CARD}))
    guests = PluginRules(lambda _: busy, installed=lambda: {"polite": door("polite")})
    assert await guests.find("polite") is None
    assert guests.broken == {}
    assert await guests.find("polite") is not None


async def test_without_a_sandbox_nothing_runs_and_nothing_passes(tmp_path: Path) -> None:
    box = Said(why_not="there is no bubblewrap here")
    outcome = await guest("crashes", PluginSandbox(box)).apply({}, setting(tmp_path, box))
    (found,) = outcome.findings
    assert outcome.evidence is not None
    assert (outcome.evidence.passed, outcome.evidence.is_settled) == (False, False), "so that nobody remembers it"
    assert found.where == "checks"
    assert "no bubblewrap here" in found.message
    assert "`handrail doctor`" in found.fix
    with pytest.raises(RuleBroken, match="no bubblewrap here"):
        await described(door("crashes"), PluginSandbox(box))
    assert box.jobs == []


async def test_a_part_of_the_output_can_be_named_and_must_be_there(tmp_path: Path) -> None:
    box = Said('{"findings": []}')
    rule = guest("crashes", PluginSandbox(box))
    where = setting(tmp_path, box, {"notes": {"text": "hello"}})
    assert (await rule.apply({"of": "notes.text", "target": "t", "timeout": "2s"}, where)).findings == ()
    asked = json.loads(box.jobs[0].stdin)
    assert (asked["output"], asked["parameters"]) == ("hello", {"target": "t"})
    assert box.jobs[0].bounds.time_ms == 2_000
    assert not box.jobs[0].writable
    assert not box.jobs[0].bounds.network
    assert (await rule.apply({"of": "other"}, where)).findings[0].message == "it is missing"


async def test_an_output_that_is_too_large_is_reported(tmp_path: Path) -> None:
    with pytest.raises(RuleBroken, match="plugin rules accept at most"):
        await guest("crashes", PluginSandbox(Said())).apply({}, setting(tmp_path, Said(), "x" * 10_000_000))


def test_a_host_answers_one_question_and_keeps_prints_apart(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(SOURCE)
    (tmp_path / "a.py").write_text("TODO")
    question = {
        "what": "apply",
        "rule": "mine:no_todo",
        "path": [str(tmp_path)],
        "parameters": {"path": "a.py"},
        "project": str(tmp_path),
    }
    done = subprocess.run(command(), input=json.dumps(question), capture_output=True, text=True)
    found = {"message": "a TODO", "where": "a.py:1", "fix": "do it", "excerpt": ""}
    assert (json.loads(done.stdout), done.stderr, done.returncode) == ({"findings": [found]}, "looking\n", 0)


@pytest.mark.parametrize(
    ("what", "rule", "key", "words"),
    [
        ("describe", "hostile_rules:crashes", "card", "Raises something."),
        ("describe", "hostile_rules:require_sandbox", "broken", "is not a rule but function"),
        ("describe", "hostile_import:any", "broken", "OSError: not today"),
        ("apply", "hostile_rules:exits", "broken", "SystemExit: 0"),
        ("apply", "hostile_rules:asks_to_retry", "failed", "the moon is full"),
        ("apply", "hostile_rules:lying", "broken", "is not a rule"),
        ("apply", "hostile_rules", "broken", "AttributeError"),
    ],
)
def test_a_host_tells_whatever_happens(
    monkeypatch: pytest.MonkeyPatch, what: Any, rule: str, key: str, words: str
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    answer = answer_to(HostQuestion(what=what, rule=rule, path=(str(HOSTILE),)))
    assert words in json.dumps(answer[key])


async def test_without_walls_a_rule_still_has_a_process_and_bounds_of_its_own(install: Install, tmp_path: Path) -> None:
    install("acme", SOURCE, no_todo="acme:no_todo")
    (tmp_path / "a.py").write_text("TODO")
    box = Unconfined(tmp_path)
    guests = PluginRules(lambda _: box)
    rule = await guests.find("no_todo")
    assert rule is not None, guests.broken
    outcome = await rule.apply({"path": "a.py"}, setting(tmp_path, box))
    assert [one.where for one in outcome.findings] == ["a.py:1"]
    assert "acme" not in sys.modules


async def test_the_gate_tells_a_broken_rule_as_a_finding_of_its_own(tmp_path: Path) -> None:
    box = Said(json.dumps({"card": CARD}), "nonsense", '{"findings": [{"message": "rude"}]}', '{"findings": []}')
    gate = QualityGate(
        rules=PluginRules(lambda _: box, installed=lambda: {"polite": door("polite")}),
        fits=lambda *_: (),
        project=tmp_path,
        sandbox=box,
        memory=NoMemory(),
    )
    work = Prompt(prompt="p", checks=(Check(rule="polite"),))
    lane = top_lane(Definition(id="w", steps=(Step(id="s", work=work),)))
    judged = [await gate.judge(work, "words", Run(id="r"), lane) for _ in range(3)]
    assert [one.is_good for one in judged] == [False, False, True]
    broken, rude, good = judged
    assert broken.findings[0].where == "checks"
    assert "the rule is broken" in broken.findings[0].message
    assert not broken.evidence[0].is_settled
    assert (rude.findings[0].message, rude.findings[0].rule) == ("rude", "polite")
    assert (good.passed, good.evidence[0].version) == (("polite",), "1.0.0")


def test_a_package_that_is_half_removed_does_no_harm(install: Install) -> None:
    site = install("acme", SOURCE, polite="acme:polite")
    for content, words in {b"\xff\xfe": "UnicodeDecodeError", b"Name: acme\n": "no name or no version"}.items():
        (site / "acme-1.5.dist-info" / "METADATA").write_bytes(content)
        assert words in str(rule_entries()["polite"])


def test_an_entry_point_without_a_package_is_reported_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint(name="polite", value="acme:polite", group="handrail.rules")
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: [point])
    assert rule_entries() == {"polite": "it belongs to no package; install its package again"}
