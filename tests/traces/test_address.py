"""Where spans are sent, if anywhere."""

from __future__ import annotations

import pytest

from handrail.domain.errors import Invalid
from handrail.traces.address import BASE, WHOLE, collector_of

HERE = "http://127.0.0.1:4318"


def test_nothing_is_sent_unless_an_address_is_set() -> None:
    assert collector_of("", {}) == ""
    assert collector_of("", {"OTEL_SERVICE_NAME": "x", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}) == ""


def test_our_own_setting_wins_over_the_variables_of_opentelemetry() -> None:
    assert collector_of(HERE + "/", {BASE: "http://elsewhere:1"}) == HERE + "/v1/traces"
    assert collector_of("", {BASE: HERE}) == HERE + "/v1/traces"
    assert collector_of("", {BASE: HERE, WHOLE: HERE + "/my/own"}) == HERE + "/my/own"


def test_who_turns_opentelemetry_off_turns_it_off() -> None:
    assert collector_of(HERE, {"OTEL_SDK_DISABLED": "TRUE"}) == ""
    assert collector_of(HERE, {"OTEL_TRACES_EXPORTER": "none"}) == ""


@pytest.mark.parametrize("wrong", ["localhost:4318", "ftp://a", "http://", "http://[", "http://a:0", "http://a:99999"])
def test_what_is_no_address_is_refused(wrong: str) -> None:
    with pytest.raises(Invalid, match="trace_endpoint is no address"):
        collector_of(wrong, {})
    with pytest.raises(Invalid, match=f"{BASE} is no address"):
        collector_of("", {BASE: wrong})


def test_another_protocol_is_refused_in_words_that_help() -> None:
    with pytest.raises(Invalid, match="'grpc'") as refused:
        collector_of("", {BASE: HERE, "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"})
    assert "http/protobuf" in refused.value.hint
    # Our own setting is HTTP by what it says.
    assert collector_of(HERE, {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"})
