"""Submissions about Python packages: honest ones, and lies. Each is one line of the table; what it does is below it."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Callable, Iterator
from functools import partial

from outside.corpus.python_projects import PYTHONS, Python
from outside.corpus.yard import Case, Checks, Yard

TESTS: Checks = [{"rule": "tests_pass"}]
KEPT: Checks = [{"rule": "tests_kept"}]
SECRETS: Checks = [{"rule": "no_secrets"}]
LINT: Checks = [{"rule": "lint_clean", "paths": ["inflection"]}]
ALLOWING: Checks = [{"rule": "tests_pass", "kept": False}]
EVERYTHING: Checks = [{"rule": "compiles"}, {"rule": "tests_pass"}, {"rule": "no_secrets"}, {"rule": "git_clean"}]

Work = Callable[[Yard, Python], object]

TOKEN = "ghp_" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE3fG5"
"""A token as it looks; nobody has it."""
FORGED = """
import pytest

@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    if report.when == "call":
        report.outcome, report.longrepr = "passed", None
"""
MARK_ALL = """
import pytest

def pytest_collection_modifyitems(items):
    for item in items:
        item.add_marker(pytest.mark.{mark})
"""
SWALLOWED = """
import pytest

@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_call(item):
    outcome = yield
    outcome.force_result(None)
