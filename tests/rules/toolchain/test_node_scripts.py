"""How a script of package.json runs the tests is read from its words."""

from __future__ import annotations

import pytest

from handrail.rules.toolchain.node.scripts import RunnerCall, runner_call


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
        ("npm run again", None),
        ("echo 5 passed", None),
        ("mocha 'a", None),
    ],
)
def test_a_script_says_which_runner_it_calls_and_how(script: str, wanted: RunnerCall | None) -> None:
    scripts = {"test": script, "unit": "mocha x.js", "lint": "eslint .", "again": "npm run again"}
    assert runner_call(scripts) == wanted
