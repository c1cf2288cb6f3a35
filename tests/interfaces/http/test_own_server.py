"""A token of the home goes to the server that is asked, and to no other place."""

from __future__ import annotations

import threading
import urllib.error
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from handrail.domain.errors import Invalid
from handrail.interfaces.web.own_server import ask_server

SEEN: list[str] = []


class _Server(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        SEEN.append(f"{self.path} {self.headers['authorization']}")
        self.send_response(302 if self.path == "/away" else 200)
        if self.path == "/away":
            self.send_header("location", "/elsewhere")
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@contextmanager
def serving() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Server) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def test_no_redirect_is_followed_and_no_proxy_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    SEEN.clear()
    with serving() as url:
        with ask_server(f"{url}/here", "t0ken", within_s=10) as answer:
            assert answer.status == 200
        with pytest.raises(urllib.error.HTTPError) as refused:
            ask_server(f"{url}/away", "t0ken", within_s=10)
        refused.value.close()
    assert SEEN == ["/here Bearer t0ken", "/away Bearer t0ken"]


@pytest.mark.parametrize("address", ["file:///etc/hostname", "ftp://127.0.0.1/x", "127.0.0.1:80"])
def test_what_is_no_server_is_refused(address: str) -> None:
    with pytest.raises(Invalid, match="no address of a server"):
        ask_server(address, "t0ken", within_s=1)
