"""Labels: what a node has, and what a step, a tool server or a project asks of the node that works on it. Pure.

People give labels such as `gpu`. Beside them a node has what is bound to its machine, with a colon, which no label of a
person has: `server:NAME` is a tool server that it reaches, `commands:PROJECT` that it may run commands and can make a
sandbox, `home:KEY` what it has stored to undo its own effects, `opens:KEY` what was sealed for it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Final, TypeAlias

from handrail.domain.errors import Invalid, Limited

LABEL_PATTERN: Final = r"^[a-z0-9][a-z0-9._-]{0,39}$"
LABELS_MAX: Final = 20
SERVER: Final = "server:"
COMMANDS: Final = "commands:"
HOME: Final = "home:"
OPENS: Final = "opens:"
ALTERNATIVES_MAX: Final = 8

Needs: TypeAlias = str
"""What a run waits for, as stores keep it: labels with commas between, alternatives with `|`; empty: any node does."""

_label = re.compile(LABEL_PATTERN)


def labels_of(text: str) -> tuple[str, ...]:
    """Labels as people write them: `gpu,linux`; each once, in order of their names."""
    labels = sorted({one.strip() for one in text.split(",") if one.strip()})
    if len(labels) > LABELS_MAX:
        raise Limited(f"{len(labels)} labels; a node has at most {LABELS_MAX}", hint="leave some out")
    for label in labels:
        if _label.fullmatch(label) is None:
            raise Invalid(
                f"{label[:60]!r} is not a label",
                hint="use small letters, digits, `.`, `_` and `-`, at most 40 of them: gpu, linux, eu-west.1",
            )
    return tuple(labels)


def needs_of(alternatives: Iterable[Collection[str]]) -> Needs:
    """What a run needs, if any one of several nodes could go on with a part of it."""
    found = sorted({",".join(sorted(set(one))) for one in alternatives if one})
    return "|".join(found[:ALTERNATIVES_MAX])


def is_met(needs: Needs, labels: Collection[str]) -> bool:
    """Whether a node with these labels can go on with a run."""
    return not needs or any(set(one.split(",")) <= set(labels) for one in needs.split("|"))


def in_words(needs: Needs) -> str:
    """What a run needs, as readers see it."""
    alternatives = [" and ".join(_word(label) for label in one.split(",")) for one in needs.split("|")]
    return " or ".join(dict.fromkeys(alternatives))


def _word(label: str) -> str:
    if label.startswith(SERVER):
        return f"the tool server {label.rpartition('/')[2].removeprefix(SERVER)}"
    if label.startswith(COMMANDS):
        return "permission to run commands"
    if label.startswith(OPENS):
        return "the key of its secret inputs"
    return "what was stored for its undo" if label.startswith(HOME) else label
