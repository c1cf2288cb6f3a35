"""Java: by Maven or Gradle if the project uses them, else by javac and JUnit 4, which need no build file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from handrail.engine.sandbox import Ran
from handrail.rules.toolchain.installed.caches import gradle_cache, gradle_of_wrapper, maven_repository
from handrail.rules.toolchain.probe import probe
from handrail.rules.toolchain.program import FoundProgram, find
from handrail.rules.toolchain.reading import diagnostics, errors_only, generic_result, tap
from handrail.rules.toolchain.site import Site
from handrail.rules.toolchain.task import CannotRun, Language, Read, Result, Task, TaskKind, TaskOptions

ANY_ORIGIN: Final = "-Daether.enhancedLocalRepository.trackingFilename=none"
HEAP: Final = "-Xmx768m"
SYSTEM_JARS: Final = Path("/usr/share/java")
JUNIT: Final = ("junit4.jar", "junit-4", "junit.jar")
JARS_MAX: Final = 200
GRADLE: Final = ("build.gradle", "build.gradle.kts")
GRADLE_TASKS: Final = {
    TaskKind.BUILD: ("testClasses",),
    TaskKind.TEST: ("test",),
    TaskKind.LINT: ("check", "-x", "test"),
}
MAVEN_GOALS: Final = {
    TaskKind.BUILD: ("test-compile",),
    TaskKind.TEST: ("test",),
    TaskKind.LINT: ("verify", "-DskipTests"),
}
TESTS_MARK: Final = "@TESTS@"
TESTS_FIX: Final = "fix the code, or the test if that is wrong"
FIXES: Final = {TaskKind.BUILD: "make it compile", TaskKind.TEST: TESTS_FIX, TaskKind.LINT: "fix it"}
NO_JUNIT: Final = CannotRun(
    message="there is no test runner: no pom.xml, no build.gradle, no JUnit 4",
    fix="put junit-4.13.2.jar and hamcrest-core into the project's lib/, or use Maven or Gradle",
)
NO_JAVA: Final = CannotRun(
    message="there is no javac here", fix="install a JDK, so that `javac` and `java` are on PATH"
)


def _by(kind: TaskKind, site: Site, asked: TaskOptions) -> Sequence[Task | CannotRun] | None:
    """The task of a build tool; None if the project has none."""
    read = generic_result if kind is TaskKind.TEST else errors_only
    if site.has("pom.xml"):
        return _maven(kind, site, asked, read)
    if any(map(site.has, GRADLE)):
        return _gradle(kind, site, asked, read)
    return None


def _maven(kind: TaskKind, site: Site, asked: TaskOptions, read: Read) -> Sequence[Task | CannotRun]:
    mvn = _wrapper(site, "mvnw") or find(site, "mvn")
    if mvn is None:
        return [CannotRun(message="there is no Maven here", fix="install Maven, so that `mvn` is on PATH")]
    repository = maven_repository()
    # Which repository a file came from does not matter offline; Maven would look for a mirror of the user's settings.
    found = (f"-Dmaven.repo.local={repository}", ANY_ORIGIN) if repository else ()
    options = ("--offline", "--batch-mode", "--no-transfer-progress", *found)
    argv = (str(mvn.path), *options, *MAVEN_GOALS[kind], *asked.args)
    java = find(site, "java")
    programs = (mvn, *([java] if java else []))
    shows = (*([repository] if repository else []), *(_settings(java) if java else ()))
    return [replace(_task(argv, programs, read, FIXES[kind]), shows=shows, env=_java_home(java))]


def _gradle(kind: TaskKind, site: Site, asked: TaskOptions, read: Read) -> Sequence[Task | CannotRun]:
    real = gradle_of_wrapper(site.text("gradle/wrapper/gradle-wrapper.properties"))
    own = FoundProgram("gradle", real, "the project's wrapper has downloaded it") if real else None
    gradle = own or _wrapper(site, "gradlew") or find(site, "gradle")
    if gradle is None:
        return [CannotRun(message="there is no Gradle here", fix="install Gradle, or add its wrapper to the project")]
    argv = (str(gradle.path), "--offline", "--no-daemon", "--console=plain", *GRADLE_TASKS[kind], *asked.args)
    cache, java = gradle_cache(), find(site, "java")
    programs = (gradle, *([java] if java else []))
    shows = (*cache.shows, *(_settings(java) if java else ()))
    return [replace(_task(argv, programs, read, FIXES[kind]), env={**cache.env, **_java_home(java)}, shows=shows)]


def _java_home(java: FoundProgram | None) -> dict[str, str]:
    """Where Maven and Gradle find the JDK that is on PATH."""
    home = java.path.resolve().parent.parent if java else None
    return {"JAVA_HOME": str(home)} if home and (home / "bin" / "java").exists() else {}


def _wrapper(site: Site, name: str) -> FoundProgram | None:
    return FoundProgram(name, site.folder / name) if site.has(name) else None


def _task(argv: tuple[str, ...], programs: tuple[FoundProgram, ...], read: Read, fix: str) -> Task:
    return Task(argv=argv, read=read, programs=programs, fix=fix, writable=True)


def _build(site: Site, asked: TaskOptions) -> Sequence[Task | CannotRun]:
    return _by(TaskKind.BUILD, site, asked) or _javac(site, asked, ("-nowarn",), errors_only, "make it compile")


def _lint(site: Site, asked: TaskOptions) -> Sequence[Task | CannotRun]:
    return _by(TaskKind.LINT, site, asked) or _javac(site, asked, ("-Xlint:all",), diagnostics, "fix it")


def _javac(site: Site, asked: TaskOptions, options: Sequence[str], read: Read, fix: str) -> Sequence[Task | CannotRun]:
    javac = find(site, "javac")
    if javac is None:
        return [NO_JAVA]
    files = asked.paths or tuple(f"./{name}" for name in site.sources(".java"))
    if not files:
        return [CannotRun(message="there are no Java files", fix="name the folder with `path`")]
    # No class files are written: the compiler stops after analysis. The files are named on its standard input.
    check = (f"-J{HEAP}", "-proc:none", "-XDshould-stop.ifNoError=FLOW", *options, *_class_path(site), *asked.args)
    names = "".join(f'"{name.replace(chr(92), chr(92) * 2)}"\n' for name in files)
    argv = (str(javac.path), *check, "@/dev/stdin")
    return [Task(argv=argv, read=read, programs=(javac,), fix=fix, stdin=names, shows=_settings(javac))]


def _settings(javac: FoundProgram) -> tuple[Path, ...]:
    """Where Debian's Java has its settings: in /etc, and without them it does not start."""
    home = javac.path.resolve().parent.parent
    real = (home / "conf" / "security" / "java.security").resolve()
    return () if real.is_relative_to(home) else (real.parent.parent,)


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
    return _by(TaskKind.TEST, site, asked) or _by_junit(site, asked)


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
    return [Task(argv=argv, read=_junit, programs=programs, fix=fix, stdin=script, shows=_settings(javac))]


def _junit(ran: Ran) -> Result:
    report = tap(ran)
    return report if report.is_whole else Result(problems=errors_only(ran).problems, is_whole=False)


def _coverage(site: Site, asked: TaskOptions) -> Sequence[Task | CannotRun]:
    fix = "let the build write it (JaCoCo), and name it with `report`: jacoco.xml"
    return [CannotRun(message="coverage of Java is read from a report", fix=fix)]


JAVA: Final = Language(
    name="java",
    markers=("pom.xml", *GRADLE),
    suffixes=(".java",),
    plans={TaskKind.BUILD: _build, TaskKind.TEST: _test, TaskKind.LINT: _lint, TaskKind.COVERAGE: _coverage},
)
