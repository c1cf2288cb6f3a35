"""A real Prometheus for tests, which scrapes real processes every second and can be asked."""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from interfaces.shell import until
from outside.debian import prometheus

CONFIG = """
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: {rules}
scrape_configs:
  - job_name: handrail
    authorization: {{credentials_file: {token}}}
    static_configs: [{{targets: {targets}}}]
"""


@dataclass(frozen=True)
class LivePrometheus:
    """Where it is, and what it knows."""

    url: str

    def ask(self, query: str) -> list[tuple[Mapping[str, str], float]]:
        """The answer to a query, as labels and values."""
        answer = httpx.get(f"{self.url}/api/v1/query", params={"query": query}, timeout=30, trust_env=False).json()
        assert answer["status"] == "success", answer
        return [(one["metric"], float(one["value"][1])) for one in answer["data"]["result"]]

    def value(self, query: str) -> float:
        """The one value that answers a query; -1 if there is none."""
        found = self.ask(query)
        assert len(found) <= 1, found
        return found[0][1] if found else -1.0

    def by(self, metric: str, *labels: str) -> dict[tuple[str, ...], int]:
        """A counter by labels, without zeros."""
        answer = self.ask(f"sum by ({', '.join(labels)}) ({metric})")
        return {tuple(one.get(label, "") for label in labels): int(value) for one, value in answer if value}

    def firing(self) -> set[str]:
        """The alerts that fire now."""
        answer = httpx.get(f"{self.url}/api/v1/alerts", timeout=30, trust_env=False).json()
        return {one["labels"]["alertname"] for one in answer["data"]["alerts"] if one["state"] == "firing"}

    def metrics(self) -> set[str]:
        """The names of all metrics that it has seen."""
        found = httpx.get(f"{self.url}/api/v1/label/__name__/values", timeout=30, trust_env=False).json()
        return set(found["data"])

    def targets(self) -> list[Any]:
        """What it scrapes."""
        found = httpx.get(f"{self.url}/api/v1/targets", timeout=30, trust_env=False).json()
        return list(found["data"]["activeTargets"])


@contextmanager
def watching(folder: Path, *urls: str, token: Path, rules: Path | None = None) -> Iterator[LivePrometheus]:
    """A Prometheus that scrapes these servers, and evaluates these rules."""
    program = prometheus()
    folder.mkdir(parents=True)
    targets = json.dumps([url.removeprefix("http://") for url in urls])
    listed = json.dumps([str(rules)] if rules is not None else [])
    config = folder / "prometheus.yml"
    config.write_text(CONFIG.format(token=json.dumps(str(token)), targets=targets, rules=listed), encoding="utf-8")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        str(program),
        f"--config.file={config}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with (folder / "log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        live = LivePrometheus(f"http://127.0.0.1:{port}")
        try:
            until(lambda: _is_up(live))
            yield live
        finally:
            process.terminate()
            process.wait(timeout=30)


def _is_up(live: LivePrometheus) -> bool:
    try:
        targets = live.targets()
    except (httpx.HTTPError, ValueError):  # it does not listen yet, or answers in words that it is not ready
        return False
    return bool(targets) and all(one["health"] == "up" for one in targets)
