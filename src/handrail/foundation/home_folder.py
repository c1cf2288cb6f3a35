"""A home folder for accounts that have none: a user id without an entry in the user database, as in some containers.

Python raises RuntimeError when it looks for such a home, wherever a path may start with `~`. Containers say `/`."""

from __future__ import annotations

import os
from collections.abc import MutableMapping
from typing import Final

NO_HOME: Final = "/"


def give_home(environment: MutableMapping[str, str]) -> None:
    """Set HOME if neither the environment nor the user database says where the home folder is."""
    # Not pathlib: this comes before the first answer of the MCP server, which does not wait for its import.
    if os.name == "posix" and "HOME" not in environment and os.path.expanduser("~") == "~":  # noqa: PTH111
        environment["HOME"] = NO_HOME
