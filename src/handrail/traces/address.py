"""Where spans are sent, if anywhere: our own setting first, then the variables that OpenTelemetry defines.

Pure; imports nothing of OpenTelemetry, so that looking costs nothing where tracing is off."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from handrail.domain.errors import Invalid

PATH: Final = "/v1/traces"
BASE: Final = "OTEL_EXPORTER_OTLP_ENDPOINT"
WHOLE: Final = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
PROTOCOLS: Final = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
SPOKEN: Final = "http/protobuf"


def collector_of(setting: str, environment: Mapping[str, str]) -> str:
    """The whole address of the collector; empty if nothing is sent. Invalid if it can't be reached over HTTP."""
    if environment.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return ""
    if environment.get("OTEL_TRACES_EXPORTER", "").lower() == "none":
        return ""
    if setting:
        return _checked(_whole(setting), "trace_endpoint")
    if not (given := environment.get(WHOLE) or environment.get(BASE)):
        return ""
    protocol = next((environment[name] for name in PROTOCOLS if environment.get(name)), SPOKEN)
    if protocol != SPOKEN:
        raise Invalid(
            f"spans can't be sent by {protocol!r}", hint=f"set {PROTOCOLS[-1]} to {SPOKEN}, and a port for it"
        )
    return _checked(given, WHOLE) if environment.get(WHOLE) else _checked(_whole(given), BASE)


def _whole(base: str) -> str:
    return base.rstrip("/") + PATH


def _checked(url: str, name: str) -> str:
    try:
        parts = urlsplit(url)
        is_address = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_address = False
    if not is_address:
        raise Invalid(f"{name} is no address of a collector", hint="write it as http://127.0.0.1:4318")
    return url
