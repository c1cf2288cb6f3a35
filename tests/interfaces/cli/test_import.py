"""`handrail workflow import`: files and folders in, YAML and a list of what was kept as text out."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from handrail.interfaces.cli.workflow.import_ import import_
from handrail.library.loading import load_definition
from handrail.settings import read_settings
from interfaces.shell import Shell
from library.workrail.garden import FILES, step, workflow


class Importing:
    """The command with a project of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.settings = read_settings({"home": str(folder / "home"), "project": str(folder)}, {})

    def run(self, *words: str) -> Result:
        return CliRunner().invoke(import_, list(words), obj=self.settings)

    def json(self, *words: str, code: int = 0) -> Any:
        result = self.run(*words, "--json")
        assert result.exit_code == code, result.output
        return json.loads(result.stdout)

    def write(self, name: str, data: Any) -> str:
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(data), encoding="utf-8")
        return str(file)


@pytest.fixture
def importing(tmp_path: Path) -> Importing:
    return Importing(tmp_path)


def valid_id(file: Path) -> str:
    """The id of the valid workflow in a file."""
    loaded = load_definition(file.read_bytes(), name=str(file))
    assert loaded.is_valid, loaded.findings
    assert loaded.definition is not None
    return loaded.definition.id


def test_a_file_goes_into_the_projects_own_folder_under_its_id(importing: Importing) -> None:
    source = FILES / "v0.3.0.json"
    reply = importing.json(str(source))
    out = importing.folder / ".handrail" / "workflows" / "garden-open-day.yaml"
    (one,) = reply["imported"]
    assert (one["file"], one["id"], one["out"]) == (str(source), "garden/open-day", str(out))
    assert valid_id(out) == "garden/open-day"
    places = {kept["where"] for kept in one["kept"]}
    assert {"metricsProfile", "steps[0].templateCall", "steps[2].audit"} <= places
    assert all(kept["severity"] == "minor" and kept["at"]["file"] == str(source) for kept in one["kept"])


def test_the_words_say_what_was_kept_as_text_and_the_file_does_too(importing: Importing) -> None:
    out = importing.folder / "bed.yaml"
    result = importing.run(str(FILES / "v0.2.0.json"), "-o", str(out))
    assert result.exit_code == 0
    assert "garden/plan-a-bed" in result.stdout
    for text in (result.stdout, out.read_text("utf-8")):
        assert "steps[0].outputContract" in text
    assert valid_id(out) == "garden/plan-a-bed"


def test_a_folder_is_imported_whole_and_what_is_not_theirs_is_skipped(importing: Importing) -> None:
    importing.write("theirs/a.json", workflow(step(), id="a"))
    importing.write("theirs/b.json", workflow(step(), id="garden.b"))
    importing.write("theirs/own.json", {"id": "own", "steps": ["do it"]})
    importing.write("theirs/notes.txt", "nothing")
    reply = importing.json(str(importing.folder / "theirs"), "-o", str(importing.folder / "out"))
    assert sorted(file.name for file in (importing.folder / "out").iterdir()) == ["a.yaml", "garden-b.yaml"]
    assert [Path(one["file"]).name for one in reply["skipped"]] == ["own.json"]
    assert reply["failed"] == []


def test_a_broken_file_is_reported_and_the_others_are_written(importing: Importing) -> None:
    importing.write("theirs/a.json", workflow(step(), id="a"))
    importing.write("theirs/b.json", workflow(step(runCondition={"nonsense": 1}), id="b"))
    (importing.folder / "theirs" / "c.json").write_text("{", encoding="utf-8")
    reply = importing.json(str(importing.folder / "theirs"), "-o", str(importing.folder / "out"), code=5)
    assert [Path(one["file"]).name for one in reply["failed"]] == ["b.json", "c.json"]
    assert [one["where"] for one in reply["failed"][0]["findings"]] == ["steps[0].runCondition.nonsense"]
    assert [file.name for file in (importing.folder / "out").iterdir()] == ["a.yaml"]
    words = importing.run(str(importing.folder / "theirs" / "b.json"), "-o", str(importing.folder / "other.yaml"))
    assert (words.exit_code, "not converted" in words.stdout) == (5, True)


def test_the_text_can_go_to_stdout_and_then_nothing_is_written(importing: Importing) -> None:
    result = importing.run(str(FILES / "v0.0.1.json"), "-o", "-")
    assert result.exit_code == 0
    assert load_definition(result.stdout, name="out.yaml").is_valid
    assert not (importing.folder / ".handrail").exists()
    assert importing.json(str(FILES / "v0.0.1.json"), "-o", "-")["imported"][0]["text"] == result.stdout


def test_nothing_is_written_over_unless_one_says_so(importing: Importing) -> None:
    file = importing.write("a.json", workflow(step(), id="a"))
    out = importing.folder / "a.yaml"
    out.write_text("mine", encoding="utf-8")
    assert importing.json(file, "-o", str(out), code=6)["error"]["name"] == "conflict"
    assert out.read_text("utf-8") == "mine"
    assert importing.run(file, "-o", str(out), "--force").exit_code == 0
    assert valid_id(out) == "a"


def test_two_files_of_one_id_are_not_mixed_up(importing: Importing) -> None:
    for name in ("a", "b"):
        importing.write(f"theirs/{name}.json", workflow(step(), id="same"))
    importing.json(str(importing.folder / "theirs"), code=6)
    assert not (importing.folder / ".handrail").exists()


def test_what_is_not_there_or_not_theirs_is_refused(importing: Importing) -> None:
    own = importing.write("own.json", {"id": "own", "steps": ["do it"]})
    assert importing.json(str(importing.folder / "nobody.json"), code=3)["error"]["name"] == "not_found"
    assert "not recognised by any importer" in importing.json(own, code=5)["error"]["message"]


@pytest.mark.skipif(sys.platform == "win32", reason="links need a right there")
def test_a_file_of_the_project_that_is_a_link_out_of_it_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    shell = Shell(tmp_path / "project")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "key.json").write_text("first-line-of-a-key\n", encoding="utf-8")
    (shell.folder / "legacy.json").symlink_to(outside / "key.json")
    (shell.folder / "linked").symlink_to(outside)
    for name in ("legacy.json", "linked/key.json", "linked"):
        refused = shell.run("workflow", "import", str(shell.folder / name))
        assert refused.exit_code == 8
        assert "leads out of" in refused.stderr
        assert "first-line" not in refused.output
    named = shell.run("workflow", "import", str(outside / "key.json"))
    assert (named.exit_code, "leads out of" in named.output) == (5, False)
