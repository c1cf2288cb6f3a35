"""The tests of a Python project that no known runner starts: its own script, behave, nose2.

The command of its Makefile, tox or task runner is run as it is; only its exit code says how it went. Pure, but for
reading these files."""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct

from handrail.rules.toolchain.python_projects.test_lines import TestLines, test_lines
from handrail.rules.toolchain.site import Site

_open = re.compile(r"[{$]")


class OwnScript(Struct, frozen=True):
    """A command that tests a project as a whole."""

    make: str
    """The target of the Makefile; else there are lines."""
    lines: tuple[str, ...]
    env: Mapping[str, str]


def own_script(site: Site) -> OwnScript | None:
    """How the project tests itself; None if nothing says so, or with words that only its own tool understands."""
    found = [one for one in test_lines(site) if one.lines and (one.target or not _open.search(" ".join(one.lines)))]
    return _script_of(found[0]) if found else None


def _script_of(one: TestLines) -> OwnScript:
    return OwnScript(one.target, (), one.env) if one.target else OwnScript("", one.lines, one.env)
