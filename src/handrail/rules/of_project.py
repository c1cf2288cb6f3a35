"""The built-in rules that look at the project: files, git, and what its own tools say of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from handrail.engine.rule import Rule
from handrail.rules.command_succeeds import command_succeeds
from handrail.rules.compiles import compiles
from handrail.rules.coverage_at_least import coverage_at_least
from handrail.rules.diff_within import diff_within
from handrail.rules.file_contains import file_contains
from handrail.rules.file_exists import file_exists
from handrail.rules.files_changed import files_changed, files_unchanged
from handrail.rules.git_clean import git_clean
from handrail.rules.lint_clean import lint_clean
from handrail.rules.no_known_vulnerabilities import no_known_vulnerabilities
from handrail.rules.no_secrets import no_secrets
from handrail.rules.tests_pass import tests_pass

OF_PROJECT: Final[Sequence[Rule]] = (
    file_exists,
    file_contains,
    files_changed,
    files_unchanged,
    git_clean,
    diff_within,
    no_secrets,
    command_succeeds,
    compiles,
    tests_pass,
    lint_clean,
    coverage_at_least,
    no_known_vulnerabilities,
)
"""The rules that look at the project."""
