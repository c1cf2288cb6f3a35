"""`handrail cache`: what it shows is what processes counted, and nothing else."""

from __future__ import annotations

import json
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from handrail.assembly.caching.use_file import note_use, uses_of
from handrail.domain.metrics.cache_catalog import RUN_STATES, CacheLevel
from handrail.foundation.cache_use import use_of
from interfaces.http.live_console import serving
from interfaces.metrics.load import CHECKED
from interfaces.shell import Shell
from storage.shared_cache.redis_server import redis_server


def shown(shell: Shell, *words: str) -> dict[str, Any]:
    found: dict[str, Any] = shell.json("cache", "show", *words)
    return found


def states(shell: Shell, *words: str) -> dict[str, Any]:
    return {one["name"]: one for one in shown(shell, *words)["caches"]}


def test_nothing_is_claimed_where_nothing_was_counted(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    found = shown(shell)
    assert (found["asked"], found["ended_since"], found["shared"]) == ([], None, None)
    assert all(one["hit_rate"] is None and one["gain_ms"] is None for one in found["caches"])
    assert {one["entries"] for one in found["caches"] if one["level"] == CacheLevel.MEMORY} == {None}
    assert "shared_results" not in {one["name"] for one in found["caches"]}
    words = shell.run("cache", "show").stdout
    assert "nothing was counted yet" in words
    assert not (shell.home / "cache").exists()


def test_what_can_be_made_before_anybody_asks_is_made_once_and_removed_on_request(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    made = {one["name"]: one for one in shell.json("cache", "warm")["caches"]}
    assert made["library_index"]["entries"] > 20
    assert made["agent_answers"]["entries"] > 10
    on_disk = states(shell)
    for name in ("library_index", "agent_answers"):
        assert on_disk[name]["entries"] == 1
        assert on_disk[name]["bytes"] > 1_000
    (snapshot,) = (shell.home / "cache" / "mcp").iterdir()
    at = snapshot.stat().st_mtime_ns
    assert "library_index" in shell.run("cache", "warm").stdout
    assert snapshot.stat().st_mtime_ns == at
    removed = {one["name"]: one["removed"] for one in shell.json("cache", "clear", "agent_answers")["caches"]}
    assert removed == {"agent_answers": 1}
    assert shell.run("cache", "clear").exit_code == 0
    assert {one["entries"] for one in states(shell).values() if one["level"] == CacheLevel.DISK} == {0}
    assert shell.run("cache", "clear", "run_states").exit_code == 2  # in memory: it goes with its process


def test_a_running_server_is_asked_and_one_that_has_ended_has_left_its_counts(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.write("here", "plan.txt")
    with serving(tmp_path) as console, console.script() as script:
        run = console.started(CHECKED)
        for word in ("ab", "abcd"):
            script.post(f"/api/v1/runs/{run}/submit", json={"step": "say", "output": {"word": word}})
            assert script.get(f"/api/v1/runs/{run}").status_code == 200
        report = shown(shell)
        assert report["asked"] == [console.url]
        alive = {one["name"]: one for one in report["caches"]}
        assert alive["run_states"]["hits"] > 0
        assert alive["definitions"]["entries"] >= 1
        assert alive["check_results"]["misses"] == 1
        assert alive["check_results"]["hits"] == 1
        assert alive["check_results"]["gain_ms"] is not None
        assert states(shell, "--at", console.url)["check_results"] == alive["check_results"]  # and not twice
        assert "as of now" in shell.run("cache", "show").stdout
        console.process.send(signal.SIGTERM)
        console.process.end()
    report = shown(shell)
    assert report["asked"] == []
    assert report["ended_since"]
    ended = {one["name"]: one for one in report["caches"]}
    assert (ended["check_results"]["hits"], ended["check_results"]["misses"]) == (1, 1)
    assert ended["run_states"]["hits"] >= alive["run_states"]["hits"]
    assert ended["run_states"]["entries"] is None
    assert shell.json("cache", "show", "--at", console.url, code=8)["error"]["name"] == "unavailable"


def test_each_count_is_added_once_however_often_a_process_closes_its_store(tmp_path: Path) -> None:
    note_use(tmp_path)
    before = uses_of(tmp_path)
    use_of(RUN_STATES).hit(times=5)
    for _ in range(3):
        note_use(tmp_path)
    after = uses_of(tmp_path)
    assert after is not None
    assert after.caches["run_states"].hits - (before.caches["run_states"].hits if before else 0) == 5
    (tmp_path / "cache" / "use.json").write_text("{not json", encoding="utf-8")
    use_of(RUN_STATES).hit()
    note_use(tmp_path)
    again = uses_of(tmp_path)
    assert again is not None
    assert again.caches["run_states"].hits == 1


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ('shared = "memcached://127.0.0.1"', "is no address of a cache"),
        ('share = "redis://127.0.0.1"', "unknown key `share`"),
        ("shared = 6379", "Expected `str`"),
        ('shared = "redis://127.0.0.1"\nkeep = "long"', "long"),
    ],
)
def test_a_wrong_table_is_refused_with_the_place(tmp_path: Path, table: str, said: str) -> None:
    shell = Shell(tmp_path)
    shell.configure(f"[cache]\n{table}\n")
    error = shell.json("cache", "show", code=5)["error"]
    assert said in error["message"]
    assert error["hint"]


def test_a_project_can_not_say_whose_results_count(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.write('[cache]\nshared = "redis://127.0.0.1:1"\n', ".handrail/config.toml")
    refused = shell.run("cache", "show")
    assert refused.exit_code == 5
    assert "a project may not set [cache]" in refused.stderr


def checked(shell: Shell) -> bool:
    """Whether the check of a new run found its result in a cache."""
    run = shell.json("run", "start", shell.write(json.dumps(CHECKED), "plan.json"), code=4)["run"]
    shell.json("run", "submit", run, "say", "--output", '{"word": "abc"}')
    events = shell.json("journal", "show", run)["events"]
    (proofs,) = [one["data"]["evidence"] for one in events if one["kind"] == "step_completed"]
    (cached,) = [proof.get("cached", False) for proof in proofs if proof["rule"] == "file_exists"]
    return bool(cached)


def test_what_one_home_has_checked_another_with_its_key_need_not(tmp_path: Path) -> None:
    with redis_server(tmp_path) as address:
        homes = []
        for name in ("one", "two", "stranger"):
            shell = Shell(tmp_path)
            shell.home = tmp_path / name
            shell.configure(f'[cache]\nshared = "{address}"\n')
            homes.append(shell)
        one, two, stranger = homes
        shell.write("here", "plan.txt")
        assert not checked(one)
        (two.home / "keys").mkdir(mode=0o700)
        shutil.copy(one.home / "keys" / "cache.key", two.home / "keys" / "cache.key")
        assert checked(two)
        assert not checked(stranger)
        report = shown(two)
        assert report["shared"]["answers"]
        assert report["shared"]["get_ms"] > 0
        (shared,) = [state for state in report["caches"] if state["name"] == "shared_results"]
        assert shared["entries"] == 1
        assert "answers in" in two.run("cache", "show").stdout
        assert two.json("cache", "clear", "shared_results")["caches"] == [{"name": "shared_results", "removed": 1}]
    assert not shown(two)["shared"]["answers"]
    assert "does not answer" in two.run("cache", "show").stdout
    assert checked(two)  # from its own disk: nothing waits for a server that is away
