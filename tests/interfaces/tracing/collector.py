"""An OTLP/HTTP collector for tests: a small real server that decodes what it is sent and remembers the spans."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)


@dataclass(frozen=True)
class SeenSpan:
    """A span as it arrived."""

    name: str
    trace: str
    id: str
    parent: str
    kind: int
    start: int
    end: int
    error: bool
    words: str
    events: int
    attributes: dict[str, Any]
    service: str
    scope: str


@dataclass
class Collector:
    """What it was sent."""

    url: str = ""
    spans: list[SeenSpan] = field(default_factory=list)
    raw: list[bytes] = field(default_factory=list)

    def named(self, start: str) -> list[SeenSpan]:
        """The spans whose names start so."""
        return [one for one in self.spans if one.name.startswith(start)]

    def one(self, name: str) -> SeenSpan:
        """The one span of that name."""
        (found,) = [one for one in self.spans if one.name == name]
        return found

    def take(self, body: bytes) -> None:
        self.raw.append(body)
        request = ExportTraceServiceRequest.FromString(body)
        for resource in request.resource_spans:
            about = {one.key: one.value.string_value for one in resource.resource.attributes}
            for scoped in resource.scope_spans:
                for span in scoped.spans:
                    self.spans.append(
                        SeenSpan(
                            name=span.name,
                            trace=span.trace_id.hex(),
                            id=span.span_id.hex(),
                            parent=span.parent_span_id.hex(),
                            kind=span.kind,
                            start=span.start_time_unix_nano,
                            end=span.end_time_unix_nano,
                            error=span.status.code == 2,
                            words=span.status.message,
                            events=len(span.events),
                            attributes={one.key: value_of(one.value) for one in span.attributes},
                            service=about.get("service.name", ""),
                            scope=scoped.scope.name,
                        )
                    )


def value_of(value: Any) -> Any:
    return getattr(value, value.WhichOneof("value"))


@contextmanager
def collecting() -> Iterator[Collector]:
    """A collector on a free port."""
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            assert self.path == "/v1/traces", self.path
            collector.take(gzip.decompress(body) if self.headers.get("content-encoding") == "gzip" else body)
            answer = ExportTraceServiceResponse().SerializeToString()
            self.send_response(200)
            self.send_header("content-type", "application/x-protobuf")
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        collector.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield collector
        finally:
            server.shutdown()
            thread.join()
