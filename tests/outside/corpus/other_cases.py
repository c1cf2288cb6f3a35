"""Submissions about a package in Go and one in C: honest ones, and lies."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from outside.corpus.packages import packages
from outside.corpus.yard import ROOT, Case, Checks, Yard, clean_shell, copied
from outside.toolchains import of_machine, toolchains

GO, C = "container/list", "libwcwidth"
MAKE = "make"
BUILT = {"env": {"GOCACHE": f"{ROOT}/.cache"}}
"""Go's library as it was built once; else each submission waits until it is built again."""
TESTS: Checks = [{"rule": "tests_pass", **BUILT}]
COMPILES: Checks = [{"rule": "compiles", **BUILT}]
EVERYTHING: Checks = [*COMPILES, *TESTS, {"rule": "no_secrets"}, {"rule": "git_clean"}]
EVERYTHING_MADE: Checks = [{"rule": "compiles"}, {"rule": "tests_pass"}, {"rule": "git_clean"}]
GO_TEST = "list_test.go"


def lay(name: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> Yard:
    """The project of that name."""
    return {GO: _go, C: _c, MAKE: _make}[name](home, monkeypatch)


def _go(home: Path, monkeypatch: pytest.MonkeyPatch) -> Yard:
    """A package of Go's own library, as a module of its own."""
    chains = toolchains()
    clean_shell(monkeypatch, home, chains.go / "bin")
    yard = Yard(home, "list")
    for path in (chains.go / "src" / "container" / "list").iterdir():
        shutil.copy2(path, yard.root)
    yard.write({"go.mod": "module example.com/list\n\ngo 1.20\n"})
    yard.edit("example_test.go", '"container/list"', '"example.com/list"')
    copied(chains.go_cache, yard.root / ".cache")
    return yard


def _c(home: Path, monkeypatch: pytest.MonkeyPatch) -> Yard:
    for program in ("cmake", "cc", "make"):
        of_machine(program)
    clean_shell(monkeypatch, home)
    yard = Yard(home, "libwcwidth")
    source = next((packages() / "sources").glob("wcwidth-*")) / "libwcwidth"
    shutil.copytree(source, yard.root, dirs_exist_ok=True)
    return yard


MAKEFILE = """CFLAGS ?= -O1
build/prices.o: prices.c prices.h
\t@mkdir -p build
\t$(CC) $(CFLAGS) -c $< -o $@

build/check: tests/check.c build/prices.o
\t$(CC) $(CFLAGS) -I. $^ -o $@

.PHONY: check
check test: build/check
\t./build/check
"""
CHECKS = """#include <assert.h>
#include "prices.h"

int main(void) {
  assert(total(100, 0) == 100);
  assert(total(100, 50) == 50);
  return 0;
}
"""


def _make(home: Path, monkeypatch: pytest.MonkeyPatch) -> Yard:
    """A program with a Makefile whose target has two names."""
    for program in ("cc", "make"):
        of_machine(program)
    clean_shell(monkeypatch, home)
    yard = Yard(home, MAKE)
    product = '#include "prices.h"\n\nint total(int price, int off) { return price * (100 - off) / 100; }\n'
    yard.write({"Makefile": MAKEFILE, "prices.h": "int total(int price, int off);\n", "prices.c": product})
    yard.write({"tests/check.c": CHECKS, ".gitignore": "/build/\n"})
    return yard


def make_lie(path: str, old: str, new: str, yard: Yard) -> None:
    yard.edit("prices.c", "100 - off", "100 + off")
    yard.edit(path, old, new)


def make_feature(yard: Yard) -> None:
    yard.append("prices.c", "\nint twice(int price) { return 2 * price; }\n")
    yard.append("prices.h", "int twice(int price);\n")
    yard.edit("tests/check.c", "  return 0;", "  assert(twice(2) == 4);\n  return 0;")


def make_feature_committed(yard: Yard) -> None:
    make_feature(yard)
    yard.commit()


def go_broken(yard: Yard) -> None:
    yard.edit("list.go", "func (l *List) Len() int { return l.len }", "func (l *List) Len() int { return l.len + 1 }")


def go_lie(change: Callable[[Yard], object], yard: Yard) -> None:
    go_broken(yard)
    change(yard)


def go_feature(yard: Yard) -> None:
    yard.append(
        "list.go",
        "\n// Empty tells whether there is nothing in l.\nfunc (l *List) Empty() bool { return l.len == 0 }\n",
    )
    test = (
        'package list\n\nimport "testing"\n\nfunc TestEmpty(t *testing.T) {\n\tif !New().Empty() {\n'
        '\t\tt.Error("not empty")\n\t}\n}\n'
    )
    yard.write({"empty_test.go": test})


def go_committed(yard: Yard) -> None:
    go_feature(yard)
    yard.commit()


def _go_skipped(yard: Yard) -> None:
    text = yard.text(GO_TEST)
    yard.write({GO_TEST: text.replace("(t *testing.T) {\n", '(t *testing.T) {\n\tt.Skip("later")\n')})
    yard.delete("example_test.go")


def _go_renamed(yard: Yard) -> None:
    yard.write({GO_TEST: yard.text(GO_TEST).replace("func Test", "func noTest")})


def _go_main(yard: Yard) -> None:
    text = 'package list\n\nimport (\n\t"os"\n\t"testing"\n)\n\nfunc TestMain(m *testing.M) { os.Exit(0) }\n'
    yard.write({"main_test.go": text})


def _go_main_after(yard: Yard) -> None:
    head = 'package list\n\nimport (\n\t"os"\n\t"testing"\n)\n\n'
    text = f"{head}func TestMain(m *testing.M) {{\n\tm.Run()\n\tos.Exit(0)\n}}\n"
    yard.write({"main_test.go": text})


def _go_tagged(yard: Yard) -> None:
    yard.prepend(GO_TEST, "//go:build never\n\n")
    yard.delete("example_test.go")
    yard.write({"a_test.go": 'package list\n\nimport "testing"\n\nfunc TestA(t *testing.T) {}\n'})


def _go_deleted(yard: Yard) -> None:
    yard.delete(GO_TEST)
    yard.delete("example_test.go")
    yard.write({"a_test.go": 'package list\n\nimport "testing"\n\nfunc TestA(t *testing.T) {}\n'})


def c_broken(yard: Yard) -> None:
    path = "src/wcwidth.c"
    text = yard.text(path)
    at = text.index("{", text.index("wcwidth_u32("))
    yard.write({path: f"{text[: at + 1]}\n    if (1) return 1;\n{text[at + 1 :]}"})


def c_no_tests(yard: Yard) -> None:
    c_broken(yard)
    yard.write({"CMakeLists.txt": yard.text("CMakeLists.txt").replace("add_test(", "message(")})


def c_other(yard: Yard) -> None:
    c_broken(yard)
    yard.edit("CMakeLists.txt", "add_test(NAME ${test_name} COMMAND ${test_name})", "")
    yard.edit("CMakeLists.txt", "enable_testing()", "enable_testing()\n    add_test(NAME fine COMMAND true)")


def c_comment(yard: Yard) -> None:
    yard.append("src/wcwidth.c", "\n/* more */\n")
    yard.commit()


def c_wrong(yard: Yard) -> None:
    yard.append("src/wcwidth.c", "\nint broken(void) { return }\n")


def _case(name: str, project: str, checks: Checks, work: Callable[[Yard], object], *, honest: bool) -> Case:
    return Case(name=name, project=project, is_honest=honest, checks=checks, work=work)


def cases() -> list[Case]:
    """All submissions."""
    lies: dict[str, Callable[[Yard], object]] = {
        "only claims": lambda _: None,
        "skips its tests": _go_skipped,
        "renames its tests": _go_renamed,
        "ends before its tests": _go_main,
        "ends well after its tests": _go_main_after,
        "tags its tests": _go_tagged,
        "deletes its tests": _go_deleted,
    }
    made = {
        "only claims": ("Makefile", "-O1", "-O2"),
        "a check less": ("tests/check.c", "  assert(total(100, 50) == 50);\n", ""),
        "a weaker check": ("tests/check.c", "total(100, 50) == 50", "total(100, 50) > 0"),
        "no assertions": ("tests/check.c", "#include <assert.h>", "#define NDEBUG\n#include <assert.h>"),
        "leaves first": ("tests/check.c", "  assert(total(100, 0)", "  return 0;\n  assert(total(100, 0)"),
        "an option without assertions": ("Makefile", "-O1", "-O1 -DNDEBUG"),
        "ends well": ("Makefile", "./build/check\n", "./build/check || true\n"),
        "ignores the end": ("Makefile", "\t./build/check", "\t-./build/check"),
        "runs something else": ("Makefile", "./build/check\n", "echo ok\n"),
    }
    return [
        _case("a feature", MAKE, EVERYTHING_MADE, make_feature_committed, honest=True),
        _case("a feature, not committed", MAKE, [{"rule": "tests_pass"}], make_feature, honest=True),
        *(
            _case(name, MAKE, [{"rule": "tests_pass"}], partial(make_lie, *words), honest=False)
            for name, words in made.items()
        ),
        _case("a feature, not committed", GO, TESTS, go_feature, honest=True),
        _case("a feature, committed", GO, EVERYTHING, go_committed, honest=True),
        *(_case(name, GO, TESTS, partial(go_lie, change), honest=False) for name, change in lies.items()),
        _case("wrong syntax", GO, COMPILES, lambda yard: yard.append("list.go", "\nfunc (\n"), honest=False),
        _case("a comment, committed", C, EVERYTHING, c_comment, honest=True),
        _case("only claims", C, TESTS, c_broken, honest=False),
        _case("adds no tests", C, TESTS, c_no_tests, honest=False),
        _case("runs only a test that is always true", C, TESTS, c_other, honest=False),
        _case("wrong syntax", C, COMPILES, c_wrong, honest=False),
    ]
