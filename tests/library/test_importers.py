"""Importers: other formats come in by entry points, cost nothing else anything, and are believed in nothing."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from handrail.domain.checks.finding import Finding, Severity
from handrail.domain.errors import NotFound
from handrail.interfaces.cli.workflow.import_ import import_
from handrail.library.documents.document import NODES_MAX
from handrail.library.importing import importers
from handrail.library.importing.importers import is_foreign, require_importer
from handrail.library.loading import Loaded, load_data, load_definition
from handrail.library.shelf.catalog import FolderCatalog
from handrail.library.shelf.workflow_library import WorkflowLibrary
from handrail.settings import read_settings
from library.workrail.garden import step, workflow

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "writing-an-importer.md"
CHECKLIST = "checklist: Leave the house\nitems:\n  - close the windows\n  - lock the door\n  - 7\n"
Install = Callable[..., Path]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Installs a package with importers, as an installer would leave it."""
    site = tmp_path / "site"
    modules: list[str] = []

    def put(name: str, source: str, **points: str) -> Path:
        info = site / f"{name}-1.0.dist-info"
        info.mkdir(parents=True)
        (site / f"{name}.py").write_text(source, encoding="utf-8")
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", encoding="utf-8")
        lines = "\n".join(f"{point} = {value}" for point, value in points.items())
        (info / "entry_points.txt").write_text(f"[handrail.importers]\n{lines}\n", encoding="utf-8")
        modules.append(name)
        if str(site) not in sys.path:
            monkeypatch.syspath_prepend(str(site))
        importers.installed.cache_clear()
        return site

    yield put
    importers.installed.cache_clear()
    for name in modules:
        sys.modules.pop(name, None)


def guide_blocks(kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)


@pytest.fixture
def checklist(install: Install) -> Path:
    """The importer of the guide, installed as the guide says."""
    (source,) = guide_blocks("python")
    (entry,) = guide_blocks("toml")
    name, target = re.findall(r'^(\w+) = "(.+)"$', entry, re.MULTILINE)[0]
    return install("checklists", source, **{name: target})


def importer(body: str, name: str = "odd") -> str:
    """A package whose importer recognises `odd:` and then does what the body says."""
    return (
        "from handrail.library.importer import Conversion, error, note\n"
        "class Odd:\n"
        f"    name = {name!r}\n"
        "    def recognises(self, document): return 'odd' in document.value\n"
        f"    def convert(self, document): {body}\n"
    )


_texts = itertools.count()


def load(data: dict[str, Any]) -> Loaded:
    """What becomes of data, in a string that was never loaded before: what was loaded is kept."""
    return load_definition(f"# {next(_texts)}\n{yaml.safe_dump(data)}", name="odd.yaml")


def words(findings: tuple[Finding, ...]) -> list[tuple[str, Severity, str]]:
    return [(one.rule, one.severity, one.message) for one in findings]


def test_the_importer_of_the_guide_does_what_the_guide_says(checklist: Path) -> None:
    (shown,) = guide_blocks("yaml")
    loaded = load_definition(shown, name="house.yaml")
    assert loaded.is_valid, loaded.findings
    assert loaded.definition is not None
    assert [one.id for one in loaded.definition.steps] == ["step-1", "step-2"]
    again = load_definition(CHECKLIST, name="house.yaml")
    assert [(str(one.at), one.rule, one.message) for one in again.findings] == [
        ("house.yaml:5:5", "checklist", "`7` is not a string: left out")
    ]


def test_later_findings_point_to_what_a_part_was_made_of(checklist: Path) -> None:
    loaded = load_definition("checklist: x\nitems:\n  - ok\n  - say {{ nonsense }}\n", name="house.yaml")
    (found,) = [one for one in loaded.findings if one.severity is not Severity.MINOR]
    assert found.at is not None
    assert (found.at.line, found.where) == (4, "steps[1]")


