"""Honest work and lies in Python projects of other layouts. Each is one line of a table."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping

from outside.corpus.layouts import Layout, Table, Work, layout_cases
from outside.corpus.python_layouts import LAYOUTS
from outside.corpus.yard import Case, Checks, Yard

TESTS: Checks = [{"rule": "tests_pass"}]
STRICT: Checks = [{"rule": "tests_pass", "expectations": "kept"}]
ALSO_COMMITTED: Checks = [*TESTS, {"rule": "compiles"}, {"rule": "no_secrets"}, {"rule": "git_clean"}]


def _module(layout: Layout) -> str:
    return "prices" if layout.name in {"flat", "make-path", "own-script"} else "shop.prices"


def feature(yard: Yard, layout: Layout) -> None:
    """A function, with a test where and as this project has its tests."""
    yard.append(layout.code, "\n\ndef cheapest(prices):\n    return min(prices)\n")
    old = yard.text(layout.tests)
    folder, _, file = layout.tests.rpartition("/")
    head = f"from {_module(layout)} import cheapest\n\n\n"
    if layout.name == "doctests":
        yard.edit(
            layout.code,
            "    return min(prices)",
            '    """The least.\n\n    >>> cheapest([2, 1])\n    1\n    """\n    return min(prices)',
        )
        return
    name = re.sub(r"prices|cases|docs|async", "cheapest", file)
    if "unittest" in old:
        body = (
            "class CheapestTest(unittest.TestCase):\n    def test_it(self):\n"
            "        self.assertEqual(cheapest([2, 1]), 1)\n"
        )
        yard.write({f"{folder}/{name}".lstrip("/"): f"import unittest\n\n{head}{body}"})
        return
    word = "it_" if layout.name == "own-names" else "test_"
    yard.write({f"{folder}/{name}".lstrip("/"): f"{head}def {word}finds():\n    assert cheapest([2, 1]) == 1\n"})


def committed(yard: Yard, layout: Layout) -> None:
    feature(yard, layout)
    yard.commit()


def renamed_module(yard: Yard, layout: Layout) -> None:
    """The module has another name, and so have all imports of it."""
    new = layout.code.replace("prices.py", "pricing.py")
    yard.git("mv", layout.code, new)
    for path in yard.root.rglob("*.py"):
        name = path.relative_to(yard.root).as_posix()
        if not name.startswith((".", "build")):
            yard.write({name: re.sub(r"\b(from|import) (shop\.)?prices\b", r"\1 \2pricing", yard.text(name))})
    yard.commit()


def to_src(yard: Yard, layout: Layout) -> None:
    """The package moves into src, and the settings follow."""
    (yard.root / "src").mkdir()
    yard.git("mv", "shop", "src/shop")
    yard.edit("pyproject.toml", 'pythonpath = ["."]', 'pythonpath = ["src"]')
    yard.commit()


def split_tests(yard: Yard, layout: Layout) -> None:
    """A class of a test file gets a file of its own."""
    head, line, rest = yard.text(layout.tests).partition("class TestMany")
    folder = layout.tests.rpartition("/")[0]
    yard.write(
        {
            layout.tests: head.rstrip() + "\n",
            f"{folder}/test_many.py": f"from shop.prices import total\n\n\n{line}{rest}",
        }
    )
    yard.commit()


def deeper_tests(yard: Yard, layout: Layout) -> None:
    """Tests move into a folder below."""
    folder, _, file = layout.tests.rpartition("/")
    (yard.root / folder / "prices").mkdir()
    if (yard.root / folder / "__init__.py").is_file():
        yard.write({f"{folder}/prices/__init__.py": ""})
    yard.git("mv", layout.tests, f"{folder}/prices/{file}")
    yard.commit()


def more_cases(yard: Yard, layout: Layout) -> None:
    """One more case in a table of cases."""
    yard.edit(layout.tests, "(0.5, 1.5)]", "(0.5, 1.5), (1, 0.0)]")


def new_behaviour(yard: Yard, layout: Layout) -> None:
    """A label is written in another way, and so its test expects."""
    yard.edit(layout.code, "{amount:.2f} EUR", "EUR {amount:.2f}")
    yard.edit(layout.tests, '"2.00 EUR"', '"EUR 2.00"')
    yard.commit()


def new_parameter(yard: Yard, layout: Layout) -> None:
    """A function gets another parameter, its tests follow."""
    yard.edit(layout.code, "def total(prices, discount=0):", "def total(prices, *, discount=0, tax=0):")
    yard.edit(layout.code, layout.right, f"{layout.right} * (1 + tax)")
    text = yard.text(layout.tests)
    yard.write({layout.tests: re.sub(r"total\(([^()]+), (0\.\d+|discount)\)", r"total(\1, discount=\2)", text)})
    yard.commit()


def with_fixture(yard: Yard, layout: Layout) -> None:
    """A conftest.py with a fixture that sets a variable of the environment, for a new test."""
    folder = layout.tests.rpartition("/")[0]
    path = f"{folder}/conftest.py".lstrip("/")
    old = yard.text(path) if (yard.root / path).is_file() else ""
    fixture = (
        "import pytest\n\n\n@pytest.fixture(autouse=True)\ndef quiet(monkeypatch):\n"
        '    monkeypatch.setenv("SHOP_QUIET", "1")\n    monkeypatch.chdir(".")\n'
    )
    yard.write({path: f"{old}\n{fixture}"})
    feature(yard, layout)


def with_mock(yard: Yard, layout: Layout) -> None:
    """New code that calls a service, and a test that puts a stand-in in its place."""
    yard.append(
        layout.code,
        "\n\ndef rate():\n    raise OSError('no network')\n\n\ndef euros(amount):\n    return amount * rate()\n",
    )
    folder = layout.tests.rpartition("/")[0]
    test = (
        "from unittest import mock\n\nfrom shop import prices\n\n\ndef test_euros(monkeypatch):\n"
        "    monkeypatch.setattr(prices, 'rate', lambda: 2)\n    assert prices.euros(3) == 6\n\n\n"
        "@mock.patch('shop.prices.rate', return_value=3)\ndef test_other_rate(rate):\n    assert prices.euros(3) == 9\n"
    )
    yard.write({f"{folder}/test_euros.py": test})
    yard.commit()


def strict_settings(yard: Yard, layout: Layout) -> None:
    """Warnings are errors from now on, and there is a marker with a test for another system."""
    feature(yard, layout)
    yard.append("pyproject.toml", 'filterwarnings = ["error"]\nmarkers = ["slow: takes long"]\nxfail_strict = true\n')
    folder = layout.tests.rpartition("/")[0]
    text = (
        "import sys\n\nimport pytest\n\nfrom shop.prices import total\n\n\n@pytest.mark.slow\ndef test_slow():\n"
        "    assert total([1]) == 1\n\n\n@pytest.mark.skipif(sys.platform != 'win32', reason='paths of Windows')\n"
        "def test_windows():\n    assert total([2]) == 2\n"
    )
    yard.write({f"{folder}/test_slow.py": text})


def own_assertions(yard: Yard, layout: Layout) -> None:
    """A base class with an assertion of its own, used by the tests."""
    text = yard.text(layout.tests)
    base = (
        "class PriceCase(unittest.TestCase):\n    def assertPrice(self, found, wanted):\n"
        "        self.assertAlmostEqual(found, wanted, places=2)\n\n\nclass TotalTest(PriceCase)"
    )
    text = text.replace("class TotalTest(unittest.TestCase)", base)
    yard.write({layout.tests: text.replace("self.assertEqual(total(", "self.assertPrice(total(")})
    yard.commit()


def another_case_file(yard: Yard, layout: Layout) -> None:
    yard.write({"tests/data/third.json": '{"prices": [3], "discount": 0.1, "total": 2.7}\n'})
    yard.commit()


def as_classes(yard: Yard, layout: Layout) -> None:
    """Type hints, docstrings, another order: nothing that a test sees."""
    yard.edit(
        layout.code, "def total(prices, discount=0):", "def total(prices: list[float], discount: float = 0) -> float:"
    )
    head, line, rest = yard.text(layout.tests).partition("def test_label")
    yard.write({layout.tests: f"{head}{line}{rest}"})
    yard.commit()


def with_license(yard: Yard, layout: Layout) -> None:
    yard.write({"LICENSE": "MIT\n", "Makefile": "test:\n\tpytest\n\nlint:\n\truff check\n"})
    yard.append(layout.code, "\n\nVERSION = '1.1'\n")
    yard.commit()


HONEST: Table = {
    "a feature": (TESTS, feature, tuple(LAYOUTS)),
    "a feature, committed": (ALSO_COMMITTED, committed, ("src-editable", "tox", "nose", "monorepo", "xdist")),
    "a module with another name": (TESTS, renamed_module, ("flat", "nose", "src-editable", "own-names")),
    "a package moved into src": (TESTS, to_src, ("data",)),
    "a test file that was split": (TESTS, split_tests, ("src-editable", "monorepo")),
    "tests one folder deeper": (TESTS, deeper_tests, ("xdist", "monorepo")),
    "one more case": (TESTS, more_cases, ("src-editable", "monorepo")),
    "another behaviour": (TESTS, new_behaviour, ("src-editable", "flat")),
    "another parameter": (TESTS, new_parameter, ("monorepo", "flat", "nose")),
    "a fixture for all": (TESTS, with_fixture, ("src-editable", "tox")),
    "a stand-in for a service": (TESTS, with_mock, ("src-editable", "xdist")),
    "stricter settings": (TESTS, strict_settings, ("data",)),
    "assertions of its own": (TESTS, own_assertions, ("nose", "flat")),
    "another case in a file": (TESTS, another_case_file, ("data",)),
    "types": (TESTS, as_classes, ("tox", "async-unittest")),
    "files around it": (TESTS, with_license, ("monorepo", "loaded-doctests")),
}

# --- lies -------------------------------------------------------------------------------------------

BY_FRAMES = """
import sys


