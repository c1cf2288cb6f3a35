"""What real tools said once, read again: counts, places and words."""

from __future__ import annotations

from pathlib import Path

import pytest

from handrail.rules.cards import TESTS_KEPT
from handrail.rules.files.project import project_at
from handrail.rules.toolchain.comparing.lost_tests import losses
from handrail.rules.toolchain.coverage_report import NoReport, lcov_files, read_report
from handrail.rules.toolchain.go import go_tests
from handrail.rules.toolchain.node.results import jest, mocha
from handrail.rules.toolchain.probe import flaws, results
from handrail.rules.toolchain.reading import diagnostics, errors_only, generic_result, json_of, sums, tap, whole
from handrail.rules.toolchain.rust import cargo_tests, errors, messages
from handrail.rules.toolchain.site import Site
from handrail.rules.toolchain.task import Canary, CanaryVerdict, Problem, Result, heard_of
from rules.toolchain.workshop import ran, recorded

TAP = """TAP version 13
# Subtest: outer
    # Subtest: inner
    not ok 1 - inner
      ---
      duration_ms: 1.2
      location: '/project/a.test.js:4:1'
      failureType: 'testCodeFailure'
      error: |-
        Expected values to be strictly equal:

        -1 !== 3
      code: 'ERR_ASSERTION'
      stack: |-
        TestContext.<anonymous> (file:///project/a.test.js:5:10)
        Test.runInAsyncScope (node:async_hooks:206:9)
      ...
    1..1
not ok 1 - outer
  ---
  error: '1 subtest failed'
  ...
ok 2 - fine
ok 3 - later # SKIP
not ok 4 - soon # TODO
1..4
"""
CARGO = """{"reason":"compiler-artifact"}
running 3 tests
test tests::fine ... ok
test tests::later ... ignored
test tests::adds ... FAILED
test tests::silent ... FAILED

failures:

---- tests::adds stdout ----

thread 'tests::adds' (2317) panicked at src/lib.rs:11:9:
assertion `left == right` failed
  left: -1
 right: 3

test result: FAILED. 1 passed; 2 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s
"""
RUSTC = (
    '{"reason":"compiler-message","message":{"level":"error","code":{"code":"E0425"},"message":"cannot find value `c`",'
    '"rendered":"error[E0425]\\n --> src/lib.rs:2:9\\n","spans":[{"file_name":"src/lib.rs","line_start":2,'
    '"column_start":9,"is_primary":true}]}}\n'
    '{"reason":"compiler-message","message":{"level":"warning","code":null,"message":"unused","spans":'
    '[{"file_name":"src/lib.rs","line_start":1,"column_start":1,"is_primary":true}]}}\n'
    '{"reason":"compiler-message","message":{"level":"error","message":"aborting due to an error","spans":[]}}\n'
    '{"reason":"compiler-message","message":"nonsense"}\n'
)
COBERTURA = """<?xml version="1.0" ?>
<coverage version="7.6"><packages><package name="."><classes>
<class name="c" filename="calc.py"><lines><line number="1" hits="1"/><line number="2" hits="0"/></lines></class>
<class name="more.py" filename="sub/more.py"><lines><line number="1" hits="3"/></lines></class>
</classes></package></packages></coverage>
"""
JACOCO = """<?xml version="1.0"?><!DOCTYPE report PUBLIC "-//JACOCO//DTD Report 1.1//EN" "r.dtd">
<report name="calc"><package name="com/example"><class name="com/example/Calc" sourcefilename="Calc.java">
<counter type="LINE" missed="9" covered="9"/></class><sourcefile name="Calc.java"><line nr="3" mi="0" ci="2"/>
<counter type="INSTRUCTION" missed="4" covered="5"/><counter type="LINE" missed="1" covered="3"/></sourcefile>
<counter type="LINE" missed="1" covered="3"/></package></report>
"""
GO_PROFILE = """mode: set
example.com/calc/calc.go:3.24,5.2 2 1
example.com/calc/calc.go:7.24,9.2 1 0
example.com/calc/calc.go:7.24,9.2 1 1
ok  	example.com/calc	0.003s	coverage: 50.0% of statements
"""


def placed(result: Result) -> list[tuple[str, int, int, str]]:
    return [(one.file, one.line, one.column, one.message) for one in result.problems]


