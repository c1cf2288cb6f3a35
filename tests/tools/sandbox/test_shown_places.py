"""What a tool chain may show to its commands: never a home folder, nothing secret, nothing private."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from handrail.engine.sandbox import Job
from handrail.tools.sandbox.shown_places import SECRET_PLACES, ShownPlaces, Surroundings, shown_places
from outside.debian import bubblewrap


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for name in (".ssh", ".config/tool", ".cargo/bin", "tools/bin", "project"):
        (tmp_path / "home" / name).mkdir(parents=True)
    (tmp_path / "home" / ".cargo" / "credentials.toml").write_text("token")
    (tmp_path / "home" / ".ssh" / "id").write_text("key")
    return tmp_path / "home"


def around(home: Path, *private: Path) -> Surroundings:
    return Surroundings(visible=[Path("/usr"), home / "project"], homes=[home], private=private)


@pytest.mark.parametrize("name", ["", "..", "../..", ".ssh", ".ssh/id", ".config/tool", "project", "gone", "link"])
def test_what_is_secret_or_holds_a_home_is_never_shown(home: Path, name: str) -> None:
    (home / "link").symlink_to(home / ".ssh")
    path = (home / name).resolve() if ".." in name else home / name
    assert shown_places([path], around(home)) == ShownPlaces()


def test_the_root_relative_paths_and_what_the_system_has_are_not_added(home: Path) -> None:
    assert shown_places([Path("/"), Path("tools"), Path("/usr/bin")], around(home)) == ShownPlaces()


def test_secrets_inside_a_shown_folder_are_covered(home: Path) -> None:
    (home / ".cargo" / "credentials").mkdir()
    shown = shown_places([home / ".cargo", home / ".cargo" / "bin"], around(home))
    assert shown.folders == (home / ".cargo",)
    assert shown.covered_files == (home / ".cargo" / "credentials.toml",)
    assert shown.covered_folders == (home / ".cargo" / "credentials",)


def test_what_is_private_is_not_shown_nor_anything_in_it(home: Path) -> None:
    private = around(home, home / "tools")
    assert shown_places([home / "tools", home / "tools" / "bin"], private) == ShownPlaces()


def test_a_link_is_made_again_unless_it_is_seen_already(home: Path) -> None:
    (home / "current").symlink_to(home / "tools")
    (home / "project" / ".venv").symlink_to(home / "tools")
    (home / "py").symlink_to("/usr/bin")
    wanted = [home / "current", home / "current" / "bin", home / "project" / ".venv", home / "py"]
    shown = shown_places(wanted, around(home))
    assert shown.folders == (home / "tools",)
    assert shown.links == ((home / "current", home / "tools"), (home / "py", Path("/usr/bin").resolve()))


async def test_a_command_sees_its_tools_and_not_the_secrets_beside_them(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not sys.platform.startswith("linux"):
        pytest.skip("the sandbox needs Linux")
    from handrail.tools.sandbox.bubblewrap import Bubblewrap

    monkeypatch.setenv("HOME", str(home))
    tool = home / "tools" / "bin" / "tool"
    tool.write_text("#!/bin/sh\necho works; cat $1/.cargo/credentials.toml $1/.ssh/id; ls -A $1; touch $1/tools/x\n")
    tool.chmod(0o755)
    (home / "tool").symlink_to(tool)
    shows = (home, home / ".ssh", home / ".cargo", tool, home / "tool")
    sandbox = Bubblewrap(home / "project", program=str(bubblewrap()))
    for kept in (True, False):
        ran = await sandbox.run(Job(argv=(str(home / "tool"), str(home)), shows=shows, kept=kept))
        assert ran.stdout.split() == ["works", ".cargo", "project", "tool", "tools"], ran
        assert ran.stderr.count("No such file") == 1
    assert not (home / "tools" / "x").exists()


def test_the_usual_places_of_secrets_are_known() -> None:
    assert {".ssh", ".aws", ".config", ".gnupg", ".netrc", ".npmrc", ".pypirc", ".kube"} <= set(SECRET_PLACES)
