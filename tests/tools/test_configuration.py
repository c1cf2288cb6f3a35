"""What config.toml says about tools, and how it adds up with what they say of themselves."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest

from handrail.domain.definition.model import Category, Effect, Retry
from handrail.domain.errors import Invalid
from handrail.engine.tool import ToolSpec
from handrail.tools.configuration import ToolConfiguration, configured, tool_configuration

TEXT = """
store = "a plain setting"
[http]
allow = ["127.0.0.1", "CI.internal:8080", "[::1]:80", "::1"]
[shell]
allow = true
[tools."http.request"]
timeout = "10s"
retry = {attempts = 5, on = ["transient"]}
[servers.http]
concurrency = 4
rate = "10/s"
timeout = "99s"
retry = {attempts = 9, first = "2s", jitter = false}
"""


def test_tables_become_a_configuration() -> None:
    found = tool_configuration(tomllib.loads(TEXT))
    assert found.allow == ("127.0.0.1", "ci.internal:8080", "[::1]:80", "::1")
    assert (found.tools["http.request"].timeout, found.servers["http"].concurrency) == ("10s", 4)
    assert tool_configuration({}) == ToolConfiguration()


def test_the_tools_table_wins_over_the_tools_word_and_that_over_the_servers_table() -> None:
    own = Retry(first="1s", factor=3.0)
    spec = ToolSpec(name="http.request", description="", effect=Effect.NONE, timeout="30s", retry=own)
    found = configured(spec, tool_configuration(tomllib.loads(TEXT)))
    assert (found.timeout, found.concurrency, found.rate) == ("10s", 4, "10/s")
    assert found.retry == Retry(attempts=5, first="1s", factor=3.0, jitter=False, on=(Category.TRANSIENT,))


def test_a_tool_without_configuration_stays_as_it_is() -> None:
    spec = ToolSpec(name="file.read", description="", effect=Effect.NONE)
    assert configured(spec, tool_configuration(tomllib.loads(TEXT))) is spec
    slow = tool_configuration({"servers": {"file": {"timeout": "5s"}}})
    assert (configured(spec, slow).timeout, configured(spec, slow).retry) == ("5s", None)


@pytest.mark.parametrize(
    ("tables", "hint"),
    [
        ({"http": {"alow": []}}, "allow"),
        ({"http": {"allow": "127.0.0.1"}}, "write hosts"),
        ({"http": {"allow": ["http://127.0.0.1/"]}}, "write hosts"),
        ({"http": {"allow": ["*"]}}, "write hosts"),
        ({"http": {"allow": [1]}}, "write hosts"),
        ({"tools": {"http.request": {"timout": "1s"}}}, "did you mean `timeout`?"),
        ({"tools": {"http.request": {"timeout": "1 second"}}}, "write durations like"),
        ({"tools": {"http.request": {"retry": {"atempts": 1}}}}, "did you mean `attempts`?"),
        ({"tools": {"http.request": {"retry": {"attempts": 0}}}}, "write durations like"),
        ({"tools": {"http.request": {"retry": 3}}}, "write durations like"),
        ({"tools": {"http.request": {"rate": "10 a day"}}}, "write durations like"),
        ({"tools": {"http.request": "fast"}}, "as a table"),
        ({"tools": {"http": {"request": {"timeout": "1s"}}}}, '[tools."http.request"]'),
        ({"tools": {"http": 1}}, '[tools."http.tool"]'),
        ({"servers": {"http": {"concurrency": 0}}}, "write durations like"),
    ],
)
def test_an_unknown_key_or_bad_value_is_refused_with_a_hint(tables: dict[str, Any], hint: str) -> None:
    with pytest.raises(Invalid) as refused:
        tool_configuration(tables)
    assert hint in refused.value.hint
