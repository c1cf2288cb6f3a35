"""The tests of a Python project that no known runner starts: its own script, behave, nose2.

The command of its Makefile, tox or task runner is run as it is; only its exit code says how it went. Pure, but for
reading these files."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from handrail.rules.toolchain.python_projects.test_lines import test_lines
from handrail.rules.toolchain.site import Site


class OwnScript(Struct, frozen=True):
    """A command that tests a project as a whole."""

    make: str
    """The target of the Makefile; else there are lines."""
    lines: tuple[str, ...]
    env: Mapping[str, str]


def own_script(site: Site) -> OwnScript | None:
    """How the project tests itself; None if nothing says so, or with words that only its own tool understands."""
    for one in test_lines(site):
        if one.lines and one.target:
            return OwnScript(one.target, (), one.env)
        if one.lines and not any("{" in line or "$" in line for line in one.lines):
            return OwnScript("", one.lines, one.env)
    return None
