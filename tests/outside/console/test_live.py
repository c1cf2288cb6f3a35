"""What happens elsewhere shows by itself: an agent at work, a server that is killed and comes back, many steps."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from playwright.sync_api import Browser, expect

from interfaces.http.live_console import LiveConsole, serving
from interfaces.shell import until
from outside.console.person import Person, person
from outside.console.world import LOOP, act, project, started, step
from outside.mcp_client import McpClient, mcp_server

DOM_NODES_MAX = 1_800


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory, unmeasured_servers: None) -> Iterator[LiveConsole]:
    with project(tmp_path_factory.mktemp("live")) as live:
        yield live


@pytest.fixture(scope="module")
def nothing_yet(tmp_path_factory: pytest.TempPathFactory, unmeasured_servers: None) -> Iterator[LiveConsole]:
    """A server of its own, so that it stays empty whatever comes first."""
    with serving(tmp_path_factory.mktemp("nothing-yet")) as live:
        yield live


@pytest.fixture(scope="module")
def script(console: LiveConsole) -> Iterator[httpx.Client]:
    with console.script() as client:
        yield client


class Agent:
    """An agent that works on `handrail mcp`, a process of its own, while the test looks at the console."""

    def __init__(self, portal: BlockingPortal, client: McpClient) -> None:
        self.portal, self.client = portal, client

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        answer: dict[str, Any] = self.portal.call(partial(self.client.call, tool, **arguments))
        assert "code" not in answer, answer
        return answer


@contextmanager
def agent(console: LiveConsole) -> Iterator[Agent]:
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(mcp_server(console.shell.home, console.shell.folder)) as client,
    ):
        yield Agent(portal, client)


def stay(ada: Person) -> None:
    """Leave a mark that a reload would wipe away."""
    ada.page.evaluate("() => { window.stayed = true; }")


def require_stayed(ada: Person) -> None:
    assert ada.page.evaluate("() => window.stayed"), "the page was loaded again"


# --- nothing yet ----------------------------------------------------------------------------------------


EMPTY = [
    ("/", "No runs yet", "Start a workflow here, or say to your agent"),
    ("/runs", "No runs yet", ""),
    ("/runs?state=failed", "No run matches", "Clear filter"),
    ("/approvals", "No pending approvals", ""),
    ("/plans", "No plans yet", ""),
    ("/insight", "", ""),
    ("/runs/run_zzzzzzzz", "No run run_zzzzzzzz", "All runs"),
    ("/no/such/page", "There is no such page", "Nothing is at /no/such/page."),
]


def test_an_empty_project_says_what_to_do(browser: Browser, nothing_yet: LiveConsole) -> None:
    with person(browser, nothing_yet) as ada:
        for path, title, line in EMPTY:
            ada.go(path)
            for words in (title, line):
                if words:
                    ada.sees(words)
            assert ada.violations() == []
            ada.shot(f"empty{path.replace('/', '-')}")
        assert {one.partition(" (")[0] for one in ada.complaints} <= {
            "Failed to load resource: the server responded with a status of 404"
        }
        assert ada.foreign == []


def test_without_a_session_a_page_says_how_to_get_one(browser: Browser, nothing_yet: LiveConsole) -> None:
    context = browser.new_context()
    try:
        stranger = Person(nothing_yet, context.new_page())
        stranger.go("/runs")
        stranger.sees("This page needs its key")
        link = nothing_yet.ticket()
        stranger.page.goto(link)
        expect(stranger.page).to_have_url(f"{nothing_yet.url}/")
        assert "key=" not in stranger.page.url
        context.clear_cookies()
        stranger.page.goto(link)  # the link was used
        stranger.sees("This link was used, or is too old")
        stranger.sees("handrail open")
        expect(stranger.page.get_by_text("Not live.")).to_have_count(0)  # it is: only this browser may not look
    finally:
        context.close()


# --- an agent at work -------------------------------------------------------------------------------------


def test_what_an_agent_does_shows_while_it_does_it(browser: Browser, console: LiveConsole) -> None:
    with person(browser, console) as ada, agent(console) as claude:
        stay(ada)
        run = claude.call("workflow_next", workflow="write-it", goal="one word", agent="claude")["run"]
        ada.sees("Waiting for an agent")
        ada.page.get_by_role("main").get_by_role("link", name="one word").first.click()
        ada.sees("Waiting for agent", within=".run-head")
        claude.call("workflow_next", run=run, step="write", output={"word": "x"}, agent="claude")
        ada.sees("is to submit “Write a word” again")
        ada.sees("Checks handrail ran, not accepted")
        claude.call("workflow_next", run=run, step="write", output={"word": "handrail"}, agent="claude")
        ada.sees("1 completed", within=".run-head")
        claude.call("record_decision", run=run, decision="a short word", reason="it is enough")
        ada.page.get_by_role("navigation", name="Of this run").get_by_role("link", name="Journal").click()
        claude.call("workflow_next", run=run, step="again", output={"word": "rail"}, agent="claude")
        expect(ada.page.locator(".run-head .pill")).to_have_text("Completed")
        ada.sees("a short word")
        ada.sees("The run is completed")
        second = ada.page.context.new_page()
        second.goto(ada.page.url)
        expect(second.locator(".run-head .pill")).to_have_text("Completed")
        with console.script() as script:
            # Tabs of one browser share one feed; of the tests before, the server hears that they have ended.
            until(lambda: script.get("/api/v1/about").json()["readers"] == 1)
        require_stayed(ada)
        ada.require_clean()


# --- a server that is killed --------------------------------------------------------------------------------


def test_a_page_survives_a_killed_server_and_asks_what_nobody_knows(browser: Browser, tmp_path: Path) -> None:
    """The call was on its way when the server died: after the restart a person says that it did happen."""
    config = 'lease = "2s"\n[http]\nallow = ["127.0.0.1"]\n'
    with socket.create_server(("127.0.0.1", 0)) as silent, project(tmp_path, config=config) as live:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        post = step("send", "http.request", method="POST", url=url) | {"effect": "irreversible", "idempotent": False}
        with live.script() as script:
            run = script.post(
                "/api/v1/runs", json={"definition": {"id": "send", "name": "Send it", "steps": [post]}}
            ).json()["run"]
        with silent.accept()[0], person(browser, live, f"/runs/{run}") as ada:
            stay(ada)
            ada.sees("Running", within=".run-head")
            live.process.kill()
            ada.sees("Not live.")
            expect(ada.page.get_by_role("button", name="Cancel…")).to_be_disabled()
            assert ada.violations() == []
            ada.shot("not-live")
            with live.shell.process("serve", "--port", str(live.port), "--json") as again:
                assert again.line()
                ada.page.get_by_role("button", name="Try now").click()
                ada.sees("It is unknown whether “Send” happened.")
                expect(ada.page.get_by_text("Not live.")).to_have_count(0)
                expect(ada.page.get_by_text("puts back what was there")).to_have_count(0)  # nothing can call it back
                ada.shot("outcome-unknown")
                ada.page.get_by_role("link", name="It did happen…").first.click()
                panel = ada.page.get_by_role("complementary", name="Decide")
                expect(panel).to_contain_text("“Send” did happen")
                panel.get_by_label("What it gave back").fill('{"sent": 7}')
                panel.get_by_label("Reason").fill("I looked at the other side")
                panel.get_by_role("button", name="Say it did happen").click()
                ada.sees("Accepted.", within=".toasts")
                expect(ada.page.locator(".run-head .pill")).to_have_text("Completed")
                require_stayed(ada)
                with live.script() as script:
                    assert script.get(f"/api/v1/runs/{run}/steps/send").json()["output"] == {"sent": 7}
            assert {one for one in ada.complaints if "net::ERR" not in one} == set()


# --- many steps ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [500, 5_000])
def test_a_run_of_many_steps_is_shown_whole_in_a_small_page(
    browser: Browser, console: LiveConsole, script: httpx.Client, count: int
) -> None:
    files = ["there.md"] * (count - 3) + [f"gone-{number}.md" for number in range(3)]
    run = started(script, {**LOOP, "max_parallel": 50}, files=files)
    with person(browser, console, f"/runs/{run}") as ada:
        stay(ada)
        ada.sees(f"{count - 3:,} of {count:,}", within=".cells")
        ada.sees(f"all[{count - 1}].one")
        ada.sees("3 failed", within=".run-head")
        assert ada.violations() == []
        ada.shot(f"run-of-{count}")
        ada.page.get_by_role("link", name=re.compile(r"^All \d")).click()
        ada.sees("all[0].one")
        ada.page.get_by_role("searchbox", name="Find a step").fill(f"all[{count // 2}]")
        ada.sees(f"all[{count // 2}].one")
        ada.page.get_by_role("searchbox", name="Find a step").fill("")
        ada.page.evaluate("() => scrollTo(0, document.body.scrollHeight)")
        ada.sees(f"all[{count - 1}].one")
        for tab in ("Graph", "Timeline", "Journal"):
            ada.page.get_by_role("navigation", name="Of this run").get_by_role("link", name=tab).click()
            expect(ada.page.locator(".run-tab .bones")).to_have_count(0)
            ada.sees(
                {
                    "Graph": f"{count - 3:,} of {count:,} rounds",
                    "Timeline": "Critical path",
                    "Journal": "started upload",
                }[tab]
            )
            assert ada.page.evaluate("() => document.querySelectorAll('*').length") <= DOM_NODES_MAX, tab
        act(script, run, "skip", step=f"all[{count - 1}].one")
        ada.sees("2 failed", within=".run-head")
        require_stayed(ada)
        ada.require_clean()
