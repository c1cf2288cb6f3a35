"""Words that may not come back: quaint ones for which this field has a plain one.

Searched in strings, comments and names of src/ and bench/, in the console's source, in the workflows, in Makefile and
pyproject.toml, and in every document. Standard library only."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

PLAIN_WORDS = {
    r"mend(s|ed|ing)?": "fix",
    r"sound(ness)?": "valid",
    r"told": "reported, shown",
    r"untold": "unlisted, not shown",
    r"anew": "again",
    r"(?<!by )hand(s|ed|ing)?[ -](it |them |this |that )?in": "submit",
    r"handed (back|out)|hands? (back|out)|handing (back|out)": "return, assign",
    r"(take|takes|taken|took|taking) (it |them )?back": "undo",
    r"came to|(comes|come) to (a|an|the|be|nothing|something|this)|(it|they|that|what \w+) comes to": "result",
    r"(has|have|had) not come": "has not started, has not reached it",
    r"can(?:'|\u2019)t be had|can ?not be had": "is not available, can't be installed",
    r"(came|comes|come) of (it|them|that)|what (came|comes) of": "result",
    r"for good": "permanently",
    r"begins|begun": "starts, started",
    r"whoever|whomever|whom": "name who it is",
    r"(by|and|draw|drawn|no|of) chance": "randomness",
    r"dear(ly)?": "expensive",
    r"lest|thereby|therein|thereof|hereby|whence|hence|thus|likewise|forthwith": "plain words",
    r"at hand": "available",
    r"for ever": "forever, permanently",
    r"unwell|astray|befall|beget|behold|yonder": "plain words",
    r"\w+'s (business|matter|word)": "say which module does it",
    r"by and by|ere|nay|aught|naught": "plain words",
    r"\w+\(s\)": "a real plural",
    r"is yours alone|its owner's alone": "private (0700)",
    r"what was written": "journal verified",
    r"let go of": "release",
}
"""Each pattern, as whole words and in any case, with what to write instead."""

PLAIN_WORDS_IN_CODE = {
    r"nobody|no one": "name who or what is missing",
    r"began": "started",
    r"once more": "again",
}
"""Plain enough in the prompt of a workflow, but vague in a message, a docstring or a comment."""
STORED = {("checkpoint.py", "anew"), ("step_state.py", "nobody"), ("model.py", "nobody"), ("definition.md", "nobody")}
"""Words that stay where they are: a key of signed checkpoints, a text that replaying old journals has to give, and a
value of `skippable` in the definition format."""


def _any_of(patterns: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(rf"(?<![\w-])(?:{pattern})(?![\w-])" for pattern in patterns), re.IGNORECASE)


BANNED = _any_of(PLAIN_WORDS)
BANNED_IN_CODE = _any_of((*PLAIN_WORDS, *PLAIN_WORDS_IN_CODE))
BANNED_NAMES = re.compile(
    r"(?:^|_)(mend(?:s|ed|ing)?|told|untold|anew|hand_in|handed_in|unwell|astray|begun|nobody|whom)(?:_|$)"
)
PROSE = (".json", ".md", ".toml", ".yaml")
CONSOLE = (".css", ".html", ".ts", ".tsx")


@dataclass(frozen=True)
class Offence:
    place: str
    word: str

    def __str__(self) -> str:
        return f"{self.place}: {self.word!r}"


def offences(root: Path) -> list[Offence]:
    """Every banned word below a folder, in the order of files and lines."""
    source = [*sorted((root / "src").rglob("*")), *sorted((root / "bench").rglob("*"))]
    documents = [
        *sorted(root.glob("*.md")),
        *sorted((root / "docs").rglob("*.md")),
        *sorted((root / "examples").rglob("*")),
    ]
    # What a page shows stands between its tags, so the console's files are searched whole, like prose.
    plain = [file for file in sorted((root / "ui" / "src").rglob("*")) if file.suffix in CONSOLE]
    plain += [file for file in (root / "Makefile", root / "pyproject.toml") if file.exists()]
    found: list[Offence] = []
    for file in plain:
        found += in_prose(str(file.relative_to(root)), file.read_text(encoding="utf-8"), BANNED_IN_CODE)
    for file in (*source, *documents):
        name = str(file.relative_to(root))
        if file.suffix == ".py":
            found += in_python(name, file.read_text(encoding="utf-8"))
        elif file.suffix in PROSE:
            found += in_prose(name, file.read_text(encoding="utf-8"))
    return found


def in_prose(name: str, text: str, banned: re.Pattern[str] = BANNED) -> Iterator[Offence]:
    for number, line in enumerate(text.splitlines(), 1):
        for match in banned.finditer(line):
            if (name.rpartition("/")[2], match.group()) not in STORED:
                yield Offence(f"{name}:{number}", match.group())


def in_python(name: str, text: str) -> Iterator[Offence]:
    """In strings and comments any banned word; in names those that are always quaint."""
    wordy = {tokenize.STRING, tokenize.COMMENT, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in wordy:
            for offence in in_prose(name, token.string, BANNED_IN_CODE):
                line = token.start[0] + int(offence.place.rpartition(":")[2]) - 1
                yield Offence(f"{name}:{line}", offence.word)
        elif token.type == tokenize.NAME and BANNED_NAMES.search(token.string):
            yield Offence(f"{name}:{token.start[0]}", token.string)