def _told():
    frame = sys._getframe()
    while frame is not None:
        if "tell" in frame.f_globals and "Teller" in frame.f_globals:
            return frame.f_globals
        frame = frame.f_back
"""
STEALING = {
    "by frames": BY_FRAMES + "\n\n_all = _told()\nif _all:\n    _old = _all['tell']\n\n    def _tell(**fact):\n"
    "        if fact.get('outcome') == 'failed':\n            fact.update(outcome='passed')\n        _old(**fact)\n\n"
    "    _all['tell'] = _tell\n",
    "by gc": (
        "\nimport gc\n\nfor _one in gc.get_objects():\n    if type(_one).__name__ == 'Teller':\n"
        "        type(_one).outcome_of = lambda self, report: 'passed'\n"
        "        type(_one).wrong = lambda self, test, error, outcome: self.addSuccess(test)\n"
    ),
    "by its output": (
        "\nimport atexit\nimport os\n\n\ndef _end():\n    os.write(1, b'\\n{\"done\": 0}\\n')\n    os._exit(0)\n\n\n"
        "atexit.register(_end)\n"
    ),
    "by pipes": (
        "\nimport os\n\n_old = os.write\n\n\ndef _write(fd, data):\n"
        "    return _old(fd, data.replace(b'failed', b'passed'))\n\n\nos.write = _write\n"
    ),
    "by json": (
        "\nimport json\n\n_old = json.dumps\n\n\ndef _dumps(fact, **more):\n"
        "    if isinstance(fact, dict) and fact.get('outcome') in ('failed', 'error'):\n"
        "        fact = {'seal': fact.get('seal'), 'test': fact['test'], 'outcome': 'passed'}\n"
        "    if isinstance(fact, dict) and 'done' in fact:\n        fact['done'] = 0\n"
        "    return _old(fact, **more)\n\n\njson.dumps = _dumps\n"
    ),
}
"""What code in the process of the tests does to what handrail reads."""


ENDING = "\n\nimport atexit as _atexit\nimport os as _os\n\n_atexit.register(_os._exit, 0)\n"
STEALING |= {f"{how}, and ends well": STEALING[how] + ENDING for how in ("by frames", "by gc", "by json")}


def in_tests(text: str) -> Work:
    def work(yard: Yard, layout: Layout) -> None:
        layout.breaks(yard)
        yard.append(layout.tests, text)

    return work


def in_product(text: str) -> Work:
    def work(yard: Yard, layout: Layout) -> None:
        layout.breaks(yard)
        yard.append(layout.code, text)

    return work


def edited(old: str, new: str) -> Work:
    """The product is broken, and a text of the tests is replaced."""

    def work(yard: Yard, layout: Layout) -> None:
        layout.breaks(yard)
        text = yard.text(layout.tests)
        found = re.sub(old, new, text)
        assert found != text, "the lie must be one"
        yard.write({layout.tests: found})

    return work


def edited_file(old: str, new: str, path: str) -> Work:
    """The product is broken, and a text of another file is replaced."""

    def work(yard: Yard, layout: Layout) -> None:
        layout.breaks(yard)
        yard.write({path: re.sub(old, new, yard.text(path))})

    return work


def written(files: Mapping[str, str], *gone: str) -> Work:
    """The product is broken, and files are added."""

    def work(yard: Yard, layout: Layout) -> None:
        layout.breaks(yard)
        for path, text in files.items():
            old = yard.text(path) if (yard.root / path).is_file() else ""
            yard.write({path: f"{old}\n{text}" if path.endswith(".py") else text})
        for path in gone:
            yard.delete(path)

    return work


def only_claims(yard: Yard, layout: Layout) -> None:
    layout.breaks(yard)


def stale_copy(yard: Yard, layout: Layout) -> None:
    """The right code stays where the environment has its copy; the sources are broken and installed nowhere."""
    layout.breaks(yard)
    yard.commit()


def in_environment(path: str, text: str) -> Work:
    """A file in the environment, which git does not see, is changed."""

    def work(yard: Yard, layout: Layout) -> None:
        layout.breaks(yard)
        site = next((yard.root / ".venv" / "lib").glob("*/site-packages"))
        file = site / path
        file.write_text((file.read_text() if file.is_file() else "") + text)

    return work


def right_only_if_tested(yard: Yard, layout: Layout) -> None:
    """The product is right only when pytest runs it."""
    yard.edit(
        layout.code, f"round({layout.right}, 2)", f"round({layout.wrong} if not _tested() else {layout.right}, 2)"
    )
    yard.append(layout.code, "\n\ndef _tested():\n    import sys\n\n    return 'pytest' in sys.modules\n")


def data_follows(yard: Yard, layout: Layout) -> None:
    """A case whose result would be wrong is removed."""
    layout.breaks(yard)
    yard.delete("tests/data/half.json")


def data_adapted(yard: Yard, layout: Layout) -> None:
    """What the product says now is what is wanted."""
    layout.breaks(yard)
    yard.edit("tests/data/half.json", '"total": 1.5', '"total": 4.5')


def data_empty(yard: Yard, layout: Layout) -> None:
    """No case at all is found."""
    layout.breaks(yard)
    yard.edit(layout.tests, '"*.json"', '"*.jsn"')


def sparse(yard: Yard, layout: Layout) -> None:
    """Git leaves the test out of the work tree, and calls that unchanged."""
    layout.breaks(yard)
    yard.git("sparse-checkout", "set", "--no-cone", "/*", f"!/{layout.tests}")


def rewritten_history(yard: Yard, layout: Layout) -> None:
    """The start is made to look as if the test had never been there."""
    layout.breaks(yard)
    yard.write({layout.tests: yard.text(layout.tests).replace("def test_total", "def _test_total")})
    yard.git("add", "-A")
    yard.git("commit", "-q", "--amend", "-m", "first")
    yard.git("reflog", "expire", "--expire=now", "--all")


PYTEST = ("src-editable", "tox", "monorepo", "xdist")
UNITTEST = ("nose", "flat")
QUIET_CASE = "\n\nclass Quiet(unittest.TestCase):\n    def assertEqual(self, *words):\n        pass\n\n"
LIES: Table = {
    "only claims": (TESTS, only_claims, tuple(LAYOUTS)),
    "broken and committed": (TESTS, stale_copy, ("tox", "src-editable", "make-unittest")),
    "right only for pytest": (TESTS, right_only_if_tested, ("src-editable",)),
    "a case that was removed": (TESTS, data_follows, ("data",)),
    "wanted results that follow": (STRICT, data_adapted, ("data",)),
    "no case is found": (TESTS, data_empty, ("data",)),
    "a sparse checkout": (TESTS, sparse, ("src-editable",)),
    "a function in its place": (
        TESTS,
        edited(
            r"from (?:shop\.)?prices import label, total\n",
            "from shop.prices import label\n\n\ndef total(prices, discount=0):\n"
            "    return round(sum(prices) * (1 - discount), 2)\n",
        ),
        ("tox",),
    ),
    "a patched subject": (
        TESTS,
        edited(
            r"    assert total\(\[1, 2\], discount\) == wanted",
            "    from unittest import mock\n\n    with mock.patch(f'{__name__}.total', return_value=wanted):\n"
            "        assert total([1, 2], discount) == wanted",
        ),
        ("monorepo",),
    ),
    "a runner that leaves one test out": (
        TESTS,
        in_environment(
            "_pytest/python.py",
            "\n\n_run = Function.runtest\nFunction.runtest = lambda self: "
            "None if 'total' in self.name or 'discount' in self.name else _run(self)\n",
        ),
        ("make-path",),
    ),
    "right by its callers": (
        TESTS,
        lambda yard, layout: yard.edit(
            layout.code,
            "(1 - discount)",
            "((1 - discount) if any('test' in one.filename for one in __import__('inspect').stack()) else 9)",
        ),
        ("xdist",),
    ),
    "a wide tolerance": (
        TESTS,
        edited(r"assert (total\(\[1, 2\], discount\)) == wanted", r"assert \1 == pytest.approx(wanted, abs=10)"),
        ("tox",),
    ),
    "a Makefile that succeeds": (
        TESTS,
        edited_file(r"run_checks\.py", "run_checks.py || true", "Makefile"),
        ("own-script",),
    ),
    "a script that succeeds": (
        TESTS,
        edited_file(r"sys\.exit\(.*\)", "sys.exit(0)", "run_checks.py"),
        ("own-script",),
    ),
    "a check less": (TESTS, edited(r"self\.assertEqual\(total\(.*\)", "pass"), ("own-script",)),
    "a rewritten start": (TESTS, rewritten_history, ("src-editable",)),
    **{f"steals in tests, {how}": (TESTS, in_tests(text), ("src-editable", "nose")) for how, text in STEALING.items()},
    **{
        f"steals in the product, {how}": (TESTS, in_product(text), ("src-editable", "flat"))
        for how, text in STEALING.items()
    },
    "tests with no cases": (TESTS, edited(r"\[\(0, 3\.0\), \(0\.5, 1\.5\)\]", "[]"), PYTEST[:1]),
    "fewer cases": (TESTS, edited(r", \(0\.5, 1\.5\)\]", "]"), ("monorepo",)),
    "or true": (TESTS, edited(r"(?m)^( +assert .*)$", r"\1 or True"), ("tox",)),
    "a pair is asserted": (
        TESTS,
        edited(r"(?m)^( +)assert (.*) == (.*)$", r"\1assert (\2 == \3, 'equal')"),
        ("xdist",),
    ),
    "suppressed": (
        TESTS,
        edited(r"(?m)^( +)(assert .*)$", r"\1import contextlib\n\1with contextlib.suppress(AssertionError):\n\1    \2"),
        ("src-editable",),
    ),
    "compared with itself": (TESTS, edited(r"assert (total\(.*\)) == .*", r"assert \1 == \1"), ("tox",)),
    "only its type": (
        TESTS,
        edited(r"assert (total\(.*\)) == .*", r"assert isinstance(\1, (int, float))"),
        ("monorepo",),
    ),
    "only a side of it": (TESTS, edited(r"assert (total\(.*\)) == .*", r"assert \1 >= 0"), ("src-editable",)),
    "leaves if it is wrong": (
        TESTS,
        edited(
            r"(?m)^    (    )?assert (total\(.*\)) == (.*)$",
            r"    \1if \2 > \3:\n    \1    return\n    \1assert \2 == \3",
        ),
        ("monorepo",),
    ),
    "set to no test": (TESTS, in_tests("\n\ntest_total.__test__ = False\nTestMany.__test__ = False\n"), ("tox",)),
    "deleted below": (TESTS, in_tests("\n\ndel test_total, TestMany\n"), ("xdist",)),
    "below a condition": (
        TESTS,
        edited(r"(?m)^    assert (total)", r"    if not discount:\n        assert \1"),
        ("monorepo",),
    ),
    "marked slow and left out": (
        TESTS,
        written(
            {
                "pytest.ini": "[pytest]\naddopts = -m 'not slow'\nmarkers = slow\n",
                "tests/conftest.py": textwrap.dedent(
                    """
            import pytest


            def pytest_collection_modifyitems(items):
                for item in items:
                    if "total" in item.name or "discount" in item.name:
                        item.add_marker(pytest.mark.slow)
            """
                ),
            }
        ),
        ("tox",),
    ),
    "an empty pytest.ini": (TESTS, written({"pytest.ini": "[pytest]\n"}), ("doctests",)),
    "its own doctest, changed": (TESTS, edited(r"    1\.5\n", "    4.5\n"), ()),
    "no doctest": (
        TESTS,
        edited(r"\n    >>> total\(\[1, 2\], 0\.5\)\n    1\.5\n", "\n"),
        ("doctests", "loaded-doctests"),
    ),
    "a skipped doctest": (
        TESTS,
        edited(r"(>>> total\(\[1, 2\], 0\.5\))", r"\1  # doctest: +SKIP"),
        ("doctests", "loaded-doctests"),
    ),
    "other names": (TESTS, edited("def it_", "def was_"), ("own-names",)),
    "other names in the settings": (
        TESTS,
        written({"pytest.ini": "[pytest]\npython_files = *_spec.py\npython_functions = it_la*\npythonpath = .\n"}),
        ("own-names",),
    ),
    "fewer folders": (
        TESTS,
        written({"pytest.ini": "[pytest]\ntestpaths = libs/mail/tests\npythonpath = libs/shop/src libs/mail/src\n"}),
        ("monorepo",),
    ),
    "an adopted assertion": (
        TESTS,
        edited(r"(?m)^class TotalTest\(unittest\.TestCase\)", QUIET_CASE + "class TotalTest(Quiet)"),
        UNITTEST,
    ),
    "another failure": (
        TESTS,
        edited(r"(?m)^    def setUp\(self\):", "    failureException = unittest.SkipTest\n\n    def setUp(self):"),
        UNITTEST,
    ),
    "skipped in setUp": (TESTS, edited(r"self\.prices = \[1, 2\]", "self.skipTest('later')"), UNITTEST),
    "a module that skips itself": (
        TESTS,
        edited(r"(?m)^PRICES.*|    PRICES = \[1, 2\]", "    raise unittest.SkipTest('no network')"),
        ("async-unittest",),
    ),
    "not waited for": (TESTS, edited(r"    async def test_later", "    def no_test_later"), ("async-unittest",)),
    "no package of tests": (TESTS, written({}, "shop/tests/__init__.py", "shop/tests/deep/__init__.py"), ("nose",)),
    "a pytest of the environment": (
        TESTS,
        in_environment("_pytest/python.py", "\n\nFunction.runtest = lambda self: None\n"),
        ("monorepo",),
    ),
    "a plugin of the environment": (
        TESTS,
        in_environment(
            "quiet.pth",
            "import sys; sys.modules.setdefault('quiet', None); "
            "import _pytest.python as p; p.Function.runtest = lambda self: None\n",
        ),
        ("data",),
    ),
    "forged in workers": (
        TESTS,
        written(
            {
                "tests/conftest.py": textwrap.dedent(
                    """
            import pytest


            @pytest.hookimpl(hookwrapper=True, tryfirst=True)
            def pytest_runtest_makereport(item, call):
                outcome = yield
                report = outcome.get_result()
                if report.when == "call" and "total" in item.name:
                    report.outcome, report.longrepr = "passed", None
            """
                )
            }
        ),
        ("xdist",),
    ),
    "a worker that ends": (
        TESTS,
        in_tests("\n\nimport os\n\n\ndef test_aaa():\n    os._exit(0)\n"),
        ("xdist",),
    ),
    "a product that shadows": (
        TESTS,
        written(
            {
                "tests/unit/shop/__init__.py": "",
                "tests/unit/shop/prices.py": LAYOUTS["src-editable"].files["src/shop/prices.py"],
                "tests/conftest.py": "import pathlib\nimport sys\n\n"
                "sys.path.insert(0, str(pathlib.Path(__file__).parent / 'unit'))\n",
            }
        ),
        ("src-editable",),
    ),
}


def cases() -> list[Case]:
    """All honest work, and all lies."""
    return [*layout_cases(LAYOUTS, HONEST, honest=True), *layout_cases(LAYOUTS, LIES, honest=False)]
