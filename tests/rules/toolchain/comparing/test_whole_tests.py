"""Tests that are one command without names: which changes of them count as less."""

from __future__ import annotations

import pytest

from handrail.rules.toolchain.comparing.old_view import OldFiles
from handrail.rules.toolchain.comparing.whole_tests import asserting, is_less, runners

MAKE = "CFLAGS = -O1\n\ntest: build/test\n\t./build/test\n\nclean:\n\trm -rf build\n"
C = "int main(void) {\n  assert(total(2) == 2);\n  assert(name(1) == 3);\n  return 0;\n}\n"
SCRIPT = "class A(unittest.TestCase):\n    def check(self):\n        self.assertEqual(total(1), 2)\n"


def less(path: str, before: str, now: str | None) -> bool:
    old = OldFiles({path: before.encode()})
    assert path in asserting(old) or path.endswith(".feature")
    return is_less(old, {} if now is None else {path: now.encode()}, [path])


@pytest.mark.parametrize(
    ("path", "before", "now"),
    [
        ("Makefile", MAKE, MAKE.replace("./build/test\n", "./build/test || true\n")),
        ("Makefile", MAKE, MAKE.replace("\t./", "\t-./")),
        ("Makefile", MAKE, MAKE.replace("./build/test\n", "echo ok\n")),
        ("Makefile", MAKE, MAKE.replace("-O1", "-O1 -DNDEBUG")),
        ("tests/a.c", C, C.replace("== 3", "> 0")),
        ("tests/a.c", C, C.replace("  assert(name(1) == 3);\n", "")),
        ("tests/a.c", C, "#define NDEBUG\n" + C),
        ("tests/a.c", C, C.replace("  assert(total", "  return 0;\n  assert(total")),
        ("tests/a.c", C, None),
        ("checks/a.py", SCRIPT, SCRIPT.replace("assertEqual(total(1), 2)", "assertTrue(total(1))")),
        ("checks/a.py", SCRIPT, SCRIPT.replace("    def", "    @unittest.skip\n    def")),
        ("a.feature", "Scenario: a\n  Then it is 1\n", "Scenario: a\n"),
    ],
)
def test_what_demands_less_is_less(path: str, before: str, now: str | None) -> None:
    assert less(path, before, now)


def test_the_script_that_runs_the_tests_is_known_by_who_names_it() -> None:
    old = OldFiles({"run_checks.py": b"", "prices.py": b"", "test/run.js": b""})
    assert runners(old, ["test:\n\tpython3 ./run_checks.py prices.py\n"]) == {"run_checks.py"}
    assert runners(old, ['{"scripts": {"test": "node test/run.js"}}']) == {"test/run.js"}


@pytest.mark.parametrize(
    ("path", "before", "now"),
    [
        ("Makefile", MAKE, MAKE.replace("clean:", "all: build/test\n\nclean:")),
        ("Makefile", MAKE, MAKE.replace("./build/test\n", "./build/test\n\t./build/more\n")),
        ("tests/a.c", C, C.replace("== 3", "== 4")),
        ("checks/a.py", SCRIPT, SCRIPT + "        self.assertEqual(total(2), 4)\n"),
        ("a.feature", "Scenario: a\n  Then it is 1\n", "Scenario: a\n  Then it is 2\n"),
    ],
)
def test_what_demands_as_much_is_not(path: str, before: str, now: str) -> None:
    assert not less(path, before, now)
