"""Which command a Python project starts its tests by: its words, as far as they say what is tested."""

from __future__ import annotations

from pathlib import Path

import pytest

from handrail.rules.files.project import project_at
from handrail.rules.toolchain.python_projects.own_command import OwnCommand, own_command
from handrail.rules.toolchain.python_projects.own_script import OwnScript, own_script
from handrail.rules.toolchain.site import site_at
from rules.on_project import write

PYTEST, UNITTEST = "pytest", "unittest"
TESTS = {"tests/unit/test_a.py": "", "tests/more/test_b.py": "", "checks/check_a.py": ""}


def command_of(folder: Path, files: dict[str, str]) -> OwnCommand | None:
    write(folder, {**TESTS, **files})
    return own_command(site_at(project_at(folder.resolve(), ())))


def makefile(*lines: str) -> dict[str, str]:
    return {"Makefile": "PYTHON ?= python3\n.PHONY: test\ntest: lint\n" + "".join(f"\t{line}\n" for line in lines)}


@pytest.mark.parametrize(
    ("files", "runner", "options", "paths"),
    [
        (makefile("pytest tests/unit"), PYTEST, (), ("tests/unit",)),
        (makefile("@$(PYTHON) -m pytest -q --tb short tests/unit"), PYTEST, (), ("tests/unit",)),
        (makefile("uv run pytest -x -n auto --cov=shop -m 'not slow'"), PYTEST, ("-m", "not slow"), ()),
        (makefile("coverage run -m pytest tests/unit && coverage report"), PYTEST, (), ("tests/unit",)),
        (makefile("SHOP=1 .venv/bin/pytest $(ARGS) tests/unit/"), PYTEST, (), ("tests/unit/",)),
        (makefile("pytest tests/unit", "pytest tests/more"), PYTEST, (), ("tests/unit", "tests/more")),
        (makefile("pytest --cov shop --ignore tests/more"), PYTEST, ("--ignore", "tests/more"), ()),
        (
            makefile("python3 -m unittest discover -v -s checks -p 'check_*.py' -t ."),
            UNITTEST,
            ("discover", "-s", "checks", "-p", "check_*.py", "-t", "."),
            (),
        ),
        (
            {"tox.ini": "[testenv]\ndeps = pytest\ncommands =\n    ruff check\n    pytest {posargs:tests/unit}\n"},
            PYTEST,
            (),
            ("tests/unit",),
        ),
        ({"tox.ini": "[testenv]\ncommands = python -m unittest {posargs}\n"}, UNITTEST, (), ()),
        ({"pyproject.toml": '[tool.poe.tasks]\ntest = "pytest tests/more"\n'}, PYTEST, (), ("tests/more",)),
        ({"pyproject.toml": '[tool.pdm.scripts]\ntest = {cmd = "pytest tests/more"}\n'}, PYTEST, (), ("tests/more",)),
        (
            {"pyproject.toml": '[tool.hatch.envs.dev.scripts]\ntest = ["pytest tests/more {args}"]\n'},
            PYTEST,
            (),
            ("tests/more",),
        ),
    ],
)
def test_the_words_that_say_what_is_tested_are_taken(
    tmp_path: Path, files: dict[str, str], runner: str, options: tuple[str, ...], paths: tuple[str, ...]
) -> None:
    found = command_of(tmp_path, files)
    assert found is not None
    assert (found.runner, found.options, found.paths, found.where) == (runner, options, paths, next(iter(files)))


@pytest.mark.parametrize(
    "files",
    [
        {},
        makefile("./run-tests.sh"),
        makefile("pip install pytest"),
        makefile("pytest no/such/folder"),
        makefile("pytest -k a", "pytest -k b"),
        makefile("pytest 'tests/unit"),
        {"Makefile": "all:\n\tpytest\n"},
        {"tox.ini": "no tox file"},
        {"pyproject.toml": "no toml"},
        {"pyproject.toml": '[tool.poe]\ntasks = "none"\n'},
    ],
)
def test_what_is_not_understood_leaves_the_runner_to_find_its_tests(tmp_path: Path, files: dict[str, str]) -> None:
    assert command_of(tmp_path, files) is None


@pytest.mark.parametrize(
    "files",
    [
        makefile("PYTHONPATH=src SHOP=1 $(PYTHON) -m pytest"),
        {"Makefile": "export PYTHONPATH := src\nexport SHOP = 1\ntest:\n\tpytest\n"},
        {"tox.ini": "[testenv]\nsetenv =\n    PYTHONPATH = src\n    SHOP = 1\ncommands = pytest {posargs}\n"},
    ],
)
def test_the_variables_that_it_sets_are_taken(tmp_path: Path, files: dict[str, str]) -> None:
    found = command_of(tmp_path, files)
    assert found is not None
    assert found.env == {"PYTHONPATH": "src", "SHOP": "1"}


def test_a_command_that_calls_no_known_runner_is_run_as_it_is(tmp_path: Path) -> None:
    def script_of(name: str, files: dict[str, str]) -> OwnScript | None:
        write(tmp_path / name, files)
        return own_script(site_at(project_at((tmp_path / name).resolve(), ())))

    assert script_of("make", makefile("$(PYTHON) run_tests.py")) == OwnScript("test", (), {})
    tox = {"tox.ini": "[testenv]\ncommands =\n    behave\n    python more.py\n"}
    assert script_of("tox", tox) == OwnScript("", ("behave", "python more.py"), {})
    assert script_of("open", {"tox.ini": "[testenv]\ncommands = behave {envtmpdir}\n"}) is None
    assert script_of("none", {"a.py": ""}) is None
