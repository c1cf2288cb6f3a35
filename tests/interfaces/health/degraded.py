"""Scenes of a full disk and of a read-only one, each a disk of its own. Run in a private mount namespace:

    unshare --mount --map-root-user python degraded.py (full | read-only) <folder>

Says `ok` when all was as docs/operations/health.md says. See test_degraded.py."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx

sys.path.insert(0, str(Path(__file__).parents[2]))
from interfaces.http.live_console import LiveConsole, serving
from interfaces.shell import Shell, until

CONFIG = 'lease = "1s"\n'
MINIMAL: dict[str, Any] = {"id": "one", "version": "1.0.0", "steps": [{"id": "wait", "prompt": "Wait."}]}


def full(folder: Path) -> None:
    """A full disk: runs can be read, starts are refused with words, and it goes on when there is room."""
    home = folder / "home"
    home.mkdir(parents=True)
    _mount("-t", "tmpfs", "-o", "size=24m", "tmpfs", str(home))
    with serving(folder, config=CONFIG) as console:
        run = console.started(MINIMAL)
        assert health(console)["status"] in {"ok", "failed"}  # a disk this small counts as nearly full
        ballast = home / "ballast"
        fill(ballast)
        refused = degraded(console, run, "the disk is full")
        assert refused["hint"].startswith("free some space"), refused
        ballast.unlink()
        recovered(console)


def read_only(folder: Path) -> None:
    """A home on a disk that can only be read: commands that read go on, those that write say why; so does doctor."""
    shell = Shell(folder)
    folder.mkdir()
    plan = shell.write(json.dumps(MINIMAL), "plan.json")
    run = shell.json("run", "start", plan, code=4)["run"]
    _mount("--bind", str(shell.home), str(shell.home))
    _mount("-o", "remount,ro,bind", str(shell.home))
    assert shell.json("run", "show", run)["status"] == "waiting"
    assert shell.json("journal", "verify")["ok"]
    refused = shell.json("run", "start", plan, code=8)["error"]
    assert "read-only" in refused["message"].lower(), refused
    checks = shell.json("doctor", "--client", "codex", code=1)["checks"]
    wrong = {one["name"]: one["message"] for one in checks if one["level"] == "fail"}
    assert all("is not writable" in wrong[name] for name in ("home", "store")), checks


def degraded(console: LiveConsole, run: str, words: str) -> dict[str, Any]:
    """Reads go on, writes say why, and every health check says the same."""
    with console.script() as script:
        until(lambda: check(console, "store")["level"] == "fail")
        store = check(console, "store")
        assert "can be read, but nothing can be written" in store["message"], store
        assert words in store["message"], store
        assert store["fix"], store
        assert script.get("/livez").status_code == 200
        assert script.get("/readyz").status_code == 200
        assert script.get("/healthz").status_code == 503
        assert script.get(f"/api/v1/runs/{run}").json()["status"] == "waiting"
        assert script.get("/api/v1/journal").status_code == 200
        refused = script.post("/api/v1/runs", json={"definition": MINIMAL})
        assert refused.status_code == 503, refused.text
        assert words in refused.json()["detail"], refused.text
        answer: dict[str, Any] = refused.json()
        return answer


def recovered(console: LiveConsole) -> None:
    """It goes on by itself."""
    until(lambda: check(console, "store")["level"] == "ok")
    console.started(MINIMAL)


def health(console: LiveConsole) -> dict[str, Any]:
    """The whole report, as somebody with the token gets it."""
    token = (console.shell.home / "http-token").read_text(encoding="utf-8").strip()
    answer = httpx.get(
        f"{console.url}/healthz", headers={"authorization": f"Bearer {token}"}, timeout=30, trust_env=False
    )
    report: dict[str, Any] = answer.json()
    assert answer.status_code == (503 if report["status"] == "failed" else 200)
    return report


def check(console: LiveConsole, name: str) -> dict[str, Any]:
    """One check of the report."""
    (found,) = [one for one in health(console)["checks"] if one["name"] == name]
    return dict(found)


def fill(ballast: Path) -> None:
    """Use up all the room that is left."""
    with ballast.open("wb", buffering=0) as file:
        for size in (65_536, 4_096, 512):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                continue


def _mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True)


if __name__ == "__main__":
    {"full": full, "read-only": read_only}[sys.argv[1]](Path(sys.argv[2]))
    sys.stdout.write("ok\n")