def test_compilers_are_understood_whichever_way_they_write_a_place() -> None:
    said_by = ran(
        "src/calc.ts(2,3): error TS2322: Type 'string' is not assignable.\n",
        "calc.c:1:36: error: 'c' undeclared\n    1 | int add;\n      |     ^\ncalc.c:1:9: note: each is told once\n"
        "calc.c:2:1: warning: unused\ncalc.c:2:1: warning: unused\n"
        "./Calc.java:3: error: cannot find symbol\n        return a + c;\n                   ^\n"
        "[ERROR] no place\nmake: *** [Makefile:2: calc] Error 1\n",
    )
    assert placed(diagnostics(said_by)) == [
        ("src/calc.ts", 2, 3, "error TS2322: Type 'string' is not assignable."),
        ("calc.c", 1, 36, "error: 'c' undeclared"),
        ("calc.c", 2, 1, "warning: unused"),
        ("./Calc.java", 3, 20, "error: cannot find symbol"),
    ]
    assert [one.line for one in errors_only(said_by).problems] == [2, 1, 3]


def test_tap_counts_the_innermost_tests_and_points_at_the_line_that_failed() -> None:
    result = tap(ran(TAP))
    assert result.counts == {"tests": 4, "passed": 1, "failed": 1, "skipped": 2}
    wanted = "inner fails: Expected values to be strictly equal: -1 !== 3"
    assert placed(result) == [("/project/a.test.js", 5, 10, wanted)]
    assert result.is_whole


@pytest.mark.parametrize("text", ["1..3\nok 1 - a\n", "ok 1 - a\n", "ok 1\nok 2 - put in by a test\n1..1\n"])
def test_tap_that_tells_of_fewer_or_more_tests_than_it_announces_is_not_whole(text: str) -> None:
    assert not tap(ran(text)).is_whole


def test_tap_without_notes_is_still_a_failure() -> None:
    assert placed(tap(ran("not ok 1 - adds\n1..1\n"))) == [("", 0, 0, "adds fails")]
    assert placed(tap(ran('not ok\n  ---\n  message: "no"\n  ...\n1..1\n'))) == [("", 0, 0, "a test fails: no")]


@pytest.mark.parametrize(
    ("name", "counts", "place"),
    [
        ("jest.json", {"tests": 3, "passed": 1, "failed": 1, "skipped": 1}, ("/project/jt/calc.test.js", 3, 21)),
        ("vitest.json", {"tests": 2, "passed": 1, "failed": 1, "skipped": 0}, ("/project/vt/calc.test.mjs", 4, 21)),
    ],
)
def test_jest_and_vitest_say_how_many_and_where(name: str, counts: dict[str, int], place: tuple[str, int, int]) -> None:
    result = jest(ran("a word of a test\n" + recorded(name)))
    assert result.counts == counts
    assert [one[:3] for one in placed(result)] == [place]
    assert result.problems[0].message.startswith("adds fails: ")


def test_mocha_says_how_many_and_where() -> None:
    result = mocha(ran(recorded("mocha.json")))
    assert result.counts == {"tests": 3, "passed": 1, "failed": 1, "skipped": 1}
    wanted = "calc adds fails: AssertionError [ERR_ASSERTION]: Expected values to be strictly equal:"
    assert placed(result) == [("/project/mt/calc.js", 5, 12, wanted)]


def test_a_test_file_that_can_not_be_loaded_is_a_problem_of_its_own() -> None:
    reported = (
        '{"numTotalTests": 0, "testResults": [{"name": "/project/a.test.js", "status": "failed", "message": "no"}]}'
    )
    assert placed(jest(ran(reported))) == [("/project/a.test.js", 0, 0, "the file fails: no")]


@pytest.mark.parametrize("read", [jest, mocha])
def test_what_is_no_answer_is_not_whole(read: object) -> None:
    assert callable(read)
    for text in ("", "oh", "[1]", '{"stats": 1}', '{"numTotalTests": 1', "{" * 5_000):
        assert not read(ran(text)).is_whole


def test_go_tests_are_counted_without_those_that_hold_others() -> None:
    result = go_tests(ran(recorded("go-test.jsonl"), code=1), "example.com/calc")
    assert result.counts == {"tests": 4, "passed": 1, "failed": 2, "skipped": 1, "errors": 0}
    assert placed(result) == [
        ("calc_test.go", 7, 0, "TestAdd fails: Add(1, 2) = -1, want 3"),
        ("sub/sub_test.go", 6, 0, "TestSub/inner fails: bad inner"),
    ]


