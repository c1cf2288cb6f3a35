"""What is run for which project, and what is said where something is missing: named, never passed."""

from __future__ import annotations

from pathlib import Path

import pytest

from handrail.engine.checking.rule import Rule
from handrail.rules.compiles import compiles
from handrail.rules.lint_clean import lint_clean
from handrail.rules.tests_pass import tests_pass
from handrail.rules.toolchain.linters.of_javascript import NO_LINTER
from handrail.rules.toolchain.program import FoundProgram, of_machine
from handrail.rules.toolchain.report_file import SCRIPT
from rules.on_project import setting_of
from rules.toolchain.projects import SAMPLES
from rules.toolchain.workshop import Scripted, judged, made, places, program, ran, scripted

RULES = (compiles, tests_pass, lint_clean)

RUFF = "ruff check --output-format=json --no-cache --no-fix --no-fix-only --force-exclude"


JEST = "jest --json --ci --outputFile=report"
MOCHA = "mocha --reporter json --reporter-option output=report"
NODE_TEST = "node --test --test-reporter=tap --test-reporter-destination=report"
SYNTAX = "node --experimental-vm-modules --no-warnings --input-type=commonjs -"


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without any program, and an empty home; the folder is where tests put some."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path / "bin"


async def argv_of(rule: Rule, project: Path, **parameters: object) -> list[tuple[str, ...]]:
    """The commands that a rule would run, without those that ask for versions."""
    sandbox = Scripted()
    await rule.apply(parameters, scripted(project, sandbox))
    return [_unwrapped(job.argv) for job in sandbox.jobs if job.bounds.time_ms > 20_000]


def _unwrapped(argv: tuple[str, ...]) -> tuple[str, ...]:
    """A command as it is, without what reads its report."""
    if "surefire-reports" in "".join(argv):
        return argv[4:]
    if SCRIPT not in argv:
        return argv
    report, *words = argv[argv.index(SCRIPT) + 2 :]
    return tuple(word.replace(report, "report") for word in words)


def bare_names(argvs: list[tuple[str, ...]]) -> list[str]:
    return [" ".join([Path(words[0]).name, *words[1:]]) for words in argvs]


@pytest.mark.parametrize("language", SAMPLES)
async def test_a_missing_tool_chain_is_named_and_never_passes(bare: Path, tmp_path: Path, language: str) -> None:
    project = made(tmp_path / "project", SAMPLES[language].good)
    for rule in RULES:
        outcome = await judged(rule, setting_of(project))
        assert outcome.findings, rule.card.name
        for found in outcome.findings:
            assert found.where == "checks"
            assert "there is no" in found.message
            assert found.fix
        assert await rule.inputs({}, setting_of(project)) == ""


async def test_a_project_in_no_known_language_says_so(bare: Path, tmp_path: Path) -> None:
    found = await places(tests_pass, setting_of(made(tmp_path / "project", {"README.md": "hello"})))
    assert found == [("checks", "no known language was found in the project")]


