"""Converts ids and variable names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from keyword import iskeyword
from typing import Final

from msgspec import Struct

from handrail.domain.analysis.names import RESERVED_NAMES
from handrail.library.workrail.literals import text_literal

ID_LENGTH_MAX: Final = 64
NO_STEP_IDS: Final = frozenset({"output", "status"})
NO_NAMES: Final = RESERVED_NAMES | {"true", "false", "null", "loop"}
ITEM: Final = "item"

_name = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_hump = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


class Counter(Struct, frozen=True):
    """A loop counter of WorkRail: it is our `index` plus `ahead`."""

    ahead: int


class Names(Struct, frozen=True):
    """The meaning of names in conditions and texts in one place; all others are variables of the run."""

    items: Mapping[str, str] = {}
    counters: Mapping[str, Counter] = {}

    def counter(self, name: str) -> Counter | None:
        """The loop counter with this name, if there is one."""
        return self.counters.get(name)

    def is_variable(self, name: str) -> bool:
        """Whether an agent has to set it."""
        root = name.partition(".")[0]
        return name not in self.counters and root not in self.items

    def path(self, name: str) -> str:
        """The path of a name in an expression."""
        root, *rest = name.split(".")
        if root in self.items:
            return self.items[root] + _path(rest)
        return "vars" + _path([root, *rest])


def variable(name: str) -> str:
    """How a variable of the run is written: `vars.size`."""
    return "vars" + _path(name.split("."))


def item_name(name: str) -> str:
    """The name of a loop's item: lower case, and not a reserved name."""
    found = re.sub(r"[^a-z0-9_]+", "_", _hump.sub("_", name).lower()).lstrip("_0123456789")[:ID_LENGTH_MAX]
    return f"the_{found}"[:ID_LENGTH_MAX] if found in NO_NAMES or iskeyword(found) else found or ITEM


def workflow_id(name: str) -> str:
    """The id of a workflow: `ns.name` becomes `ns/name`, in lower-case letters, digits and hyphens."""
    space, dot, rest = name.partition(".")
    parts = [_kebab(space), _kebab(rest)] if dot else [_kebab(name)]
    return "/".join(filter(None, parts))


def step_id(name: str, taken: dict[str, int]) -> str:
    """A new id for a step, similar to its own; it is added to `taken`.

    `taken` maps each id to the last number that was appended to it, so that many equal names stay fast."""
    kebab = _kebab(name)
    is_usable = kebab[:1].isalpha() and kebab not in NO_STEP_IDS
    wanted = (kebab if is_usable else f"step-{kebab}".rstrip("-"))[:ID_LENGTH_MAX].rstrip("-")
    number, found = taken.get(wanted, 1), wanted
    while found in taken:
        number += 1
        suffix = f"-{number}"
        found = wanted[: ID_LENGTH_MAX - len(suffix)] + suffix
    taken[wanted] = number
    taken.setdefault(found, 1)
    return found


def _kebab(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", _hump.sub("-", name).lower()).strip("-")


def _path(keys: list[str]) -> str:
    return "".join(f".{key}" if _is_plain(key) else f"[{text_literal(key)}]" for key in keys)


def _is_plain(key: str) -> bool:
    return _name.fullmatch(key) is not None and not iskeyword(key)
