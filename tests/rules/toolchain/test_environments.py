"""What the developer uses is found and works in the real sandbox, without any setting."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from handrail.rules.compiles import compiles
from handrail.rules.coverage_at_least import coverage_at_least
from handrail.rules.lint_clean import lint_clean
from handrail.rules.tests_pass import tests_pass
from rules.on_project import write
from rules.toolchain.workshop import judged, made, program

if not sys.platform.startswith("linux"):
    pytest.skip("environments were not tried: the sandbox needs Linux", allow_module_level=True)

from rules.toolchain.environments import BASE, COVERAGE, PACKAGES, PYTEST, VERSION, by_default, environment, mark

CALC = {
    "pyproject.toml": "[project]\nname = 'my_calc'\n",
    "calc.py": "def add(a, b):\n    return a + b\n",
    "test_calc.py": (
        "import unittest\nimport calc\n\n\nclass Adding(unittest.TestCase):\n"
        "    def test_add(self):\n        self.assertEqual(calc.add(1, 2), 3)\n"
    ),
}
PYTEST_STYLE = {"test_calc.py": "import calc\n\n\ndef test_add():\n    assert calc.add(1, 2) == 3\n"}
STEALING = {
    "pytest_cov/__init__.py": (
        "import sys\n\n\ndef pytest_addoption(parser):\n    for name in ('--cov', '--cov-fail-under'):\n"
        "        parser.addoption(name)\n    parser.addoption('--no-cov', action='store_true')\n\n\n"
        "def pytest_load_initial_conftests(early_config):\n    if not early_config.known_args_namespace.no_cov:\n"
        "        sys.settrace(None)\n"
    ),
    "pytest_cov-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: pytest-cov\nVersion: 1.0\n",
    "pytest_cov-1.0.dist-info/entry_points.txt": "[pytest11]\npytest_cov = pytest_cov\n",
}
"""A plugin that measures in our place, as pytest-cov does: it takes the trace away."""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's home folder, without anything in it; PATH has only the system's programs."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("PATH", "/usr/local/bin:/usr/bin:/bin")
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX", "PYENV_ROOT", "PYENV_VERSION", "PYTHONPATH", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    return folder


@pytest.fixture
def project(home: Path) -> Path:
    return made(home / "work" / "calc", CALC)


def _venv(home: Path, project: Path) -> Path:
    return environment(project / ".venv")


def _linked(home: Path, project: Path) -> Path:
    """uv's way: the interpreter is reached by a link to a folder with the whole version."""
    store = home / ".local" / "share" / "uv" / "python"
    store.mkdir(parents=True)
    (store / "cpython-3-linux").symlink_to(BASE)
    return environment(project / ".venv", python=store / "cpython-3-linux" / "bin" / "python3")


def _activated(home: Path, project: Path) -> Path:
    os.environ["VIRTUAL_ENV"] = str(home / "envs" / "calc")  # the fixture puts it back
    return environment(home / "envs" / "calc")


def _link_in_the_project(home: Path, project: Path) -> Path:
    environment(home / "envs" / "calc")
    (project / "venv").symlink_to(home / "envs" / "calc")
    return project / "venv"


def _poetry(home: Path, project: Path) -> Path:
    (project / "poetry.lock").write_text("")
    return environment(home / ".cache" / "pypoetry" / "virtualenvs" / f"my-calc-{mark(project)}-py3.11")


def _hatch(home: Path, project: Path) -> Path:
    (project / "hatch.toml").write_text("")
    folder = home / ".local" / "share" / "hatch" / "env" / "virtual" / "my-calc" / mark(project)
    environment(folder / "my-calc")
    return environment(folder / "hatch-test.py3.11")


def _pipenv(home: Path, project: Path) -> Path:
    (project / "Pipfile").write_text("")
    made_for = environment(home / ".local" / "share" / "virtualenvs" / "calc-x")
    (made_for / ".project").write_text(str(project))
    return made_for


def _pdm(home: Path, project: Path) -> Path:
    made_for = environment(home / ".local" / "share" / "pdm" / "venvs" / "calc-x")
    (project / ".pdm-python").write_text(f"{made_for}/bin/python")
    return made_for


def _tox(home: Path, project: Path) -> Path:
    return environment(project / ".tox" / "py3")


def _workspace(home: Path, project: Path) -> Path:
    return environment(project.parent / ".venv")


ENVIRONMENTS: dict[str, tuple[Callable[[Path, Path], Path], str]] = {
    ".venv": (_venv, "the environment .venv of the project"),
    "uv": (_linked, "the environment .venv of the project"),
    "VIRTUAL_ENV": (_activated, "VIRTUAL_ENV names it"),
    "a link": (_link_in_the_project, "the environment venv of the project"),
    "poetry": (_poetry, "the environment that poetry keeps for the project"),
    "hatch": (_hatch, "the environment that hatch keeps for the project"),
    "pipenv": (_pipenv, "the environment that pipenv keeps for the project"),
    "pdm": (_pdm, ".pdm-python names it"),
    "tox": (_tox, "the environment .tox/py3 of the project"),
    "workspace": (_workspace, "the environment .venv of the workspace"),
}


