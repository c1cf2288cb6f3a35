"""How the running server of a home says it is: asked over HTTP, with the token of the home."""

from __future__ import annotations

import urllib.error
from pathlib import Path
from typing import Final

import msgspec

from handrail.domain.health.check import CheckLevel, HealthCheck, HealthStatus, fail, ok, warn
from handrail.interfaces.health.live_checks import HealthReport
from handrail.interfaces.web.own_server import ask_server
from handrail.interfaces.web.token_file import open_token

ASK_S: Final = 10.0
ANSWER_MAX: Final = 200_000
NAME: Final = "server"
LOOK: Final = "`handrail logs` shows more; restart `handrail serve` if it does not recover"


def server_health(home: Path, url: str) -> list[HealthCheck]:
    """What the running server reports: one line if all is well, else also each thing that is not."""
    report = server_report(home, url)
    return [report] if isinstance(report, HealthCheck) else _lines(url, report)


def server_report(home: Path, url: str) -> HealthReport | HealthCheck:
    """The whole report of the running server; or what is wrong if there is none."""
    token, _ = open_token(home)
    try:
        with ask_server(f"{url}/healthz", token, within_s=ASK_S) as answer:
            return msgspec.json.decode(answer.read(ANSWER_MAX), type=HealthReport)
    except urllib.error.HTTPError as error:
        with error:
            return _failed(url, error.read(ANSWER_MAX))
    except (OSError, msgspec.MsgspecError) as error:
        return fail(NAME, f"the server at {url} does not answer: {error}", "stop it, then start it again")


def _failed(url: str, answer: bytes) -> HealthReport | HealthCheck:
    try:
        return msgspec.json.decode(answer, type=HealthReport)
    except msgspec.MsgspecError:
        return fail(NAME, f"the server at {url} can't say how it is", "stop it, then start it again")


def _lines(url: str, report: HealthReport) -> list[HealthCheck]:
    words = f"the server at {url} is {report.status.value}"
    level = {HealthStatus.OK: ok(NAME, words), HealthStatus.DEGRADED: warn(NAME, words, LOOK)}
    wrong = [check for check in report.checks if check.level is not CheckLevel.OK]
    inside = [HealthCheck(f"{NAME}: {one.name}", one.level, one.message, one.fix, one.age_ms) for one in wrong]
    return [level.get(report.status, fail(NAME, words, LOOK)), *inside]
