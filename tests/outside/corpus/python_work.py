"""Honest work on a Python package, and what a project is like when it begins."""

from __future__ import annotations

import re

from outside.corpus.python_projects import Python
from outside.corpus.yard import Yard


def broken(yard: Yard, project: Python) -> None:
    yard.append(project.code, project.breaking)


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


def without_a_test(yard: Yard, project: Python) -> None:
    feature(yard, project)
    yard.delete(project.tests)


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


def tidy(yard: Yard, project: Python) -> None:
    """As the linter wants it at the start."""
    yard.write({"ruff.toml": 'lint.select = ["F", "E7", "E9"]\n'})


def red(yard: Yard, project: Python) -> None:
    module = project.code.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    wanted = 'vars(it).get("corpus_twice") is not None'
    yard.write({"test_start.py": f"import {module} as it\n\n\ndef test_bug():\n    assert {wanted}\n"})


def proved(yard: Yard, project: Python) -> None:
    feature(yard, project)
    module = project.code.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    yard.write({"test_start.py": f"import {module} as it\n\n\ndef test_bug():\n    assert it.corpus_twice(1) == 2\n"})
    yard.commit()


def docs(yard: Yard, project: Python) -> None:
    yard.append("README.rst", "\nMore.\n")
    yard.commit()
