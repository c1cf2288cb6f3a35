"""Honest work on a JavaScript package, and what a project is like when it begins."""

from __future__ import annotations

import json

from outside.corpus.javascript_projects import JAVASCRIPTS, JavaScript
from outside.corpus.yard import Yard

NODE, VITEST, JEST, MOCHA = JAVASCRIPTS


def package(yard: Yard, **changes: object) -> None:
    found = json.loads(yard.text("package.json"))
    yard.write({"package.json": json.dumps({**found, **changes}, indent=2) + "\n"})


def protected(yard: Yard, project: JavaScript) -> None:
    yard.append("docs.md", "more\n")
    yard.commit()


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
