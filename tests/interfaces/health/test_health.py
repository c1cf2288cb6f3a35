"""`/healthz` of a real server: who sees what, and that it agrees with doctor and the console."""

from __future__ import annotations

from pathlib import Path

from interfaces.health.degraded import health
from interfaces.http.live_console import serving

CHECKS = ["store", "clock", "worker", "checkpoints", "disk", "keys"]


def test_a_healthy_server_says_so_with_words_and_ages(tmp_path: Path) -> None:
    with serving(tmp_path) as console:
        console.started()
        report = health(console)
        assert report["status"] == "ok", report
        assert [one["name"] for one in report["checks"]] == CHECKS
        assert {one["level"] for one in report["checks"]} == {"ok"}
        assert all(one["message"] for one in report["checks"])
        aged = {one["name"] for one in report["checks"] if "age_ms" in one}
        assert {"store", "worker"} <= aged


def test_who_has_no_token_sees_levels_and_no_words(tmp_path: Path) -> None:
    with serving(tmp_path) as console, console.nobody() as nobody:
        health(console)
        answer = nobody.get("/healthz")
        assert answer.status_code == 200
        assert set(answer.json()) == {"status", "checks", "at"}
        assert all(set(one) == {"name", "level"} for one in answer.json()["checks"])
        assert str(tmp_path) not in answer.text
        wrong = nobody.get("/healthz", headers={"authorization": "Bearer " + "x" * 43})
        assert all(set(one) == {"name", "level"} for one in wrong.json()["checks"])


def test_doctor_and_the_console_say_the_same(tmp_path: Path) -> None:
    with serving(tmp_path) as console, console.script() as script:
        console.started()
        seen = {one["name"]: one for one in script.get("/api/v1/doctor").json()["checks"]}
        assert set(CHECKS) <= set(seen)
        assert "age_ms" in seen["worker"]
        doctor = console.shell.json("doctor", "--client", "codex")["checks"]
        assert [one["message"] for one in doctor if one["name"] == "server"] == [f"the server at {console.url} is ok"]


def test_a_schedule_of_backups_is_watched(tmp_path: Path) -> None:
    config = f'[backup]\nto = "{tmp_path / "backups"}"\n'
    with serving(tmp_path / "project", config=config) as console:
        console.started()
        (backups,) = [one for one in health(console)["checks"] if one["name"] == "backups"]
        assert backups["level"] in {"ok", "warn"}
        assert backups["message"]


def test_a_store_that_can_not_be_opened_is_reported_with_its_words(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "journal.db").write_bytes(b"no database " * 1_000)
    with serving(tmp_path) as console:
        report = health(console)
        assert report["status"] == "failed"
        (store,) = [one for one in report["checks"] if one["name"] == "store"]
        assert store["level"] == "fail"
        assert "journal.db" in store["message"]
        doctor = console.shell.json("doctor", "--client", "codex", code=1)["checks"]
        assert [one["level"] for one in doctor if one["name"] == "server"] == ["fail"]
        assert [one["message"] for one in doctor if one["name"] == "server: store"] == [store["message"]]
