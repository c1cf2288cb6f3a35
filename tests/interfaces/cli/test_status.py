"""`handrail status`: the health that `/healthz` reports, open runs and pending approvals."""

from __future__ import annotations

import json
from pathlib import Path

import httpx

from interfaces.http.live_console import PLAN, serving
from interfaces.shell import Shell


def test_a_fresh_home_is_well_and_empty(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    found = shell.json("status")
    assert (found["status"], found["server"], found["runs"], found["approvals"]) == ("ok", "", {}, 0)
    assert {"store", "disk", "clock", "keys", "checkpoints"} <= {one["name"] for one in found["checks"]}
    text = shell.run("status").output
    assert "ok: no server runs" in text
    assert "open runs: none; no pending approvals" in text


def test_a_damaged_home_has_failed_and_says_what_to_do(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.run("run", "start", shell.write(json.dumps(PLAN), "plan.json"))
    shell.json("journal", "checkpoint")
    shell.execute("delete from event where stream like 'run_%' and n > 1")
    found = shell.json("status", code=1)
    assert found["status"] == "failed"
    (store,) = [one for one in found["checks"] if one["name"] == "store"]
    assert (store["level"], bool(store["fix"])) == ("fail", True)
    result = shell.run("status")
    assert result.exit_code == 1
    assert "store: what to do" in result.stderr


def test_beside_a_server_it_says_what_the_server_says(tmp_path: Path) -> None:
    with serving(tmp_path) as console:
        console.started()
        token = (console.shell.home / "http-token").read_text(encoding="utf-8").strip()
        headers = {"authorization": f"Bearer {token}"}
        report = httpx.get(f"{console.url}/healthz", headers=headers, timeout=30, trust_env=False).json()
        found = console.shell.json("status")
        assert found["server"] == console.url
        assert found["status"] == report["status"]
        assert [(one["name"], one["level"]) for one in found["checks"]] == [
            (one["name"], one["level"]) for one in report["checks"]
        ]
        assert (found["runs"], found["approvals"]) == ({"waiting": 1}, 1)
        console.process.kill()
    assert console.shell.json("status")["server"] == ""
