"""Python projects in other layouts, with other ways to run their tests."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from outside.corpus.layouts import PRODUCT, Layout
from outside.corpus.packages import packages
from outside.corpus.python_projects import PLUGINS, USUAL, XDIST
from rules.toolchain.environments import BASE, VERSION, environment, install

TESTS = """import pytest

from shop.prices import label, total


@pytest.mark.parametrize(("discount", "wanted"), [(0, 3.0), (0.5, 1.5)])
def test_total(discount, wanted):
    assert total([1, 2], discount) == wanted


def test_label():
    assert label(2) == "2.00 EUR"


class TestMany:
    def test_nothing(self):
        assert total([]) == 0

    def test_discount(self):
        assert total([10], 0.1) == 9.0
"""
UNITTESTS = """import unittest

from shop.prices import label, total


class TotalTest(unittest.TestCase):
    def setUp(self):
        self.prices = [1, 2]

    def test_total(self):
        self.assertEqual(total(self.prices, 0.5), 1.5)

    def test_many(self):
        for discount, wanted in ((0, 3.0), (0.5, 1.5)):
            with self.subTest(discount=discount):
                self.assertEqual(total(self.prices, discount), wanted)


class LabelTest(unittest.TestCase):
    def test_label(self):
        self.assertEqual(label(2), "2.00 EUR")


if __name__ == "__main__":
    unittest.main()
