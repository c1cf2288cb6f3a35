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
COMPARED: Final[Mapping[str, Any]] = {
    "paths": GLOBS_SCHEMA,
    "against": REF_SCHEMA,
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
    summary="At least one of the files differs from a commit (HEAD), or all of them together from a digest.",
    parameters=COMPARED,
    required=("paths",),
    reads=Reads.PROJECT,
    example={"paths": ["tests/**/*.py"]},
)

FILES_UNCHANGED: Final = RuleCard(
    name="files_unchanged",
    summary="None of the files differs from a commit (HEAD), or all of them together from a digest.",
    parameters=COMPARED,
    required=("paths",),
    reads=Reads.PROJECT,
    example={"paths": ["migrations", "LICENSE"], "against": "main"},
)

GIT_CLEAN: Final = RuleCard(
    name="git_clean",
    summary="All files are as in the latest commit, and there are no other files except ignored ones.",
    parameters={"paths": GLOBS_SCHEMA, "untracked": {"type": "boolean"}},
    reads=Reads.PROJECT,
    example={"paths": ["src", "tests"]},
)

DIFF_WITHIN: Final = RuleCard(
    name="diff_within",
    summary="All changes since a commit (HEAD) are in `paths`, in at most `max_files` files and `max_lines` lines.",
    parameters={
        "paths": GLOBS_SCHEMA,
        "max_files": {"type": "integer", "minimum": 0},
        "max_lines": {"type": "integer", "minimum": 0},
        "against": REF_SCHEMA,
    },
    required=("paths",),
    reads=Reads.PROJECT,
    example={"paths": ["src/parser", "tests"], "max_files": 10, "max_lines": 300},
)

NO_SECRETS: Final = RuleCard(
    name="no_secrets",
    summary="There is no secret in the files that changed since a commit (HEAD), or in all files of `paths`.",
    parameters={"paths": GLOBS_SCHEMA, "against": REF_SCHEMA},
    reads=Reads.PROJECT,
    timeout="5m",
    example={"against": "main"},
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

TESTS_PASS: Final = RuleCard(
    name="tests_pass",
    summary="The project has tests, and all of them pass.",
    parameters=TOOLCHAIN,
    reads=Reads.PROJECT,
    timeout="10m",
    example={"paths": ["tests/unit"], "timeout": "2m"},
)

LINT_CLEAN: Final = RuleCard(
    name="lint_clean",
    summary="The linters of the project's languages find nothing.",
    parameters=TOOLCHAIN,
    reads=Reads.PROJECT,
    timeout="5m",
    example={"paths": ["src"]},
)

COVERAGE_AT_LEAST: Final = RuleCard(
    name="coverage_at_least",
    summary="Tests cover at least `percent` of the lines; the tests' own files do not count.",
    parameters={
        "percent": {"type": "number", "minimum": 0, "maximum": 100},
        "report": {**PATH_SCHEMA, "description": "Read this report instead: Cobertura, JaCoCo, lcov or a Go profile."},
        **{name: schema for name, schema in TOOLCHAIN.items() if name != "command"},
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
            COMMAND_SUCCEEDS,
            COMPILES,
            TESTS_PASS,
            LINT_CLEAN,
            COVERAGE_AT_LEAST,
            NO_KNOWN_VULNERABILITIES,
            HTTP_OK,
        ),
        key=lambda card: card.name,
    )
}
"""The cards of all built-in rules, by name."""