@pytest.mark.parametrize(
    ("files", "programs", "rule", "wanted"),
    [
        ({"a.py": "", "ruff.toml": ""}, ["ruff"], lint_clean, [f"{RUFF} -- ."]),
        ({"a.py": ""}, ["flake8"], lint_clean, ["flake8 --format=default ."]),
        ({"test_a.py": "import unittest"}, ["python3"], tests_pass, ["python3 -B -"]),
        (
            {"package.json": '{"devDependencies": {"jest": "1"}}'},
            ["node", "jest"],
            tests_pass,
            [JEST],
        ),
        (
            {"package.json": '{"scripts": {"test": "vitest run"}}'},
            ["node", "vitest"],
            tests_pass,
            ["vitest run --reporter=json --outputFile=report"],
        ),
        (
            {"package.json": '{"scripts": {"test": "mocha"}}'},
            ["node", "mocha"],
            tests_pass,
            [MOCHA],
        ),
        ({"package.json": '{"scripts": {"test": "gulp"}}'}, ["node", "npm"], tests_pass, ["npm test --silent"]),
        ({"package.json": '{"scripts": {"test": "ava -v"}}'}, ["node", "ava"], tests_pass, ["ava --tap -v"]),
        (
            {"package.json": "{}", "a.test.js": "import test from 'node:test'"},
            ["node"],
            tests_pass,
            [NODE_TEST],
        ),
        ({"a.ts": ""}, ["node", "tsc"], compiles, ["tsc --noEmit --pretty false ./a.ts"]),
        (
            {"package.json": "{}", "tsconfig.json": '{"files": ["a.d.ts"]}', "a.d.ts": "", "a.js": ""},
            ["node", "tsc"],
            compiles,
            [
                "tsc --noEmit --pretty false -p .",
                "node --experimental-vm-modules --no-warnings --input-type=commonjs -",
            ],
        ),
        (
            {"package.json": "{}", "tsconfig.json": "{}", "a.d.ts": "", "a.js": ""},
            ["node"],
            compiles,
            ["node --experimental-vm-modules --no-warnings --input-type=commonjs -"],
        ),
        (
            {"package.json": "{}", "tsconfig.json": '{"compilerOptions": {"allowJs": true}}', "a.ts": "", "a.js": ""},
            ["node", "tsc"],
            compiles,
            ["tsc --noEmit --pretty false -p .", SYNTAX],
        ),
        (
            {"package.json": "{}", "tsconfig.json": "{}", "a.d.ts": "", "a.js": "", "eslint.config.js": ""},
            ["node", "eslint"],
            lint_clean,
            ["eslint --format json --no-fix ."],
        ),
        ({"pom.xml": ""}, ["mvn"], compiles, ["mvn --offline --batch-mode --no-transfer-progress test-compile"]),
        ({"build.gradle": ""}, ["gradle"], tests_pass, ["gradle --offline --no-daemon --console=plain test"]),
        (
            {"build.gradle": "plugins { id 'checkstyle' }", "gradlew": ""},
            [],
            lint_clean,
            ["gradlew --offline --no-daemon --console=plain check -x test"],
        ),
        ({"Makefile": "all:\n", "a.c": ""}, ["make", "cc"], compiles, ["make --keep-going"]),
        ({"Makefile": "check:\n", "a.c": ""}, ["make", "cc"], tests_pass, ["make --keep-going check"]),
        (
            {"a.c": "", "b.cpp": ""},
            ["cc", "c++"],
            compiles,
            ["cc -fsyntax-only -I./ ./a.c", "c++ -fsyntax-only -I./ ./b.cpp"],
        ),
        ({"-o.c": ""}, ["cc"], lint_clean, ["cc -Wall -Wextra -fsyntax-only -I./ ./-o.c"]),
        ({"go.mod": "module a"}, ["go"], lint_clean, ["go vet -json ./..."]),
        (
            {"Cargo.toml": "", "Cargo.lock": ""},
            ["cargo", "rustc"],
            compiles,
            ["cargo check --all-targets --message-format=json --locked"],
        ),
    ],
)
async def test_the_project_s_own_runner_is_chosen(
    bare: Path, tmp_path: Path, files: dict[str, str], programs: list[str], rule: Rule, wanted: list[str]
) -> None:
    for name in programs:
        program(bare, name)
    project = made(tmp_path / "project", files)
    assert bare_names(await argv_of(rule, project)) == wanted


@pytest.mark.parametrize(
    ("files", "programs", "rule", "wanted"),
    [
        ({"pom.xml": ""}, [], compiles, "there is no Maven here"),
        ({"build.gradle.kts": ""}, [], compiles, "there is no Gradle here"),
        (
            {"a.java": ""},
            ["javac", "java"],
            tests_pass,
            "there is no test runner: no pom.xml, no build.gradle, no JUnit 4",
        ),
        (
            {"a.c": ""},
            ["cc"],
            tests_pass,
            "there is no test runner: neither CMake nor a Makefile with `test` or `check`",
        ),
        ({"a.c": "", "Makefile": "test:\n"}, ["cc"], tests_pass, "there is no make here"),
        ({"CMakeLists.txt": ""}, ["cmake", "ctest"], compiles, "there is no C compiler here"),
        ({"CMakeLists.txt": ""}, ["cc"], lint_clean, "there are no C or C++ files"),
        ({"package.json": "[]"}, ["node"], tests_pass, "there is no test runner: package.json names none"),
        ({"package.json": '{"scripts": {"test": "jest"}}'}, ["node"], tests_pass, "there is no jest here"),
        ({"package.json": ""}, ["node"], compiles, "there are no JavaScript files"),
        ({"a.ts": ""}, ["node"], compiles, "there is no tsc here"),
        ({"package.json": ""}, ["node"], lint_clean, NO_LINTER.message),
        ({"pyproject.toml": ""}, ["python3"], compiles, "there are no Python files"),
        ({"pyproject.toml": ""}, ["python3"], tests_pass, "there is no pytest here"),
        ({"pyproject.toml": ""}, ["pytest"], tests_pass, "there is no Python here"),
        ({"Cargo.toml": ""}, ["cargo", "rustc"], lint_clean, "there is no clippy here"),
        ({"pom.xml": ""}, ["javac"], compiles, "there is no Maven here"),
        (
            {"pom.xml": ""},
            ["mvn"],
            lint_clean,
            "the build has no linter: neither Checkstyle, PMD, SpotBugs nor Spotless",
        ),
    ],
)
async def test_what_is_missing_is_named(
    bare: Path, tmp_path: Path, files: dict[str, str], programs: list[str], rule: Rule, wanted: str
) -> None:
    for name in programs:
        program(bare, name)
    assert await places(rule, setting_of(made(tmp_path / "project", files))) == [("checks", wanted)]


async def test_node_tests_of_a_folder_are_named_one_by_one(bare: Path, tmp_path: Path) -> None:
    program(bare, "node")
    files = {"package.json": '{"scripts": {"test": "node --test"}}', "a/x.test.js": "", "a/y.js": "", "b.test.js": ""}
    ran_with = await argv_of(tests_pass, made(tmp_path / "project", files), paths=["a", "b.test.js"])
    assert bare_names(ran_with) == [
        "node --test --test-reporter=tap --test-reporter-destination=report ./a/x.test.js ./b.test.js"
    ]


