"""Degraded operation, as docs/operations/health.md says: reads go on, writes say why, and it recovers by itself."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest

from hosts.servers import OwnPostgres, short_folder
from interfaces.fleet import Machine
from interfaces.health.degraded import MINIMAL, check, degraded, health, recovered
from interfaces.http.live_console import LiveConsole, serving
from interfaces.shell import until
from storage.postgres import server

SCENES = Path(__file__).parent / "degraded.py"
MORTAL = Path(__file__).parent / "mortal_server.py"
MATRIX = Path(__file__).parents[3] / "docs" / "operations" / "health.md"


@pytest.mark.parametrize("scene", ["full", "read-only"])
def test_on_a_disk_of_its_own(scene: str, tmp_path: Path) -> None:
    unshare = shutil.which("unshare")
    if unshare is None or not sys.platform.startswith("linux"):
        pytest.skip("mount namespaces are a matter of Linux, and of its tool `unshare`")
    alone = [unshare, "--mount", "--map-root-user"]
    if subprocess.run([*alone, "mount", "-t", "tmpfs", "tmpfs", tmp_path], capture_output=True, check=False).returncode:
        pytest.skip("this system does not let us mount a disk of our own")
    command = [*alone, sys.executable, str(SCENES), scene, str(tmp_path / "scene")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.stdout, done.returncode) == ("ok\n", 0), done.stderr


@pytest.fixture
def database() -> Iterator[OwnPostgres]:
    if server.binaries() is None:
        pytest.skip(server.MISSING)
    with short_folder() as folder:
        postgres = OwnPostgres(folder)
        postgres.start()
        try:
            yield postgres
        finally:
            postgres.stop()


def administer(database: OwnPostgres, *statements: str) -> None:
    """What an administrator does, in a session of its own."""

    async def execute() -> None:
        connection = await asyncpg.connect(database.url("postgres"))
        try:
            for statement in statements:
                await connection.execute(statement)
        finally:
            await connection.close()

    asyncio.run(execute())


def test_a_database_that_is_read_only_or_gone(database: OwnPostgres, tmp_path: Path) -> None:
    machine = Machine(tmp_path / "one", database.url("postgres"))
    with machine.process("serve", "--port", "0", "--json") as process:
        console = LiveConsole(machine, process, json.loads(process.line())["console"].rstrip("/"))
        run = console.started(MINIMAL)
        assert check(console, "store")["level"] == "ok"

        administer(database, "alter system set default_transaction_read_only = on", "select pg_reload_conf()")
        degraded(console, run, "read-only")
        writable = "set default_transaction_read_only = off"
        administer(database, writable, "alter system reset default_transaction_read_only", "select pg_reload_conf()")
        recovered(console)

        database.stop()
        until(lambda: check(console, "store")["level"] == "fail")
        with console.script() as script:
            assert script.get("/livez").status_code == 200
            gone = script.get("/readyz")
            assert (gone.status_code, gone.json()["name"]) == (503, "unavailable")
            for answer in (
                script.get(f"/api/v1/runs/{run}"),
                script.post("/api/v1/runs", json={"definition": MINIMAL}),
            ):
                assert answer.status_code == 503, answer.text
                assert answer.json()["hint"], answer.text
        database.start()
        recovered(console)


def test_a_tool_server_that_is_gone_degrades_only_its_own_steps(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    declared = {"git": {"command": sys.executable, "args": [str(MORTAL), str(tmp_path / "branches"), str(gone)]}}
    tools = tmp_path / "home" / "tools.json"
    tools.parent.mkdir()
    tools.write_text(json.dumps({"mcpServers": declared}), encoding="utf-8")
    plan = {
        "id": "branch-off",
        "version": "1.0.0",
        "steps": [
            {"id": "ask", "prompt": "Say when."},
            {
                "id": "make",
                "tool": "git.create_branch",
                "args": {"name": "x"},
                "idempotent": True,
                "retry": {"attempts": 40, "first": "10ms", "max": "100ms"},
            },
        ],
    }
    with serving(tmp_path) as console:
        run = console.started(plan)
        assert health(console)["status"] == "ok"
        gone.touch()
        with console.script() as script:
            sent = script.post(f"/api/v1/runs/{run}/submit", json={"step": "ask", "output": {}})
            assert sent.status_code == 200, sent.text
            until(lambda: check(console, "tool server git")["level"] == "warn")
            assert script.get("/healthz").status_code == 200
            assert script.get("/readyz").status_code == 200
            console.started(MINIMAL)  # everything else goes on
            doctor = console.shell.json("doctor", "--client", "codex")["checks"]
            assert [one["level"] for one in doctor if one["name"] == "server"] == ["warn"]
            assert [one["level"] for one in doctor if one["name"] == "tool server git"] == ["warn"]
            gone.unlink()
            until(lambda: script.get(f"/api/v1/runs/{run}").json()["status"] == "completed", within_s=60)
        until(lambda: check(console, "tool server git")["level"] == "ok")


def test_the_matrix_names_every_case_that_is_tried_here() -> None:
    cases = re.findall(r"^\| \*\*(.+?)\*\*", MATRIX.read_text(encoding="utf-8"), re.MULTILINE)
    assert cases == ["disk full", "store read-only", "database gone", "tool server gone"]
