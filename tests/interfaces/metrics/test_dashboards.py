"""The Grafana dashboards in deploy/: complete, consistent, and a real Prometheus understands every query."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from handrail.domain.metrics.catalog import METRICS
from interfaces.http.live_console import serving
from interfaces.metrics.live_prometheus import watching
from interfaces.metrics.test_alerts import exposed_in, samples

BOARDS = Path(__file__).parents[3] / "deploy" / "grafana"


def boards() -> dict[str, Any]:
    return {file.name: json.loads(file.read_text(encoding="utf-8")) for file in sorted(BOARDS.glob("*.json"))}


def queries(board: Any) -> Iterator[str]:
    for panel in board["panels"]:
        for target in panel.get("targets", ()):
            yield target["expr"]


@pytest.mark.parametrize("name", boards())
def test_a_dashboard_is_one_that_grafana_shows(name: str) -> None:
    board = boards()[name]
    panels = board["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert all(panel["title"] for panel in panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        at = panel["gridPos"]
        cells = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert at["x"] + at["w"] <= 24
        assert not cells & taken, panel["title"]
        taken |= cells


def test_they_ask_only_for_metrics_that_there_are_and_leave_none_out() -> None:
    asked = {metric for board in boards().values() for query in queries(board) for metric in exposed_in(query)}
    assert asked <= samples() | {"process_cpu_seconds_total"}
    shown = " ".join(sorted(asked))
    left_out = {"handrail_run_open_oldest_seconds"}  # an alert's, or a list's: no line that people look at
    assert [one.name for one in METRICS if one.name not in shown and one.name not in left_out] == []


def test_a_real_prometheus_understands_every_query(tmp_path: Path) -> None:
    with serving(tmp_path) as console:
        token = console.shell.home / "metrics-token"
        with watching(tmp_path / "prometheus", console.url, token=token) as live:
            for board in boards().values():
                for query in queries(board):
                    live.ask(re.sub(r"\$__rate_interval", "1m", query))