@pytest.mark.parametrize("kind", ENVIRONMENTS)
async def test_tests_run_in_the_environment_that_the_developer_uses(
    home: Path, project: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VIRTUAL_ENV", "")
    make, why = ENVIRONMENTS[kind]
    folder = make(home, project)
    outcome = await judged(tests_pass, by_default(project))
    assert outcome.findings == ()
    assert outcome.evidence is not None
    assert outcome.evidence.counts["passed"] == 1
    python = Path(outcome.evidence.ran[0])
    assert python.parent == folder / "bin"
    assert outcome.evidence.chosen[python.name] == f"{python} ({why})"
    assert outcome.evidence.tools[python.name].startswith("3.")


async def test_the_environment_of_the_project_comes_before_a_pytest_on_path(
    home: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment(project / ".venv", PYTEST)
    write(project, PYTEST_STYLE)
    others = environment(home / "others", PYTEST)
    shutil.copy2(program(home / "bin", "pytest"), others / "bin")
    monkeypatch.setenv("PATH", f"{others / 'bin'}:/usr/bin:/bin")
    outcome = await judged(tests_pass, by_default(project))
    assert outcome.findings == ()
    assert outcome.evidence is not None
    assert outcome.evidence.ran[0] == str(project / ".venv" / "bin" / "python3")
    assert outcome.evidence.tools["pytest"] == pytest.__version__
    assert outcome.evidence.chosen["pytest"] == f"{project}/.venv/bin/python3 (of {project}/.venv/bin/python3)"


async def test_a_pyenv_shim_is_passed_by_for_the_version_that_the_project_names(
    home: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = home / ".pyenv"
    shim = program(root / "shims", "python3")
    (root / "versions").mkdir()
    (root / "versions" / "3.11.7").symlink_to(BASE)
    monkeypatch.setenv("PATH", f"{shim.parent}:/usr/bin:/bin")
    (root / "version").write_text("3.11.7\n")
    outcome = await judged(compiles, by_default(project))
    assert outcome.findings == ()
    assert outcome.evidence is not None
    python = root / "versions" / "3.11.7" / "bin" / "python3"
    assert outcome.evidence.chosen == {"python3": f"{python} (pyenv: version names 3.11.7)"}
    (project / ".python-version").write_text("3.11\n")
    outcome = await judged(compiles, by_default(project))
    assert outcome.evidence is not None
    assert outcome.evidence.chosen == {"python3": f"{python} (.python-version names 3.11)"}


async def test_packages_that_the_user_installed_for_all_projects_are_found(
    home: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(home / ".local" / "lib" / VERSION / "site-packages", {"mine.py": ""})
    write(project, {"test_calc.py": f"import mine\n{CALC['test_calc.py']}"})
    (home / "bin").mkdir()
    (home / "bin" / "python3").symlink_to(BASE / "bin" / VERSION)
    monkeypatch.setenv("PATH", f"{home / 'bin'}:/usr/bin:/bin")
    outcome = await judged(tests_pass, by_default(project))
    assert outcome.findings == ()
    assert outcome.evidence is not None
    assert outcome.evidence.counts["passed"] == 1


async def test_unittest_finds_tests_in_a_folder_that_is_no_package_and_code_in_src(home: Path, project: Path) -> None:
    shutil.rmtree(project)
    write(project, {"pyproject.toml": "", "src/calc.py": CALC["calc.py"], "tests/test_calc.py": CALC["test_calc.py"]})
    environment(project / ".venv", COVERAGE)
    outcome = await judged(coverage_at_least, by_default(project), percent=100)
    assert outcome.findings == ()
    assert outcome.evidence is not None
    assert (outcome.evidence.counts["passed"], outcome.evidence.counts["covered"]) == (1, 2)


@pytest.mark.parametrize("how", ["tox", "src/calc", "name"])
async def test_the_project_s_files_are_tested_and_not_a_copy_that_was_installed_before(
    home: Path, project: Path, how: str
) -> None:
    """What was only built is still found in the copy: compiled parts, and files that are generated."""
    shutil.rmtree(project)
    source, test = CALC["calc.py"], f"import calc._built\n{PYTEST_STYLE['test_calc.py']}"
    settings = "[project]\nname = 'my_calc'\n"
    write(project, {"pyproject.toml": settings, "src/calc/__init__.py": source, "tests/test_calc.py": test})
    folder = environment(project / (".tox/py" if how == "tox" else ".venv"), PYTEST) / "lib" / VERSION / "site-packages"
    origin = {"url": f"file://{project}/.tox/.tmp/my_calc.tar.gz", "archive_info": {}}
    if how == "src/calc":
        origin = {"url": f"file://{project}", "dir_info": {}}
    record = {"RECORD": "calc/__init__.py,,\ncalc/_built.py,,\n", "direct_url.json": json.dumps(origin)}
    info = f"{'my_calc' if how == 'name' else 'other'}-1.0.dist-info"
    write(folder, {f"{info}/{name}": text for name, text in record.items() if how != "name" or name == "RECORD"})
    write(folder, {"calc/__init__.py": "def add(a, b):\n    return 0\n", "calc/_built.py": ""})
    assert (await judged(tests_pass, by_default(project))).findings == ()
    write(folder, {"calc/__init__.py": source})
    write(project, {"src/calc/__init__.py": "def add(a, b):\n    return 0\n"})
    [found] = (await judged(tests_pass, by_default(project))).findings
    assert found.where == "tests/test_calc.py:6"


async def test_a_pytest_that_uv_or_pipx_keeps_is_found_without_path(home: Path, project: Path) -> None:
    write(project, PYTEST_STYLE)
    environment(home / ".local" / "share" / "pipx" / "venvs" / "pytest", PYTEST)
    outcome = await judged(tests_pass, by_default(project))
    assert outcome.findings == ()
    assert outcome.evidence is not None
    assert outcome.evidence.chosen["python3"].endswith("(pipx keeps pytest in it)")


async def test_coverage_that_is_missing_is_named_where_tests_are_unittest_s(home: Path, project: Path) -> None:
    environment(project / ".venv")
    [found] = (await judged(coverage_at_least, by_default(project), percent=100)).findings
    assert found.message == "there is no coverage here"


async def test_what_is_missing_is_named_with_every_interpreter_that_was_looked_at(home: Path, project: Path) -> None:
    environment(project / ".venv")
    write(project, PYTEST_STYLE)
    outcome = await judged(tests_pass, by_default(project))
    [found] = outcome.findings
    assert found.message == "there is no pytest here"
    assert found.fix.endswith(f"{project}/.venv/bin/python3 -m pip install pytest")
    assert f"{project}/.venv/bin/python3: the environment .venv of the project; it has no pytest" in found.excerpt


async def test_a_linter_of_an_environment_outside_the_project_is_used(
    home: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VIRTUAL_ENV", str(environment(home / "envs" / "calc")))
    ruff = home / "envs" / "calc" / "bin" / "ruff"
    ruff.write_text(f"#!{home}/envs/calc/bin/python3\nprint('[]')\n")
    ruff.chmod(0o755)
    outcome = await judged(lint_clean, by_default(project))
    assert outcome.findings == ()
    assert outcome.evidence is not None
    assert outcome.evidence.ran[0] == str(ruff)


async def test_coverage_is_measured_although_the_project_s_settings_start_a_measurement_of_their_own(
    home: Path, project: Path
) -> None:
    folder = environment(project / ".venv", (*PYTEST, *COVERAGE))
    write(folder / "lib" / VERSION / "site-packages", STEALING)
    settings = "[tool.pytest.ini_options]\naddopts = '--cov=calc --cov-fail-under=100'\n"
    write(project, {**PYTEST_STYLE, "pyproject.toml": settings})
    outcome = await judged(coverage_at_least, by_default(project), percent=100)
    assert outcome.findings == ()
    assert outcome.evidence is not None
    assert outcome.evidence.counts["covered"] == 2


async def test_coverage_starts_before_pytest_imports_the_project_itself(home: Path, project: Path) -> None:
    """Projects such as iniconfig are imported by pytest: their first lines run before any test."""
    environment(project / ".venv", (*(one for one in PYTEST if one != "iniconfig"), *COVERAGE))
    shutil.copytree(PACKAGES / "iniconfig", project / "iniconfig")
    for never_imported in ("calc.py", "iniconfig/_version.py"):
        (project / never_imported).unlink(missing_ok=True)
    write(project, {"test_calc.py": "import iniconfig\n\n\ndef test_it():\n    assert iniconfig.IniConfig\n"})
    outcome = await judged(coverage_at_least, by_default(project), percent=100)
    assert len(outcome.findings) > 1
    assert [one.message for one in outcome.findings if one.message.startswith("0.0 %")] == []


@pytest.mark.parametrize("hostile", ["pyvenv.cfg", "python", "pdm"])
async def test_a_project_can_not_name_a_folder_of_others_as_its_environment(
    home: Path, project: Path, hostile: str
) -> None:
    """Whoever wrote the project decides what its files say: that opens no folder that is no installation."""
    secret = home / "letters" / "bin"
    made(secret, {"diary": "dear diary"})
    folder = environment(project / ".venv")
    if hostile == "pyvenv.cfg":
        (folder / "pyvenv.cfg").write_text(f"home = {secret}\n")
    elif hostile == "python":
        (folder / "bin" / "other").symlink_to(secret / "diary")
    else:
        (project / ".pdm-python").write_text(f"{secret}/python")
    code = f"import unittest\n\n\nclass T(unittest.TestCase):\n    def test(self):\n        open('{secret}/diary')\n"
    write(project, {"test_calc.py": code})
    outcome = await judged(tests_pass, by_default(project))
    assert any("No such file" in one.message for one in outcome.findings), outcome
