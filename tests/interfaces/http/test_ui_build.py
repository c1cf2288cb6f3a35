"""The files of the console: built from ui/, small, safe under their policy, and true to the design's tables."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from handrail.domain.run.status import RunStatus, StepStatus
from outside.console_build import APP, BUILT, CONTRACT, SOURCE, built

KB = 1_000
SCRIPTS = BUILT / "app"
STATES = SOURCE / "src" / "states.ts"
DOCUMENTED = SOURCE.parent / "docs" / "reference" / "states.md"
TONES = ("ok", "run", "wait", "bad", "undo", "unc", "off")
GROUNDS = ("bg", "surface")
FORBIDDEN = re.compile(
    r"\b(compensat(?:e|ed|ing|ion)|saga|mend(?:ed)?|amiss|thereof|ledger|idempotency|oops|hand-ins?|take back)\b",
    re.IGNORECASE,
)
"""What the console never says to people; the API's own words stand in code."""


def files(folder: Path) -> Mapping[str, bytes]:
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


def sources() -> Iterator[Path]:
    yield from sorted((SOURCE / "src").rglob("*.ts*"))


def zipped(names: list[str]) -> int:
    return sum(len(gzip.compress((BUILT / name).read_bytes(), 9)) for name in names)


def test_the_committed_files_are_what_the_source_builds(tmp_path: Path) -> None:
    made = built(tmp_path / "static")
    anew = files(tmp_path / "static")
    assert anew.keys() == files(BUILT).keys()
    assert [name for name, content in files(BUILT).items() if anew[name] != content] == [], "run `make ui` and commit"
    assert made.contract == (SOURCE / CONTRACT).read_text(encoding="utf-8"), "run `make ui` and commit"
    assert made.app == APP.read_text(encoding="utf-8"), "run `make ui` and commit"


def test_what_is_loaded_at_once_and_all_of_it_stay_small() -> None:
    page = (BUILT / "index.html").read_text()
    at_once = [name.removeprefix("/") for name in re.findall(r'(?:src|href)="(/app/[\w-]+\.js)"', page)]
    assert "app/app.js" in at_once
    assert zipped(at_once) <= 40 * KB
    assert zipped([name for name in files(BUILT) if name.endswith(".js")]) <= 90 * KB
    assert zipped(["app/app.css"]) <= 10 * KB


def test_the_page_runs_under_a_policy_without_inline_code() -> None:
    page = (BUILT / "index.html").read_text()
    assert re.findall(r"<script(?![^>]*\bsrc=)", page) == []
    assert re.findall(r"<style\b|\sstyle=|\son\w+=|javascript:", page) == []
    for name, content in files(SCRIPTS).items():
        if not name.endswith(".js"):
            continue
        text = content.decode()
        assert not re.search(r"\beval\(|new Function\b|document\.write\b", text), name


def test_no_file_names_another_origin() -> None:
    allowed = {"http://www.w3.org/2000/svg", "http://www.w3.org/1998/Math/MathML", "http://www.w3.org/1999/xhtml"}
    for name, content in files(BUILT).items():
        # Addresses in patterns that take one apart have no host of their own.
        found = set(re.findall(r"https?://[\w.-]+\.[a-z]{2,}[\w./-]*", content.decode()))
        assert found <= allowed, name


def test_text_from_outside_is_never_markup() -> None:
    for path in sources():
        assert not re.search(r"[iI]nnerHTML|outerHTML|insertAdjacentHTML|DOMParser", path.read_text()), path.name


def keys_of(table: str) -> set[str]:
    found = re.search(rf"export const {table}: [^=]*= {{(.*?)\n}};", STATES.read_text(), re.DOTALL)
    assert found, table
    return set(re.findall(r"^  (\w+): look\(", found[1], re.MULTILINE))


def documented(heading: str) -> set[str]:
    part = DOCUMENTED.read_text().split(f"## {heading}\n")[1].split("```")[0]
    return set(re.findall(r"^\| `(\w+)` \|", part, re.MULTILINE))


@pytest.mark.parametrize(("table", "heading", "kind"), [("RUN", "A run", RunStatus), ("STEP", "A step", StepStatus)])
def test_every_state_has_an_icon_a_word_and_a_colour(
    table: str, heading: str, kind: type[RunStatus | StepStatus]
) -> None:
    assert keys_of(table) == documented(heading) == {one.value for one in kind}


def test_states_that_end_alike_still_have_shapes_of_their_own() -> None:
    drawn = dict(re.findall(r"^  (\w+): look\('[^']+', '(\w+)', '\w+'\)", STATES.read_text(), re.MULTILINE))
    ends = ["completed", "failed", "cancelled", "compensated", "compensation_failed", "skipped", "uncertain"]
    assert len({drawn[end] for end in ends}) == len(ends)


def tokens(theme: str) -> dict[str, str]:
    css = (SOURCE / "src" / "style" / "tokens.css").read_text()
    block = css.split(f"[data-theme='{theme}'] {{")[1].split("}")[0]
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", block))


def luminance(colour: str) -> float:
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_text_can_be_read_on_every_ground_it_stands_on(theme: str) -> None:
    colours = tokens(theme)
    for tone in TONES:
        assert contrast(colours[tone], colours[f"{tone}-t"]) >= 5, tone
    for text in ("text", "text2", *TONES):
        for ground in (*GROUNDS, "sunken", "hover"):
            assert contrast(colours[text], colours[ground]) >= 5, (text, ground)
    for ground in (*GROUNDS, "sunken", "hover"):
        assert contrast(colours["text3"], colours[ground]) >= 4.5, ground
    assert contrast(colours["ink"], colours["onink"]) >= 7
    assert contrast(colours["undo"], colours["onink"]) >= 5
    for edge in ("ctl", "focus"):
        for ground in (*GROUNDS, "sunken"):
            assert contrast(colours[edge], colours[ground]) >= 3, (edge, ground)


def said(source: str) -> Iterator[str]:
    """The words of a source that people read: text between tags, and quoted text with a space or a capital in it."""
    code = re.sub(r"/\*.*?\*/|(?<![:'\"`])//[^\n]*", "", source, flags=re.DOTALL)
    yield from re.findall(r">([^<>{}=;]*[A-Za-z]{3}[^<>{}=;]*)<", code)
    for words in re.findall(r"'([^'\n]+)'|`([^`\n]+)`|\"([^\"\n]+)\"", code):
        text = "".join(words)
        if " " in text.strip() and not re.search(r"[/=\[<>]|^\w+_\w+$", text):
            yield text


def test_people_read_the_words_of_the_design() -> None:
    wrong = [
        f"{path.name}: {text.strip()}"
        for path in sources()
        for text in said(path.read_text())
        if FORBIDDEN.search(text)
    ]
    assert wrong == []


def test_sentences_for_people_do_not_shout() -> None:
    shouted = [
        text.strip() for path in sources() for text in said(path.read_text()) if re.search(r"[a-z]!(\s|$)", text)
    ]
    assert shouted == []
