"""A stranger's project with pipes in place of the files that say how it is built: no rule waits for one."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from handrail.domain.definition.model import Category
from handrail.engine.checking.rule import RuleUnavailable
from handrail.engine.sandbox import Job, Ran
from handrail.engine.tool import Progress, ToolFailed, silent
from handrail.rules.registry import MODULES, RuleRegistry
from rules.on_project import setting_of, write

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pipes are POSIX's")

LIMIT_S = 60
NEEDED: Mapping[str, Mapping[str, Any]] = {
    "command_succeeds": {"argv": ["make", "it"]},
    "coverage_at_least": {"percent": 1},
    "diff_within": {"files": 1},
    "file_contains": {"path": "pyproject.toml", "text": "x"},
    "file_exists": {"path": "pyproject.toml"},
    "files_changed": {"paths": ["*"]},
    "files_exist": {"paths": ["pyproject.toml"]},
    "http_ok": {"url": "http://example.test"},
    "tests_fail": {"tests": ["test_one.py"]},
    "tests_notice": {"breaks": [{"test": "test_one.py", "file": "one.py", "old": "a", "new": "b"}]},
    "tests_prove": {"tests": ["test_one.py"]},
}
NAMES = (
    *(".python-version", ".pdm-python", ".tool-versions", ".nvmrc", ".node-version", ".yarnrc.yml", ".pnp.cjs"),
    *("environment.yml", "rust-toolchain", "rust-toolchain.toml", "pyproject.toml", "package.json", "tox.ini"),
    *("setup.cfg", "ruff.toml", ".ruff.toml", "mypy.ini", "eslint.config.js", ".pre-commit-config.yaml", "go.mod"),
    *("Cargo.toml", "pom.xml", "build.gradle", "poetry.lock", "Pipfile", "hatch.toml", "Makefile", "uv.lock"),
    *(".gitignore", ".gitattributes", "coverage.xml", "package-lock.json", "tsconfig.json"),
)
PROGRAMS = (
    *(".venv/bin/python", ".venv/bin/python3", ".venv/bin/pytest", ".venv/bin/ruff", ".venv/pyvenv.cfg"),
    *("node_modules/.bin/vitest", "node_modules/.bin/mocha", "node_modules/.bin/eslint", "node_modules/.bin/jest"),
    *("node_modules/mocha/package.json", "node_modules/vitest/package.json", "gradlew", "mvnw"),
)
SOURCES = {
    "one.py": "",
    "test_one.py": "def test_x(): pass\n",
    "one.test.js": "",
    "main.go": "package main\n",
    "a.rs": "",
    "A.java": "",
}


class NotHere:
    """A sandbox in which nothing runs: what is looked at outside of it is what counts here."""

    caveat = ""

    async def run(self, job: Job, *, progress: Progress = silent) -> Ran:
        raise ToolFailed(Category.PERMISSION, "nothing runs here")

    async def trial(self) -> str:
        return ""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("pipes")
    write(root, SOURCES)
    for name in (*NAMES, *PROGRAMS):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        os.mkfifo(root / name, 0o777)
    return root


@pytest.mark.parametrize("name", sorted(MODULES))
async def test_no_rule_waits_for_a_pipe(name: str, project: Path) -> None:
    rule = await RuleRegistry().find(name)
    assert rule is not None
    setting = replace(setting_of(project), sandbox=NotHere())
    async with asyncio.timeout(LIMIT_S):
        with suppress(RuleUnavailable):
            await rule.apply(NEEDED.get(name, {}), setting)
