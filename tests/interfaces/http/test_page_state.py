"""The first answers of a page, in its HTML: the very answers of the API, for a session only, and never as script."""

from __future__ import annotations

import json
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

import httpx
import pytest

from handrail.interfaces.http.edge.page_state import STATE_BYTES_MAX
from interfaces.http.live_console import PLAN, LiveConsole, serving

EVIL = "</script><script>alert(1)</script><!--<script> ]]> \u2028\u2029 & ' \" <img src=x onerror=alert(2)>"
HOSTILE: dict[str, Any] = {
    "id": "evil",
    "name": EVIL,
    "version": "1.0.0",
    "inputs": {"word": {"type": "string"}},
    "steps": [{"id": "ask", "title": EVIL, "approve": f"{EVIL} {{{{ inputs.word }}}}"}],
}


class Scripts(HTMLParser):
    """The script elements of a page, as a browser finds them, and whether anything else was made of what they hold."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[dict[str, str | None], str]] = []
        self.others: set[str] = set()
        self._is_open = False
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._is_open = tag == "script"
        if self._is_open:
            self.found.append((dict(attrs), ""))
        else:
            self.others.add(tag)

    def handle_endtag(self, tag: str) -> None:
        self._is_open = False

    def handle_data(self, data: str) -> None:
        if self._is_open:
            self.found[-1] = (self.found[-1][0], self.found[-1][1] + data)

    @property
    def state(self) -> list[dict[str, Any]]:
        data = [text for attrs, text in self.found if attrs.get("type") == "application/json"]
        return json.loads(data[0]) if data else []


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveConsole]:
    with serving(tmp_path_factory.mktemp("page-state")) as live:
        yield live


@pytest.fixture(scope="module")
def browser(console: LiveConsole) -> Iterator[httpx.Client]:
    with console.browser() as client:
        yield client


def state_of(browser: httpx.Client, page: str) -> dict[str, dict[str, Any]]:
    return {one["path"]: one for one in Scripts(browser.get(page).text).state}


def test_a_page_brings_the_very_answers_that_it_would_ask_for(console: LiveConsole, browser: httpx.Client) -> None:
    run = console.started(inputs={"name": "2.4.0"})
    with console.script() as script:  # of a run that waits, how long it waits changes with every answer
        assert script.post(f"/api/v1/runs/{run}/cancel", json={"reason": "enough"}).status_code == 200
    pages = {
        "/": ["/home"],
        "/runs?state=cancelled&view=grid": ["/home", "/runs?state=cancelled"],
        f"/runs/{run}?tab=steps": ["/home", f"/runs/{run}", f"/runs/{run}/steps"],
        f"/runs/{run}/journal?at=3": [
            "/home",
            f"/runs/{run}?at=3",
            f"/runs/{run}/steps?at=3",
            f"/runs/{run}/story?at=3",
        ],
        f"/runs/{run}/steps/ask": ["/home", f"/runs/{run}", f"/runs/{run}/steps", f"/runs/{run}/steps/ask"],
        "/settings/look": ["/home"],
        "/settings/doctor": ["/home"],  # it takes too long for a page to wait for it
        "/runs/run_nope": ["/home"],
    }
    for page, paths in pages.items():
        state = state_of(browser, page)
        assert sorted(state) == sorted(paths), page
        for path, one in state.items():
            answer = browser.get(f"/api/v1{path}")
            assert (one["data"], one["etag"]) == (answer.json(), answer.headers["etag"]), path
            assert one["at"] == answer.headers["handrail-at"]


def test_no_text_ends_the_element_or_starts_another(console: LiveConsole, browser: httpx.Client) -> None:
    run = console.started(HOSTILE, inputs={"word": EVIL}, goal=EVIL)
    with console.nobody() as nobody:
        plain = Scripts(nobody.get("/").text)
    for page in ("/", "/runs", f"/runs/{run}", f"/approvals/{run}/ask", f"/runs/{run}/journal"):
        answer = browser.get(page)
        scripts = Scripts(answer.text)
        assert len(scripts.found) == len(plain.found) + 1, page
        assert scripts.others == plain.others
        (text,) = [text for attrs, text in scripts.found if attrs.get("type") == "application/json"]
        assert not set(text) & {"<", ">", "&", "\u2028", "\u2029"}
        assert EVIL in json.dumps(scripts.state, ensure_ascii=False).replace('\\"', '"')
        assert answer.headers["cache-control"] == "no-store"
        assert "unsafe" not in answer.headers["content-security-policy"]
        assert "sha256" not in answer.headers["content-security-policy"]


def test_only_a_session_on_its_own_page_gets_them(console: LiveConsole) -> None:
    with console.browser() as browser, console.script() as script, console.nobody() as nobody:
        assert state_of(browser, "/runs")
        assert not state_of(script, "/runs")
        assert not state_of(nobody, "/runs")
        for site in ("same-site", "cross-site"):
            page = browser.get("/runs", headers={"sec-fetch-site": site})
            assert (page.status_code, Scripts(page.text).state) == (200, [])
        assert not Scripts(browser.get("/no/such/page", headers={"accept": "text/html"}).text).state
        assert browser.post("/api/v1/logout", json={}).status_code == 200
        assert not state_of(browser, "/runs")


def test_what_is_too_large_is_left_for_the_page_to_ask(console: LiveConsole, browser: httpx.Client) -> None:
    run = console.started({**PLAN, "id": "large"}, inputs={"name": "x" * 10}, goal="large")
    large = {**PLAN, "id": "larger", "inputs": {"name": {"type": "string", "default": "x"}, "text": {"type": "string"}}}
    other = console.started(large, inputs={"name": "y", "text": "z" * STATE_BYTES_MAX})
    assert f"/runs/{run}" in state_of(browser, f"/runs/{run}")
    state = state_of(browser, f"/runs/{other}")
    assert (f"/runs/{other}" in state, f"/runs/{other}/steps" in state) == (False, True)
    assert browser.get(f"/api/v1/runs/{other}").status_code == 200


def test_a_run_can_be_looked_at_as_it_was(console: LiveConsole) -> None:
    run = console.started()
    with console.script() as script:
        newest = script.get(f"/api/v1/runs/{run}").json()["n"]
        was = script.get(f"/api/v1/runs/{run}", params={"at": 2}).json()
        assert (was["n"], was["as_of"]["of"], was["actions"]) == (2, newest, [])
        steps = script.get(f"/runs/{run}/steps.json", params={"at": 2}).json()["steps"]
        assert [one["status"] for one in steps][1:] == ["pending", "pending"]
        for at, status in ((newest + 1, 404), (-1, 400), ("x", 400)):
            assert script.get(f"/api/v1/runs/{run}", params={"at": at}).status_code == status
