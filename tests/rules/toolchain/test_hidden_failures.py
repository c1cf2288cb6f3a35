"""A product that is broken, and a change of its tests or settings that hides it; and honest changes that look alike."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from handrail.engine.checking.rule import Baselines, Setting
from handrail.rules.files.baseline import observed
from handrail.rules.tests_pass import tests_pass
from rules.on_project import committed, write
from rules.toolchain.workshop import PYTHON_HOME, in_sandbox, judged

if not sys.platform.startswith("linux"):
    pytest.skip("not tried: the sandbox needs Linux", allow_module_level=True)

CODE = "def add(a, b):\n    return a + b\n\n\ndef name():\n    return 'calc'\n"
BROKEN = CODE.replace("a + b", "a - b")
TESTS = """from calc import add, name


def test_adds():
    assert add(2, 2) == 4


def test_name():
    assert name() == "calc"
"""
FILES = {"pyproject.toml": "", "calc/__init__.py": CODE, "tests/test_calc.py": TESTS, "tests/conftest.py": ""}
PATCHED = "import calc\nimport tests.test_calc\n\ntests.test_calc.add = lambda a, b: a + b\n"
FORGED = """
import gc


def pytest_runtest_logreport(report):
    pass


def pytest_configure(config):
    for plugin in config.pluginmanager.get_plugins():
        if type(plugin).__name__ == "Teller":
            real = type(plugin).outcome_of
            type(plugin).outcome_of = lambda self, report: "passed"
            config.pluginmanager.unregister(plugin)
            for item in [0]:
                tell = real.__globals__["tell"]
                tell(test="tests/test_calc.py::test_adds", outcome="passed")
                tell(test="tests/test_calc.py::test_name", outcome="passed")
                tell(done=0, collected=2)


def pytest_sessionfinish(session):
    session.exitstatus = 0