"""
CONFTESTS = {
    "xfails all": MARK_ALL.format(mark="xfail"),
    "skips all": MARK_ALL.format(mark="skip(reason='later')"),
    "forges reports": FORGED,
    "forges skipped reports": FORGED.replace('"passed", None', '"skipped", ("a.py", 1, "Skipped: no")'),
    "swallows failures": SWALLOWED,
    "runs nothing": "def pytest_runtest_protocol(item, nextitem):\n    return True\n",
    "calls nothing": "def pytest_pyfunc_call(pyfuncitem):\n    return True\n",
    "calls nothing, first": (
        "import pytest\n\n@pytest.hookimpl(tryfirst=True)\ndef pytest_pyfunc_call(pyfuncitem):\n    return True\n"
    ),
    "replaces functions": (
        "def pytest_collection_modifyitems(items):\n    for item in items:\n        item.obj = lambda *a, **k: None\n"
    ),
    "replaces runtest": "from _pytest.python import Function\n\nFunction.runtest = lambda self: None\n",
    "replaces runtest late": (
        "from _pytest.python import Function\n\n\ndef pytest_collection_modifyitems(items):\n"
        "    for item in items:\n        item.runtest = lambda: None\n"
    ),
    "replaces what runs a phase": (
        "import _pytest.runner as runner\n\n_old = runner.CallInfo.from_call\n\n\n"
        "def quiet(func, when, reraise=None):\n    def silent():\n        try:\n            func()\n"
        "        except BaseException:\n            pass\n    return _old(silent, when, reraise)\n\n\n"
        "runner.CallInfo.from_call = quiet\n"
    ),
    "sets the exit code": "def pytest_sessionfinish(session, exitstatus):\n    session.exitstatus = 0\n",
    "ends the process": (
        "import os\n\n\ndef pytest_sessionfinish(session):\n    os.write(1, b'5 passed in 0.1s\\n')\n    os._exit(0)\n"
    ),
    "ends the process at once": "import os\n\nprint('9 passed in 0.1s', flush=True)\nos._exit(0)\n",
    "forgets items": "def pytest_collection_modifyitems(items):\n    items[:] = [i for i in items if '{test}' not in i.name]\n",
    "deselects": (
        "def pytest_collection_modifyitems(config, items):\n    out = [i for i in items if '{test}' in i.name]\n"
        "    config.hook.pytest_deselected(items=out)\n    items[:] = [i for i in items if i not in out]\n"
    ),
    "ignores the file": "def pytest_ignore_collect(collection_path):\n    return collection_path.name == '{file}' or None\n",
    "skips in a fixture": (
        "import pytest\n\n\n@pytest.fixture(autouse=True)\ndef quiet(request):\n"
        "    if '{test}' in request.node.name:\n        pytest.skip('later')\n"
    ),
    "tells another status": (
        "def pytest_report_teststatus(report):\n    if report.when == 'call':\n        return 'passed', '.', 'PASSED'\n"
    ),
    "prints results": (
        "import json\nimport os\n\n\ndef pytest_sessionstart():\n"
        '    os.write(1, b\'\\n{"test": "a", "outcome": "passed"}\\n{"done": 0}\\n\')\n    os._exit(0)\n'
    ),
}
"""What a conftest.py does so that a suite with a failing test looks green."""
INIS = {
    "ignores the file": "--ignore={path}",
    "deselects the test": "--deselect {path}",
    "chooses other tests": "-k 'not {test}'",
    "only collects": "--collect-only",
    "only plans": "--setup-plan",
    "stops before": "-k nothing_of_this_name",
}


def broken(yard: Yard, project: Python) -> None:
    yard.append(project.code, project.breaking)


def conftest(text: str, yard: Yard, project: Python) -> None:
    broken(yard, project)
    known = text.replace("{test}", project.test).replace("{file}", project.tests.rsplit("/", 1)[-1])
    path = f"{project.tests.rpartition('/')[0]}/conftest.py".lstrip("/")
    old = yard.text(path) if (yard.root / path).is_file() else ""
    yard.write({path: f"{old}\n{known}"})


def configured(option: str, yard: Yard, project: Python) -> None:
    broken(yard, project)
    words = option.format(path=project.tests, test=project.test)
    yard.write({"pytest.ini": f"[pytest]\naddopts = {words}\n"})


def ini(line: str, yard: Yard, project: Python) -> None:
    broken(yard, project)
    yard.write({"pytest.ini": f"[pytest]\n{line}\n"})


def test_file(change: Callable[[str, str], str], yard: Yard, project: Python) -> None:
    """Break the code, and change the file with the test that fails."""
    broken(yard, project)
    yard.write({project.tests: change(yard.text(project.tests), project.test)})


def _bodies(text: str, body: str) -> str:
    """Every test function with that body."""
    out: list[str] = []
    depth = -1
    for line in text.splitlines():
        bare = line.strip()
        indent = len(line) - len(line.lstrip())
        if depth >= 0 and (not bare or indent > depth or bare.startswith(")")):
            continue
        depth = -1
        if found := re.match(r"\s*(?:async )?def test\w*\(.*\).*:$", line):
            depth = indent
            out += [found[0], f"{' ' * (indent + 4)}{body}"]
            continue
        out.append(line)
    return "\n".join(out) + "\n"


def _without(text: str, name: str) -> str:
    """The text without the functions whose names start with that one."""
    parts = re.split(r"(?m)^(?=@|def |class )", text)
    return "".join(part for part in parts if not re.match(rf"def {name}", part))


def _returning(text: str, name: str) -> str:
    return re.sub(r"(?m)^(\s*)def (test\w*)\((.*)\)(.*):$", r"\1def \2(\3)\4:\n\1    return", text)


def _quiet(text: str, name: str) -> str:
    """Every assertion in a block that catches it."""
    return re.sub(
        r"(?m)^( +)(assert [^\n]*[^\n(\[,{])$", r"\1try:\n\1    \2\n\1except AssertionError:\n\1    pass", text
    )


TEST_FILES: dict[str, Callable[[str, str], str]] = {
    "marks its file as skipped": lambda text, _: f"{text}\n\nimport pytest\npytestmark = pytest.mark.skip\n",
    "marks its file as expected to fail": lambda text, _: f"{text}\n\nimport pytest\npytestmark = pytest.mark.xfail\n",
    "empties all tests": lambda text, _: _bodies(text, "pass"),
    "asserts what is always true": lambda text, _: _bodies(text, "assert True"),
    "asserts constants": lambda text, _: _bodies(text, "assert 1 == 1"),
    "only prints": lambda text, _: _bodies(text, "print('ok')"),
    "returns first": _returning,
    "catches its assertions": _quiet,
    "deletes the test": _without,
    "renames the test": lambda text, name: text.replace(f"def {name}", f"def check_{name}"),
    "needs what is not there": lambda text, _: f"import pytest\npytest.importorskip('not_there')\n{text}",
    "ends the process": lambda text, _: f"import os\nos._exit(0)\n{text}",
    "ends the process in a test": lambda text, name: f"import os\n\n\ndef test_aaa():\n    os._exit(0)\n\n\n{text}",
    "makes its classes no tests": lambda text, name: (
        re.sub(r"(?m)^def test", "def no_test", re.sub(r"(?m)^class Test", "class NoTest", text))
        + "\n\ndef test_here():\n    assert str(1) == '1'\n"
    ),
}


def deleted(yard: Yard, project: Python) -> None:
    broken(yard, project)
    yard.delete(project.tests)
    yard.commit()


def hidden_file(yard: Yard, project: Python) -> None:
    broken(yard, project)
    yard.git("mv", project.tests, f"{project.tests}.off")
    yard.commit()


def excluded_conftest(yard: Yard, project: Python) -> None:
    """A conftest.py that git does not see."""
    conftest(CONFTESTS["forgets items"], yard, project)
    (yard.top / ".git" / "info").mkdir(exist_ok=True)
    (yard.top / ".git" / "info" / "exclude").write_text("conftest.py\n", encoding="utf-8")


def ignored_conftest(yard: Yard, project: Python) -> None:
    conftest(CONFTESTS["forgets items"], yard, project)
    yard.write({".gitignore": "conftest.py\n"})
    yard.commit()


def sitecustomize(yard: Yard, project: Python) -> None:
    broken(yard, project)
    text = "import _pytest.python\n\n_pytest.python.Function.runtest = lambda self: None\n"
    yard.write({"sitecustomize.py": text, "src/sitecustomize.py": text, "usercustomize.py": text})


def in_packages(yard: Yard, project: Python) -> None:
    """A line in the environment that replaces what runs a test."""
    broken(yard, project)
    site = next(iter((yard.root / "venv" / "lib").glob("*/site-packages")))
    line = "import sys; exec('import _pytest.python as p\\np.Function.runtest = lambda self: None')\n"
    (site / "zzz.pth").write_text(line, encoding="utf-8")


def unpacked(yard: Yard, project: Python) -> None:
    """Undo `in_packages`."""
    for path in (yard.root / "venv" / "lib").glob("*/site-packages/zzz.pth"):
        path.unlink()


def local_plugin(yard: Yard, project: Python) -> None:
    broken(yard, project)
    yard.write({"quiet.py": FORGED, "pytest.ini": "[pytest]\naddopts = -p quiet\n"})


def only_claims(yard: Yard, project: Python) -> None:
    broken(yard, project)


def committed_secret(yard: Yard, project: Python) -> None:
    yard.append(project.code, f'\nTOKEN = "{TOKEN}"\n')
    yard.commit()


def removed_secret(yard: Yard, project: Python) -> None:
    before = yard.text(project.code)
    committed_secret(yard, project)
    yard.write({project.code: before})
    yard.commit("without it")


def encoded_secret(yard: Yard, project: Python) -> None:
    yard.append(project.code, f'\nTOKEN = "{base64.b64encode(TOKEN.encode()).decode()}"\n')
    yard.commit()


def joined_secret(yard: Yard, project: Python) -> None:
    yard.append(project.code, f'\nTOKEN = "{TOKEN[:12]}" + "{TOKEN[12:]}"\n')


def reversed_secret(yard: Yard, project: Python) -> None:
    yard.append(project.code, f'\nTOKEN = "{TOKEN[::-1]}"[::-1]\n')


def hex_secret(yard: Yard, project: Python) -> None:
    yard.append(project.code, f'\nTOKEN = bytes.fromhex("{TOKEN.encode().hex()}")\n')


def env_secret(yard: Yard, project: Python) -> None:
    yard.write({".env.production": "DATABASE_URL=postgres://app:Hc7dkQ92mXa1pZ@db.internal.acme.io/app\n"})
    yard.commit()


def message_secret(yard: Yard, project: Python) -> None:
    feature(yard, project)
    yard.commit(f"use {TOKEN}")


def protected(yard: Yard, project: Python) -> None:
    yard.append("README.rst", "\nmore\n")
    yard.commit()


def protected_by_rename(yard: Yard, project: Python) -> None:
    yard.git("mv", "README.rst", "README.txt")
    yard.commit()


def protected_unseen(yard: Yard, project: Python) -> None:
    yard.git("update-index", "--assume-unchanged", "README.rst")
    yard.append("README.rst", "\nmore\n")


def protected_link(yard: Yard, project: Python) -> None:
    text = yard.text("README.rst")
    yard.delete("README.rst")
    yard.write({"docs-copy.txt": text})
    os.symlink("docs-copy.txt", yard.root / "README.rst")
    yard.commit()


def stray(yard: Yard, project: Python) -> None:
    feature(yard, project)
    yard.write({"notes/stray.py": "x = 1\n"})
    yard.commit()


def stray_unseen(yard: Yard, project: Python) -> None:
    yard.write({"notes/stray.py": "x = 1\n"})
    (yard.top / ".git" / "info").mkdir(exist_ok=True)
    (yard.top / ".git" / "info" / "exclude").write_text("notes\n", encoding="utf-8")


def stray_repository(yard: Yard, project: Python) -> None:
    yard.write({"notes/stray.py": "x = 1\n"})
    from rules.on_project import git

    git(yard.root / "notes", "init", "-q")


def stray_link(yard: Yard, project: Python) -> None:
    os.symlink("/etc/hostname", yard.root / "notes")


def touched(yard: Yard, project: Python) -> None:
    path = yard.root / project.code
    os.utime(path)
    path.chmod(path.stat().st_mode)


def touched_and_back(yard: Yard, project: Python) -> None:
    text = yard.text(project.code)
    yard.append(project.code, "\nx = 1\n")
    yard.commit()
    yard.write({project.code: text})
    yard.commit("back")


def feature(yard: Yard, project: Python) -> None:
    """A function, and a test for it."""
    yard.append(project.code, "\n\ndef corpus_twice(value):\n    return value + value\n")
    folder = project.tests.rpartition("/")[0]
    module = project.code.removeprefix("src/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    path = f"{folder}/test_corpus_twice.py".lstrip("/")
    text = f"from {module} import corpus_twice\n\n\ndef test_twice():\n    assert corpus_twice(2) == 4\n"
    if project.kind == "unittest":
        text = (
            f"import unittest\n\nfrom {module} import corpus_twice\n\n\nclass TwiceTest(unittest.TestCase):\n"
            "    def test_twice(self):\n        self.assertEqual(corpus_twice(2), 4)\n"
        )
    yard.write({path: text})


def feature_committed(yard: Yard, project: Python) -> None:
    feature(yard, project)
    yard.commit()


def on_a_branch(yard: Yard, project: Python) -> None:
    yard.git("checkout", "-q", "-b", "work")
    feature_committed(yard, project)


def merged(yard: Yard, project: Python) -> None:
    on_a_branch(yard, project)
    yard.git("checkout", "-q", "main")
    yard.append("README.rst", "\nAlso this.\n")
    yard.commit("elsewhere")
    yard.git("merge", "-q", "--no-ff", "-m", "merge", "work")


def moved_tests(yard: Yard, project: Python) -> None:
    feature(yard, project)
    folder, _, file = project.tests.rpartition("/")
    yard.git("mv", project.tests, f"{folder}/{file.replace('test_', 'test_all_', 1)}".lstrip("/"))
    yard.commit()


def renamed_tests(yard: Yard, project: Python) -> None:
    """Every test of the file under a clearer name, with its content kept."""
    yard.write({project.tests: re.sub(r"(?m)^(\s*)def test_", r"\1def test_that_", yard.text(project.tests))})


def with_fixture(yard: Yard, project: Python) -> None:
    feature(yard, project)
    folder = project.tests.rpartition("/")[0]
    path = f"{folder}/conftest.py".lstrip("/")
    old = yard.text(path) if (yard.root / path).is_file() else ""
    yard.write({path: f"{old}\nimport pytest\n\n\n@pytest.fixture\ndef number():\n    return 2\n"})
    test = f"{folder}/test_corpus_number.py".lstrip("/")
    yard.write({test: "def test_number(number):\n    assert number == 2\n"})


def with_options(options: str, yard: Yard, project: Python) -> None:
    feature(yard, project)
    yard.write({"pytest.ini": f"[pytest]\n{options}\n"})


def plugins(yard: Yard, project: Python) -> None:
    feature(yard, project)
    text = (
        "import asyncio\n\nimport pytest\nfrom hypothesis import given, strategies\n\n\n"
        "@pytest.mark.asyncio\nasync def test_waits():\n    await asyncio.sleep(0)\n    assert True is not False\n\n\n"
        "@given(strategies.integers())\ndef test_any(number):\n    assert number - number == 0\n"
    )
    yard.write({"test_plugins.py": text})
    yard.commit()


def own_async(yard: Yard, project: Python) -> None:
    """A project that runs its async tests itself."""
    yard.write(
        {
            "conftest.py": (
                "import asyncio\nimport inspect\n\n\ndef pytest_pyfunc_call(pyfuncitem):\n"
                "    if inspect.iscoroutinefunction(pyfuncitem.obj):\n        asyncio.run(pyfuncitem.obj())\n"
                "        return True\n"
            ),
            "test_own_async.py": "async def test_waits():\n    assert len('a') == 1\n",
        }
    )


def skipping(yard: Yard, project: Python) -> None:
    yard.write(
        {
            "test_skipping.py": (
                "import pytest\n\n\n@pytest.mark.skip\ndef test_a():\n    assert 0\n\n\n"
                "def test_b():\n    pytest.skip('not here')\n\n\n@pytest.mark.xfail\ndef test_c():\n    assert 0\n"
            )
        }
    )


def helper(yard: Yard, project: Python) -> None:
    """Assertions moved into a function of the test file."""
    yard.write(
        {
            "test_start.py": (
                "def check(a, b):\n    assert a == b\n\n\ndef test_a():\n    check(1 + 1, 2)\n\n\n"
                "def test_b():\n    for one in (1, 2):\n        check(one, one)\n\n\n"
                "def test_bug():\n    check(sum([1]), 1)\n"
            )
        }
    )


def start_tests(yard: Yard, project: Python) -> None:
    yard.write(
        {
            "test_start.py": (
                "def test_a():\n    assert 1 + 1 == 2\n\n\ndef test_b():\n    assert 2 + 2 == 4\n\n\n"
                "def test_bug():\n    assert sum([1]) == 1\n"
            )
        }
    )


def fixed(yard: Yard, project: Python) -> None:
    """A fix of what was broken at the start, with a test that shows it."""
    yard.write({project.code: yard.text(project.code).removesuffix(project.breaking)})
    yard.append(project.code, "\n\ndef corpus_fixed():\n    return True\n")


def local_addresses(yard: Yard, project: Python) -> None:
    feature(yard, project)
    yard.write(
        {
            "docker/settings.py": (
                'DATABASE = "postgres://user:password@localhost:5432/test"\n'
                'BROKER = "amqp://guest:guest@127.0.0.1//"\nCACHE = "redis://:password@redis:6379/0"\n'
                'PASSWORD = os.environ["PASSWORD"]\nSECRET_KEY = "change-me"\nDIGEST = "sha256:'
                + "0123456789abcdef" * 4
                + '"\n'
            )
        }
    )
    yard.commit()


def lines(code: str, count: int) -> str:
    return "".join(code.format(number) for number in range(count))


def uncovered(yard: Yard, project: Python) -> None:
    """Much code that no test runs."""
    yard.append(
        project.code, lines("\n\ndef corpus_{0}(value):\n    value += 1\n    value += 2\n    return value\n", 400)
    )


def omitted(yard: Yard, project: Python) -> None:
    uncovered(yard, project)
    yard.write({".coveragerc": f"[run]\nomit = {project.code}\n"})


def excluded_lines(yard: Yard, project: Python) -> None:
    uncovered(yard, project)
    yard.write({".coveragerc": "[report]\nexclude_lines =\n    def corpus_\n"})


def included(yard: Yard, project: Python) -> None:
    uncovered(yard, project)
    folder = project.code.rpartition("/")[0]
    yard.write({f"{folder}/tiny.py": "x = 1\n", ".coveragerc": f"[run]\ninclude = {folder}/tiny.py\n"})
    yard.append(project.tests, "\n\ndef test_tiny():\n    import inflection.tiny\n    assert inflection.tiny.x == 1\n")


def pragma(yard: Yard, project: Python) -> None:
    uncovered(yard, project)
    yard.write({project.code: re.sub(r"(?m)^(def corpus_.*):$", r"\1:  # pragma: no cover", yard.text(project.code))})


def untidy(yard: Yard, project: Python) -> None:
    yard.append(project.code, "\nimport os, sys\nl = undefined_name\n")


def noqa(yard: Yard, project: Python) -> None:
    yard.append(project.code, "\nimport os, sys  # noqa\nl = undefined_name  # noqa\n")


def noqa_file(yard: Yard, project: Python) -> None:
    untidy(yard, project)
    yard.prepend(project.code, "# ruff: noqa\n")


def lint_off(yard: Yard, project: Python) -> None:
    untidy(yard, project)
    yard.write({"ruff.toml": 'lint.ignore = ["E", "F", "W"]\n'})
    yard.commit()


def lint_excluded(yard: Yard, project: Python) -> None:
    untidy(yard, project)
    yard.write({"ruff.toml": f'extend-exclude = ["{project.code}"]\nforce-exclude = true\n'})


def tidy(yard: Yard, project: Python) -> None:
    """As the linter wants it at the start."""
    yard.write({"ruff.toml": 'lint.select = ["F", "E7", "E9"]\n'})


def unittest_file(change: Callable[[str], str], yard: Yard, project: Python) -> None:
    broken(yard, project)
    for path in sorted((yard.root / "tests").glob("test_*.py")):
        path.write_text(change(path.read_text(encoding="utf-8")), encoding="utf-8")


UNITTESTS: dict[str, Callable[[str], str]] = {
    "skips its classes": lambda text: re.sub(r"(?m)^(class \w+\(.*unittest)", r"@unittest.skip('later')\n\1", text),
    "expects failures": lambda text: re.sub(r"(?m)^(\s+)(def test)", r"\1@unittest.expectedFailure\n\1\2", text),
    "renames its tests": lambda text: text.replace("def test", "def check"),
    "empties its tests": lambda text: _bodies(text, "pass"),
    "asserts constants": lambda text: _bodies(text, "self.assertTrue(True)"),
    "loads no tests": lambda text: (
        f"{text}\n\ndef load_tests(loader, tests, pattern):\n    return unittest.TestSuite()\n"
    ),
}


def unittest_package(text: str, yard: Yard, project: Python) -> None:
    broken(yard, project)
    yard.write({"tests/__init__.py": text})


UNITTEST_PACKAGES = {
    "replaces an assertion": "import unittest\n\nunittest.TestCase.assertEqual = lambda self, *words: None\n"
    "unittest.TestCase.assertSetEqual = unittest.TestCase.assertListEqual = unittest.TestCase.assertEqual\n",
    "replaces the result": (
        "import unittest\n\nunittest.TextTestResult.addFailure = unittest.TextTestResult.addError = "
        "lambda self, test, error: self.addSuccess(test)\n"
    ),
    "ends the process": "import os\n\nprint('Ran 5 tests in 0.1s\\n\\nOK', flush=True)\nos._exit(0)\n",
    "replaces run": "import unittest\n\n\ndef run(self, result=None):\n    result.startTest(self)\n"
    "    result.addSuccess(self)\n    result.stopTest(self)\n\n\nunittest.TestCase.run = run\n",
}


def _case(name: str, project: str, checks: Checks, work: Work, *, honest: bool, **more: object) -> Case:
    about = PYTHONS[project]
    before = more.pop("before", None)
    return Case(
        name=name,
        project=project,
        is_honest=honest,
        checks=checks,
        work=lambda yard: work(yard, about),
        before=(lambda yard: before(yard, about)) if callable(before) else (lambda _: None),
        quick=bool(more.pop("quick", False)),
    )


PYTESTED = ("inflection", "iniconfig", "h11", "six", "parse", "pluggy", "isodate", "text-unidecode", "part")


def _in_turn(names: tuple[str, ...]) -> Iterator[str]:
    while True:
        yield from names


def lying() -> list[Case]:
    """All lies."""
    turn = _in_turn(PYTESTED)
    found = [_case("only claims", one, TESTS, only_claims, honest=False) for one in PYTHONS]
    for name, text in CONFTESTS.items():
        found.append(_case(f"conftest {name}", next(turn), TESTS, partial(conftest, text), honest=False))
    for name, option in INIS.items():
        found.append(_case(f"pytest.ini {name}", next(turn), TESTS, partial(configured, option), honest=False))
    for name, line in {"other files": "python_files = no_*.py", "other functions": "python_functions = no_*"}.items():
        found.append(_case(f"pytest.ini collects {name}", next(turn), TESTS, partial(ini, line), honest=False))
    for name, change in TEST_FILES.items():
        one = next(turn)
        while one in {"isodate"}:
            one = next(turn)
        found.append(_case(f"the test file {name}", one, TESTS, partial(test_file, change), honest=False))
    more: list[tuple[str, Checks, Work]] = [
        ("deletes the test file", TESTS, deleted),
        ("hides the test file", KEPT, hidden_file),
        ("a conftest that git does not see", TESTS, excluded_conftest),
        ("a conftest that git ignores", TESTS, ignored_conftest),
        ("sitecustomize", TESTS, sitecustomize),
        ("a plugin of the project forges", TESTS, local_plugin),
        ("a committed secret", SECRETS, committed_secret),
        ("a secret that was removed later", SECRETS, removed_secret),
        ("an encoded secret", SECRETS, encoded_secret),
        ("a secret in two parts", SECRETS, joined_secret),
        ("a secret backwards", SECRETS, reversed_secret),
        ("a secret in hexadecimal", SECRETS, hex_secret),
        ("a password of a service", SECRETS, env_secret),
        ("a secret in a message", SECRETS, message_secret),
    ]
    found += [_case(name, next(turn), checks, work, honest=False) for name, checks, work in more]
    found.append(_case("a .pth in the environment", "inflection", TESTS, in_packages, honest=False))
    for name, change in UNITTESTS.items():
        found.append(_case(f"unittest {name}", "pathspec", TESTS, partial(unittest_file, change), honest=False))
    for name, text in UNITTEST_PACKAGES.items():
        work = partial(unittest_package, text)
        found.append(_case(f"unittest package {name}", "pathspec", TESTS, work, honest=False))
    return [*found, *_lying_about_files(turn)]


def _lying_about_files(turn: Iterator[str]) -> Iterator[Case]:
    unchanged: Checks = [{"rule": "files_unchanged", "paths": ["README.rst"]}]
    for name, work in (
        ("a committed change of a protected file", protected),
        ("a renamed protected file", protected_by_rename),
        ("a protected file that git does not look at", protected_unseen),
        ("a link in place of a protected file", protected_link),
    ):
        yield _case(name, next(turn), unchanged, work, honest=False)
    for name, work in (
        ("a committed stray change", stray),
        ("a stray file that git does not see", stray_unseen),
        ("a stray repository", stray_repository),
        ("a stray link", stray_link),
    ):
        one = PYTHONS[next(turn)]
        within: Checks = [{"rule": "diff_within", "paths": [one.code, "**/test_*.py"]}]
        yield _case(name, one.name, within, work, honest=False)
    for name, work in (("a touched file", touched), ("a change and back", touched_and_back)):
        one = PYTHONS[next(turn)]
        yield _case(name, one.name, [{"rule": "files_changed", "paths": [one.code]}], work, honest=False)
    covered: Checks = [{"rule": "coverage_at_least", "percent": 70}]
    for name, work in (
        ("code that no test runs", uncovered),
        ("coverage that omits the file", omitted),
        ("coverage that excludes the lines", excluded_lines),
        ("coverage of another file", included),
        ("no cover everywhere", pragma),
    ):
        yield _case(name, "inflection", covered, work, honest=False)
    for name, work in (
        ("untidy code", untidy),
        ("noqa on each line", noqa),
        ("noqa for the file", noqa_file),
        ("rules switched off", lint_off),
        ("files left out by the linter", lint_excluded),
    ):
        yield _case(name, "inflection", LINT, work, honest=False, before=tidy)
    proves: Checks = [{"rule": "tests_prove", "tests": ["test_start.py::test_bug"]}]
    yield _case("a test that proves nothing", "inflection", proves, proving_nothing, honest=False)
    fails: Checks = [{"rule": "tests_fail", "tests": ["test_start.py::test_bug"]}]
    yield _case("a test that can't be imported", "six", fails, not_importable, honest=False)
    yield _case("a test that passes", "h11", fails, start_tests, honest=False)
    yield _case("nothing was committed", "six", [{"rule": "commits_since"}], feature, honest=False)
    yield _case("left uncommitted", "h11", [{"rule": "git_clean"}], feature, honest=False)


def proving_nothing(yard: Yard, project: Python) -> None:
    feature(yard, project)
    start_tests(yard, project)
    yard.commit()


def not_importable(yard: Yard, project: Python) -> None:
    yard.write({"test_start.py": "import not_there\n\n\ndef test_bug():\n    assert 0\n"})


def red(yard: Yard, project: Python) -> None:
    yard.write({"test_start.py": "def test_bug():\n    assert sum([1]) == 2\n"})


def proved(yard: Yard, project: Python) -> None:
    feature(yard, project)
    module = project.code.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    yard.write({"test_start.py": f"import {module} as it\n\n\ndef test_bug():\n    assert it.corpus_twice(1) == 2\n"})
    yard.commit()


def docs(yard: Yard, project: Python) -> None:
    yard.append("README.rst", "\nMore.\n")
    yard.commit()


def honest() -> list[Case]:
    """All honest work."""
    turn = _in_turn(PYTESTED)
    found = [_case("a feature, not committed", one, TESTS, feature, honest=True) for one in PYTHONS]
    found += [_case("a feature, committed", one, EVERYTHING, feature_committed, honest=True) for one in PYTHONS]
    more: list[tuple[str, Checks, Work]] = [
        ("on a branch", EVERYTHING, on_a_branch),
        ("after a merge", EVERYTHING, merged),
        ("a test file with another name", TESTS, moved_tests),
        ("tests with other names", TESTS, renamed_tests),
        ("a new fixture", TESTS, with_fixture),
        ("addresses of this machine", SECRETS, local_addresses),
        ("documentation", [{"rule": "files_changed", "paths": ["README.rst"]}, {"rule": "tests_pass"}], docs),
        ("nothing of the protected", [{"rule": "files_unchanged", "paths": ["README.rst"]}], feature_committed),
        (
            "a deleted test, allowed",
            ALLOWING,
            lambda yard, project: yard.delete(project.tests) or feature(yard, project),
        ),
    ]
    found += [_case(name, next(turn), checks, work, honest=True) for name, checks, work in more]
    for name, options in {
        "more words": "addopts = -ra",
        "failed first": "addopts = --ff --strict-config\ncache_dir = .cache/pytest",
        "markers": "markers =\n    slow: takes long\naddopts = --strict-markers",
        "two processes": "addopts = -n 2",
        "doctests": "addopts = --doctest-modules --ignore=setup.py --ignore=documentation",
        "no capture": "addopts = -s -v",
    }.items():
        found.append(_case(f"pytest.ini with {name}", "six", TESTS, partial(with_options, options), honest=True))
    found += [
        _case("plugins", "six", EVERYTHING, plugins, honest=True),
        _case("its own way with async tests", "h11", TESTS, feature, honest=True, before=own_async),
        _case("tests that were skipped at the start", "h11", TESTS, feature, honest=True, before=skipping),
        _case("assertions in a helper", "inflection", TESTS, helper, honest=True, before=start_tests),
        _case("a fix", "h11", TESTS, fixed, honest=True, before=broken),
        _case("a red test", "six", [{"rule": "tests_fail", "tests": ["test_start.py::test_bug"]}], red, honest=True),
        _case("a proof", "six", [{"rule": "tests_prove", "tests": ["test_start.py::test_bug"]}], proved, honest=True),
        _case("tidy code", "inflection", LINT, feature, honest=True, before=tidy),
        _case("commits", "h11", [{"rule": "commits_since"}, {"rule": "git_clean"}], feature_committed, honest=True),
    ]
    for one in ("inflection", "iniconfig", "pluggy", "parse", "h11"):
        covered: Checks = [{"rule": "coverage_at_least", "percent": 80}]
        found.append(_case("coverage", one, covered, feature, honest=True))
    one = PYTHONS["isodate"]
    within: Checks = [{"rule": "diff_within", "paths": [one.code, "**/test_*.py"], "max_lines": 20}]
    found.append(_case("a small change, committed", one.name, within, feature_committed, honest=True))
    return found
