"""`handrail mcp` understands its arguments as the rest of the command line does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from handrail.interfaces.mcp.stdio import folders
from handrail.interfaces.mcp.stdio.arguments import TOOLSETS, Options, UsageError, is_for_mcp, read_options
from handrail.interfaces.mcp.surface.offer import Toolset
from handrail.settings import default_home, read_settings

ALL = ("guide", "run", "journal")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("mcp", True),
        ("--home /x mcp --toolsets run", True),
        ("--home=/x --log-level debug mcp", True),
        ("--project mcp mcp", True),
        ("--project mcp", False),
        ("run mcp", False),
        ("--json mcp", False),
        ("", False),
    ],
)
def test_the_command_is_found_among_the_words(words: str, expected: bool) -> None:
    assert is_for_mcp(words.split()) is expected


def test_options_stand_before_and_after_the_command_in_both_spellings() -> None:
    none: dict[str, str | None] = {"home": None, "project": None, "log_level": None}
    assert read_options(["mcp"], {}) == Options(ALL, none)
    given = read_options(
        ["--home", "/a", "mcp", "--project=/b", "--toolsets=journal, guide", "--log-level", "info"], {}
    )
    assert given == Options(("guide", "journal"), {"home": "/a", "project": "/b", "log_level": "info"})
    assert read_options(["mcp", "--help"], {}) is None


def test_toolsets_come_from_the_environment_unless_a_flag_says_otherwise() -> None:
    environment = {"HANDRAIL_TOOLSETS": "run"}
    assert read_options(["mcp"], environment) == read_options(["mcp", "--toolsets", "run"], {})
    given = read_options(["mcp", "--toolsets", "guide"], environment)
    assert given is not None
    assert given.toolsets == ("guide",)


def test_the_toolsets_are_those_of_the_surface() -> None:
    assert set(TOOLSETS) == {toolset.value for toolset in Toolset}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("mcp --toolsets gide", "no such toolset: gide; there are guide, run, journal"),
        ("mcp --bogus", "no such option: --bogus; there are --home, --project, --log-level, --toolsets"),
        ("mcp now", "no such argument: now"),
        ("mcp mcp", "no such argument: mcp"),
        ("mcp --home", "--home needs a value"),
        ("mcp --log-level loud", "--log-level can't be 'loud'"),
    ],
)
def test_what_is_not_understood_is_said(words: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        read_options(words.split(), {})


@pytest.mark.parametrize("words", [["mcp", "--bogus"], ["mcp", "--help"], ["--bogus", "mcp"]])
def test_the_program_ends_with_the_exit_code_of_usage(words: list[str], tmp_path: Path) -> None:
    ran = subprocess.run([sys.executable, "-m", "handrail", *words], cwd=tmp_path, capture_output=True, text=True)
    if "--help" in words:
        assert (ran.returncode, ran.stderr) == (0, "")
        assert "--toolsets" in ran.stdout
    else:
        assert (ran.returncode, ran.stdout) == (2, "")
        assert "bogus" in ran.stderr


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"HANDRAIL_HOME": "/srv/h", "HANDRAIL_PROJECT": "sub"},
        {"HANDRAIL_HOME": "~/h"},
        {"XDG_DATA_HOME": "/data"},
    ],
)
@pytest.mark.parametrize("flags", [{}, {"home": "there", "project": "/p/."}])
def test_the_folders_are_those_of_the_settings(environment: dict[str, str], flags: dict[str, str | None]) -> None:
    settings = read_settings(flags, environment)
    found = folders.find_folders(flags, environment)
    assert (Path(found.home), Path(found.project)) == (settings.home, settings.project)


@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
@pytest.mark.parametrize("environment", [{}, {"XDG_DATA_HOME": "/data", "LOCALAPPDATA": "/local"}])
def test_the_default_home_is_that_of_the_settings(platform: str, environment: dict[str, str]) -> None:
    assert Path(folders.default_home(environment, platform)) == Path(default_home(environment, platform))
