"""Tests of a project of Django are run as by its manage.py: in its folder, with its settings, by its runner."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from handrail.rules.tests_pass import tests_pass
from rules.on_project import write
from rules.toolchain.environments import VERSION, by_default, environment
from rules.toolchain.workshop import judged

if not sys.platform.startswith("linux"):
    pytest.skip("not tried: the sandbox needs Linux", allow_module_level=True)

DJANGO = {
    "django/__init__.py": "def setup():\n    from django.conf import settings\n\n    settings.ready = True\n",
    "django/conf.py": (
        "import importlib\nimport os\n\nsettings = importlib.import_module(os.environ['DJANGO_SETTINGS_MODULE'])\n"
    ),
    "django/test/__init__.py": "",
    "django/test/utils.py": (
        "import unittest\n\n\nclass Runner:\n    def __init__(self, verbosity, interactive):\n        pass\n\n"
        "    def run_tests(self, labels):\n        loader = unittest.defaultTestLoader\n"
        "        found = loader.loadTestsFromNames(labels) if labels else loader.discover('.', 'test*.py')\n"
        "        result = self.test_runner().run(found)\n        return len(result.failures) + len(result.errors)\n\n\n"
        "def get_runner(settings):\n    assert settings.ready\n    return Runner\n"
    ),
}
"""The few words of Django that are needed here."""
MANAGE = "import os\n\nos.environ.setdefault('DJANGO_SETTINGS_MODULE', 'site_of.settings')\n"
TESTS = (
    "import unittest\n\nfrom site_of import settings\n\n\nclass SettingsTest(unittest.TestCase):\n"
    "    def test_ready(self):\n        self.assertTrue(settings.ready)\n\n"
    "    def test_price(self):\n        self.assertEqual(settings.PRICE, 3)\n"
)


@pytest.fixture(params=["", "backend/"], ids=["at the top", "in a folder"])
def project(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    root, start = tmp_path / "project", request.param
    environment(root / ".venv")
    write(root / ".venv" / "lib" / VERSION / "site-packages", DJANGO)
    write(
        root,
        {
            f"{start}manage.py": MANAGE,
            f"{start}site_of/__init__.py": "",
            f"{start}site_of/settings.py": "PRICE = 3\n",
            f"{start}shop/__init__.py": "",
            f"{start}shop/tests.py": TESTS,
            "requirements.txt": "django\n",
        },
    )
    return root


async def test_the_tests_run_with_the_settings_of_manage_py(project: Path) -> None:
    outcome = await judged(tests_pass, by_default(project))
    assert outcome.findings == ()
    assert outcome.evidence is not None
    assert outcome.evidence.counts["passed"] == outcome.evidence.counts["tests"] == 2
    assert "django" in outcome.evidence.chosen
    settings = next(project.rglob("settings.py"))
    settings.write_text("PRICE = 4\n")
    [found] = (await judged(tests_pass, by_default(project))).findings
    assert "shop.tests.SettingsTest.test_price fails: AssertionError: 4 != 3" in found.message
    assert found.where.endswith("shop/tests.py:11")
