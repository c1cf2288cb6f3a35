"""Settings: who wins, where each came from, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from handrail.domain.errors import Invalid
from handrail.settings import TABLES, default_home, read_settings


def write(folder: Path, text: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.toml").write_text(text, encoding="utf-8")


def test_flags_win_over_environment_over_project_over_home_over_defaults(tmp_path: Path) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    write(home, 'log_days = 1\nbusy = "3s"\ncheckpoint_every = 4\n')
    write(project / ".handrail", 'busy = "2s"\ncheckpoint_every = 2\n[http]\nallow = ["127.0.0.1"]\n')
    environment = {"HANDRAIL_HOME": str(home), "HANDRAIL_CHECKPOINT_EVERY": "3", "HANDRAIL_LOG_LEVEL": "info"}
    settings = read_settings({"project": str(project), "log_level": "debug"}, environment)
    choices = settings.choices
    assert (choices.log_level, choices.checkpoint_every, choices.busy, choices.log_days) == ("debug", 3, "2s", 1)
    assert choices.store == ""
    origins = settings.origins
    assert (origins["log_level"], origins["checkpoint_every"]) == ("--log_level", "HANDRAIL_CHECKPOINT_EVERY")
    assert (origins["busy"], origins["log_days"]) == (
        str(project / ".handrail" / "config.toml"),
        str(home / "config.toml"),
    )
    assert (origins["store"], origins["home"]) == ("default", "HANDRAIL_HOME")


def test_all_state_lives_under_home(tmp_path: Path) -> None:
    settings = read_settings({"home": str(tmp_path)}, {})
    for place in (settings.journal, settings.keys, settings.checkpoints):
        assert place.is_relative_to(tmp_path)
    assert settings.workflows == Path.cwd() / ".handrail" / "workflows"


@pytest.mark.parametrize(
    ("platform", "environment", "home"),
    [
        ("linux", {}, "~/.local/share/handrail"),
        ("linux", {"XDG_DATA_HOME": "/data"}, "/data/handrail"),
        ("darwin", {}, "~/Library/Application Support/handrail"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/handrail"),
    ],
)
def test_home_is_the_platforms_data_folder(platform: str, environment: dict[str, str], home: str) -> None:
    assert Path(default_home(environment, platform)) == Path(home)


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("log_days = 0", "log_days", "config.toml"),
        ('busy = "soon"', "busy", "config.toml"),
        ('log_level = "loud"', "log_level", "config.toml"),
        ("log_dais = 3", "unknown setting `log_dais`", "did you mean `log_days`?"),
        ("zzz = 3", "unknown setting `zzz`", "known: "),
        ("log_days =", "can't be read", "fix "),
        ("[htpp]\nallow = []", "config.toml: unknown table [htpp]", "did you mean `http`?"),
        ("[zzz]", "unknown table [zzz]", "known: approvals, backup, cache, checks, groups, http"),
        ("http = 3", "unknown setting `http`", "known: "),
        ("[log_days]", "unknown table [log_days]", "known: "),
        ('log_level = "wrning"', "can't be 'wrning': it is `debug` or", "did you mean `warning`?"),
        ('[checks]\nsandbox = "of"', '`[checks] sandbox` can\'t be \'of\': it is "required" or "off"', "mean `off`?"),
        ('[checks]\nsanbox = "off"', "unknown key `sanbox` of the table [checks]", "did you mean `sandbox`?"),
        ('checks = "off"', "setting `checks` can't be 'off': it is `run` or `plain`", "in the table [checks]: sandbox"),
        ('checks = "plain"\n[checks]\n', "can't be read", "HANDRAIL_CHECKS"),
    ],
)
def test_an_invalid_setting_is_refused_with_its_origin(tmp_path: Path, text: str, message: str, hint: str) -> None:
    write(tmp_path, text)
    with pytest.raises(Invalid) as refused:
        read_settings({"home": str(tmp_path)}, {})
    assert message in str(refused.value)
    assert hint in refused.value.hint


def test_an_unknown_table_of_the_project_is_refused_like_one_of_the_home(tmp_path: Path) -> None:
    write(tmp_path / ".handrail", "[toools]")
    with pytest.raises(Invalid, match=r"\.handrail/config\.toml: unknown table \[toools\]") as refused:
        read_settings({"home": str(tmp_path / "home"), "project": str(tmp_path)}, {})
    assert refused.value.hint == "did you mean `tools`?"


def test_every_table_that_a_part_reads_is_known(tmp_path: Path) -> None:
    write(tmp_path, "".join(f"[{name}]\n" for name in TABLES))
    assert set(read_settings({"home": str(tmp_path)}, {}).tables) == set(TABLES)


def test_a_home_inside_the_project_is_no_neutral_folder(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (tmp_path / "link").symlink_to(project)

    def neutral(home: Path, at: Path) -> Path:
        return read_settings({"home": str(home), "project": str(at)}, {}).neutral

    assert neutral(tmp_path / "home", project) == tmp_path / "home" / "servers"
    for home in (project / ".handrail", tmp_path / "link" / "deep" / "home"):
        assert neutral(home, project) == neutral(home, tmp_path / "link") == Path(home.anchor)