def test_imported_workflows_are_listed_called_and_extended_like_ours(checklist: Path, tmp_path: Path) -> None:
    folder = tmp_path / "workflows"
    folder.mkdir()
    (folder / "house.yaml").write_text(CHECKLIST, encoding="utf-8")
    shelf = WorkflowLibrary([folder], cache_file=tmp_path / "home" / "kept" / "index.json")
    assert [(entry.id, entry.steps) for entry in shelf.entries()] == [("leave-the-house", 2)]
    assert shelf.load("leave-the-house").is_valid
    catalog = FolderCatalog([folder])
    calling: dict[str, Any] = {"id": "day", "steps": [{"id": "go", "workflow": "leave-the-house"}]}
    for ours in (calling, {"id": "day", "extends": "leave-the-house"}):
        loaded = load_data(ours, catalog=catalog)
        assert loaded.definition is not None, loaded.findings


def test_a_file_is_seen_again_when_its_importer_has_been_installed(install: Install, tmp_path: Path) -> None:
    folder, kept = tmp_path / "workflows", tmp_path / "home" / "kept" / "index.json"
    folder.mkdir()
    (folder / "house.yaml").write_text("odd: 1\n", encoding="utf-8")
    importers.installed.cache_clear()
    assert WorkflowLibrary([folder], cache_file=kept).entries() == ()
    install("odd", importer("return Conversion(value={'id': 'x', 'steps': ['do it']})"), odd="odd:Odd")
    assert [entry.id for entry in WorkflowLibrary([folder], cache_file=kept).entries()] == ["x"]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("raise ValueError('no idea')", "ValueError: no idea"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("raise BaseException('of its own')", "BaseException: of its own"),
        ("return self.convert(document)", "RecursionError: "),
        ("return None", "it returned NoneType, not a Conversion"),
        ("return {'id': 'x'}", "it returned dict, not a Conversion"),
        ("return Conversion(value={'id': object()})", "object is not JSON"),
        (f"return Conversion(value=[0] * {NODES_MAX + 1})", "Invalid: odd.yaml can't be read"),
        ("x = []; x.append(x); return Conversion(value=x)", "Invalid: odd.yaml can't be read"),
        ("return Conversion(value={}, flaws=['no'])", "it returned str as a flaw"),
        ("return Conversion(value={}, flaws=7)", "TypeError: "),
        ("return Conversion(value={}, origins={(): []})", "TypeError: "),
    ],
)
def test_an_importer_that_fails_or_returns_nonsense_is_a_finding_with_its_name(
    install: Install, body: str, said: str
) -> None:
    install("odd", importer(body), odd="odd:Odd")
    loaded = load({"odd": 1})
    ((rule, severity, message),) = words(loaded.findings)
    assert (loaded.definition, rule, severity) == (None, "odd", Severity.CRITICAL)
    assert message.startswith("the importer `odd` failed: ")
    assert said in message


def test_what_it_returns_goes_through_the_same_checks_as_what_an_author_writes(install: Install) -> None:
    install(
        "odd", importer("return Conversion(value={'id': 'x', 'steps': [{'id': 'a', 'nonsense': 1}]})"), odd="odd:Odd"
    )
    assert not load({"odd": 1}).is_valid
    assert {one.rule for one in load({"odd": 1}).findings} == {"unknown_key", "kind"}


def test_an_importer_that_recognises_its_own_results_gives_an_end(install: Install) -> None:
    install("odd", importer("return Conversion(value={'id': 'x', 'odd': 1, 'steps': ['do it']})"), odd="odd:Odd")
    assert [one.where for one in load({"odd": 1}).findings] == ["odd"]


