"""A receiver of handrail's webhooks, with nothing but Python's own library: it verifies each signature, and takes
a notice that comes twice only once.

    WEBHOOK_SECRET=whsec_... python receiver.py 8420

It prints one line for each notice, and answers 204 once it has it. A receiver that does more than print stores the
notice before answering: what was answered with 2xx is not sent again."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import sys
import time
from collections.abc import Iterable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

TOLERANCE_S = 300
"""How old or new a message may be: an older one may have been recorded and sent again by somebody else."""
BODY_BYTES_MAX = 1_000_000
SEEN_MAX = 10_000


def verified(secrets: Iterable[str], headers: Mapping[str, str], body: bytes, now_s: float) -> bool:
    """Whether one of these secrets signed this message just now. Several, while the sender changes its key."""
    message_id, timestamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not message_id or not timestamp.isdecimal() or abs(now_s - int(timestamp)) > TOLERANCE_S:
        return False
    signed = f"{message_id}.{timestamp}.".encode() + body
    for secret in secrets:
        key = base64.b64decode(secret.removeprefix("whsec_"))
        expected = "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
        for signature in headers.get("webhook-signature", "").split(" "):
            # Compared in constant time: how long it takes must not tell how much of a forged one is right.
            if hmac.compare_digest(signature.encode(), expected.encode()):
                return True
    return False


class Receiver(BaseHTTPRequestHandler):
    """Takes POST requests of any path."""

    secrets: tuple[str, ...] = ()
    seen: ClassVar[dict[str, None]] = {}

    def do_POST(self) -> None:
        """Verify, print, answer."""
        length = self.headers.get("content-length", "")
        if not length.isdecimal() or int(length) > BODY_BYTES_MAX:
            self.answer(413)
            return
        body = self.rfile.read(int(length))
        headers = {name.lower(): value for name, value in self.headers.items()}
        if not verified(self.secrets, headers, body, time.time()):
            self.answer(401)
            return
        event = json.loads(body)
        if event["id"] not in self.seen:  # at least once: the same notice can come again
            print(event["time"], event["type"], event["subject"], event["data"]["text"], flush=True)  # noqa: T201
            self.seen[event["id"]] = None
            if len(self.seen) > SEEN_MAX:
                del self.seen[next(iter(self.seen))]
        self.answer(204)

    def answer(self, status: int) -> None:
        """Answer without a body."""
        self.send_response(status)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Print no line for each request."""


def main() -> None:
    """Serve until stopped. WEBHOOK_SECRET may have several secrets, separated by spaces."""
    Receiver.secrets = tuple(os.environ.get("WEBHOOK_SECRET", "").split())
    if not Receiver.secrets:
        sys.exit("set WEBHOOK_SECRET to what `handrail webhooks rotate CHANNEL` has printed")
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 8420), Receiver)
    print(f"listening on http://127.0.0.1:{server.server_port}/", file=sys.stderr, flush=True)  # noqa: T201
    server.serve_forever()


if __name__ == "__main__":
    main()