"""
SETUPTOOLS = """[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"

[project]
name = "shop"
version = "1.0"
"""
FINDER = """import sys
from importlib.machinery import PathFinder
from importlib.util import spec_from_file_location

MAPPING = {mapping!r}


class Finder:
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name in MAPPING:
            place = MAPPING[name]
            return spec_from_file_location(name, place + "/__init__.py", submodule_search_locations=[place])
        return None


def install():
    sys.meta_path.append(Finder)
"""


def _site(folder: Path) -> Path:
    return folder / "lib" / VERSION / "site-packages"


def _plugins(site: Path, names: tuple[str, ...]) -> None:
    for name in names:
        for path in (packages() / "site").glob(name):
            shutil.copytree(path, site / path.name, dirs_exist_ok=True)


def _venv(*names: str, linked: str = "", at: str = ".venv") -> Callable[[Path, Path, pytest.MonkeyPatch], None]:
    """An environment with pytest; `linked` is a package that it has as a link to its sources, by setuptools' finder."""

    def made(home: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        site = _site(environment(root / at))
        install(site, (*USUAL, *(one for one in names if one not in PLUGINS)))
        _plugins(site, tuple(one for one in names if one in PLUGINS))
        if linked:
            finder = FINDER.format(mapping={"shop": str(root / linked)})
            (site / "__editable___shop_1_0_finder.py").write_text(finder)
            line = "import __editable___shop_1_0_finder; __editable___shop_1_0_finder.install()\n"
            (site / "__editable__.shop-1.0.pth").write_text(line)

    return made


def _tox(home: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """tox installs a copy of the package into its environment."""
    site = _site(environment(root / ".tox" / "py311"))
    install(site, USUAL)
    shutil.copytree(root / "src" / "shop", site / "shop")
    info = site / "shop-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: shop\nVersion: 1.0\n")
    (info / "RECORD").write_text("shop/__init__.py,,\nshop/prices.py,,\n")


def _machine(home: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No environment at all: only the machine's Python, which has no pytest."""
    monkeypatch.setenv("PATH", f"{BASE / 'bin'}:/usr/bin:/bin")


DOCTESTED = PRODUCT.replace('less a discount."""', 'less a discount.\n\n    >>> total([1, 2], 0.5)\n    1.5\n    """')
DATA = """import json
from pathlib import Path

import pytest

from shop.prices import total

CASES = sorted((Path(__file__).parent / "data").glob("*.json"))


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_case(path):
    case = json.loads(path.read_text())
    assert total(case["prices"], case["discount"]) == case["total"]
"""
AS_PACKAGE = {"shop/__init__.py": "", "shop/prices.py": PRODUCT}
AS_SRC = {"src/shop/__init__.py": "", "src/shop/prices.py": PRODUCT}
MANY = [f"tests/data/{name}.json" for name in ("all", "half", "none")]
LAYOUTS = {
    one.name: one
    for one in (
        Layout(
            "src-editable",
            "src/shop/prices.py",
            "tests/unit/test_prices.py",
            {
                **AS_SRC,
                "tests/conftest.py": "import pytest\n\n\n@pytest.fixture\ndef prices():\n    return [1, 2]\n",
                "tests/unit/test_prices.py": TESTS,
                "tests/unit/test_fixtures.py": (
                    "from shop.prices import total\n\n\ndef test_half(prices):\n    assert total(prices) == 3\n"
                ),
                "pyproject.toml": SETUPTOOLS + '[tool.pytest.ini_options]\ntestpaths = ["tests"]\n'
                'addopts = ["-ra", "--strict-markers", "--import-mode=importlib"]\n',
            },
            _venv(linked="src/shop"),
        ),
        Layout(
            "xdist",
            "shop/prices.py",
            "tests/test_prices.py",
            {
                **AS_PACKAGE,
                "tests/__init__.py": "",
                "tests/test_prices.py": TESTS,
                "tests/test_waiting.py": (
                    "import asyncio\n\nfrom shop.prices import total\n\n\nasync def test_later():\n"
                    "    await asyncio.sleep(0)\n    assert total([4]) == 4\n"
                ),
                "setup.cfg": "[tool:pytest]\naddopts = -n 2 --dist loadfile\nasyncio_mode = auto\n",
                "setup.py": "from setuptools import setup\n\nsetup(name='shop', packages=['shop'])\n",
            },
            _venv(*XDIST, *PLUGINS[2:], "typing_extensions.py"),
        ),
        Layout(
            "tox",
            "src/shop/prices.py",
            "tests/test_prices.py",
            {
                **AS_SRC,
                "tests/test_prices.py": TESTS,
                "tox.ini": "[tox]\nenvlist = py311\n\n[testenv]\ndeps = pytest\ncommands = pytest {posargs}\n",
                "setup.py": "from setuptools import setup\n\n"
                "setup(name='shop', packages=['shop'], package_dir={'': 'src'})\n",
            },
            _tox,
        ),
        Layout(
            "make-unittest",
            "shop/prices.py",
            "checks/check_prices.py",
            {
                **AS_PACKAGE,
                "checks/__init__.py": "",
                "checks/check_prices.py": UNITTESTS,
                "Makefile": "test:\n\tpython3 -m unittest discover -s checks -p 'check_*.py' -t .\n",
            },
            _machine,
        ),
        Layout(
            "doctests",
            "shop/prices.py",
            "shop/prices.py",
            {
                "shop/__init__.py": "",
                "shop/prices.py": DOCTESTED,
                "README.md": "# Shop\n\n>>> from shop.prices import label\n>>> label(2)\n'2.00 EUR'\n",
                "pyproject.toml": SETUPTOOLS
                + '[tool.pytest.ini_options]\naddopts = "--doctest-modules --doctest-glob=README.md"\n',
            },
            _venv(),
        ),
        Layout(
            "nose",
            "shop/prices.py",
            "shop/tests/test_prices.py",
            {
                **AS_PACKAGE,
                "shop/tests/__init__.py": "",
                "shop/tests/test_prices.py": UNITTESTS,
                "shop/tests/deep/__init__.py": "",
                "shop/tests/deep/test_label.py": (
                    "import unittest\n\nfrom shop.prices import label\n\n\nclass DeepTest(unittest.TestCase):\n"
                    "    def test_zero(self):\n        self.assertEqual(label(0), '0.00 EUR')\n"
                ),
                "setup.py": "from setuptools import setup\n\nsetup(name='shop', packages=['shop'])\n",
            },
            _machine,
        ),
        Layout(
            "monorepo",
            "libs/shop/src/shop/prices.py",
            "libs/shop/tests/test_prices.py",
            {
                "libs/shop/pyproject.toml": SETUPTOOLS,
                **{f"libs/shop/{path}": text for path, text in AS_SRC.items()},
                "libs/shop/tests/test_prices.py": TESTS,
                "libs/mail/pyproject.toml": SETUPTOOLS.replace('"shop"', '"mail"'),
                "libs/mail/src/mail/__init__.py": "def greet(name):\n    return f'Dear {name}'\n",
                "libs/mail/tests/test_mail.py": "from mail import greet\n\n\ndef test_greet():\n"
                "    assert greet('A') == 'Dear A'\n",
                "pyproject.toml": '[tool.pytest.ini_options]\ntestpaths = ["libs/*/tests"]\n'
                'pythonpath = ["libs/shop/src", "libs/mail/src"]\naddopts = "--import-mode=importlib"\n',
            },
            _venv(),
        ),
        Layout(
            "flat",
            "prices.py",
            "test_prices.py",
            {
                "prices.py": PRODUCT,
                "test_prices.py": UNITTESTS.replace("shop.prices", "prices"),
                "README.md": "# Shop\n",
            },
            _machine,
        ),
        Layout(
            "make-path",
            "src/prices.py",
            "test/prices_test.py",
            {
                "src/prices.py": PRODUCT,
                "test/prices_test.py": TESTS.replace("shop.prices", "prices"),
                "Makefile": "PY ?= .venv/bin/python\n\ntest:\n\tPYTHONPATH=src $(PY) -m pytest test\n",
            },
            _venv(),
        ),
        Layout(
            "own-script",
            "prices.py",
            "checks/prices_check.py",
            {
                "prices.py": PRODUCT,
                "checks/prices_check.py": UNITTESTS.replace("shop.prices", "prices"),
                "run_checks.py": "import sys\nimport unittest\n\n"
                "suite = unittest.defaultTestLoader.discover('checks', pattern='*.py')\n"
                "sys.exit(not unittest.TextTestRunner().run(suite).wasSuccessful())\n",
                "Makefile": "test:\n\tpython3 run_checks.py\n",
            },
            _machine,
        ),
        Layout(
            "own-names",
            "shop/prices.py",
            "specs/prices_spec.py",
            {
                **AS_PACKAGE,
                "specs/prices_spec.py": TESTS.replace("def test_", "def it_").replace("class Test", "class Describe"),
                "pytest.ini": "[pytest]\npython_files = *_spec.py\npython_functions = it_*\n"
                "python_classes = Describe*\n"
                "pythonpath = .\n",
            },
            _venv(),
        ),
        Layout(
            "data",
            "shop/prices.py",
            "tests/test_cases.py",
            {
                **AS_PACKAGE,
                "tests/test_cases.py": DATA,
                "tests/data/all.json": '{"prices": [1, 2], "discount": 0, "total": 3}\n',
                "tests/data/half.json": '{"prices": [1, 2], "discount": 0.5, "total": 1.5}\n',
                "tests/data/none.json": '{"prices": [], "discount": 0, "total": 0}\n',
                "pyproject.toml": SETUPTOOLS + '[tool.pytest.ini_options]\npythonpath = ["."]\n',
            },
            _venv(),
        ),
        Layout(
            "loaded-doctests",
            "shop/prices.py",
            "tests/test_docs.py",
            {
                "shop/__init__.py": "",
                "shop/prices.py": DOCTESTED,
                "tests/__init__.py": "",
                "tests/test_docs.py": (
                    "import doctest\nimport unittest\n\nimport shop.prices\n\n\n"
                    "def load_tests(loader, tests, ignore):\n    tests.addTests(doctest.DocTestSuite(shop.prices))\n"
                    "    return tests\n\n\nclass LabelTest(unittest.TestCase):\n    def test_label(self):\n"
                    "        self.assertEqual(shop.prices.label(1), '1.00 EUR')\n"
                ),
            },
            _machine,
        ),
        Layout(
            "async-unittest",
            "shop/prices.py",
            "tests/test_async.py",
            {
                **AS_PACKAGE,
                "tests/__init__.py": "",
                "tests/test_async.py": (
                    "import asyncio\nimport unittest\n\nfrom shop.prices import total\n\n\ndef setUpModule():\n"
                    "    global PRICES\n    PRICES = [1, 2]\n\n\n"
                    "class LaterTest(unittest.IsolatedAsyncioTestCase):\n    async def test_later(self):\n"
                    "        await asyncio.sleep(0)\n        self.assertEqual(total(PRICES, 0.5), 1.5)\n"
                ),
            },
            _venv(),
        ),
    )
}
