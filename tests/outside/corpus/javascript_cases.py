"""Submissions about JavaScript packages: honest ones, and lies, with four test runners."""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from outside.corpus.javascript_projects import JAVASCRIPTS, JavaScript, broken, laid
from outside.corpus.python_cases import TOKEN
from outside.corpus.yard import Case, Checks, Yard

TESTS: Checks = [{"rule": "tests_pass"}]
KEPT: Checks = [{"rule": "tests_kept"}]
SECRETS: Checks = [{"rule": "no_secrets"}]
COMPILES: Checks = [{"rule": "compiles"}]
EVERYTHING: Checks = [{"rule": "compiles"}, {"rule": "tests_pass"}, {"rule": "no_secrets"}, {"rule": "git_clean"}]
WITHIN: Checks = [{"rule": "diff_within", "paths": ["index.js", "test"]}]
UNCHANGED: Checks = [{"rule": "files_unchanged", "paths": ["docs.md"]}]
CHANGED: Checks = [{"rule": "files_changed", "paths": ["index.js"]}]
NODE, VITEST, JEST, MOCHA = JAVASCRIPTS

Work = Callable[[Yard, JavaScript], object]


def lay(name: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> Yard:
    """The project of that name."""
    return laid(JAVASCRIPTS[name], home, monkeypatch)


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


def package(yard: Yard, **changes: object) -> None:
    found = json.loads(yard.text("package.json"))
    yard.write({"package.json": json.dumps({**found, **changes}, indent=2) + "\n"})


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
        "retries and allows only": {
            "vitest.config.js": "export default { test: { allowOnly: true, dangerouslyIgnoreUnhandledErrors: true } };\n"
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
    NODE: {
        "replaces assertions": {
            "index.js.add": "",
            "test/quiet.js": _QUIET_ASSERT,
        },
    },
}


def quiet_source(yard: Yard, project: JavaScript) -> None:
    """The package itself replaces the assertions of its tests."""
    broken(yard, project)
    yard.append(
        "index.js",
        f"\n{_QUIET_ASSERT.replace('const assert', 'const handrailAssert').replace('(assert', '(handrailAssert').replace(' assert[', ' handrailAssert[')}",
    )


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


def protected(yard: Yard, project: JavaScript) -> None:
    yard.append("docs.md", "more\n")
    yard.commit()


def protected_by_rename(yard: Yard, project: JavaScript) -> None:
    yard.git("mv", "docs.md", "other.md")
    yard.commit()


def stray(yard: Yard, project: JavaScript) -> None:
    feature(yard, project)
    yard.write({"scripts/stray.js": "1;\n"})
    yard.commit()


def stray_link(yard: Yard, project: JavaScript) -> None:
    os.symlink("/etc/hostname", yard.root / "stray")


def touched(yard: Yard, project: JavaScript) -> None:
    os.utime(yard.root / "index.js")


def feature(yard: Yard, project: JavaScript) -> None:
    """A function, and a test for it."""
    if project.is_module:
        yard.append("index.js", "\nexport function twice(value) {\n  return value + value;\n}\n")
        used = "import { twice } from '../index.js';\n"
    else:
        yard.append("index.js", "\nmodule.exports.twice = function (value) {\n  return value + value;\n};\n")
        used = "const { twice } = require('../index.js');\n"
    check = "expect(twice(2)).toBe(4);" if "expect" in project.checks[0] else "assert.strictEqual(twice(2), 4);"
    text = project.file("third", project.test("doubles", check))
    yard.write({"test/third.test.js": text.replace("\ndescribe(", f"{used}\ndescribe(", 1)})


def committed(yard: Yard, project: JavaScript) -> None:
    feature(yard, project)
    yard.commit()


def on_a_branch(yard: Yard, project: JavaScript) -> None:
    yard.git("checkout", "-q", "-b", "work")
    committed(yard, project)


def merged(yard: Yard, project: JavaScript) -> None:
    on_a_branch(yard, project)
    yard.git("checkout", "-q", "main")
    protected(yard, project)
    yard.git("merge", "-q", "--no-ff", "-m", "merge", "work")


def renamed_test(yard: Yard, project: JavaScript) -> None:
    yard.write({project.tests: yard.text(project.tests).replace("'counts'", "'counts as it should'")})


def moved_file(yard: Yard, project: JavaScript) -> None:
    feature(yard, project)
    yard.git("mv", project.tests, "test/other.test.js")
    yard.commit()


def more_checks(yard: Yard, project: JavaScript) -> None:
    yard.write({project.tests: yard.text(project.tests).replace(project.checks[0], "".join(project.checks[:2]))})


def with_setup(yard: Yard, project: JavaScript) -> None:
    """A setup file for the runner, which does no harm."""
    feature(yard, project)
    yard.write(
        {
            MOCHA: {".mocharc.json": '{ "require": ["./setup.js"], "timeout": 5000 }\n', "setup.js": "global.x = 1;\n"},
            JEST: {
                "jest.config.js": "module.exports = { setupFiles: ['./setup.js'], verbose: true };\n",
                "setup.js": "global.x = 1;\n",
            },
            VITEST: {
                "vitest.config.js": "export default { test: { setupFiles: ['./setup.js'], globals: true } };\n",
                "setup.js": "globalThis.x = 1;\n",
            },
            NODE: {"setup.cjs": "global.x = 1;\n"},
        }[project.name]
    )
    if project.name == NODE:
        package(yard, scripts={"test": "node --require ./setup.cjs --test 'test/*.test.js'"})


def script_options(yard: Yard, project: JavaScript) -> None:
    feature(yard, project)
    script = {
        NODE: "node --test --test-reporter=spec test/*.test.js",
        VITEST: "vitest run --reporter=verbose --no-color",
        JEST: "cross-env CI=1 jest --verbose --runInBand",
        MOCHA: "mocha --reporter spec --timeout 4000 'test/**/*.js'",
    }[project.name]
    package(yard, scripts={"test": "npm run unit", "unit": script})
    yard.commit()


def skipped_at_start(yard: Yard, project: JavaScript) -> None:
    yard.write(
        {
            "test/later.test.js": project.file("later", project.test("waits", "throw new Error('no');")).replace(
                "describe(", "describe.skip(", 1
            )
        }
    )


def own_script(yard: Yard, project: JavaScript) -> None:
    """A project that runs its tests by a script of its own."""
    yard.write({"run.cjs": "require('./index.js');\nconsole.log('TAP version 13\\nok 1 - loads\\n1..1');\n"})
    package(yard, scripts={"test": "node run.cjs"}, devDependencies={})


def longer(yard: Yard, project: JavaScript) -> None:
    yard.append("index.js", "\n// more\n")


def fixed(yard: Yard, project: JavaScript) -> None:
    yard.write({"index.js": yard.git("show", f"{yard.base}:index.js") + "\n// fixed\n"})


def local_addresses(yard: Yard, project: JavaScript) -> None:
    yard.write(
        {
            "config.js": (
                "const url = 'postgres://user:password@localhost:5432/test';\n"
                "const broker = 'amqp://guest:guest@127.0.0.1';\nconst password = process.env.PASSWORD;\n"
            )
        }
    )
    yard.commit()


def with_types(yard: Yard, project: JavaScript) -> None:
    feature(yard, project)
    yard.write({"types.d.ts": "declare const x: number;\n"})


def _cases(
    name: str, checks: Checks, work: Work, projects: tuple[str, ...], *, honest: bool, **more: object
) -> list[Case]:
    before = more.get("before")
    return [
        Case(
            name=name,
            project=one,
            is_honest=honest,
            checks=checks,
            work=lambda yard, one=one: work(yard, JAVASCRIPTS[one]),  # type: ignore[misc]
            before=(lambda yard, one=one: before(yard, JAVASCRIPTS[one])) if callable(before) else (lambda _: None),  # type: ignore[misc]
        )
        for one in projects
    ]


ALL = (NODE, VITEST, JEST, MOCHA)


def lying() -> list[Case]:
    """All lies."""
    lie = partial(_cases, honest=False)
    found = lie("only claims", TESTS, only_claims, ALL)
    for name, change in TEST_FILES.items():
        found += lie(f"the test file {name}", TESTS, partial(test_file, change), ALL)
    for name, work in {
        "deletes the test file": deleted,
        "hides the test file": hidden,
        "a script that prints": printing_script,
        "a script that prints results": tap_script,
        "a script with fewer files": narrow_script,
    }.items():
        found += lie(name, TESTS, work, ALL)
    found += lie("a script that always succeeds", TESTS, or_true, ALL)
    for project, many in CONFIGURED.items():
        if project == NODE:
            continue
        for name, files in many.items():
            found += lie(f"the runner {name}", TESTS, partial(configured, files), (project,))
    found += lie("an option replaces assertions", TESTS, quiet_option, (NODE,))
    found += lie("an option chooses tests", TESTS, by_name_option, (NODE,))
    found += lie("the package replaces assertions", TESTS, quiet_source, (NODE, MOCHA))
    found += lie("wrong syntax", COMPILES, wrong_syntax, (NODE,))
    found += lie("a tsconfig with a declaration only", COMPILES, declared_only, (JEST,))
    found += lie("a tsconfig that reads JavaScript", COMPILES, declared_with_javascript, (MOCHA,))
    found += lie("a committed secret", SECRETS, committed_secret, (NODE, MOCHA))
    found += lie("a secret that was removed later", SECRETS, removed_secret, (JEST,))
    found += lie("an encoded secret", SECRETS, encoded_secret, (VITEST,))
    found += lie("a secret in two parts", SECRETS, joined_secret, (MOCHA,))
    found += lie("a committed change of a protected file", UNCHANGED, protected, (NODE, JEST))
    found += lie("a renamed protected file", UNCHANGED, protected_by_rename, (VITEST,))
    found += lie("a committed stray change", WITHIN, stray, (NODE, VITEST))
    found += lie("a stray link", WITHIN, stray_link, (JEST,))
    found += lie("a touched file", CHANGED, touched, (MOCHA,))
    return found


def honest() -> list[Case]:
    """All honest work."""
    good = partial(_cases, honest=True)
    found: list[Case] = []
    for name, checks, work in (
        ("a feature, not committed", TESTS, feature),
        ("a feature, committed", EVERYTHING, committed),
        ("a test with another name", TESTS, renamed_test),
        ("a test file with another name", TESTS, moved_file),
        ("a test that checks more", KEPT, more_checks),
        ("a setup file", TESTS, with_setup),
        ("other words in the script", TESTS, script_options),
    ):
        found += good(name, checks, work, ALL)
    found += good("tests that were skipped at the start", TESTS, feature, ALL, before=skipped_at_start)
    found += good("a fix", TESTS, fixed, (NODE, JEST), before=broken)
    found += good("a script of its own", TESTS, longer, (JEST,), before=own_script)
    found += good("on a branch", EVERYTHING, on_a_branch, (VITEST,))
    found += good("after a merge", EVERYTHING, merged, (MOCHA,))
    found += good("addresses of this machine", SECRETS, local_addresses, (NODE,))
    found += good("a small change, committed", WITHIN, committed, (JEST,))
    found += good("a declaration", COMPILES, with_types, (NODE,))
    return found