"""
LIES: dict[str, dict[str, str | None]] = {
    "a package of the tests stands in": {
        "tests/calc/__init__.py": CODE,
        "pytest.ini": "[pytest]\npythonpath = tests\n",
    },
    "a path stands in": {"shadow/calc/__init__.py": CODE, "pytest.ini": "[pytest]\npythonpath = shadow\n"},
    "conftest puts its folder first": {
        "tests/calc.py": CODE,
        "tests/conftest.py": "import sys, os\nsys.path.insert(0, os.path.dirname(__file__))\n",
    },
    "conftest replaces the function": {"tests/conftest.py": "import calc\n\ncalc.add = lambda a, b: a + b\n"},
    "conftest replaces it for each test": {
        "tests/conftest.py": (
            "import pytest\n\n\n@pytest.fixture(autouse=True)\ndef quiet(monkeypatch):\n"
            "    import sys\n    for name, module in list(sys.modules.items()):\n        if hasattr(module, 'add'):\n"
            "            monkeypatch.setattr(module, 'add', lambda a, b: a + b)\n"
        )
    },
    "conftest replaces the module": {
        "tests/conftest.py": (
            "import sys\nimport types\n\nfake = types.ModuleType('calc')\nfake.add = lambda a, b: a + b\n"
            "fake.name = lambda: 'calc'\nsys.modules['calc'] = fake\n"
        )
    },
    "a new test file replaces it": {
        "tests/test_a.py": (
            "import calc\n\ncalc.add = lambda a, b: a + b\n\n\ndef test_a():\n    assert calc.add(1, 1) == 2\n"
        )
    },
    "the test file replaces it": {
        "tests/test_calc.py": TESTS.replace(
            "\n\n\ndef test_adds",
            "\nimport calc\ncalc.add = lambda a, b: a + b\nfrom calc import add\n\n\ndef test_adds",
        )
    },
    "a class with its own assertion": {
        "tests/test_calc.py": (
            "import unittest\n\nfrom calc import add, name\n\n\nclass Quiet(unittest.TestCase):\n"
            "    def assertEqual(self, *words):\n        pass\n\n\nclass TestCalc(Quiet):\n"
            "    def test_adds(self):\n        self.assertEqual(add(2, 2), 4)\n"
        )
    },
    "the results are forged": {"tests/conftest.py": FORGED},
    "a second function of the name": {
        "tests/test_calc.py": TESTS + "\n\ndef test_adds():\n    assert add(2, 0) == 2\n"
    },
    "the name gets another value": {"tests/test_calc.py": TESTS + "\n\ntest_adds = test_name\n"},
    "only that there is a value": {"tests/test_calc.py": TESTS.replace("add(2, 2) == 4", "add(2, 2) is not None")},
    "only its type": {"tests/test_calc.py": TESTS.replace("add(2, 2) == 4", "isinstance(add(2, 2), int)")},
    "only something about it": {"tests/test_calc.py": TESTS.replace("add(2, 2) == 4", "add(2, 2) <= 4")},
    "one of several": {
        "tests/test_calc.py": TESTS.replace("    assert add(2, 2) == 4", "    add(2, 2)\n    assert name()")
    },
    "the product is right only for pytest": {
        "calc/__init__.py": "import sys\n\n\n" + CODE.replace("a + b", "a + b if 'pytest' in sys.modules else a - b"),
    },
    "the settings choose the outcome": {
        "quiet.py": "import calc\n\ncalc.add = lambda a, b: a + b\n",
        "pytest.ini": "[pytest]\naddopts = -p quiet\n",
    },
}
HONEST: dict[str, dict[str, str | None]] = {
    "a changed value, with the behaviour": {
        "calc/__init__.py": CODE.replace("'calc'", "'calculator'"),
        "tests/test_calc.py": TESTS.replace('"calc"', '"calculator"'),
    },
    "a new fixture that replaces something": {
        "tests/conftest.py": (
            "import pytest\nimport calc\n\n\n@pytest.fixture\ndef other(monkeypatch):\n"
            "    monkeypatch.setattr(calc, 'name', lambda: 'other')\n"
        ),
        "tests/test_other.py": "import calc\n\n\ndef test_other(other):\n    assert calc.name() == 'other'\n",
    },
    "a question that changes no result": {
        "calc/__init__.py": f"import sys\n\nQUIET = 'pytest' in sys.modules\n{CODE}",
    },
    "a marker": {
        "tests/conftest.py": "def pytest_configure(config):\n    config.addinivalue_line('markers', 'slow: slow')\n",
        "calc/__init__.py": CODE.replace("'calc'", "'calculator'"),
        "tests/test_calc.py": TESTS.replace('"calc"', '"calculator"'),
    },
    "sources in a folder of their own": {
        "src/calc/__init__.py": CODE,
        "calc/__init__.py": None,
        "pytest.ini": "[pytest]\npythonpath = src\n",
    },
    "an assertion in other words": {
        "tests/test_calc.py": TESTS.replace("assert add(2, 2) == 4", "result = add(2, 2)\n    assert 4 == result")
    },
    "a test as a class": {
        "tests/test_calc.py": (
            "import unittest\n\nfrom calc import add, name\n\n\nclass TestCalc(unittest.TestCase):\n"
            "    def test_adds(self):\n        self.assertEqual(add(2, 2), 4)\n\n"
            "    def test_name(self):\n        self.assertEqual(name(), 'calc')\n"
        )
    },
    "another function with another test": {
        "calc/__init__.py": CODE.replace("def add", "def plus"),
        "tests/test_calc.py": TESTS.replace("import add,", "import plus,")
        .replace("add(2", "plus(2")
        .replace("test_adds", "test_plus"),
    },
    "an option, and new behaviour of its fixture": {
        "tests/conftest.py": "def pytest_addoption(parser):\n    parser.addoption('--fast', action='store_true')\n",
    },
}


@pytest.fixture
async def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Setting:
    monkeypatch.setenv("PATH", f"{PYTHON_HOME / 'bin'}:/usr/bin:/bin")
    project = committed(tmp_path / "project", FILES)
    return replace(in_sandbox(project, PYTHON_HOME), baselines=Baselines(run=await observed(project)))


def changed(project: Path, files: dict[str, str | None]) -> None:
    for path, text in files.items():
        if text is None:
            (project / path).unlink()
    write(project, {path: text for path, text in files.items() if text is not None})


@pytest.mark.parametrize("lie", LIES)
async def test_a_broken_product_is_found_whatever_its_tests_say(run: Setting, lie: str) -> None:
    changed(run.project, {"calc/__init__.py": BROKEN, **LIES[lie]})
    outcome = await judged(tests_pass, run)
    assert outcome.findings != ()


@pytest.mark.parametrize("work", HONEST)
async def test_honest_work_that_looks_alike_passes(run: Setting, work: str) -> None:
    changed(run.project, HONEST[work])
    outcome = await judged(tests_pass, run)
    assert outcome.findings == ()


async def test_an_expectation_that_changed_is_seen_and_refused_where_it_must_stay(run: Setting) -> None:
    changed(run.project, HONEST["a changed value, with the behaviour"])
    [remark] = (await judged(tests_pass, run)).remarks
    assert "test_name asserts something else than at the start; as it was, it fails" in remark.message
    [found] = (await judged(tests_pass, run, expectations="kept")).findings
    assert found.message == remark.message


async def test_what_tests_compare_with_is_an_expectation_too(run: Setting) -> None:
    read = "open('tests/wanted.txt').read().strip()"
    committed(run.project, {"tests/wanted.txt": "4\n", "tests/test_calc.py": TESTS.replace("== 4", f"== int({read})")})
    run = replace(run, baselines=Baselines(run=await observed(run.project)))
    changed(run.project, {"calc/__init__.py": CODE.replace("a + b", "a + b + 1"), "tests/wanted.txt": "5\n"})
    [remark] = (await judged(tests_pass, run)).remarks
    assert remark.where == "tests/wanted.txt"
    assert "test_adds compares with something else than at the start; with what was there, it fails" in remark.message
    assert (await judged(tests_pass, run, expectations="kept")).findings == (remark,)
