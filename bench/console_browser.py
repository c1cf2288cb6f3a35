"""How quick is the console in a browser? Runs of 12, 500 and 5,000 steps in Chromium; bench/console.py starts this.

    python bench/console_browser.py URL HANDRAIL_HOME

Times are by the page's own clock, from the navigation or the key to the element that was waited for. An update is late
by the time from the event's own instant to the changed page. The design's budgets are beside the figures."""

from __future__ import annotations

import json
import shutil
import statistics
import sys
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import httpx
from playwright.sync_api import Page, ViewportSize, sync_playwright

SIZES: Final = (12, 500, 5_000)
ROUNDS: Final = 3
FAILED: Final = ROUNDS + 1
WATCHED: Final = 500
PATIENCE_MS: Final = 60_000
WIDE: Final[ViewportSize] = {"width": 1440, "height": 900}
FLAGS: Final = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update")
LOOP: Final = {
    "id": "loop",
    "inputs": {"files": {"type": "array"}},
    "max_parallel": 50,
    "steps": [
        {
            "id": "all",
            "each": "inputs.files",
            "parallel": 50,
            "max": 10_000,
            "steps": [{"id": "one", "tool": "file.read", "args": {"path": "{{ item }}"}, "retry": {"attempts": 1}}],
        }
    ],
}
MARKS: Final = """
  window.longest = 0;
  new PerformanceObserver((list) => {
    for (const task of list.getEntries()) window.longest = Math.max(window.longest, task.duration);
  }).observe({ type: 'longtask', buffered: true });
  new MutationObserver((_, observer) => {
    if (!document.querySelector('[data-step]')) return;
    window.interactive = performance.now();
    observer.disconnect();
  }).observe(document, { childList: true, subtree: true });
"""
"""When the first step can be clicked, and the longest task that kept the page from answering."""
SEEN_AFTER: Final = """(words) => new Promise((done, fail) => {
  setTimeout(() => fail(new Error(`not seen: ${words}`)), 60_000);
  const look = (observer) => {
    if (!document.querySelector('.counts').textContent.includes(words)) return;
    observer?.disconnect();
    done(Date.now());
  };
  const observer = new MutationObserver(() => look(observer));
  observer.observe(document.body, { childList: true, subtree: true, characterData: true });
  look(observer);
})"""
"""The instant at which these words stand in the head of the run."""
TOOK: Final = """([key, mod, selector]) => new Promise((done, fail) => {
  setTimeout(() => fail(new Error(`it never came: ${selector}`)), 60_000);
  const start = performance.now();
  const look = () => (document.querySelector(selector) ? done(performance.now() - start) : requestAnimationFrame(look));
  document.body.dispatchEvent(new KeyboardEvent('keydown', { key, ctrlKey: mod, bubbles: true }));
  look();
})"""
"""From a key to an element; at most one frame more."""
PANEL: Final = """(row) => new Promise((done, fail) => {
  setTimeout(() => fail(new Error('the panel never came')), 60_000);
  const link = document.querySelectorAll('[data-step]')[row];
  const start = performance.now();
  const tags = () => [...document.querySelectorAll("aside.panel code.tag")];
  const isOpen = () => tags().some((tag) => tag.textContent === link.dataset.step);
  const look = () => (isOpen() ? done(performance.now() - start) : requestAnimationFrame(look));
  link.click();
  look();
})"""
"""From a click on a step to its panel."""


