"""The search for banned words: it looks at every place where a person reads, and finds each pattern."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidy.words import offences

PLACES = {
    "src/handrail/place.py": 'HINT = "mend it"',
    "src/handrail/name.py": "untold = 1",
    "bench/question.py": "# whether it is sound",
    "ui/src/pages/page.tsx": "<p>Whoever reads it</p>",
    "ui/src/core/live.ts": "// nobody reads it",
    "docs/guide.md": "what it came to",
    "examples/plan.yaml": "prompt: try it anew",
    "src/handrail/workflows/plan.yaml": "prompt: where it can't be had",
    "README.md": "its round has not come",
    "Makefile": "docs: ## written anew",
    "pyproject.toml": "# waits for ever",
}


@pytest.mark.parametrize("place", PLACES)
def test_a_banned_word_is_found_in_every_place_that_people_read(tmp_path: Path, place: str) -> None:
    file = tmp_path / place
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(PLACES[place], encoding="utf-8")
    assert [found.place for found in offences(tmp_path)] == [f"{place}:1"]
