"""The routines that workflows inline, as a worker does them: context is read, and a claim is verified by running it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from outside.walks.walk import Do, Hands


def context(prefix: str, *, lookup: str, finding: str, files: Sequence[str]) -> Mapping[str, Do]:
    """The steps of routine-context-gathering: one thing is looked up in these files."""

    def look(hands: Hands) -> object:
        assert lookup in hands.prompt, "the lookups are shown again"
        assert all(hands.work.read(file) for file in files)
        places = [f"{file}:1" for file in files]
        found = {"finding": finding, "places": places}
        return {"findings": [found], "summary": finding, "files": list(files), "unknowns": []}

    return {
        f"{prefix}.frame": lambda _: {"lookups": [lookup], "enough_when": "the nearest code is known"},
        f"{prefix}.look": look,
    }


def verification(prefix: str, says: str, observe: Callable[[Hands], str]) -> Mapping[str, Do]:
    """The steps of routine-final-verification: one statement is observed, and the whole suite is run."""
    statements = [
        {"says": says, "observe": "do it as a user", "false_if": "anything else is seen"},
        {"says": "nothing else changed", "observe": "run the whole suite", "false_if": "a test fails"},
    ]

    def prove(hands: Hands) -> object:
        assert says in hands.prompt, "the statements are shown again"
        return {"seen": [observe(hands), hands.work.pytest().splitlines()[-1]], "left": []}

    return {f"{prefix}.state": lambda _: {"statements": statements}, f"{prefix}.prove": prove}