class Bench:
    """A console that somebody looks at, and a script that works on its runs."""

    def __init__(self, page: Page, script: httpx.Client) -> None:
        self.page, self.script = page, script

    def start(self, files: list[str]) -> str:
        answer = self.script.post("/api/v1/runs", json={"definition": LOOP, "inputs": {"files": files}})
        run: str = answer.raise_for_status().json()["run"]
        return run

    def started(self, steps: int) -> str:
        """A run of so many steps that waits for somebody to decide about the last ones."""
        run = self.start(["there.txt"] * (steps - FAILED) + ["gone.txt"] * FAILED)
        until(lambda: self.script.get(f"/api/v1/runs/{run}").json()["status"] != "running")
        return run

    def loaded(self, run: str) -> dict[str, float]:
        """Load the page of a run: when it painted, when its steps could be clicked, how large it is."""
        self.page.goto(f"/runs/{run}")
        self.page.wait_for_function("() => window.interactive", timeout=PATIENCE_MS)
        self.page.wait_for_timeout(500)  # what is fetched ahead, so that tabs and panels come from memory
        found: dict[str, float] = self.page.evaluate(
            """() => ({
              paint: performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0,
              interactive: window.interactive,
              nodes: document.querySelectorAll('*').length,
              heap: performance.memory.usedJSHeapSize / 1e6,
              longest: window.longest,
            })"""
        )
        return found

    def updated(self, run: str, failed: int, number: int) -> tuple[float, float]:
        """Skip one of the failed steps: how late the page shows it, and the longest task meanwhile, in ms."""
        self.page.evaluate("() => { window.longest = 0; }")
        self.page.evaluate(f"(words) => {{ window.seen = ({SEEN_AFTER})(words); }}", f"{failed - 1} failed")
        body = {"step": f"all[{number}].one", "reason": "the bench says so"}
        self.script.post(f"/api/v1/runs/{run}/skip", json=body).raise_for_status()
        seen: float = self.page.evaluate("() => window.seen")
        events = self.script.get(f"/api/v1/runs/{run}/journal", params={"kind": "step_skipped"}).json()["events"]
        at = max(datetime.fromisoformat(one["at"].replace("Z", "+00:00")).timestamp() for one in events)
        return seen - at * 1_000, self.page.evaluate("() => window.longest")

    def took(self, selector: str, key: str, *, mod: bool = False) -> float:
        found: float = self.page.evaluate(TOOK, [key, mod, selector])
        return found

    def opened(self) -> tuple[float, float, float]:
        """How long the palette, another tab and the panel of a step take to open, from memory."""
        times = []
        for number in range(ROUNDS):
            palette = self.took("dialog .palette", "k", mod=True)
            self.page.wait_for_selector("dialog input:focus")
            self.page.keyboard.press("Escape")
            self.page.wait_for_selector("dialog", state="detached")  # until then keys belong to it
            tab = self.took(".picture", "3")
            self.page.keyboard.press("1")
            # Of a very long run the last steps, which need somebody, come after the first ones.
            self.page.wait_for_function("(row) => document.querySelectorAll('[data-step]').length > row", arg=number)
            times.append((palette, tab, self.page.evaluate(PANEL, number)))
        palettes, tabs, panels = zip(*times, strict=True)
        return statistics.median(palettes), statistics.median(tabs), statistics.median(panels)

    def watched(self) -> tuple[float, float, float]:
        """Look at a run while it works on many steps: its seconds, and the longest task of the page, in ms: by the
        clock, and by the CPU time that it took, which a busy machine does not stretch."""
        run = self.start(["there.txt"] * WATCHED)
        self.page.goto(f"/runs/{run}")
        self.page.wait_for_function("() => window.interactive", timeout=PATIENCE_MS)
        self.page.evaluate("() => { window.longest = 0; }")
        browser = self.page.context.browser
        assert browser is not None
        browser.start_tracing(page=self.page, categories=["toplevel"])
        run, started = self.start(["there.txt"] * WATCHED), time.monotonic()
        self.page.evaluate(
            "(path) => { history.pushState(null, '', path); dispatchEvent(new Event('popstate')); }", f"/runs/{run}"
        )
        self.page.get_by_text("Completed", exact=True).first.wait_for(timeout=PATIENCE_MS)
        took = time.monotonic() - started
        longest = longest_cpu_ms(json.loads(browser.stop_tracing())["traceEvents"])
        return took, self.page.evaluate("() => window.longest"), longest


def longest_cpu_ms(events: list[dict[str, Any]]) -> float:
    """The CPU time of the longest task of the pages in a trace."""
    named = [one for one in events if one.get("name") == "thread_name"]
    pages = {(one["pid"], one["tid"]) for one in named if one["args"].get("name") == "CrRendererMain"}
    tasks = (one for one in events if (one["pid"], one["tid"]) in pages and one["name"].endswith("RunTask"))
    return max((one.get("tdur", 0) for one in tasks), default=0) / 1_000


def until(holds: Callable[[], Any]) -> None:
    for _ in range(1_200):
        if holds():
            return
        time.sleep(0.1)
    raise SystemExit("a run did not end")


def measured(bench: Bench) -> None:
    print("  in Chromium                                      12 steps      500    5,000   budget at 500")
    columns = [figures(bench, steps) for steps in SIZES]
    for row in zip(*columns, strict=True):
        name, budget, _ = row[0]
        print(f"  {name:46} {row[0][2]:10.0f} {row[1][2]:8.0f} {row[2][2]:8.0f}   {budget}")
    seconds, longest, cpu = bench.watched()
    print(
        f"  a run of {WATCHED} steps, watched while it works {seconds:.1f} s: "
        f"longest task {longest:.0f} ms, {cpu:.0f} ms of it on a CPU (< 50)"
    )


def figures(bench: Bench, steps: int) -> list[tuple[str, str, float]]:
    """Each figure of a run of so many steps, with its budget."""
    run = bench.started(steps)
    loads = [bench.loaded(run) for _ in range(ROUNDS)]
    middle = {name: statistics.median(one[name] for one in loads) for name in loads[0]}
    opened = bench.opened()
    updates = [bench.updated(run, FAILED - number, steps - 1 - number) for number in range(ROUNDS)]
    return [
        ("first paint (ms)", "< 300", middle["paint"]),
        ("steps can be clicked (ms)", "< 1,000", middle["interactive"]),
        ("longest task while loading (ms)", "", middle["longest"]),
        ("elements in the page", "<= 1,800", middle["nodes"]),
        ("JavaScript heap (MB)", "< 60", middle["heap"]),
        ("one event, from its instant to the page (ms)", "< 300", statistics.median(late for late, _ in updates)),
        ("longest task of that update (ms)", "< 50", statistics.median(task for _, task in updates)),
        ("palette opens (ms)", "< 50", opened[0]),
        ("another tab (ms)", "< 100", opened[1]),
        ("panel of a step (ms)", "< 100", opened[2]),
    ]


def main(url: str, home: Path) -> int:
    program = shutil.which("chromium")
    if program is None:
        print("  there is no Chromium here: the console was not measured in a browser")
        return 0
    key = {"authorization": f"Bearer {(home / 'console-key').read_text(encoding='utf-8').strip()}"}
    with httpx.Client(base_url=url, headers=key, trust_env=False, timeout=60) as script, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=list(FLAGS))
        page = browser.new_context(base_url=url, viewport=WIDE).new_page()
        page.add_init_script(MARKS)
        page.goto(script.post("/api/v1/ticket", json={}).json()["url"])
        measured(Bench(page, script))
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2])))
