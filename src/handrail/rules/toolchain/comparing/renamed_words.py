"""Names that a change of the product gave to what had another name: a function, a class, a module. Pure.

Read from definitions: a name that was defined and is not any more became one that is defined now and was not, if
nothing else differs where it was defined. A test that was renamed together with its function is known by that."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from handrail.rules.toolchain.comparing.old_view import is_test_like

TEXT_MAX: Final = 1_000_000
WORDS_MAX: Final = 200
ALIKE: Final = 0.6
"""How much of the lines behind two definitions must be the same."""
BEHIND: Final = 30
"""How many lines behind a definition are compared."""

_defined = re.compile(
    r"^[ \t]*(?:export\s+)?(?:default\s+)?(?:public\s+|private\s+|protected\s+|static\s+|async\s+|pub\s+)*"
    r"(?:def|class|function\*?|const|let|var|func|fn|interface|type|enum|struct)\s+([A-Za-z_$][\w$]{0,200})"
    r"|^([A-Za-z_][\w]{0,200})\s*(?::[^=\n]{1,80})?=[^=]"
    r"|^(?:exports|module\.exports)\.([A-Za-z_$][\w$]{0,200})\s*=",
    re.MULTILINE,
)
_word = re.compile(r"[A-Za-z_$][\w$]*")


def renamed_words(before: Mapping[str, bytes | None], now: Mapping[str, bytes]) -> dict[str, str]:
    """By old name: the new one. Files of tests do not count."""
    old = _definitions({path: text or b"" for path, text in before.items()})
    new = _definitions({path: now.get(path, b"") for path in before})
    gone, come = sorted(old.keys() - new.keys())[:WORDS_MAX], sorted(new.keys() - old.keys())[:WORDS_MAX]
    found = {name: _likest(old[name], {one: new[one] for one in come}) for name in gone}
    return {name: one for name, one in found.items() if one} | dict(_moved(before, now))


def _likest(lines: Sequence[str], among: Mapping[str, Sequence[str]]) -> str:
    """The name whose definition is most like these lines; empty if none is like them."""
    found = max(among, key=lambda one: _likeness(lines, among[one]), default="")
    return found if found and _likeness(lines, among[found]) >= ALIKE else ""


def reworded(text: str, names: Mapping[str, str]) -> str:
    """The text with other names."""
    return _word.sub(lambda found: names.get(found[0], found[0]), text)


def _definitions(contents: Mapping[str, bytes]) -> dict[str, list[str]]:
    """By name: the lines behind its definition, in the order of the files; the first definition counts."""
    found: dict[str, list[str]] = {}
    for text in (text[:TEXT_MAX].decode(errors="replace") for path, text in contents.items() if not is_test_like(path)):
        lines = text.splitlines()
        for one in _defined.finditer(text):
            name = one[1] or one[2] or one[3]
            start = text.count("\n", 0, one.end())
            found.setdefault(name, [reworded(line, {name: "_"}).strip() for line in _block(lines, start)])
    return found


def _block(lines: Sequence[str], start: int) -> Iterator[str]:
    """The line of a definition and those that belong to it, by their indentation."""
    first = lines[start] if start < len(lines) else ""
    depth = len(first) - len(first.lstrip())
    yield first
    for line in lines[start + 1 : start + BEHIND]:
        if line.strip() and len(line) - len(line.lstrip()) <= depth and line.strip()[0] not in ")]}":
            return
        if line.strip():
            yield line


def _likeness(one: Sequence[str], other: Sequence[str]) -> float:
    """How many of the lines are the same, of those of the longer."""
    same = sum(line in other for line in one)
    return same / max(len(one), len(other), 1)


def _moved(before: Mapping[str, bytes | None], now: Mapping[str, bytes]) -> Iterator[tuple[str, str]]:
    """Modules that have another name: a file is gone, and its content is in another."""
    stems = {now[path]: _stem(path) for path, content in before.items() if content is None and path in now}
    for path, content in before.items():
        if content and path not in now and content in stems:
            yield _stem(path), stems[content]


def _stem(path: str) -> str:
    return path.rpartition("/")[2].partition(".")[0]
