"""A test of the house itself: sizes, names, promises that the documents make about files."""

from __future__ import annotations

import ast
import re
import subprocess
from collections import Counter
from collections.abc import Collection, Iterable
from pathlib import Path

import pytest

from tidy.yardstick import (
    METHODS_MAX,
    ROOT,
    SOURCE,
    Figure,
    Module,
    figures,
    large_classes,
    read_modules,
    says_why,
    status_sets_elsewhere,
)

VAGUE = {"utils", "util", "helpers", "helper", "manager", "common", "misc", "base", "core", "service", "services"}
ROOT_FILES = {
    "SECURITY.md",
    ".gitignore",
    "AGENTS.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "LICENSE",
    "Makefile",
    "README.md",
    "pyproject.toml",
    "requirements.lock",
}
ROOT_FOLDERS = {".ci", "bench", "deploy", "docs", "examples", "src", "tests", "ui"}
ORDINARY_WORDS = """
about absent account alarm allowed ancestry approve beginning block bounds branch break builder call called
category change comparison compiler composed composition conflict constants copies detail difference each
executor expected failure fields forbidden form found frame gap given grant guided hand heard hit how
invalid job kind lasting later legal limited local located loop memory missing model now outage outcome
overdue owners pace page parsed part passphrase performer placed position postponements prompt proven query
question ran range reads reason reference refused rehearsed relevant remedy repeat resting retry right
script sealer secret setting shown signer size sizes skippable spot states stricter tag tally term timers
times token trail tried try unavailable uses verifier version waiting walked way weight why with within
witnessed word
"""
ORDINARY = frozenset(ORDINARY_WORDS.split())
"""Nouns of the code that mean what they mean everywhere; every other one needs a line in the glossary."""
DECISION_LINES_MAX = 40
ARCHITECTURE_LINES_MAX = 150


def tracked() -> list[str]:
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True)
    return [name for name in listed.stdout.split("\n") if name and (ROOT / name).exists()]


@pytest.mark.parametrize("figure", figures(read_modules()), ids=lambda figure: figure.name)
def test_the_yardstick_holds(figure: Figure) -> None:
    assert figure.holds, f"{figure.name} is {figure.value:.1f}"


@pytest.mark.parametrize(
    "code",
    [
        "OPEN = frozenset({RunStatus.RUNNING, RunStatus.PAUSED})",
        "is_open = run.status in {RunStatus.RUNNING}",
        "is_open = step.status in (StepStatus.READY, StepStatus.WAITING)",
        "OPEN = [RunStatus.RUNNING.value, RunStatus.PAUSED.value]",
    ],
)
def test_a_set_of_statuses_that_is_built_outside_status_py_is_counted(tmp_path: Path, code: str) -> None:
    (tmp_path / "status.py").write_text(code, encoding="utf-8")
    assert status_sets_elsewhere(read_modules(tmp_path)) == 0
    (tmp_path / "guard.py").write_text(code, encoding="utf-8")
    assert status_sets_elsewhere(read_modules(tmp_path)) == 1


def test_a_class_with_too_many_methods_is_counted(tmp_path: Path) -> None:
    methods = "".join(f"    def m{number}(self): ...\n" for number in range(METHODS_MAX))
    (tmp_path / "one.py").write_text(f"class One:\n{methods}", encoding="utf-8")
    assert large_classes(read_modules(tmp_path)) == {}
    (tmp_path / "two.py").write_text(f"class Two:\n{methods}    async def more(self): ...\n", encoding="utf-8")
    assert large_classes(read_modules(tmp_path)) == {"Two": METHODS_MAX + 1}


@pytest.mark.parametrize(
    ("comment", "counts"),
    [
        ("# Sorted, so that a replay does the same.", True),
        ("# --- writing ---------", False),
        ("#", False),
        ("# noqa: S603", False),
        ("# type: ignore[arg-type]", False),
        ("# pragma: no cover", False),
        ("# ruff: noqa: S608", False),
        ("# noqa: S603 (the command is the user's own)", True),
    ],
)
def test_only_comments_for_readers_count(comment: str, *, counts: bool) -> None:
    assert says_why(comment) is counts


def tool_names() -> set[str]:
    """The names of the MCP tools, as the catalogue of the surface writes them."""
    catalog = ast.parse(
        (SOURCE / "interfaces" / "mcp" / "surface" / "handlers" / "catalog.py").read_text(encoding="utf-8")
    )
    tables = [node.value for node in ast.walk(catalog) if isinstance(node, ast.AnnAssign) and node.value is not None]
    rows = [row for table in tables if isinstance(table, ast.Tuple) for row in table.elts if isinstance(row, ast.Tuple)]
    firsts = [row.elts[0] for row in rows]
    return {first.value for first in firsts if isinstance(first, ast.Constant) and isinstance(first.value, str)}


def names_of_tools_in(source: str, names: set[str]) -> list[str]:
    """Strings that name an MCP tool. A name that is also a plain word counts where it can only mean the tool."""
    plain = {name for name in names if "_" not in name}
    coined = re.compile(rf"\b({'|'.join(sorted(names - plain))})\b")
    quoted = re.compile(rf"`({'|'.join(sorted(plain))})`|^control\b")
    texts = [node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant)]
    return [text for text in texts if isinstance(text, str) and (coined.search(text) or quoted.search(text))]