def test_go_tests_that_were_not_built_say_why() -> None:
    result = go_tests(ran(recorded("go-unbuilt.jsonl"), code=1), "example.com/calc")
    assert placed(result)[0] == ("./calc.go", 3, 37, "undefined: c")
    assert result.counts["errors"] == 1


def test_a_go_test_that_panics_fails_without_a_place() -> None:
    lines = [
        '{"Action":"run","Package":"a","Test":"TestA"}',
        '{"Action":"output","Package":"a","Test":"TestA","Output":"panic: oh [recovered]\\n"}',
        '{"Action":"fail","Package":"a","Test":"TestA"}',
    ]
    assert placed(go_tests(ran("\n".join(lines)), "a")) == [("", 0, 0, "TestA fails: panic: oh [recovered]")]


def test_cargo_says_how_many_and_where_it_panicked() -> None:
    result = cargo_tests(ran(CARGO, code=101))
    assert result.counts == {"tests": 4, "passed": 1, "failed": 2, "skipped": 1}
    wanted = "tests::adds fails: assertion `left == right` failed"
    assert placed(result) == [("src/lib.rs", 11, 9, wanted), ("", 0, 0, "tests::silent fails")]


def test_rustc_is_read_from_json_each_message_once() -> None:
    assert placed(errors(ran(RUSTC * 2))) == [("src/lib.rs", 2, 9, "E0425: cannot find value `c`")]
    assert errors(ran(RUSTC)).counts == {"errors": 1, "warnings": 1}
    assert len(messages(ran(RUSTC)).problems) == 2
    assert cargo_tests(ran(RUSTC)).problems == errors(ran(RUSTC)).problems


def test_sums_are_read_from_words_for_people() -> None:
    assert sums("== 3 passed, 1 failed, 2 skipped in 0.1s ==") == {"passed": 3, "failed": 1, "skipped": 2, "tests": 6}
    reported = sums("Tests run: 4, Failures: 1, Errors: 0, Skipped: 2")
    assert reported == {"tests": 4, "failed": 1, "errors": 0, "skipped": 2}
    assert sums("nothing") == sums("fine, 0 failed") == {}
    assert sums("1 feature passed, 0 failed\n2 scenarios passed") == {"passed": 3, "failed": 0, "tests": 3}
    assert sums("0 passed, 0 failed")["tests"] == 0


def test_an_unknown_command_is_understood_as_far_as_it_goes() -> None:
    assert generic_result(ran(TAP, code=1)).counts["tests"] == 4
    assert not generic_result(ran("1..3\nok 1 - a\n")).is_whole
    assert generic_result(ran("ok then\n")).is_whole
    assert placed(generic_result(ran("a.x:3:1: oh\n", code=1))) == [("a.x", 3, 1, "oh")]
    assert generic_result(ran("a.x:3:1: oh\n")).problems == ()  # it has succeeded: that was no complaint


def test_probes_are_believed_only_to_their_end() -> None:
    reported = 'noise\n{"file": "a.py", "line": 1, "column": 3, "message": "no", "excerpt": "x"}\n{"done": 2}\n'
    assert flaws(ran(reported)).counts == {"files": 2, "errors": 1}
    assert not flaws(ran("")).is_whole
    tests = '{"test": "a", "outcome": "passed"}\n{"test": "b", "outcome": "failed", "file": "b.py", "line": 2}\n'
    result = results(ran(tests + '{"covered": {"a.py": [1, 2], "b.py": "x"}}\n'))
    assert (result.counts["tests"], result.is_whole, result.covered) == (2, False, {"a.py": (1, 2)})
    assert placed(result) == [("b.py", 2, 0, "b fails: it does not say why")]


def test_numbers_of_others_are_counts_or_nothing() -> None:
    assert [whole(value) for value in (3, -1, 2.5, float("nan"), "3", None, 10**30, float("inf"))] == [
        *(3, 0, 2, 0, 0, 0, 10**9, 0)
    ]


def test_json_is_found_behind_somebody_elses_talk() -> None:
    assert json_of('{not\n[1, 2\n{"a": 1}') == {"a": 1}
    assert json_of("[" * 100_000) is None


def test_reports_of_all_kinds_become_the_same() -> None:
    assert read_report("coverage.xml", COBERTURA) == {"calc.py": (1, 2), "sub/more.py": (1, 1)}
    assert read_report("jacoco.xml", JACOCO) == {"com/example/Calc.java": (3, 4)}
    assert read_report("cover.out", GO_PROFILE) == {"example.com/calc/calc.go": (3, 3)}
    assert read_report("lcov.info", recorded("jest.lcov")) == lcov_files(recorded("jest.lcov")) == {"calc.js": (2, 3)}


