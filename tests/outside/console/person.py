"""A person at a browser: one profile, one page, and everything that the page complained about or asked of others.

Chromium is driven by Playwright's synchronous interface: while it is open, nothing else in this thread uses asyncio."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, ConsoleMessage, Locator, Page, Request, ViewportSize, expect, sync_playwright

from interfaces.http.live_console import LiveConsole
from outside.console.chromium import FLAGS, chromium
from outside.nodejs import installed

PATIENCE_MS = 60_000
WIDE: ViewportSize = {"width": 1440, "height": 900}
NARROW: ViewportSize = {"width": 320, "height": 640}
"""A wide screen at four times its size, as people who see badly use it."""
PHONE: ViewportSize = {"width": 390, "height": 844}
SHOTS = "HANDRAIL_SHOTS"
"""A folder: the tests of pages leave a picture of each there."""


@contextmanager
def opened_browser() -> Iterator[Browser]:
    """Chromium with a fresh profile."""
    program = chromium()
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, headless=True, args=list(FLAGS))
        expect.set_options(timeout=PATIENCE_MS)
        try:
            yield browser
        finally:
            browser.close()


@functools.cache
def axe_source() -> str:
    """axe-core, which judges accessibility."""
    path = installed("axe").found("axe-core/axe.min.js")
    assert path is not None
    return path.read_text(encoding="utf-8")


@dataclass
class Person:
    """Somebody who came in by a link."""

    console: LiveConsole
    page: Page
    complaints: list[str] = field(default_factory=list)
    """What the page wrote to the browser's console as an error or a warning, and what was thrown."""
    foreign: list[str] = field(default_factory=list)
    """Requests to another origin."""

    def __post_init__(self) -> None:
        self.page.set_default_timeout(PATIENCE_MS)
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.context.on("request", self._asked)

    def _heard(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(f"{message.text} ({self.page.url})")

    def _asked(self, request: Request) -> None:
        if not request.url.startswith((f"{self.console.url}/", "data:", "blob:")):
            self.foreign.append(request.url)

    def go(self, path: str) -> None:
        """Open a page by its address, and wait until it has its title."""
        self.page.goto(self.console.url + path)
        expect(self.page.locator("h1").first).to_be_attached()

    def enter(self, to: str = "/") -> None:
        """Come in by the one-time link."""
        self.page.goto(self.console.ticket())
        expect(self.page).to_have_url(f"{self.console.url}/")
        if to != "/":
            self.go(to)

    def sees(self, text: str | re.Pattern[str], *, within: str = "body") -> Locator:
        """Wait until a text is shown; no reload."""
        found = self.page.locator(within).get_by_text(text).filter(visible=True).first
        expect(found).to_be_visible()
        return found

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    @property
    def name(self) -> str:
        """Who this is to handrail: on one machine, whoever started the server."""
        return "person:" + Path.home().owner()

    @property
    def path(self) -> str:
        return self.page.url.removeprefix(self.console.url)

    def violations(self, *, only: str = "", without: str = "") -> list[str]:
        """What axe finds wrong with the page as it is, by all its rules, one of them, or all but one."""
        page = self.page
        if not page.evaluate("() => 'axe' in window"):
            page.evaluate(axe_source())
        options: dict[str, Any] = {"resultTypes": ["violations"], "preload": False}
        if only:
            options["runOnly"] = [only]
        if without:
            options["rules"] = {without: {"enabled": False}}
        found: dict[str, Any] = page.evaluate("(options) => axe.run(document, options)", options)
        return [
            f"{self.path}: {one['id']}: {one['nodes'][0]['failureSummary']} {one['nodes'][0]['html'][:300]}"
            for one in found["violations"]
        ]

    def twin_status(self) -> int | None:
        """How the page's own `.json` link is answered; nothing if it has none."""
        link = self.page.locator("header.top a.json")
        if not link.count():
            return None
        status: int = self.page.evaluate(
            "(at) => fetch(at).then((answer) => answer.status)", link.get_attribute("href")
        )
        return status

    def shot(self, name: str) -> None:
        """Keep a picture, if somebody wants to look at them."""
        if folder := os.environ.get(SHOTS):
            Path(folder).mkdir(parents=True, exist_ok=True)
            self.page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)

    def require_clean(self) -> None:
        """The page complained about nothing and asked no other origin, since the last time."""
        heard, self.complaints[:], asked, self.foreign[:] = list(self.complaints), [], list(self.foreign), []
        assert (heard, asked) == ([], [])


@contextmanager
def person(browser: Browser, console: LiveConsole, to: str = "/", **options: Any) -> Iterator[Person]:
    """Somebody with a browser profile of their own, who is in."""
    context = browser.new_context(viewport=options.pop("viewport", WIDE), reduced_motion="reduce", **options)
    try:
        one = Person(console, context.new_page())
        one.enter(to)
        yield one
    finally:
        context.close()
