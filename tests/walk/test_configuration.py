"""The configuration guide: its file holds every key that there is, and handrail accepts it as it stands."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from handrail.domain.trust.reach import ANY_NAME, REACHES, Reach, SettingPath
from handrail.settings import Choices, read_settings
from handrail.tools.shell import ShellConfiguration
from tidy.yardstick import ROOT

STORE, CHECKS = ("store",), ("checks",)
"""Settings that are not in the file: the guide says why. `checks` is a table there."""
TEXT = (ROOT / "docs" / "guides" / "configuration.md").read_text(encoding="utf-8")
(BLOCK,) = re.findall(r"```toml\n(.*?)```", TEXT, re.DOTALL)
FILE: Mapping[str, Any] = tomllib.loads(BLOCK)


def has(table: Any, path: SettingPath) -> bool:
    if not path:
        return True
    name, *rest = path
    if not isinstance(table, Mapping):
        return False
    inner = list(table.values()) if name == ANY_NAME else [table[name]] if name in table else []
    return any(has(one, tuple(rest)) for one in inner)


@pytest.mark.parametrize("path", [one.path for one in REACHES], ids=".".join)
def test_the_file_shows_every_key(path: SettingPath) -> None:
    assert has(FILE, path) is (path != STORE)


def test_the_file_shows_the_defaults() -> None:
    settings = {name: value for name, value in FILE.items() if not isinstance(value, dict)}
    others = {name for (name,) in (STORE, CHECKS)}
    assert settings == {name: value for name, value in msgspec.to_builtins(Choices()).items() if name not in others}
    assert msgspec.convert(FILE["shell"], ShellConfiguration) == ShellConfiguration()


def test_handrail_accepts_the_file_as_it_stands(tmp_path: Path) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    home.mkdir()
    project.mkdir()
    (home / "config.toml").write_text(BLOCK, encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HANDRAIL_")}
    command = [sys.executable, "-m", "handrail", "--home", str(home), "--project", str(project)]
    for words in (["config", "show", "--json"], ["tools", "list", "--json"], ["approvals", "--json"]):
        done = subprocess.run([*command, *words], env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (words, done.stderr)
        assert json.loads(done.stdout)


def test_only_here_is_said_of_what_only_the_home_may_set() -> None:
    said: set[SettingPath] = set()
    table = ""
    for line in BLOCK.splitlines():
        head, name = re.match(r"\[([\w.\"-]+)\]", line), re.match(r"(\w+) =", line)
        table = head[1] if head else table
        if "only here" in line:
            said.add(tuple(filter(None, (table, name[1] if name else ""))))
    home = {tuple(part for part in one.path if part != ANY_NAME) for one in REACHES if one.reach is Reach.HOME}
    assert said == home - {STORE}


def test_a_variable_sets_any_setting(tmp_path: Path) -> None:
    settings = read_settings({}, {"HANDRAIL_HOME": str(tmp_path), "HANDRAIL_CALLS": "20"})
    assert settings.choices.calls == 20
