"""An HTTPS endpoint as witness: each checkpoint is one POST; any answer from 200 to 299 means that it was kept.

No redirect is followed, no proxy is used, and plain http is for this machine only (targets.py sees to that)."""

from __future__ import annotations

import asyncio
import http.client
import os
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import SplitResult, urlsplit

from handrail.domain.errors import Unavailable
from handrail.domain.journal.checkpoint import SealedCheckpoint, checkpoint_line

ANSWER_S_MAX: Final = 5.0
ANSWER_BYTES_MAX: Final = 4_096


@dataclass(frozen=True)
class HttpsWitness:
    """An endpoint that takes checkpoints."""

    name: str
    token_env: str = ""
    """The environment variable with the token that the endpoint wants; empty: none."""

    async def copy(self, sealed: Sequence[SealedCheckpoint]) -> None:
        """Post these checkpoints, one after the other."""
        for one in sealed:
            await asyncio.to_thread(self._post, checkpoint_line(one))

    def _post(self, content: bytes) -> None:
        url = urlsplit(self.name)
        connection = _connection(url)
        try:
            path = (url.path or "/") + (f"?{url.query}" if url.query else "")
            connection.request("POST", path, body=content, headers=self._headers())
            answer = connection.getresponse()
            answer.read(ANSWER_BYTES_MAX)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise Unavailable(f"it can't be reached: {error}", hint="check the address and the network") from error
        finally:
            connection.close()
        if not 200 <= answer.status < 300:
            raise Unavailable(f"it answered {answer.status}", hint="see the log of the endpoint")

    def _headers(self) -> dict[str, str]:
        headers = {"Content-Type": "application/json", "User-Agent": "handrail"}
        if not self.token_env:
            return headers
        token = os.environ.get(self.token_env, "")
        if not token:
            raise Unavailable(f"there is no {self.token_env} in the environment", hint="set it, or remove token_env")
        return {**headers, "Authorization": f"Bearer {token}"}


def _connection(url: SplitResult) -> http.client.HTTPConnection:
    host = url.hostname or ""
    if url.scheme == "http":
        return http.client.HTTPConnection(host, url.port, timeout=ANSWER_S_MAX)
    context = ssl.create_default_context()
    return http.client.HTTPSConnection(host, url.port, timeout=ANSWER_S_MAX, context=context)
