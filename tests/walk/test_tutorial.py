"""The commands of the tutorial, typed as they stand there, in an empty folder; a browser's part is played over HTTP."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from contextlib import suppress
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any

import pytest

from tidy.yardstick import ROOT

BLOCKS: list[str] = re.findall(r"```sh\n(.*?)```", (ROOT / "docs" / "tutorial.md").read_text("utf-8"), re.DOTALL)
OPENS = "handrail open"
LOOKS_MAX, PAUSE_S = 300, 0.1
LINK = re.compile(r"http://127\.0\.0\.1:\d+/enter\?\S+")


@pytest.mark.skipif(shutil.which("sh") is None, reason="the tutorial is for a POSIX shell; there is none here")
def test_the_tutorials_commands_do_what_it_says(tmp_path: Path) -> None:
    before = [number for number, block in enumerate(BLOCKS) if OPENS in block]
    assert len(before) == 1
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "HANDRAIL_HOME": str(tmp_path / "home"), "HOME": str(tmp_path)}
    waits = "echo READY; read answered"
    script = "\n".join([*BLOCKS[: before[0] + 1], waits, *BLOCKS[before[0] + 1 :]])
    pipe = subprocess.PIPE
    shell = subprocess.Popen(
        ["sh", "-e", "-c", script],
        cwd=tmp_path,
        env=environment,
        stdin=pipe,
        stdout=pipe,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    with shell:
        try:
            said = until_ready(shell)
            approve_in_a_browser(LINK.findall(said)[-1])
            said += shell.communicate("answered\n", timeout=240)[0]
        finally:
            with suppress(ProcessLookupError):  # nobody is left: the tutorial ends its own server
                os.killpg(shell.pid, signal.SIGKILL)
    assert shell.returncode == 0, said
    for sign in (
        "valid, 3 steps",
        "NOTES.md does not exist",
        "refused: exit code 5",
        "waiting for a person: exit code 4",
    ):
        assert sign in said, (sign, said)
    for sign in ("undone after a failure: exit code 9", "journal verified"):
        assert sign in said, (sign, said)
    shop = tmp_path / "shop"
    assert (shop / "published-1.0.0.md").read_text() == "- the first release\n"
    assert not (shop / "archive").exists()
    assert "Publish the notes of 1.0.0?" in (shop / "report.html").read_text("utf-8")


def approve_in_a_browser(link: str) -> None:
    """Enter by the link, read the question, and answer it with its digest, as the page does."""
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
    origin = link.split("/enter")[0]
    with browser.open(link) as page:
        assert "<title>handrail</title>" in page.read().decode()
        _, _, key = page.geturl().partition("#key=")
    with browser.open(f"{origin}/approvals.json") as answer:
        (asked,) = json.load(answer)["approvals"]
    body = {"answer": "approve", "digest": asked["digest"], "reason": "I have read them"}
    request = urllib.request.Request(
        f"{origin}/api/v1/approvals/{asked['run']}/{asked['step']}",
        data=json.dumps(body).encode(),
        headers={"Content-Type": "application/json", "Origin": origin, "X-Handrail-Key": key},
    )
    with browser.open(request) as answer:
        assert answer.status == 200
    wait_for_the_end(browser, f"{origin}/api/v1/runs/{asked['run']}")


def wait_for_the_end(browser: urllib.request.OpenerDirector, address: str) -> None:
    shown: dict[str, Any] = {}
    for _ in range(LOOKS_MAX):
        with browser.open(address) as answer:
            shown = json.load(answer)
        if shown["status"] == "completed":
            return
        time.sleep(PAUSE_S)
    pytest.fail(f"the run did not go on: {shown}")


def until_ready(shell: subprocess.Popen[str]) -> str:
    """What the commands print until the browser's turn."""
    assert shell.stdout is not None
    said = ""
    for line in shell.stdout:
        said += line
        if line == "READY\n":
            return said
    pytest.fail(said)
