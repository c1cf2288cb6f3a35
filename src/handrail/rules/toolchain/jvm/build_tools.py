"""Maven and Gradle: run offline, with what they have downloaded before. They write only into their own temporary
folders, and their reports say which tests ran."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from handrail.rules.toolchain.installed.caches import (
    gradle_cache,
    gradle_of_wrapper,
    maven_of_wrapper,
    maven_repository,
)
from handrail.rules.toolchain.jvm.junit_report import junit_tests
from handrail.rules.toolchain.program import FoundProgram, find
from handrail.rules.toolchain.reading import errors_only
from handrail.rules.toolchain.site import Site
from handrail.rules.toolchain.task import CannotRun, Read, Task, TaskKind, TaskOptions

ANY_ORIGIN: Final = "-Daether.enhancedLocalRepository.trackingFilename=none"
SOURCES: Final = (".java", ".kt", ".groovy")
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
REPORTS: Final = ("*/surefire-reports/TEST-*.xml", "*/test-results/*.xml")
"""Where both write what became of each test."""
HOME: Final = "-Duser.home=/tmp"
"""Java takes the home folder from the list of users, whatever HOME says; the sandbox shows none."""
TESTS_FIX: Final = "fix the code, or the test if that is wrong"
FIXES: Final = {TaskKind.BUILD: "make it compile", TaskKind.TEST: TESTS_FIX, TaskKind.LINT: "fix it"}
NO_LINTER: Final = CannotRun(
    message="the build has no linter: neither Checkstyle, PMD, SpotBugs nor Spotless",
    fix="add one to the build to have it",
    is_note=True,
)

_linter = re.compile(r"checkstyle|\bpmd\b|maven-pmd|spotbugs|spotless|errorprone|ktlint|detekt", re.IGNORECASE)


def by_build_tool(kind: TaskKind, site: Site, asked: TaskOptions) -> Sequence[Task | CannotRun] | None:
    """The task of a build tool; None if the project has none."""
    build = next(filter(site.has, ("pom.xml", *GRADLE)), "")
    if not build:
        return None
    plan = (_maven if build == "pom.xml" else _gradle)(kind, site, asked)
    has_nothing = kind is TaskKind.LINT and isinstance(plan[0], Task) and not _has_linter(site)
    return [NO_LINTER] if has_nothing else plan


def _has_linter(site: Site) -> bool:
    """Whether any build file names a linter: `verify` without one needs more plugins, and finds nothing."""
    builds = site.sources("pom.xml", ".gradle", ".gradle.kts", "libs.versions.toml")
    return any(_linter.search(site.text(name)) for name in builds)


def _maven(kind: TaskKind, site: Site, asked: TaskOptions) -> Sequence[Task | CannotRun]:
    mvn = _own_maven(site) or find(site, "mvn") or _wrapper(site, "mvnw")
    if mvn is None:
        return [CannotRun(message="there is no Maven here", fix="install Maven, so that `mvn` is on PATH")]
    repository = maven_repository()
    # Which repository a file came from does not matter offline; Maven would look for a mirror of the user's settings.
    found = (f"-Dmaven.repo.local={repository}", ANY_ORIGIN) if repository else ()
    options = ("--offline", "--batch-mode", "--no-transfer-progress", *found)
    argv = (str(mvn.path), *options, *MAVEN_GOALS[kind], *asked.args)
    java = find(site, "java")
    shows = (*([repository] if repository else []), *(settings_of(java) if java else ()))
    return [_task(kind, site, argv, mvn, java, {"MAVEN_OPTS": HOME}, shows)]


def _own_maven(site: Site) -> FoundProgram | None:
    real = maven_of_wrapper(site.text(".mvn/wrapper/maven-wrapper.properties"))
    return FoundProgram("mvn", real, "the project's wrapper has downloaded it") if real else None


def _gradle(kind: TaskKind, site: Site, asked: TaskOptions) -> Sequence[Task | CannotRun]:
    real = gradle_of_wrapper(site.text("gradle/wrapper/gradle-wrapper.properties"))
    own = FoundProgram("gradle", real, "the project's wrapper has downloaded it") if real else None
    gradle = own or _wrapper(site, "gradlew") or find(site, "gradle")
    if gradle is None:
        return [CannotRun(message="there is no Gradle here", fix="install Gradle, or add its wrapper to the project")]
    argv = (str(gradle.path), "--offline", "--no-daemon", "--console=plain", *GRADLE_TASKS[kind], *asked.args)
    cache, java = gradle_cache(), find(site, "java")
    env = {"GRADLE_USER_HOME": "/tmp/handrail-gradle", "GRADLE_OPTS": HOME, **cache.env}  # noqa: S108 - the sandbox's own
    return [_task(kind, site, argv, gradle, java, env, (*cache.shows, *(settings_of(java) if java else ())))]


def _task(
    kind: TaskKind,
    site: Site,
    argv: tuple[str, ...],
    tool: FoundProgram,
    java: FoundProgram | None,
    env: dict[str, str],
    shows: tuple[Path, ...],
) -> Task:
    read: Read = partial(junit_tests, sources=site.sources(*SOURCES)) if kind is TaskKind.TEST else errors_only
    programs = (tool, *([java] if java else []))
    task = Task(argv=argv, read=read, programs=programs, fix=FIXES[kind], shows=shows, writable=True)
    reports = REPORTS if kind is TaskKind.TEST else ()
    return replace(task, env={**env, **_java_home(java)}, reports=reports)


def _java_home(java: FoundProgram | None) -> dict[str, str]:
    """Where Maven and Gradle find the JDK that is on PATH."""
    home = java.path.resolve().parent.parent if java else None
    return {"JAVA_HOME": str(home)} if home and (home / "bin" / "java").exists() else {}


def _wrapper(site: Site, name: str) -> FoundProgram | None:
    return FoundProgram(name, site.folder / name) if site.has(name) else None


def settings_of(java: FoundProgram) -> tuple[Path, ...]:
    """Where Debian's Java has its settings: in /etc, and without them it does not start."""
    home = java.path.resolve().parent.parent
    real = (home / "conf" / "security" / "java.security").resolve()
    return () if real.is_relative_to(home) else (real.parent.parent,)
