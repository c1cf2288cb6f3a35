"""What a person calls a step of a run: a title is written once for all rounds of a loop, and read in one of them.

Pure. `Upload {{ target }}` is `Upload macos` in the round of macos; without a template, the item stands behind it."""

from __future__ import annotations

import re
from typing import Final

from handrail.domain.definition.model import Definition, title_of
from handrail.domain.errors import HandrailError
from handrail.domain.language.template import has_templates
from handrail.domain.run.scope import rendered
from handrail.domain.run.state import Run
from handrail.domain.run.step_path import Lane, Located, locate

TITLE_LENGTH_MAX: Final = 200
ITEM_LENGTH_MAX: Final = 40

_filled_in = re.compile(r"\{\{.*?\}\}", re.DOTALL)


def title_at(run: Run, definition: Definition, path: str) -> str:
    """The title of the step at a path; of one that the definition does not have, the path itself."""
    try:
        return title_of_located(run, locate(definition, path))
    except HandrailError:
        return path


def title_of_located(run: Run, found: Located) -> str:
    """The title of a step in its round."""
    title, lane = title_of(found.step), found.lane
    if has_templates(title):
        return _filled(title, run, lane)[:TITLE_LENGTH_MAX]
    return f"{title} {_item(run, lane)}" if lane.loops else title


def _filled(title: str, run: Run, lane: Lane) -> str:
    try:
        return str(rendered(title, run, lane))
    except (HandrailError, LookupError, TypeError):  # a value that is not known yet, or was never kept
        return _filled_in.sub(str(lane.loops[-1].round + 1) if lane.loops else "…", title)


def _item(run: Run, lane: Lane) -> str:
    loop = lane.loops[-1]
    try:
        item = run.step(loop.path).values[loop.round] if loop.item else None
    except (LookupError, TypeError):  # the loop has not read its list yet
        item = None
    text = str(item) if isinstance(item, str | int | float) else ""
    return text if 0 < len(text) <= ITEM_LENGTH_MAX else str(loop.round + 1)
