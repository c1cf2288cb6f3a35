"""Every page of the console, in a real browser: what it says, both themes, a phone; for everybody, and for axe."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from playwright.sync_api import Browser, expect

from outside.console.person import NARROW, PHONE, WIDE, Person, person
from outside.console.world import World, world


class Shown(NamedTuple):
    """A page: its address with the names of runs, its title, and words that stand on it."""

    path: str
    title: str
    words: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return re.sub(r"[^a-z0-9]+", "-", self.path).strip("-") or "home"


PAGES = [
    Shown(
        "/",
        "7 things wait for you",
        (
            "Publish asks?",
            "Upload all: 4 steps failed",
            "Undo that fails: undo of Send failed",
            "Waiting for an agent",
            "Paused",
            "Last 24 hours",
            "to fix: ",
        ),
    ),
    Shown("/runs", "Runs", ("Waiting for approval", "Cancelled", "Completed", "Undone")),
    Shown("/runs?view=grid&workflow=tidy-up", "Runs", ("What the grid says", "“Write index” failed in 2 of 2 runs")),
    Shown("/runs/{failed}", "Tidy up", ("“Write index” failed permanently", "Retry…", "1 not started", "Tries")),
    Shown(
        "/runs/{guided}",
        "Write it",
        ("is to submit “Write a word” again", "Checks handrail ran, not accepted", "root decided:", "One syllable"),
    ),
    Shown("/runs/{loop}", "Upload all", ("36 completed", "4 failed permanently", "3 more steps failed")),
    Shown("/runs/{stuck}", "Undo that fails", ("1 effect could not be undone: “Send”",)),
    Shown("/runs/{broke}", "Call a server that is ill", ("Failed permanently", "“Look” failed permanently")),
    Shown("/runs/{archived}", "Upload all", ("Archived.", "Copy “handrail db unarchive”")),
    Shown("/runs/{undone}/graph", "Tidy up", ("Undone newest first, 1 to 2",)),
    Shown("/runs/{loop}/graph", "Upload all", ("36 of 40 rounds",)),
    Shown("/runs/{undone}/timeline", "Tidy up", ("Critical path", "Compress waits")),
    Shown("/runs/{undone}/journal", "Tidy up", ("root chose to undo 2 steps", "The run is undone")),
    Shown("/runs/{failed}/journal/8", "Tidy up", ("“Write index” failed permanently",)),
    Shown("/runs/{undone}/values", "Tidy up", ("2 values differ",)),
    Shown("/runs/{failed}/compare/{undone}", "Tidy up", ("They part at", "Same definition")),
    Shown("/runs/{undone}/definition", "Tidy up", ("pinned by its content", "It was started without inputs.")),
    Shown("/runs/{written}/steps/write", "Write it", ("Checks handrail ran, accepted", "form only", "Small print")),
    Shown("/runs/{failed}/do/compensate", "Tidy up", ("Undo what this run did", "Nothing stays behind.", "Reason")),
    Shown("/approvals/{asks}/ask", "Publish asks?", ("What a yes lets happen", "Can be undone", "sha256:")),
    Shown("/approvals/{soon}/ask", "Publish soon?", ("It is announced at noon.",)),
    Shown("/library/release/start", "Ship a release", ("Start it", "1 of 2 completed", "1 input missing: version")),
    Shown("/plans/a-plan", "A plan", ("Steps, in waves", "Versions")),
    Shown("/tools", "1 of 3 servers is not being called", ("good.look", "Not called yet", "answered with status 503")),
    Shown("/tools/ill", "ill", ("Times in which it was not called", "5 transient")),
    Shown("/insight", "of runs completed", ("Slowest workflows", "Why calls failed")),
    Shown("/proof", "The journal is intact", ("Checkpoints", "Intact", "What this cannot show")),
    Shown("/proof/{undone}", "is intact", ("Read its journal",)),
    Shown("/settings/doctor", "to fix", ("Store", "Keys")),
    Shown("/settings/clients", "Who takes part", ("last heard",)),
    Shown("/settings/workers", "Workers"),
    Shown("/settings/secrets", "Secrets", ("No secrets are stored.",)),
    Shown("/settings/configuration", "Configuration", ("checkpoint_every",)),
    Shown("/settings/look", "Look"),
    Shown("/settings/keyboard", "Keyboard", ("Single keys",)),
    Shown("/settings/about", "About this server", ("You are", "Sign out of this browser")),
]


PRINTED = (
    "() => { addEventListener('beforeprint', () => { window.printed = document.documentElement.dataset.theme; }); }"
)
CONTRAST = "color-contrast"
BESIDE = """(rows) => rows.flatMap((row) => [...row.children].filter((part) =>
  part.getBoundingClientRect().right > row.getBoundingClientRect().right + 1).map((part) => part.textContent))"""
"""What of a row stands outside of it."""


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory, unmeasured_servers: None) -> Iterator[World]:
    with world(tmp_path_factory.mktemp("pages") / "shop") as made:
        yield made


@pytest.fixture(scope="module")
def ada(browser: Browser, here: World) -> Iterator[Person]:
    with person(browser, here.console) as one:
        yield one


@pytest.mark.parametrize("shown", PAGES, ids=lambda shown: shown.name)
def test_a_page_says_what_it_should_and_everybody_can_use_it(ada: Person, here: World, shown: Shown) -> None:
    ada.page.set_viewport_size(WIDE)
    ada.go(shown.path.format(**here.runs))
    expect(ada.page.get_by_role("heading", level=1).filter(has_text=shown.title)).to_be_visible()
    for words in shown.words:
        ada.sees(words)
    assert ada.twin_status() in (200, None)
    found = ada.violations()
    ada.shot(f"{shown.name}-light")
    ada.page.evaluate("() => document.activeElement.blur()")  # keys are off inside fields
    ada.press(".")
    expect(ada.page.locator("html")).to_have_attribute("data-theme", "dark")
    found += ada.violations(only=CONTRAST)
    ada.shot(f"{shown.name}-dark")
    ada.page.set_viewport_size(PHONE)
    # Contrast takes axe most of its time; what only a phone shows is the same on every page.
    found += ada.violations(without="" if shown.path == "/" else CONTRAST)
    ada.press(".")
    ada.shot(f"{shown.name}-390")
    assert found == []
    for narrow in (PHONE, NARROW):
        ada.page.set_viewport_size(narrow)
        # Waited for: a page that has just become narrow is laid out again. One that scrolls both ways never gets there.
        ada.page.wait_for_function("() => document.documentElement.scrollWidth <= innerWidth")
    ada.require_clean()


@pytest.mark.parametrize("run", ["guided", "failed", "stuck"])
def test_steps_fit_beside_their_panel_on_a_small_laptop(ada: Person, here: World, run: str) -> None:
    ada.page.set_viewport_size({"width": 1280, "height": 800})
    ada.go(f"/runs/{here[run]}")
    expect(ada.page.locator(".panel .tries li").first).to_be_visible()
    assert ada.page.locator(".steps .step-row").evaluate_all(BESIDE) == []
    ada.page.set_viewport_size(WIDE)


def test_what_expires_stands_before_what_does_not(ada: Person, here: World) -> None:
    ada.go("/")  # it was asked last, and a title is one line
    expect(ada.page.locator(".wait-row .title").first).to_have_text("Publish soon?")
    expect(ada.page.locator(".wait-row .title").nth(1)).to_have_text("Publish asks?")


def test_paper_is_light_and_has_nothing_to_press(ada: Person, here: World) -> None:
    ada.page.set_viewport_size(WIDE)
    ada.go(f"/runs/{here['undone']}/journal")
    ada.press(".")
    expect(ada.page.locator("html")).to_have_attribute("data-theme", "dark")
    ada.page.evaluate(PRINTED)
    assert ada.page.pdf().startswith(b"%PDF")
    assert ada.page.evaluate("() => window.printed") == "light"
    expect(ada.page.locator("html")).to_have_attribute("data-theme", "dark")
    ada.press(".")
    ada.page.emulate_media(media="print")
    ada.sees("chose to undo 2 steps")
    for screen_only in ("aside.side", "header.top", ".run-head .btn", ".tabs"):
        expect(ada.page.locator(screen_only).filter(visible=True)).to_have_count(0)
    ada.page.emulate_media(media="screen")
    ada.require_clean()
