"""Maven and Gradle: only the reports of this run say which tests ran, whatever the build prints and ends with."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from handrail.rules.command_succeeds import command_succeeds
from handrail.rules.tests_pass import tests_pass
from handrail.rules.toolchain.installed.caches import maven_of_wrapper, maven_repository
from handrail.rules.toolchain.jvm.junit_report import junit_tests
from handrail.rules.toolchain.report_file import BETWEEN
from rules.on_project import write
from rules.toolchain.workshop import judged, made, program, ran

if not sys.platform.startswith("linux"):
    pytest.skip("build tools were not tried: the sandbox needs Linux", allow_module_level=True)

from rules.toolchain.environments import by_default

FAILED = """<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="calc.CalcTest" tests="4" failures="1">
  <properties><property name="java.home" value="/jdk"/></properties>
  <testcase name="adds" classname="calc.CalcTest" time="0.1">
    <failure message="expected: &lt;3&gt; but was: &lt;-1&gt;" type="org.opentest4j.AssertionFailedError"><![CDATA[\
org.opentest4j.AssertionFailedError: expected: <3> but was: <-1>
\tat org.junit.jupiter.api.Assertions.assertEquals(Assertions.java:531)
\tat calc.CalcTest.adds(CalcTest.java:10)
]]></failure>
    <system-out>Tests run: 9</system-out>
  </testcase>
  <testcase name="divides()" classname="calc.CalcTest"/>
  <testcase name="powers(int)[2]" classname="calc.CalcTest"/>
  <testcase name="later" classname="calc.CalcTest"><skipped message="no"/></testcase>
</testsuite>
"""
PASSED = '<testsuite><testcase name="adds" classname="calc.CalcTest"/></testsuite>'


def test_reports_say_which_tests_ran_and_where_they_failed() -> None:
    result = junit_tests(
        ran(f"{BETWEEN}{FAILED}{BETWEEN}{PASSED.replace('adds', 'more')}", code=1), ["a/calc/CalcTest.java"]
    )
    assert result.counts == {"tests": 5, "passed": 3, "failed": 1, "errors": 0, "skipped": 1}
    assert result.tests == {
        "calc.CalcTest::adds": "failed",
        "calc.CalcTest::divides": "passed",
        "calc.CalcTest::powers[2]": "passed",
        "calc.CalcTest::later": "skipped",
        "calc.CalcTest::more": "passed",
    }
    [one] = result.problems
    assert (one.file, one.line) == ("a/calc/CalcTest.java", 10)
    assert one.message == "calc.CalcTest::adds fails: expected: <3> but was: <-1>"
    assert result.raised == {"calc.CalcTest::adds": "AssertionError"}
    assert result.is_whole


@pytest.mark.parametrize("text", ["<testsuite>", '<!DOCTYPE a [<!ENTITY x "y">]><testsuite/>'])
def test_a_report_that_can_t_be_read_makes_the_result_incomplete(text: str) -> None:
    assert not junit_tests(ran(f"{BETWEEN}{PASSED}{BETWEEN}{text}")).is_whole


def test_a_build_that_fails_before_its_tests_says_where() -> None:
    result = junit_tests(ran(stderr="[ERROR] /p/src/Calc.java:[12,8] class expected\n[ERROR] more\n", code=1))
    assert [(one.file, one.line, one.column) for one in result.problems] == [("/p/src/Calc.java", 12, 8)]


@pytest.mark.parametrize(
    ("build", "does", "wanted"),
    [
        ("pom.xml", "echo 'Tests run: 4, Failures: 0'", "no tests ran"),
        ("pom.xml", "report target/surefire-reports PASSED", ""),
        ("pom.xml", "report target/surefire-reports FAILED; echo BUILD SUCCESS", "calc.CalcTest::adds fails"),
        ("build.gradle", "report part/build/test-results/test PASSED; exit 3", "ended with exit 3"),
        ("build.gradle", "report part/build/test-results/test PASSED", ""),
    ],
)
async def test_only_reports_of_this_run_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, build: str, does: str, wanted: str
) -> None:
    """The project has a report of an older run, in which the test passed."""
    tool = program(tmp_path / "home" / "bin", "mvn" if build == "pom.xml" else "gradle")
    function = "report() { mkdir -p $1; cp $2 $1/TEST-calc.CalcTest.xml; }\n"
    tool.write_text(f"#!/bin/sh\n{function}{does}\n", encoding="utf-8")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", f"{tool.parent}:/usr/bin:/bin")
    old = "target/surefire-reports/TEST-calc.CalcTest.xml"
    project = made(tmp_path / "home" / "work", {build: "", "PASSED": PASSED, "FAILED": FAILED, old: PASSED})
    outcome = await judged(tests_pass, by_default(project), language="java")
    assert [wanted in one.message for one in outcome.findings] == ([True] if wanted else [])
    assert (project / old).read_text(encoding="utf-8") == PASSED


def test_maven_is_the_one_that_the_wrapper_downloaded_and_its_repository_where_the_settings_put_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    named = "distributionUrl=https\\://repo.maven.apache.org/maven2/x/apache-maven-3.9.6-bin.zip\n"
    assert (maven_of_wrapper(named), maven_repository()) == (None, None)
    real = program(tmp_path / ".m2/wrapper/dists/apache-maven-3.9.6-bin/1a2b/apache-maven-3.9.6/bin", "mvn")
    write(real.parent.parent, {"bin/m2.conf": "", "boot/x": ""})
    write(tmp_path, {".m2/repository/x": "", "elsewhere/x": ""})
    assert (maven_of_wrapper(named), maven_repository()) == (real, tmp_path / ".m2" / "repository")
    write(tmp_path, {".m2/settings.xml": "<settings><localRepository>${user.home}/elsewhere</localRepository>"})
    assert maven_repository() == tmp_path / "elsewhere"


async def test_debian_s_maven_starts_and_its_settings_are_not_shown(tmp_path: Path) -> None:
    if not Path("/etc/maven/m2.conf").exists():
        pytest.skip("not tried: there is no Maven of Debian here")
    setting = by_default(made(tmp_path / "work", {"a": ""}))
    for script in ("mvn --version", "! ls /etc/maven/settings.xml"):
        assert (await judged(command_succeeds, setting, argv=["sh", "-c", script])).findings == ()