def test_its_messages_are_limited_in_number_and_length(install: Install) -> None:
    many = "return Conversion(value={'id': 'x', 'steps': ['a']}, flaws=(note((i,), 'y' * 10**6) for i in range(10**9)))"
    install("odd", importer(many), odd="odd:Odd")
    loaded = load({"odd": 1})
    assert loaded.is_valid
    assert len(loaded.findings) == importers.FLAWS_MAX
    assert max(len(one.message) for one in loaded.findings) == importers.MESSAGE_MAX


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("raise RuntimeError('broken package')", "RuntimeError: broken package"),
        ("import not_there_at_all", "ModuleNotFoundError: "),
        ("raise BaseException('of its own')", "BaseException: of its own"),
        (importer("return None").replace("'odd' in", "exec('raise GeneratorExit') in"), "GeneratorExit"),
        ("Odd = 7", "is not an importer: it has no method `recognises`"),
        (importer("return None", name="Not A Name"), "can't be its name"),
        (importer("return None", name="workrail"), "there is an importer `workrail` already"),
        (importer("return None").replace("'odd' in", "1 / 0 in"), "ZeroDivisionError"),
    ],
)
def test_an_importer_that_can_not_be_used_is_named_and_hides_nothing(install: Install, source: str, said: str) -> None:
    install("aaa", source, aaa="aaa:Odd")
    loaded = load({"odd": 1})
    (found,) = [one for one in loaded.findings if one.rule in {"aaa", "odd"}]
    assert (found.severity, said in found.message) == (Severity.MINOR, True)
    assert load({"id": "x", "steps": ["do it"]}).findings == ()
    assert load_data(workflow(step())).is_valid
    install("good", importer("return Conversion(value={'id': 'x', 'steps': ['do it']})", name="good"), odd="good:Odd")
    assert load({"odd": 1}).is_valid


@pytest.mark.parametrize("name", sorted(one.name for one in files("handrail.library").joinpath("workflows").iterdir()))
def test_our_own_workflows_are_not_foreign(name: str) -> None:
    if name.endswith((".yaml", ".json")) and ".tests." not in name:
        text = files("handrail.library").joinpath("workflows", name).read_text("utf-8")
        assert not is_foreign(yaml.safe_load(text))


@pytest.mark.parametrize(
    "data",
    [{"odd": 1}, {"id": "x"}, {"id": "x", "steps": {}}, {"id": "x", "steps": [], "odd": 1}, {"steps": [{"odd": 1}]}],
)
def test_other_keys_or_no_steps_make_a_document_foreign(data: Any) -> None:
    assert is_foreign(data)


def test_neither_ours_nor_workrail_look_at_what_is_installed() -> None:
    script = (
        "import sys\n"
        "from handrail.library.loading import load_data\n"
        f"assert load_data({{'id': 'x', 'steps': ['do it']}}).is_valid\n"
        f"assert load_data({workflow(step())!r}).is_valid\n"
        "print('importlib.metadata' in sys.modules)\n"
        "load_data({'odd': 1})\n"
        "print('importlib.metadata' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "False\nTrue\n"


def test_workrail_is_offered_like_any_other_importer() -> None:
    text = (GUIDE.parents[2] / "pyproject.toml").read_text("utf-8")
    assert (
        '[project.entry-points."handrail.importers"]\nworkrail = "handrail.library.workrail.importer:WORKRAIL"' in text
    )


def test_one_importer_can_be_asked_by_name(checklist: Path, tmp_path: Path) -> None:
    (tmp_path / "house.yaml").write_text(CHECKLIST, encoding="utf-8")
    (tmp_path / "bed.json").write_text(json.dumps(workflow(step())), encoding="utf-8")
    settings = read_settings({"home": str(tmp_path / "home"), "project": str(tmp_path)}, {})

    def run(*given: str) -> Any:
        return json.loads(CliRunner().invoke(import_, [*given, "-o", "-", "--json"], obj=settings).stdout)

    for given in ([], ["--from", "auto"], ["--from", "checklist"]):
        (one,) = run(str(tmp_path / "house.yaml"), *given)["imported"]
        assert one["text"].startswith(
            "# Converted by `handrail workflow import --from checklist`.\n# Changed:\n#   items[2]: `7` is not a string"
        )
    assert "not recognised by the importer `workrail`" in str(run(str(tmp_path / "house.yaml"), "--from", "workrail"))
    assert "not recognised by the importer `checklist`" in str(run(str(tmp_path / "bed.json"), "--from", "checklist"))
    assert "there is no importer 'chekclist'" in str(run(str(tmp_path / "house.yaml"), "--from", "chekclist"))
    with pytest.raises(NotFound) as caught:
        require_importer("nonsense")
    assert "workrail" in caught.value.hint