async def test_a_project_with_too_many_files_asks_for_a_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("handrail.rules.toolchain.site.ENTRIES_MAX", 3)
    project = made(tmp_path / "project", {f"{n}.py": "" for n in range(4)})
    [(_, message)] = await places(compiles, setting_of(project))
    assert "name a part of it with `path`" in message


def test_rustup_is_passed_by_because_no_sandbox_shows_its_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rustup = program(tmp_path / "bin", "rustup")
    (tmp_path / "bin" / "cargo").symlink_to(rustup)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("RUSTUP_HOME", str(tmp_path / "home"))
    assert of_machine("cargo") == FoundProgram("cargo", tmp_path / "bin" / "cargo")
    real = program(tmp_path / "home" / "toolchains" / "stable-x" / "bin", "cargo")
    (tmp_path / "home" / "settings.toml").write_text('version = "12"\ndefault_toolchain = "stable-x"\n')
    assert of_machine("cargo") == FoundProgram("cargo", real, "rustup: it is the default")
    real.unlink()
    assert of_machine("cargo") == FoundProgram("cargo", tmp_path / "bin" / "cargo")
    assert FoundProgram("gone", real).identity == f"{real} is gone"


async def test_programs_of_the_project_come_before_those_of_the_machine(bare: Path, tmp_path: Path) -> None:
    project = made(tmp_path / "project", {"pyproject.toml": "", "sub/a.py": ""})
    program(bare, "ruff")
    own = program(project / ".venv" / "bin", "ruff")
    assert [words[0] for words in await argv_of(lint_clean, project, path="sub", language="python")] == [str(own)]


async def test_an_author_narrows_what_is_run(bare: Path, tmp_path: Path) -> None:
    program(bare, "ruff")
    project = made(tmp_path / "project", {"pyproject.toml": "", "src/a.py": "", "-x.py": ""})
    ran_with = await argv_of(lint_clean, project, paths=["src", "-x.py"], args=["--select", "F"])
    assert bare_names(ran_with) == [f"{RUFF} --select F -- ./src ./-x.py"]


@pytest.mark.parametrize(
    "parameters",
    [{"path": ".."}, {"paths": ["../x"]}, {"path": "link"}, {"path": "gone"}, {"path": "sub", "paths": ["../a.py"]}],
)
async def test_a_path_out_of_the_project_is_refused(tmp_path: Path, parameters: dict[str, object]) -> None:
    project = made(tmp_path / "project", {"a.py": "", "sub/b.py": ""})
    (project / "link").symlink_to(tmp_path)
    outcome = await judged(compiles, setting_of(project), **parameters)
    assert [one.where for one in outcome.findings] == ["checks"]
    assert await compiles.inputs(parameters, setting_of(project)) == ""


async def test_private_folders_are_not_looked_into(bare: Path, tmp_path: Path) -> None:
    project = made(tmp_path / "project", {"kept/a.py": "", "README.md": ""})
    outcome = await compiles.apply({}, setting_of(project, project / "kept"))
    assert "no known language" in outcome.findings[0].message


async def test_a_command_of_the_author_is_run_as_it_is(bare: Path, tmp_path: Path) -> None:
    program(bare, "tox")
    project = made(tmp_path / "project", {"check.sh": ""})
    sandbox = Scripted(ran("3 passed", code=0))
    outcome = await judged(tests_pass, scripted(project, sandbox), command=["tox", "-q"], env={"A": "1"})
    assert outcome.findings == ()
    assert sandbox.jobs[0].argv == (str(bare / "tox"), "-q")
    assert sandbox.jobs[0].env["A"] == "1"
    assert outcome.evidence is not None
    assert outcome.evidence.counts == {"passed": 3, "tests": 3}
    assert await places(tests_pass, setting_of(project), command=["nope"]) == [
        ("checks", "there is no program nope here")
    ]
    assert await argv_of(compiles, project, command=["./check.sh"]) == [("./check.sh",)]


async def test_the_same_files_and_programs_have_the_same_inputs(bare: Path, tmp_path: Path) -> None:
    tool = program(bare, "ruff")
    project = made(tmp_path / "project", {"a.py": "", "pyproject.toml": ""})
    first = await lint_clean.inputs({}, setting_of(project))
    assert first
    assert await lint_clean.inputs({}, setting_of(project)) == first
    tool.write_text("#!/bin/sh\nexit 10\n", encoding="utf-8")
    second = await lint_clean.inputs({}, setting_of(project))
    (project / "a.py").write_text("x = 1\n", encoding="utf-8")
    assert len({first, second, await lint_clean.inputs({}, setting_of(project))}) == 3


async def test_what_is_installed_is_part_of_the_inputs(bare: Path, tmp_path: Path) -> None:
    program(bare, "ruff")
    project = made(tmp_path / "project", {"a.py": "", "pyproject.toml": ""})
    before = await lint_clean.inputs({}, setting_of(project))
    made(project / ".venv" / "lib" / "python3.11" / "site-packages", {"x.py": ""})
    assert await lint_clean.inputs({}, setting_of(project)) != before
