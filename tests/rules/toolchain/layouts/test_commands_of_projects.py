"""The commands that are planned for projects of other layouts, and processes that tests start themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from handrail.rules.files.project import project_at
from handrail.rules.tests_pass import tests_pass
from handrail.rules.toolchain.c import C
from handrail.rules.toolchain.go import GO
from handrail.rules.toolchain.site import site_at
from handrail.rules.toolchain.task import Language, Task, TaskKind, TaskOptions
from outside.toolchains import of_machine
from rules.on_project import write
from rules.toolchain.environments import by_default
from rules.toolchain.workshop import judged, made, program


def planned(language: Language, folder: Path, files: dict[str, str]) -> list[tuple[str, tuple[str, ...]]]:
    """Where the tests of a project would be run, and the last words of the commands."""
    write(folder, files)
    site = site_at(project_at(folder.resolve(), ()))
    plan = language.plans[TaskKind.TEST](site, TaskOptions())
    return [(one.folder, one.argv[-2:]) if isinstance(one, Task) else (one.message, ()) for one in plan]


@pytest.mark.parametrize(
    ("files", "target"),
    [
        ({"Makefile": "all:\n\ncheck: all\n\t./a\n"}, "check"),
        ({"Makefile": "check := 1\ntests: all\n\t./a\n"}, "tests"),
        ({"Makefile": "check test: all\n\t./a\n"}, "test"),
        ({"Makefile": "include rules/tests.mk\n", "rules/tests.mk": "test:\n\t./a\n"}, "test"),
    ],
)
def test_a_makefile_may_call_its_tests_in_many_ways(tmp_path: Path, files: dict[str, str], target: str) -> None:
    of_machine("make")
    assert planned(C, tmp_path, {**files, "a.c": ""}) == [("", ("--keep-going", target))]


def test_a_makefile_without_tests_is_said(tmp_path: Path) -> None:
    [(message, _)] = planned(C, tmp_path, {"Makefile": "test_flags := -v\ncheck := 1\n", "a.c": ""})
    assert "there is no test runner" in message


def test_all_modules_of_go_are_tested(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(program(tmp_path / "bin", "go").parent))
    workspace = {"go.work": 'go 1.20\n\nuse (\n\t./shop // the shop\n\t"./till"\n)\nuse ./more\n', "shop/go.mod": ""}
    [(folder, words)] = planned(GO, tmp_path / "work", workspace)
    assert (folder, words) == ("", ("./till/...", "./more/..."))
    apart = {"a/go.mod": "module a\n", "b/go.mod": "module b\n", "a/testdata/go.mod": "", "b/b.go": ""}
    assert [folder for folder, _ in planned(GO, tmp_path / "apart", apart)] == ["a", "b"]
    assert [folder for folder, _ in planned(GO, tmp_path / "one", {"go.mod": "", "tools/go.mod": ""})] == [""]


async def test_a_test_may_start_processes_that_import_what_it_imports(tmp_path: Path) -> None:
    test = (
        "import multiprocessing\nimport unittest\n\nimport shop\n\n\nclass PoolTest(unittest.TestCase):\n"
        "    def test_pool(self):\n        with multiprocessing.get_context('spawn').Pool(1) as pool:\n"
        "            self.assertEqual(pool.map(shop.double, [2]), [4])\n"
    )
    files = {"shop.py": "def double(one):\n    return 2 * one\n", "test_shop.py": test}
    outcome = await judged(tests_pass, by_default(made(tmp_path / "work", files)), timeout="30s")
    assert outcome.findings == ()
