"""How a script of package.json runs the tests is read from its words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from handrail.rules.files.project import ProjectFiles
from handrail.rules.toolchain.node.scripts import Before, RunnerCall, script_calls
from handrail.rules.toolchain.site import site_at
from rules.toolchain.workshop import made


@pytest.mark.parametrize(
    ("script", "wanted"),
    [
        ("jest", RunnerCall(runner="jest")),
        ("jest --verbose --runInBand", RunnerCall(runner="jest", options=("--runInBand",))),
        (
            "mocha --require ./setup.js 'test/**/*.js' -R dot",
            RunnerCall(runner="mocha", options=("--require", "./setup.js"), paths=("test/**/*.js",)),
        ),
        ("vitest run --config a.ts", RunnerCall(runner="vitest", options=("--config", "a.ts"))),
        (
            "cross-env NODE_ENV=test npx mocha --timeout 5000 a.js",
            RunnerCall(runner="mocha", options=("--timeout", "5000"), paths=("a.js",), env={"NODE_ENV": "test"}),
        ),
        (
            "node --experimental-vm-modules node_modules/jest/bin/jest.js src/a.test.js",
            RunnerCall(runner="jest", paths=("src/a.test.js",), node=("--experimental-vm-modules",)),
        ),
        (
            "node --import tsx --test --test-reporter spec 'src/*.test.ts'",
            RunnerCall(runner="node", options=("--import", "tsx"), paths=("src/*.test.ts",)),
        ),
        ("npm run lint && npm run unit", RunnerCall(runner="mocha", paths=("x.js",))),
        ("yarn unit", RunnerCall(runner="mocha", paths=("x.js",))),
        ("c8 mocha", RunnerCall(runner="mocha")),
        ("(cd . && mocha) && true", RunnerCall(runner="mocha")),
        ("tsx --test a.ts", RunnerCall(runner="node", options=("--import", "tsx"), paths=("a.ts",))),
        ("react-scripts test --watch", RunnerCall(runner="jest", program=("react-scripts", "test"))),
        ("pnpm exec vitest", RunnerCall(runner="vitest")),
        ("npm run again", None),
        ("echo 5 passed", None),
        ("mocha 'a", None),
    ],
)
def test_a_script_says_which_runner_it_calls_and_how(tmp_path: Path, script: str, wanted: RunnerCall | None) -> None:
    scripts = {"test": script, "unit": "mocha x.js", "lint": "eslint .", "again": "npm run again"}
    project = made(tmp_path, {"package.json": json.dumps({"scripts": scripts})})
    assert script_calls(site_at(ProjectFiles(project))) == (() if wanted is None else (wanted,))


SCRIPTS = {
    "test": "run-s lint build 'unit:*' && c8 --lines 90 node --test",
    "lint": "eslint .",
    "prebuild": "rimraf dist",
    "build": "tsc -p . && echo built",
    "unit:a": "export A=1 && mocha --grep 'a;b' a.js > log 2>&1",
    "unit:b": "(cd other && make) || true; cd packages/b && npm test -- --bail",
}


def test_all_runners_are_found_with_what_comes_before_them_and_where(tmp_path: Path) -> None:
    inner = {"scripts": {"test": "dotenv -e .env -- jest"}}
    files = {"package.json": json.dumps({"scripts": SCRIPTS}), "packages/b/package.json": json.dumps(inner)}
    calls = script_calls(site_at(ProjectFiles(made(tmp_path, files))))
    built = (Before("", "rimraf dist", "&&"), Before("", "tsc -p .", "&&"))
    assert calls == (
        RunnerCall(runner="mocha", options=("--grep", "a;b"), paths=("a.js",), env={"A": "1"}, before=built),
        RunnerCall(
            runner="jest",
            options=("--bail",),
            around=("dotenv", "-e", ".env", "--"),
            folder="packages/b",
            before=(*built, Before("", "(cd other && make)", "||"), Before("", "true", ";")),
        ),
        RunnerCall(runner="node", before=calls[1].before),
    )


@pytest.mark.parametrize(
    ("files", "script", "wanted"),
    [
        ({}, "npm test --workspaces", ["packages/a", "packages/b"]),
        ({}, "npm t -w b --if-present", ["packages/b"]),
        ({}, "npm run test --workspace=packages/a", ["packages/a"]),
        ({}, "yarn workspaces run test", ["packages/a", "packages/b"]),
        ({}, "yarn workspaces foreach -A run test", ["packages/a", "packages/b"]),
        ({}, "yarn workspace b test", ["packages/b"]),
        ({}, "turbo run test --no-cache", ["packages/a", "packages/b"]),
        ({}, "nx run-many -t test", ["packages/a", "packages/b"]),
        (
            {"pnpm-workspace.yaml": "packages:\n  # all\n  - 'packages/*'\n  - '!**/a'\n"},
            "pnpm -r test",
            ["packages/b"],
        ),
        ({"lerna.json": '{"packages": ["packages/a"]}'}, "lerna run test", ["packages/a"]),
        ({}, "pnpm --filter './packages/a' run test", ["packages/a"]),
        ({}, "npm run other --workspaces", []),
    ],
)
def test_a_script_for_all_packages_is_that_of_each(
    tmp_path: Path, files: dict[str, str], script: str, wanted: list[str]
) -> None:
    top = {"scripts": {"test": script}, **({} if files else {"workspaces": {"packages": ["packages/*"]}})}
    inner = {f"packages/{one}/package.json": json.dumps({"name": one, "scripts": {"test": "jest"}}) for one in "ab"}
    nested = {"packages/a/examples/x/package.json": '{"scripts": {"test": "jest"}}'}
    project = made(tmp_path, {"package.json": json.dumps(top), **inner, **nested, **files})
    assert [one.folder for one in script_calls(site_at(ProjectFiles(project)))] == wanted
