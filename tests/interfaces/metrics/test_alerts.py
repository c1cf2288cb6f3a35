"""The alert rules in deploy/: valid for promtool, each fires when its condition is true and is silent in health."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from handrail.domain.metrics.catalog import FROM_LIBRARY, METRICS, MetricKind
from interfaces.http.live_console import LiveConsole, serving
from interfaces.metrics.live_prometheus import watching
from interfaces.metrics.load import CALLS_SERVER, FAILS, declare_server, plan
from interfaces.shell import until
from outside.debian import prometheus

ROOT = Path(__file__).parents[3]
RULES = ROOT / "deploy" / "prometheus" / "alerts.yml"
SILENT = {
    'up{job="handrail",instance="a"}': "1x90",
    'handrail_health{check="store",instance="a"}': "0x90",
    'handrail_health{check="disk",instance="a"}': "0x90",
    'handrail_health{check="clock",instance="a"}': "0x90",
    'handrail_health{check="backups",instance="a"}': "0x90",
    'handrail_health{check="tool_server",instance="a"}': "0x90",
    'handrail_runs_ended_total{status="completed",instance="a"}': "0+60x90",
    'handrail_runs_ended_total{status="failed",instance="a"}': "0+1x90",
    'handrail_runs{status="compensation_failed",instance="a"}': "0x90",
    'handrail_approval_waiting_oldest_seconds{instance="a"}': "0+60x90",
    'handrail_runs_unassigned{instance="a"}': "0 3 0 1 0x90",
    'handrail_breaker_state{server="git",instance="a"}': "0 2 1 0x90",
    'handrail_process_calls_queued{instance="a"}': "3x90",
    'handrail_process_calls_running{instance="a"}': "40x90",
    'handrail_process_calls_max{instance="a"}': "100x90",
    'handrail_process_commit_seconds_bucket{le="0.01",instance="a"}': "0+600x90",
    'handrail_process_commit_seconds_bucket{le="0.25",instance="a"}': "0+601x90",
    'handrail_process_commit_seconds_bucket{le="+Inf",instance="a"}': "0+602x90",
    'handrail_process_loop_lag_seconds_bucket{le="0.01",instance="a"}': "0+118x90",
    'handrail_process_loop_lag_seconds_bucket{le="0.5",instance="a"}': "0+120x90",
    'handrail_process_loop_lag_seconds_bucket{le="+Inf",instance="a"}': "0+120x90",
    'handrail_verify_ok{instance="a"}': "1x90",
    'handrail_verify_age_seconds{instance="a"}': "0+60x90",
    'handrail_checkpoint_unsigned_events{instance="a"}': "5x90",
    'handrail_checkpoint_age_seconds{instance="a"}': "0+60x90",
    'handrail_figures_behind_events{instance="a"}': "20x90",
    'process_open_fds{job="handrail",instance="a"}': "60x90",
    'process_max_fds{job="handrail",instance="a"}': "1024x90",
}
"""An hour and a half in which nothing is wrong, with all that is usual: some failed runs, a breaker that opens once."""
FIRES: dict[str, dict[str, str]] = {
    "HandrailDown": {'up{job="handrail",instance="a"}': "1 0x90"},
    "HandrailStoreFailing": {'handrail_health{check="store",instance="a"}': "0 2x90"},
    "HandrailDiskFilling": {'handrail_health{check="disk",instance="a"}': "0 1x90"},
    "HandrailDegraded": {'handrail_health{check="clock",instance="a"}': "0 1x90"},
    "HandrailRunsFailing": {
        'handrail_runs_ended_total{status="completed",instance="a"}': "0+2x90",
        'handrail_runs_ended_total{status="failed",instance="a"}': "0+1x90",
    },
    "HandrailCompensationFailed": {'handrail_runs{status="compensation_failed",instance="a"}': "0 1x90"},
    "HandrailApprovalWaits": {'handrail_approval_waiting_oldest_seconds{instance="a"}': "86000+60x90"},
    "HandrailRunsUnassigned": {'handrail_runs_unassigned{instance="a"}': "2x90"},
    "HandrailBreakerOpen": {'handrail_breaker_state{server="git",instance="a"}': "0 2 1 2 1 2x90"},
    "HandrailCallsQueue": {'handrail_process_calls_running{instance="a"}': "100x90"},
    "HandrailSyncSlow": {
        'handrail_process_commit_seconds_bucket{le="0.01",instance="a"}': "0+1x90",
        'handrail_process_commit_seconds_bucket{le="0.25",instance="a"}': "0+2x90",
        'handrail_process_commit_seconds_bucket{le="1.0",instance="a"}': "0+100x90",
        'handrail_process_commit_seconds_bucket{le="+Inf",instance="a"}': "0+100x90",
    },
    "HandrailLoopLag": {
        'handrail_process_loop_lag_seconds_bucket{le="0.01",instance="a"}': "0+1x90",
        'handrail_process_loop_lag_seconds_bucket{le="0.5",instance="a"}': "0+2x90",
        'handrail_process_loop_lag_seconds_bucket{le="1.0",instance="a"}': "0+100x90",
        'handrail_process_loop_lag_seconds_bucket{le="+Inf",instance="a"}': "0+100x90",
    },
    "HandrailVerifyFailed": {'handrail_verify_ok{instance="a"}': "1 0x90"},
    "HandrailVerifyOld": {'handrail_verify_age_seconds{instance="a"}': "-1x2000"},
    "HandrailCheckpointOld": {'handrail_checkpoint_age_seconds{instance="a"}': "86000+60x90"},
    "HandrailBackupOld": {'handrail_health{check="backups",instance="a"}': "0 1x90"},
    "HandrailFiguresBehind": {'handrail_figures_behind_events{instance="a"}': "20000x90"},
    "HandrailFilesRunOut": {'process_open_fds{job="handrail",instance="a"}': "900x90"},
}


def rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


def test_promtool_accepts_the_rules_and_the_example_configuration(tmp_path: Path) -> None:
    promtool = prometheus("promtool")
    for name in ("alerts.yml", "prometheus.yml"):
        (tmp_path / name).write_bytes((RULES.parent / name).read_bytes())
    (tmp_path / "metrics-token").write_text("x", encoding="utf-8")
    done = subprocess.run(
        [promtool, "check", "config", tmp_path / "prometheus.yml"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def fired_in(folder: Path, series: dict[str, str], at: str) -> dict[str, list[dict[str, Any]]]:
    """Which alerts fire at a time, by promtool, which stops the clock."""
    promtool, known = prometheus("promtool"), [rule["alert"] for rule in rules()]
    expected = [{"eval_time": at, "alertname": name, "exp_alerts": []} for name in known]
    given = {
        "rule_files": [str(RULES)],
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": [{"series": name, "values": values} for name, values in series.items()],
                "alert_rule_test": expected,
            }
        ],
    }
    file = folder / "test.yml"
    file.write_text(json.dumps(given), encoding="utf-8")
    done = subprocess.run([promtool, "test", "rules", file], capture_output=True, text=True, check=False)
    fired = re.findall(
        r"alertname: (\w+), time: \w+,\s+exp:\[\s*\],\s+got:\[(.*?)\n?\s*\]", done.stdout + done.stderr, re.S
    )
    assert done.returncode == (1 if fired else 0), done.stdout + done.stderr
    return {name: re.findall(r"Annotations:\{(.*?)\}", got, re.S) for name, got in fired}


def test_an_hour_of_health_is_silent(tmp_path: Path) -> None:
    for at in ("10m", "30m", "60m", "90m"):
        assert fired_in(tmp_path, SILENT, at) == {}


def test_the_table_has_every_alert() -> None:
    assert sorted(FIRES) == sorted(rule["alert"] for rule in rules())


@pytest.mark.parametrize("alert", sorted(FIRES))
def test_an_alert_fires_when_its_condition_is_true_and_no_other_does(alert: str, tmp_path: Path) -> None:
    at = "1500m" if alert == "HandrailVerifyOld" else "60m"
    assert set(fired_in(tmp_path, {**SILENT, **FIRES[alert]}, at)) == {alert}


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: str(rule["alert"]))
def test_each_alert_has_a_runbook_and_asks_only_for_metrics_that_there_are(rule: dict[str, Any]) -> None:
    runbook = ROOT / rule["annotations"]["runbook"]
    text = runbook.read_text(encoding="utf-8")
    assert rule["alert"] in text.splitlines()[0]
    for section in ("## What it means", "## Look", "## Do"):
        assert section in text
    assert exposed_in(rule["expr"]) <= samples()


def exposed_in(expression: str) -> set[str]:
    return set(re.findall(r"\b(?:handrail|process)_\w+", expression))


def samples() -> set[str]:
    found = {"process_max_fds", *FROM_LIBRARY}
    for metric in METRICS:
        endings = ("_bucket", "_count", "_sum") if metric.kind is MetricKind.HISTOGRAM else ("",)
        found |= {metric.exposed + ending for ending in endings}
    return found


def at_once(folder: Path) -> Path:
    """The rules without their patience: a test has none."""
    text = re.sub(r"^        for: .*\n", "", RULES.read_text(encoding="utf-8"), flags=re.MULTILINE)
    file = folder / "alerts.yml"
    file.write_text(text, encoding="utf-8")
    return file


def test_a_real_prometheus_wakes_people_for_real_troubles(tmp_path: Path) -> None:
    gone = declare_server(tmp_path)
    with serving(tmp_path) as console:
        token = console.shell.home / "metrics-token"
        with watching(tmp_path / "prometheus", console.url, token=token, rules=at_once(tmp_path)) as live:
            usual = {"HandrailVerifyOld"}  # a journal that was never verified
            until(lambda: live.firing() <= usual and live.value("handrail_runs_started_total") == 0)
            make_trouble(console, gone)
            until(
                lambda: {"HandrailCompensationFailed", "HandrailBreakerOpen", "HandrailRunsFailing"} <= live.firing(),
                within_s=60,
            )
            console.shell.execute("update event set body = x'7b7d' where n = 1 and stream like 'run_%'")
            assert console.shell.run("journal", "verify").exit_code == 7
            until(lambda: "HandrailVerifyFailed" in live.firing())
            assert "HandrailVerifyOld" not in live.firing()
            console.process.send(9)
            console.process.end()
            until(lambda: "HandrailDown" in live.firing())


def make_trouble(console: LiveConsole, gone: Path) -> None:
    """Runs that fail, one that can't be undone, and a tool server that is gone."""
    stuck = plan(
        "stuck",
        {
            "id": "one",
            "tool": "value.set",
            "args": {"value": 1},
            "effect": "compensatable",
            "undo": {"tool": "file.read", "args": {"path": "not-there.txt"}},
        },
        {"id": "read", "tool": "file.read", "args": {"path": "not-there.txt"}},
        on_failure="compensate",
    )
    console.started(stuck)
    run = console.started({**CALLS_SERVER, "on_failure": "ask"})
    gone.touch()
    with console.script() as script:
        assert script.post(f"/api/v1/runs/{run}/submit", json={"step": "when", "output": {}}).status_code == 200
    for _ in range(8):
        console.started(FAILS)
