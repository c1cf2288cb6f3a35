"""The cards of the built-in rules: names, summaries, parameters, examples.

Only values, so that a definition can be checked without importing a single rule. Each rule is implemented in the file
of its name; registry.py maps names to files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from handrail.domain.checks.composition import COMPOSITIONS
from handrail.domain.checks.rule import Reads, RuleCard
from handrail.domain.definition.duration import DURATION_PATTERN
from handrail.domain.language.pattern import PATTERN_LENGTH_MAX
from handrail.rules.files.git import REF_SCHEMA
from handrail.rules.files.project import GLOBS_SCHEMA, PATH_SCHEMA
from handrail.rules.output.plain import PLAIN, TEXT

WORD: Final = {"type": "string", "maxLength": 4_000, "pattern": r"^[^\x00]*$"}
WORDS: Final = {"type": "array", "maxItems": 200, "items": WORD}
ENVIRONMENT: Final = {
    "type": "object",
    "maxProperties": 50,
    "propertyNames": {"pattern": "^[A-Za-z_][A-Za-z0-9_]{0,127}$"},
    "additionalProperties": WORD,
}
TIMEOUT: Final = {"type": "string", "pattern": DURATION_PATTERN}
LANGUAGE_NAMES: Final = ("c", "go", "java", "javascript", "python", "rust", "typescript")
"""The languages of toolchain/languages.py, repeated here to avoid the import; a test compares the two."""
TOOLCHAIN: Final[Mapping[str, Any]] = {
    "language": {
        "enum": list(LANGUAGE_NAMES),
        "description": "Only this language, if the project has several.",
    },
    "path": {**PATH_SCHEMA, "description": "The folder to work in, if not the whole project."},
    "paths": {**GLOBS_SCHEMA, "description": "Only these files or folders, below `path`."},
    "args": {**WORDS, "description": "Arguments to add to the command."},
    "command": {
        **WORDS,
        "minItems": 1,
        "description": "The command to run instead: a list of arguments, never run by a shell.",
    },
    "env": {**ENVIRONMENT, "description": "Environment variables to add for the command."},
    "timeout": {**TIMEOUT, "description": "How long it may take in total."},
}
"""The parameters that all tool chain rules share."""
SINCE: Final[Mapping[str, Any]] = {
    "since": {
        **REF_SCHEMA,
        "description": "`run` (the default): when the run started; `step`: when the step was given out; or a commit.",
    },
    "against": {**REF_SCHEMA, "description": "The older name of `since`."},
}
ONLY: Final[Mapping[str, Any]] = {
    "enum": ["changed", "all"],
    "description": "`changed` (the default in a run): only lines that have changed since it started; or `all`.",
}
COMPARED: Final[Mapping[str, Any]] = {
    "paths": GLOBS_SCHEMA,
    **SINCE,
    "digest": {"type": "string", "pattern": "^sha256:[0-9a-f]{64}$"},
}

FILE_EXISTS: Final = RuleCard(
    name="file_exists",
    summary="Each named file or folder exists.",
    parameters={
        "path": PATH_SCHEMA,
        "paths": GLOBS_SCHEMA,
        "kind": {"enum": ["file", "folder"]},
        "min_bytes": {"type": "integer", "minimum": 0},
    },
    reads=Reads.PROJECT,
    example={"path": "{{ output.file }}", "kind": "file", "min_bytes": 1},
)

FILE_CONTAINS: Final = RuleCard(
    name="file_contains",
    summary="The file contains each text and matches the pattern; with `absent`, it contains none of them.",
    parameters={
        "path": PATH_SCHEMA,
        "text": TEXT,
        "texts": {"type": "array", "minItems": 1, "maxItems": 100, "items": TEXT},
        "pattern": {"type": "string", "minLength": 1, "maxLength": PATTERN_LENGTH_MAX},
        "absent": {"type": "boolean"},
    },
    required=("path",),
    reads=Reads.PROJECT,
    example={"path": "CHANGELOG.md", "text": "## {{ inputs.version }}"},
)

FILES_CHANGED: Final = RuleCard(
    name="files_changed",
    version="1.1.0",
    summary="A file of `paths` has changed since the run started, committed or not; or all of them from a digest.",
    parameters=COMPARED,
    required=("paths",),
    reads=Reads.PROJECT,
    example={"paths": ["tests/**/*.py"]},
)

FILES_UNCHANGED: Final = RuleCard(
    name="files_unchanged",
    version="1.1.0",
    summary="No file of `paths` has changed since the run started, committed or not; or all of them from a digest.",
    parameters=COMPARED,
    required=("paths",),
    reads=Reads.PROJECT,
    example={"paths": ["migrations", "LICENSE"], "since": "main"},
)

GIT_CLEAN: Final = RuleCard(
    name="git_clean",
    version="1.1.0",
    summary=(
        "Everything is committed or ignored, except what was not when the run started and is as it was then. "
        "With `since: HEAD` there is no exception."
    ),
    parameters={
        "paths": GLOBS_SCHEMA,
        "untracked": {"type": "boolean"},
        "since": {"enum": ["run", "step", "HEAD"]},
    },
    reads=Reads.PROJECT,
    example={"paths": ["src", "tests"]},
)

DIFF_WITHIN: Final = RuleCard(
    name="diff_within",
    version="1.1.0",
    summary="All changes since the run started are in `paths`, in at most `max_files` files and `max_lines` lines.",
    parameters={
        "paths": GLOBS_SCHEMA,
        "max_files": {"type": "integer", "minimum": 0},
        "max_lines": {"type": "integer", "minimum": 0},
        **SINCE,
    },
    required=("paths",),
    reads=Reads.PROJECT,
    example={"paths": ["src/parser", "tests"], "max_files": 10, "max_lines": 300},
)

NO_SECRETS: Final = RuleCard(
    name="no_secrets",
    version="1.1.0",
    summary="There is no secret in what changed or was committed since the run started, or in all files of `paths`.",
    parameters={"paths": GLOBS_SCHEMA, **SINCE},
    reads=Reads.PROJECT,
    timeout="5m",
    example={"since": "main"},
)

COMMIT_EXISTS: Final = RuleCard(
    name="commit_exists",
    summary="Each named commit changes something, is in the history of HEAD, and was made since the run started.",
    parameters={
        "commit": {**REF_SCHEMA, "description": "A commit's hash, or a name of one."},
        "commits": {"type": "array", "minItems": 1, "maxItems": 200, "items": REF_SCHEMA},
        "since": {
            **REF_SCHEMA,
            "description": "`run` (the default), `step` or a commit: it must be later; `any`: it may be older.",
        },
    },
    reads=Reads.PROJECT,
    example={"commit": "HEAD"},
)

COMMITS_SINCE: Final = RuleCard(
    name="commits_since",
    summary="There are at least `min` (1) and at most `max` commits since the run started, with matching subjects.",
    parameters={
        "min": {"type": "integer", "minimum": 0, "maximum": 10_000},
        "max": {"type": "integer", "minimum": 0, "maximum": 10_000},
        "pattern": {
            "type": "string",
            "minLength": 1,
            "maxLength": PATTERN_LENGTH_MAX,
            "description": "What the first line of each message must match.",
        },
        "since": SINCE["since"],
    },
    reads=Reads.PROJECT,
    example={"min": 1, "max": 3, "pattern": "^(fix|feat): "},
)

ON_BRANCH: Final = RuleCard(
    name="on_branch",
    summary="The branch `name` is checked out, or one that matches `pattern`; and none of `none_of`.",
    parameters={
        "name": {"type": "string", "minLength": 1, "maxLength": 200},
        "pattern": {"type": "string", "minLength": 1, "maxLength": PATTERN_LENGTH_MAX},
        "none_of": {"type": "array", "minItems": 1, "maxItems": 50, "items": {"type": "string", "maxLength": 200}},
        "changed": {
            "type": "boolean",
            "description": "Whether it must be another branch than when the run started (true), or the same (false).",
        },
    },
    reads=Reads.PROJECT,
    example={"none_of": ["main", "master"]},
)

FILES_EXIST: Final = RuleCard(
    name="files_exist",
    summary="Each file that the output lists (or `paths`) exists and is not empty.",
    parameters={
        "paths": {"type": "array", "minItems": 1, "maxItems": 1_000, "items": PATH_SCHEMA},
        "key": {
            "type": "string",
            "minLength": 1,
            "maxLength": 100,
            "description": "The key of each item that has the path, if the items are objects.",
        },
        "min": {"type": "integer", "minimum": 0, "maximum": 1_000, "description": "How many there must be (1)."},
        "min_bytes": {"type": "integer", "minimum": 0, "description": "How large each must be (1)."},
    },
    reads=Reads.PROJECT,
    example={"of": "files", "min": 1},
)

COMMAND_SUCCEEDS: Final = RuleCard(
    name="command_succeeds",
    summary="The command `argv` ends with an expected exit code (0), in the sandbox.",
    parameters={
        "argv": {**WORDS, "minItems": 1, "description": "A list of arguments, never run by a shell."},
        "cwd": {**PATH_SCHEMA, "description": "The folder to start in."},
        "env": ENVIRONMENT,
        "expect": {
            "type": "array",
            "minItems": 1,
            "maxItems": 256,
            "items": {"type": "integer", "minimum": 0, "maximum": 255},
        },
        "stdout_contains": {"type": "string", "minLength": 1, "maxLength": 10_000},
        "timeout": TIMEOUT,
    },
    required=("argv",),
    reads=Reads.PROJECT,
    timeout="5m",
    example={"argv": ["make", "docs"], "timeout": "2m"},
)

COMPILES: Final = RuleCard(
    name="compiles",
    summary="The project compiles, with the compilers of its languages.",
    parameters=TOOLCHAIN,
    reads=Reads.PROJECT,
    timeout="5m",
    example={"path": "server", "language": "go"},
)

EXPECTATIONS: Final = {
    "expectations": {
        "enum": ["kept", "may change"],
        "description": (
            "kept: a test that asserts something else than at the start, and would fail as it was, is a finding. "
            "may change (the default): that is a remark, unless it demands less."
        ),
    }
}
TESTS_PASS: Final = RuleCard(
    name="tests_pass",
    version="1.1.0",
    summary="At least one test passes and none fails; and none was lost since the step was given out (`tests_kept`).",
    parameters={
        **TOOLCHAIN,
        "kept": {
            "type": "boolean",
            "description": "false: tests may be deleted, skipped, left out or made milder in this step.",
        },
        **EXPECTATIONS,
    },
    reads=Reads.PROJECT,
    timeout="10m",
    example={"paths": ["tests/unit"], "timeout": "2m"},
)

TESTS_KEPT: Final = RuleCard(
    name="tests_kept",
    summary=(
        "No test that ran when the step was given out was deleted, left out, skipped, expected to fail, emptied or "
        "made milder, and no change of tests or settings hides a failure."
    ),
    parameters={
        **TOOLCHAIN,
        "since": {**SINCE["since"], "description": "`step` (the default), `run` or a commit."},
        **EXPECTATIONS,
    },
    reads=Reads.PROJECT,
    timeout="20m",
    example={"since": "run"},
)

NAMED_TESTS: Final = {
    "type": "array",
    "minItems": 1,
    "maxItems": 100,
    "items": {**WORD, "minLength": 1, "maxLength": 500},
    "description": "The tests, as the runner names them: `tests/test_a.py::test_b`.",
}
TESTS_FAIL: Final = RuleCard(
    name="tests_fail",
    version="1.2.0",
    summary=(
        "Each of `tests` fails now, at an assertion or with one of `raises`; not because it can't be imported, nor "
        "whatever the code does."
    ),
    parameters={
        "tests": NAMED_TESTS,
        "raises": {
            "type": "array",
            "maxItems": 10,
            "items": {**WORD, "minLength": 1, "maxLength": 200},
            "description": "Types of errors that count as well, where the code crashes: `KeyError`.",
        },
        **TOOLCHAIN,
    },
    required=("tests",),
    reads=Reads.PROJECT,
    timeout="10m",
    example={"tests": ["tests/test_parser.py::test_empty"]},
)

TESTS_PROVE: Final = RuleCard(
    name="tests_prove",
    summary="Each of `tests` passes now, and fails in a copy from which the change since the run started is taken out.",
    parameters={
        "tests": NAMED_TESTS,
        **TOOLCHAIN,
        "since": SINCE["since"],
        "keep": {
            **GLOBS_SCHEMA,
            "description": "Files that stay in the copy; those of tests if not given.",
        },
    },
    required=("tests",),
    reads=Reads.PROJECT,
    timeout="20m",
    example={"tests": ["tests/test_parser.py::test_empty"]},
)

TESTS_NOTICE: Final = RuleCard(
    name="tests_notice",
    summary=(
        "Each test of `breaks` passes now, and fails at an assertion in a copy in which `old` was replaced by `new` "
        "in a file of the product."
    ),
    parameters={
        "breaks": {
            "type": "array",
            "minItems": 1,
            "maxItems": 30,
            "items": {
                "type": "object",
                "required": ["test", "file", "old", "new"],
                "properties": {
                    "test": {**WORD, "minLength": 1, "maxLength": 500},
                    "file": PATH_SCHEMA,
                    "old": {"type": "string", "minLength": 1, "maxLength": 4_000},
                    "new": {"type": "string", "maxLength": 4_000},
                },
            },
            "description": "The test, and how the product is broken: a string that is in the file once, and another.",
        },
        **TOOLCHAIN,
    },
    required=("breaks",),
    reads=Reads.PROJECT,
    timeout="20m",
    example={
        "breaks": [{"test": "tests/test_pay.py::test_limit", "file": "src/pay.py", "old": "> limit", "new": ">= limit"}]
    },
)

LINT_CLEAN: Final = RuleCard(
    name="lint_clean",
    version="1.1.0",
    summary="The linters of the project's languages find nothing in the lines that the run changed, or at all.",
    parameters={**TOOLCHAIN, "only": ONLY, "since": SINCE["since"]},
    reads=Reads.PROJECT,
    timeout="5m",
    example={"paths": ["src"]},
)

COVERAGE_AT_LEAST: Final = RuleCard(
    name="coverage_at_least",
    version="1.1.0",
    summary=(
        "Tests cover at least `percent` of the lines that the run changed, or of all; those of tests do not count."
    ),
    parameters={
        "percent": {"type": "number", "minimum": 0, "maximum": 100},
        "report": {
            **PATH_SCHEMA,
            "description": (
                "Read this report instead: Cobertura, JaCoCo, lcov or a Go profile. Without `command` it must be newer "
                "than the code, and who wrote it is not known."
            ),
        },
        **TOOLCHAIN,
        "command": {
            **TOOLCHAIN["command"],
            "description": "The command that writes the `report`, run before it is read. It must write it each time.",
        },
        "only": ONLY,
        "since": SINCE["since"],
    },
    required=("percent",),
    reads=Reads.PROJECT,
    timeout="10m",
    example={"percent": 80, "report": "coverage.xml"},
)

NO_KNOWN_VULNERABILITIES: Final = RuleCard(
    name="no_known_vulnerabilities",
    summary="No package that the project depends on has a publicly known vulnerability.",
    parameters={
        "path": {**PATH_SCHEMA, "description": "The folder of the project, if not the whole."},
        "ignore": {
            "type": "array",
            "maxItems": 500,
            "items": {"type": "string", "maxLength": 100},
            "description": "Ids of vulnerabilities that were reviewed and accepted.",
        },
        "network": {"type": "boolean", "description": "Whether the scanner may reach its database."},
        "timeout": TIMEOUT,
    },
    reads=Reads.NETWORK,
    timeout="5m",
    example={"network": True, "ignore": ["GHSA-xxxx-xxxx-xxxx"]},
)

HTTP_OK: Final = RuleCard(
    name="http_ok",
    summary="A GET of the address is answered with an expected status (200 to 299).",
    parameters={
        "url": {"type": "string", "maxLength": 2_000, "pattern": "^https?://"},
        "expect": {
            "type": "array",
            "minItems": 1,
            "maxItems": 100,
            "items": {"type": "integer", "minimum": 100, "maximum": 599},
        },
        "timeout": {"type": "string", "pattern": DURATION_PATTERN},
    },
    required=("url",),
    reads=Reads.NETWORK,
    example={"url": "https://example.com/health", "expect": [200], "timeout": "5s"},
)

BUILT_IN_CARDS: Final[Mapping[str, RuleCard]] = {
    card.name: card
    for card in sorted(
        (
            *(rule.card for rule in PLAIN),
            *(composition.card for composition in COMPOSITIONS.values()),
            FILE_EXISTS,
            FILE_CONTAINS,
            FILES_CHANGED,
            FILES_UNCHANGED,
            GIT_CLEAN,
            DIFF_WITHIN,
            NO_SECRETS,
            COMMIT_EXISTS,
            COMMITS_SINCE,
            ON_BRANCH,
            FILES_EXIST,
            COMMAND_SUCCEEDS,
            COMPILES,
            TESTS_PASS,
            TESTS_KEPT,
            TESTS_FAIL,
            TESTS_PROVE,
            TESTS_NOTICE,
            LINT_CLEAN,
            COVERAGE_AT_LEAST,
            NO_KNOWN_VULNERABILITIES,
            HTTP_OK,
        ),
        key=lambda card: card.name,
    )
}
"""The cards of all built-in rules, by name."""
