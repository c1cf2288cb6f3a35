"""A failure taken apart: status, host and words, where a message has them."""

from __future__ import annotations

import pytest

from handrail.domain.history.failure_parts import FailureParts, failure_parts


@pytest.mark.parametrize(
    ("message", "status", "host", "said"),
    [
        ('403 from 127.0.0.1: {"error": "token expired"}', 403, "127.0.0.1", "token expired"),
        ('422 from a.test: {"errors": [{"message": "no name"}]}', 422, "a.test", "no name"),
        ('500 from a.test: {"code": 7}', 500, "a.test", '{"code": 7}'),
        ('500 from a.test: {"error": "cut of', 500, "a.test", '{"error": "cut of'),
        ("502 from a.test", 502, "a.test", ""),
        ("503 from a.test: busy: later", 503, "a.test", "busy: later"),
        ("a.test did not answer in time", 0, "a.test", "a.test did not answer in time"),
        ("`url` can't be read", 0, "", "`url` can't be read"),
    ],
)
def test_http_failures_have_their_status_host_and_words_apart(message: str, status: int, host: str, said: str) -> None:
    assert failure_parts(message, "http.request") == FailureParts(status=status, host=host, said=said)


def test_another_tool_can_not_pretend_that_a_host_answered() -> None:
    assert failure_parts("403 from bank.test: no", "git.push") == FailureParts(said="403 from bank.test: no")


def test_the_words_of_a_server_that_answers_with_json_are_found() -> None:
    assert failure_parts('{"error": {"code": 1, "message": "no such branch"}}', "git.push").said == "no such branch"


@pytest.mark.parametrize("text", ["[" * 5_000, '{"error": ' * 3_000, "{}", "[]", '{"error": null}'])
def test_whatever_is_said_is_bounded_and_never_an_error(text: str) -> None:
    assert failure_parts(text, "x.y").said == text