@pytest.mark.parametrize("room", ["domain", "engine"])
def test_the_engine_names_no_mcp_tool(room: str) -> None:
    names = tool_names()
    assert {"workflow_next", "control", "record_action"} <= names
    files = list((SOURCE / room).rglob("*.py"))
    named = {file.name: names_of_tools_in(file.read_text(encoding="utf-8"), names) for file in files}
    assert not {name: texts for name, texts in named.items() if texts}


@pytest.mark.parametrize(
    "source",
    ['hint = "report it with record_action"', 'tool = "control"', 'hint = f"control skip {path}"', '"""`status`."""'],
)
def test_a_string_that_names_a_tool_is_found(source: str) -> None:
    assert names_of_tools_in(source, tool_names())


def test_no_file_has_a_vague_name() -> None:
    assert not [file for file in SOURCE.rglob("*.py") if file.stem in VAGUE]


def test_every_module_says_what_lives_here() -> None:
    silent = [file.name for file in SOURCE.rglob("*.py") if not file.read_text(encoding="utf-8").startswith('"""')]
    assert not silent


def test_nothing_stray_lies_in_the_root() -> None:
    names = tracked()
    assert {name for name in names if "/" not in name} <= ROOT_FILES
    assert {name.split("/")[0] for name in names if "/" in name} <= ROOT_FOLDERS


def test_every_file_that_the_architecture_names_exists() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:src|tests|docs|bench|examples)/[\w./*-]+)`", text))
    assert named, "the architecture names files"
    assert not [name for name in named if not list(ROOT.glob(name.rstrip("/")))]


def test_every_file_that_the_glossary_names_exists() -> None:
    text = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:domain|engine|storage|library|tools|rules|interfaces)/[\w./]*|\w+\.py)`", text))
    assert len(named) > 30, "the glossary names files"
    assert not [name for name in named if not (SOURCE / name).exists() and not list(SOURCE.rglob(name))]


def glossary_words() -> list[str]:
    """The words that the glossary explains, as it writes them."""
    text = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    found = re.findall(r"\*\*([^*]+)\*\*((?: \([^)`]*\))?)(?=:|,| and )", text)
    return [word.lower() + which for words, which in found for word in words.split(" / ")]


def test_the_glossary_explains_each_word_once() -> None:
    words = glossary_words()
    assert len(words) > 120
    assert not [word for word, count in Counter(words).items() if count > 1]


def unexplained(words: Collection[str], modules: Iterable[Module]) -> set[str]:
    """Nouns of the domain and the engine that are neither in the glossary nor ordinary words: classes of one word."""
    explained = {part for word in words for part in (word.partition(" (")[0], word.partition(" (")[0].split()[-1])}
    nouns = {name.lower() for module in modules for name in module.classes if re.fullmatch("[A-Z][a-z]+", name)}
    return {
        noun for noun in nouns if not {noun, noun.removesuffix("s"), noun.removesuffix("es")} & explained
    } - ORDINARY


def test_every_noun_of_domain_and_engine_is_in_the_glossary() -> None:
    inner = [module for module in read_modules() if module.name.split(".")[1:2] in (["domain"], ["engine"])]
    assert not unexplained(glossary_words(), inner)


def test_a_noun_that_the_glossary_lacks_is_found(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text("class Stretch: ...\nclass Leases: ...\nclass Kind: ...\n", encoding="utf-8")
    assert unexplained(["lease"], read_modules(tmp_path)) == {"stretch"}


def test_every_room_is_in_the_architecture() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    rooms = {path.name for path in SOURCE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert not [room for room in rooms if f"{room}/" not in text]


def test_the_architecture_and_the_decisions_stay_short() -> None:
    assert len((ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").splitlines()) <= ARCHITECTURE_LINES_MAX
    for record in (ROOT / "docs" / "decisions").glob("*.md"):
        assert re.match(r"\d{4}-[a-z0-9-]+$", record.stem), record.name
        assert len(record.read_text(encoding="utf-8").splitlines()) <= DECISION_LINES_MAX, record.name


def test_the_lock_carries_hashes_and_no_addresses() -> None:
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    pinned = re.findall(r"^[a-z0-9._-]+==", lock, re.MULTILINE | re.IGNORECASE)
    assert len(pinned) > 10
    assert lock.count("--hash=sha256:") >= len(pinned)
    assert "://" not in lock


def test_links_between_documents_lead_somewhere() -> None:
    for name in (file for file in tracked() if file.endswith(".md")):
        document = ROOT / name
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text(encoding="utf-8")):
            assert (document.parent / target).exists(), f"{name} links to {target}"


def test_ci_does_just_what_the_readme_says() -> None:
    assert "exec make test" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "make test" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_source_speaks_of_handrail_alone(tmp_path: Path) -> None:
    for name in (file for file in tracked() if file.endswith((".py", ".md", ".toml", ".yaml", "Makefile"))):
        text = (ROOT / name).read_text(encoding="utf-8")
        assert str(ROOT) not in text, name
        assert str(tmp_path.parent) not in text, name


def test_each_decision_has_a_number_of_its_own() -> None:
    records = sorted(file.name for file in (ROOT / "docs" / "decisions").glob("*.md"))
    assert [int(name[:4]) for name in records] == list(range(1, len(records) + 1))


def test_no_query_numbers_its_parameters() -> None:
    """SQLite's `?1` is refused by Python 3.14 where values come in a sequence."""
    storage = SOURCE / "storage"
    assert [file.name for file in storage.rglob("*.py") if re.search(r"(?<!`)\?\d", file.read_text("utf-8"))] == []
