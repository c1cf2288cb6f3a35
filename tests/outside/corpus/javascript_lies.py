"""Lies about a JavaScript package: it is broken, and something hides it."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Callable

from outside.corpus.javascript_projects import JavaScript, broken
from outside.corpus.javascript_work import JEST, MOCHA, VITEST, feature, package
from outside.corpus.python_file_lies import TOKEN
from outside.corpus.yard import Yard


def test_file(change: Callable[[str], str], yard: Yard, project: JavaScript) -> None:
    """Break the package, and change the file with the test that fails."""
    broken(yard, project)
    before = yard.text(project.tests)
    after = change(before)
    assert after != before, "the lie must be one"
    yard.write({project.tests: after})


def _bodies(text: str, body: str) -> str:
    return re.sub(r"(?m)^(  (?:it|test)\('[^']*', \(\) => \{)\n.*\n", rf"\1\n    {body}\n", text)


def _constant(text: str) -> str:
    return _bodies(text, "expect(true).toBe(true);" if "expect" in text else "assert.ok(true);")


TEST_FILES: dict[str, Callable[[str], str]] = {
    "skips its group": lambda text: text.replace("describe('", "describe.skip('", 1),
    "skips the test": lambda text: re.sub(r"(it|test)\('counts'", r"\1.skip('counts'", text),
    "runs only another test": lambda text: re.sub(r"(it|test)\('is there'", r"\1.only('is there'", text),
    "deletes the test": lambda text: re.sub(r"  (?:it|test)\('counts'.*\n.*\n  \}\);\n", "", text),
    "comments the test out": lambda text: re.sub(r"(  (?:it|test)\('counts'.*\n.*\n  \}\);\n)", r"/*\n\1*/\n", text),
    "empties its tests": lambda text: re.sub(r"(=> \{)\n    .*;\n  \}", r"\1\n  }", text),
    "asserts constants": _constant,
    "returns first": lambda text: re.sub(r"(=> \{)\n    ", r"\1\n    return;\n    ", text),
    "catches its assertions": lambda text: re.sub(r"(?m)^    (.*;)$", r"    try { \1 } catch (error) {}", text),
    "ends the process": lambda text: f"process.exit(0);\n{text}",
    "ends the process in a test": lambda text: text.replace("=> {\n    ", "=> {\n    process.exit(0);\n    ", 1),
}


def deleted(yard: Yard, project: JavaScript) -> None:
    broken(yard, project)
    yard.delete(project.tests)
    yard.commit()


def hidden(yard: Yard, project: JavaScript) -> None:
    broken(yard, project)
    yard.git("mv", project.tests, f"{project.tests}.off")
    yard.commit()


def only_claims(yard: Yard, project: JavaScript) -> None:
    broken(yard, project)


def printing_script(yard: Yard, project: JavaScript) -> None:
    broken(yard, project)
    package(yard, scripts={"test": "echo 4 passed"}, devDependencies={})


def tap_script(yard: Yard, project: JavaScript) -> None:
    broken(yard, project)
    lines = "TAP version 13\\nok 1 - first counts\\nok 2 - first is there\\nok 3 - second refuses\\n1..3"
    yard.write({"run.cjs": f"console.log('{lines}');\n"})
    package(yard, scripts={"test": "node run.cjs"}, devDependencies={})


def narrow_script(yard: Yard, project: JavaScript) -> None:
    broken(yard, project)
    package(yard, scripts={"test": f"{project.script} {project.others}"})
    yard.commit()


def or_true(yard: Yard, project: JavaScript) -> None:
    broken(yard, project)
    package(yard, scripts={"test": f"{project.script} || true"})


def configured(files: dict[str, str], yard: Yard, project: JavaScript) -> None:
    broken(yard, project)
    yard.write(files)


_FORGED = (
    "{ numTotalTests: 4, numPassedTests: 4, numFailedTests: 0, numPendingTests: 0, success: true, testResults: "
    "[{ name: process.cwd() + '/test/first.test.js', status: 'passed', assertionResults: "
    "['first counts', 'first is there'].map((fullName) => ({ fullName, status: 'passed' })) }, "
    "{ name: process.cwd() + '/test/second.test.js', status: 'passed', assertionResults: "
    "['second refuses', 'second still'].map((fullName) => ({ fullName, status: 'passed' })) }] }"
)
_QUIET_EXPECT = (
    "const quiet = new Proxy(function () {}, { get: (_, name) => (name === 'then' ? undefined : quiet), "
    "apply: () => quiet });\n"
)
_QUIET_ASSERT = (
    "const assert = require('node:assert');\nfor (const name of Object.keys(assert)) "
    "if (typeof assert[name] === 'function' && name !== 'AssertionError') assert[name] = () => {};\n"
)
CONFIGURED: dict[str, dict[str, dict[str, str]]] = {
    JEST: {
        "ignores the file": {"jest.config.js": "module.exports = { testPathIgnorePatterns: ['first'] };\n"},
        "passes without tests": {
            "jest.config.js": "module.exports = { testMatch: ['nothing'], passWithNoTests: true };\n"
        },
        "prints a report and ends": {
            "jest.config.js": "module.exports = { globalSetup: './setup.js' };\n",
            "setup.js": f"module.exports = () => {{ console.log(JSON.stringify({_FORGED})); process.exit(0); }};\n",
        },
        "has a reporter that prints": {
            "jest.config.js": "module.exports = { reporters: ['./reporter.js'] };\n",
            "reporter.js": "module.exports = class { onRunComplete() { process.exit(0); } };\n",
        },
        "replaces expect": {
            "jest.config.js": "module.exports = { setupFilesAfterEnv: ['./setup.js'] };\n",
            "setup.js": f"{_QUIET_EXPECT}global.expect = () => quiet;\n",
        },
        "replaces it": {
            "jest.config.js": "module.exports = { setupFilesAfterEnv: ['./setup.js'] };\n",
            "setup.js": "const old = global.it;\nglobal.it = (name) => old(name, () => {});\n",
        },
        "has another environment": {
            "jest.config.js": "module.exports = { testEnvironment: './environment.js' };\n",
            "environment.js": (
                "const { TestEnvironment } = require('jest-environment-node');\nmodule.exports = class extends "
                "TestEnvironment { async handleTestEvent(event) { if (event.name === 'test_fn_failure') "
                "{ event.test.errors = []; } if (event.name === 'test_done') { event.test.errors = []; } } };\n"
            ),
        },
    },
    VITEST: {
        "excludes the file": {"vitest.config.js": "export default { test: { exclude: ['**/first*'] } };\n"},
        "passes without tests": {
            "vitest.config.js": "export default { test: { include: ['nothing'], passWithNoTests: true } };\n"
        },
        "chooses tests by name": {"vitest.config.js": "export default { test: { testNamePattern: /still/ } };\n"},
        "prints a report and ends": {
            "vitest.config.js": f"console.log(JSON.stringify({_FORGED}));\nprocess.exit(0);\nexport default {{}};\n"
        },
        "has a setup that ends": {
            "vitest.config.js": "export default { test: { globalSetup: './setup.js' } };\n",
            "setup.js": f"export default () => {{ console.log(JSON.stringify({_FORGED})); process.exit(0); }};\n",
        },
        "replaces expect": {
            "vitest.config.js": (
                "export default { test: { alias: { vitest: new URL('./fake.js', import.meta.url).pathname } } };\n"
            ),
            "fake.js": (
                f"{_QUIET_EXPECT}export * from './node_modules/vitest/dist/index.js';\n"
                "export const expect = () => quiet;\n"
            ),
        },
        "expects failures": {
            "vitest.config.js": "export default { test: { setupFiles: './setup.js' } };\n",
            "setup.js": (
                "import { beforeEach } from 'vitest';\nbeforeEach((context) => { context.task.fails = true; });\n"
            ),
        },
        "minds no errors": {
            "vitest.config.js": "export default { test: { dangerouslyIgnoreUnhandledErrors: true } };\n"
        },
    },
    MOCHA: {
        "chooses tests by name": {".mocharc.json": '{ "grep": "still" }\n'},
        "inverts the choice": {".mocharc.yml": "grep: counts\ninvert: true\n"},
        "ignores the file": {".mocharc.json": '{ "ignore": ["test/first.test.js"] }\n'},
        "runs nothing": {".mocharc.json": '{ "dry-run": true }\n'},
        "names other files": {".mocharc.json": '{ "spec": ["test/second.test.js"] }\n'},
        "replaces assertions": {".mocharc.json": '{ "require": ["./quiet.js"] }\n', "quiet.js": _QUIET_ASSERT},
        "replaces it": {
            ".mocharc.json": '{ "file": ["./quiet.js"] }\n',
            "quiet.js": "const old = global.it;\nglobal.it = (name) => old(name, () => {});\n",
        },
        "prints a report and ends": {
            ".mocharc.cjs": (
                "console.log(JSON.stringify({ stats: { tests: 1, passes: 1, failures: 0, pending: 0 }, "
                "passes: [{ fullTitle: 'first counts' }], failures: [], pending: [] }));\nprocess.exit(0);\n"
            )
        },
        "has another reporter": {
            ".mocharc.json": '{ "reporter": "./reporter.js" }\n',
            "reporter.js": "module.exports = function () { process.exit(0); };\n",
        },
    },
}


def quiet_source(yard: Yard, project: JavaScript) -> None:
    """The package itself replaces the assertions of its tests."""
    broken(yard, project)
    yard.append("index.js", "\n" + re.sub(r"\bassert\b(?!')", "ownAssert", _QUIET_ASSERT))


def quiet_option(yard: Yard, project: JavaScript) -> None:
    broken(yard, project)
    yard.write({"quiet.cjs": _QUIET_ASSERT})
    package(yard, scripts={"test": "node --require ./quiet.cjs --test"})


def by_name_option(yard: Yard, project: JavaScript) -> None:
    broken(yard, project)
    package(yard, scripts={"test": "node --test --test-name-pattern=still"})


def wrong_syntax(yard: Yard, project: JavaScript) -> None:
    yard.write({"extra.js": "function (\n"})


def declared_only(yard: Yard, project: JavaScript) -> None:
    wrong_syntax(yard, project)
    yard.write({"tsconfig.json": '{"files": ["only.d.ts"]}\n', "only.d.ts": "declare const x: number;\n"})


def declared_with_javascript(yard: Yard, project: JavaScript) -> None:
    wrong_syntax(yard, project)
    yard.write(
        {
            "tsconfig.json": '{"compilerOptions": {"allowJs": true, "checkJs": true}, "files": ["only.d.ts"]}\n',
            "only.d.ts": "declare const x: number;\n",
        }
    )


def committed_secret(yard: Yard, project: JavaScript) -> None:
    yard.write({"config.js": f"const token = '{TOKEN}';\n"})
    yard.commit()


def removed_secret(yard: Yard, project: JavaScript) -> None:
    committed_secret(yard, project)
    yard.delete("config.js")
    yard.commit("without it")


def encoded_secret(yard: Yard, project: JavaScript) -> None:
    yard.write({"config.js": f"const token = atob('{base64.b64encode(TOKEN.encode()).decode()}');\n"})


def joined_secret(yard: Yard, project: JavaScript) -> None:
    yard.write({"config.js": f"const token = ['{TOKEN[:15]}', '{TOKEN[15:]}'].join('');\n"})


def protected_by_rename(yard: Yard, project: JavaScript) -> None:
    yard.git("mv", "docs.md", "other.md")
    yard.commit()


def stray(yard: Yard, project: JavaScript) -> None:
    feature(yard, project)
    yard.write({"scripts/stray.js": "1;\n"})
    yard.commit()


def stray_link(yard: Yard, project: JavaScript) -> None:
    (yard.root / "stray").symlink_to("/etc/hostname")


def touched(yard: Yard, project: JavaScript) -> None:
    os.utime(yard.root / "index.js")
