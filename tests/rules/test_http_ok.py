"""`http_ok`: a URL that answers as expected passes; one that can't be reached is retried by the gate."""

from __future__ import annotations

from pathlib import Path

import pytest

from handrail.domain.definition.model import Category
from handrail.engine.checking.rule import RuleUnavailable
from handrail.engine.tool import ToolFailed
from handrail.rules.http_ok import http_ok
from rules.on_project import found, reported, setting_of

URL = "https://me:pw@example.com/health?token=abc"


class Answers:
    """A network that answers each call with the next of these."""

    def __init__(self, *answers: int | Exception) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, float]] = []

    async def __call__(self, url: str, seconds: float) -> int:
        self.asked.append((url, seconds))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


async def test_an_expected_status_passes(tmp_path: Path) -> None:
    fetch = Answers(204, 404)
    assert await reported(http_ok(fetch), tmp_path, url=URL) == []
    assert await reported(http_ok(fetch), tmp_path, url=URL, expect=[404], timeout="500ms") == []
    assert fetch.asked == [(URL, 10.0), (URL, 0.5)]


async def test_another_status_is_reported_without_what_may_be_secret(tmp_path: Path) -> None:
    fetch = Answers(500, 200)
    [finding] = await found(http_ok(fetch), tmp_path, url=URL, timeout="1h")
    assert finding.where == "https://example.com/health"
    assert finding.message == "https://example.com/health answered 500, not 200 to 299"
    [(_, message)] = await reported(http_ok(fetch), tmp_path, url=URL, expect=[301, 302])
    assert message == "https://example.com/health answered 200, not 301, 302"
    assert fetch.asked[0][1] == 50.0


@pytest.mark.parametrize(
    "error",
    [ToolFailed(Category.TRANSIENT, "refused"), ToolFailed(Category.TIMEOUT, "slow"), OSError("reset"), TimeoutError()],
)
async def test_an_address_that_does_not_answer_may_be_tried_again(tmp_path: Path, error: Exception) -> None:
    with pytest.raises(RuleUnavailable, match=r"https://example\.com/health did not answer"):
        await http_ok(Answers(error)).apply({"url": URL}, setting_of(tmp_path))


async def test_an_address_that_may_not_be_reached_is_reported_at_once(tmp_path: Path) -> None:
    fetch = Answers(ToolFailed(Category.PERMISSION, "10.0.0.1 is not public"))
    assert await reported(http_ok(fetch), tmp_path, url=URL) == [("checks", "10.0.0.1 is not public")]


async def test_nothing_of_the_network_is_remembered(tmp_path: Path) -> None:
    assert await http_ok(Answers()).inputs({"url": URL}, setting_of(tmp_path)) == ""
