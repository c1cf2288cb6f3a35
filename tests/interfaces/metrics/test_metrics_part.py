"""`/metrics`: who may scrape, of what, and that nothing else imports its library."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import httpx

from handrail.domain.secrets.key_files import TokenName
from handrail.storage.backups.home_files import files_below, names_of
from interfaces.http.live_console import serving
from interfaces.metrics.load import COMPLETES
from interfaces.shell import Shell, until

HEAVY = ("prometheus_client",)


def test_scraping_needs_a_token_that_opens_nothing_else(tmp_path: Path) -> None:
    with serving(tmp_path) as console:
        file = console.shell.home / "metrics-token"
        token = file.read_text(encoding="utf-8").strip()
        assert file.stat().st_mode & 0o077 == 0
        with console.nobody() as nobody:
            assert nobody.get("/metrics").status_code == 401
        with console.nobody(authorization=f"Bearer {token}") as scraper:
            answer = scraper.get("/metrics")
            assert answer.status_code == 200
            assert "handrail_runs_started_total 0.0" in answer.text
            assert "message" in scraper.get("/healthz").json()["checks"][0]
            assert scraper.post("/mcp", json={}).status_code == 401
            assert scraper.get("/api/v1/runs").status_code == 401
        # Whatever tokens a server has: a backup has them with the keys, and never with the rest.
        home = console.shell.home
        tokens = [token.read_text(encoding="utf-8").strip() for token in files_below(home, set(TokenName))]
        rest = b"".join(one.read_bytes() for one in files_below(home, names_of(home, keys=False)))
        assert len(tokens) == len(TokenName)
        assert not [token for token in tokens if token.encode() in rest]


def test_a_scrape_goes_on_while_the_store_can_not_be_opened(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "journal.db").write_bytes(b"no database " * 1_000)
    with serving(tmp_path) as console:
        token = (home / "metrics-token").read_text(encoding="utf-8").strip()
        with console.nobody(authorization=f"Bearer {token}") as scraper:
            answer = scraper.get("/metrics")
            assert answer.status_code == 200
            assert 'handrail_health{check="store"} 2.0' in answer.text


def test_a_worker_serves_its_figures_on_a_port_of_its_own(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    plan = shell.write(json.dumps(COMPLETES), "plan.json")
    with shell.process("worker", "--metrics", "0", "--allow-host", "node-7.example") as worker:
        said = ""
        while "metrics at" not in said:
            said = worker.complaint()
        url = said.split()[2].removesuffix("/metrics,")
        token = (shell.home / "metrics-token").read_text(encoding="utf-8").strip()
        headers = {"authorization": f"Bearer {token}"}
        with httpx.Client(base_url=url, headers=headers, timeout=30, trust_env=False) as scraper:
            assert scraper.get("/readyz").json() == {"status": "ok"}
            assert scraper.get("/mcp").status_code == 404
            assert scraper.get("/metrics", headers={"host": "node-7.example"}).status_code == 200
            assert scraper.get("/metrics", headers={"host": "node-8.example"}).status_code == 421
            shell.json("run", "start", plan)  # by another process: the journal has it, so the figures have
            until(lambda: 'handrail_runs_ended_total{status="completed"} 1.0' in scraper.get("/metrics").text)
            until(
                lambda: "handrail_process_loop_lag_seconds_count" in scraper.get("/metrics").text
            )  # measured now and then
            assert scraper.get("/healthz").json()["status"] == "ok"


def test_a_port_that_is_none_is_refused_with_words(tmp_path: Path) -> None:
    for wrong in ("x", "70000", "127.0.0.1:", "127.0.0.1:x"):
        refused = Shell(tmp_path).run("worker", "--metrics", wrong, "--until-idle")
        assert refused.exit_code == 2, wrong
        assert "is not a port" in refused.stderr


def test_agents_and_commands_do_not_import_what_only_metrics_need() -> None:
    for module in (
        "handrail.interfaces.mcp.stdio.program",
        "handrail.interfaces.mcp.serving",
        "handrail.assembly.opening",
    ):
        program = f"import sys, {module}; print([one for one in {HEAVY!r} if one in sys.modules])"
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        assert done.stdout == "[]\n", module
