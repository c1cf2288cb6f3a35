"""Java: by Maven or Gradle if the project uses them, else by javac and JUnit 4, which need no build file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from handrail.domain.checks.finding import FixedBy
from handrail.engine.sandbox import Ran
from handrail.rules.toolchain.jvm.build_tools import FIXES, GRADLE, by_build_tool, settings_of
from handrail.rules.toolchain.probe import probe
from handrail.rules.toolchain.program import find
from handrail.rules.toolchain.reading import diagnostics, errors_only, tap
from handrail.rules.toolchain.site import Site
from handrail.rules.toolchain.task import CannotRun, Language, Read, Result, Task, TaskKind, TaskOptions

HEAP: Final = "-Xmx768m"
SYSTEM_JARS: Final = Path("/usr/share/java")
JUNIT: Final = ("junit4.jar", "junit-4", "junit.jar")
JARS_MAX: Final = 200
TESTS_MARK: Final = "@TESTS@"
NO_JUNIT: Final = CannotRun(
    message="there is no test runner: no pom.xml, no build.gradle, no JUnit 4",
    fix="put junit-4.13.2.jar and hamcrest-core into the project's lib/, or use Maven or Gradle",
    fixed_by=FixedBy.AGENT,
)
NO_JAVA: Final = CannotRun(
    message="there is no javac here", fix="install a JDK, so that `javac` and `java` are on PATH"
)


def _build(site: Site, asked: TaskOptions) -> Sequence[Task | CannotRun]:
    return by_build_tool(TaskKind.BUILD, site, asked) or _javac(
        site, asked, ("-nowarn",), errors_only, "make it compile"
    )


def _lint(site: Site, asked: TaskOptions) -> Sequence[Task | CannotRun]:
    return by_build_tool(TaskKind.LINT, site, asked) or _javac(site, asked, ("-Xlint:all",), diagnostics, "fix it")


def _javac(site: Site, asked: TaskOptions, options: Sequence[str], read: Read, fix: str) -> Sequence[Task | CannotRun]:
    javac = find(site, "javac")
    if javac is None:
        return [NO_JAVA]
    files = asked.paths or tuple(f"./{name}" for name in site.sources(".java"))
    if not files:
        return [CannotRun(message="there are no Java files", fix="name the folder with `path`", fixed_by=FixedBy.AGENT)]
    # No class files are written: the compiler stops after analysis. The files are named on its standard input.
    check = (f"-J{HEAP}", "-proc:none", "-XDshould-stop.ifNoError=FLOW", *options, *_class_path(site), *asked.args)
    names = "".join(f'"{name.replace(chr(92), chr(92) * 2)}"\n' for name in files)
    argv = (str(javac.path), *check, "@/dev/stdin")
    return [Task(argv=argv, read=read, programs=(javac,), fix=fix, stdin=names, shows=settings_of(javac))]


def _class_path(site: Site) -> tuple[str, ...]:
    jars = [*_jars(site.folder / "lib"), *_jars(site.folder / "libs"), *_junit_jars()]
    return ("-cp", ":".join(map(str, jars[:JARS_MAX]))) if jars else ()


def _jars(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.jar")) if folder.is_dir() else []


def _junit_jars() -> list[Path]:
    """The JUnit jars of the system, as Debian installs them."""
    found = [SYSTEM_JARS / name for name in ("junit4.jar", "hamcrest-core.jar", "hamcrest.jar")]
    return [path for path in found if path.exists()]


def _test(site: Site, asked: TaskOptions) -> Sequence[Task | CannotRun]:
    return by_build_tool(TaskKind.TEST, site, asked) or _by_junit(site, asked)


def _by_junit(site: Site, asked: TaskOptions) -> Sequence[Task | CannotRun]:
    javac, java = find(site, "javac"), find(site, "java")
    if javac is None or java is None:
        return [NO_JAVA]
    path = _class_path(site)
    if not any(name in "".join(path) for name in JUNIT):
        return [NO_JUNIT]
    files = tuple(f"./{name}" for name in site.sources(".java"))
    argv = ("/bin/sh", "-s", "--", str(java.path), path[1], *(asked.paths or files), *asked.args)
    script = probe("junit.sh").replace(TESTS_MARK, probe("Tests.java"))
    programs, fix = (java, javac), FIXES[TaskKind.TEST]
    return [Task(argv=argv, read=_junit, programs=programs, fix=fix, stdin=script, shows=settings_of(javac))]


def _junit(ran: Ran) -> Result:
    report = tap(ran)
    return report if report.is_whole else Result(problems=errors_only(ran).problems, is_whole=False)


def _coverage(site: Site, asked: TaskOptions) -> Sequence[Task | CannotRun]:
    fix = "let the build write it (JaCoCo), and name it with `report`: jacoco.xml"
    return [CannotRun(message="coverage of Java is read from a report", fix=fix, fixed_by=FixedBy.AUTHOR)]


JAVA: Final = Language(
    name="java",
    markers=("pom.xml", *GRADLE),
    suffixes=(".java",),
    plans={TaskKind.BUILD: _build, TaskKind.TEST: _test, TaskKind.LINT: _lint, TaskKind.COVERAGE: _coverage},
)