def test_xml_is_read_as_xml_and_not_as_a_picture_of_it() -> None:
    line = "<line number='1' hits='1'/>"
    commented = "<!-- <line number='2' hits='0'/> --><![CDATA[<line number='3' hits='0'/>]]>"
    text = f"<coverage><class filename='a&amp;b/x &gt; y.py'>{line}{commented}</class></coverage>"
    assert read_report("coverage.xml", text) == {"a&b/x > y.py": (1, 1)}


BOMB = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 12))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "neither"),
        ("hello", "neither"),
        ('<!DOCTYPE x [<!ENTITY a "b">]><coverage/>', "entities"),
        (f'<!DOCTYPE x [<!ENTITY e0 "lol">{BOMB}]><coverage><class filename="&e11;"/></coverage>', "entities"),
        ('<!DOCTYPE x [<!ENTITY % a SYSTEM "file:///etc/hosts">%a;]><coverage/>', "entities"),
        ('<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/hosts">]><coverage>&a;</coverage>', "entities"),
        (COBERTURA[: len(COBERTURA) // 2], "not valid XML"),
        (JACOCO.replace("</package>", ""), "not valid XML: mismatched tag"),
    ],
)
def test_what_is_no_report_is_refused(text: str, reason: str) -> None:
    with pytest.raises(NoReport, match=reason):
        read_report("x", text)


def test_a_place_is_shown_as_people_of_the_project_call_it(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    (root / "sub").mkdir()
    site = Site(project_at(root, ()), root / "sub")
    assert site.shown("./a.py") == site.shown(f"{root}/sub/a.py") == site.shown(f"file://{root}/sub/a.py") == "sub/a.py"
    assert site.shown("../b.py") == "b.py"
    assert site.shown("/usr/include/stdio.h") == "/usr/include/stdio.h"


def test_hostile_output_is_read_in_linear_time() -> None:
    for text in ("a:" * 500_000, "not ok " * 200_000, " " * 1_000_000, "(" * 1_000_000, "<line " * 200_000):
        for read in (diagnostics, tap, generic_result, cargo_tests, flaws, results):
            read(ran(text, text))
    assert Problem(message="still here").message


def test_a_test_of_cargo_that_must_panic_now_is_another_one() -> None:
    before = cargo_tests(ran("test a::adds ... ok\ntest a::ends - should panic ... ok\n")).tests
    now = cargo_tests(ran("test a::adds - should panic ... ok\ntest a::ends ... ok\n")).tests
    [found] = losses(TESTS_KEPT, before, now)
    assert found.message == "a::adds passed when the step was given out, and must panic now"
    [found] = losses(TESTS_KEPT, before, {"a::adds": "passed"})
    assert found.where == "a::ends - should panic"


def test_folders_in_brackets_are_no_cases() -> None:
    before = {"app/[id]/a.test.js::adds": "passed", "app/[id]/b.test.js::ends[2]": "passed"}
    now = {"app/[id]/b.test.js::ends": "passed", "app/[id]/c.test.js::more": "passed"}
    [found] = losses(TESTS_KEPT, before, now)
    assert found.where == "app/[id]/a.test.js::adds"


def test_a_canary_that_two_projects_of_a_runner_share_is_heard_twice() -> None:
    canary = Canary(token="c1", path="c1.test.js", text="")
    once = {"a::c1 0": "failed", "a::c1 good": "passed"}
    assert heard_of(canary, {**once, "a::c1 0[2]": "failed", "a::c1 good[2]": "passed"}) is CanaryVerdict.RIGHT
    assert heard_of(canary, {**once, "a::c1 0[2]": "passed", "a::c1 good[2]": "passed"}) is CanaryVerdict.PASSED


def test_a_test_that_only_got_another_group_is_not_lost() -> None:
    before, now = {"a.test.js::has a label": "passed"}, {"a.test.js::label has a label": "passed"}
    assert list(losses(TESTS_KEPT, before, now, (), {"has a label"})) == []
    assert len(list(losses(TESTS_KEPT, before, now, (), {"is there"}))) == 1
    assert len(list(losses(TESTS_KEPT, before, {"a.test.js::other": "passed"}, (), {"has a label"}))) == 1
