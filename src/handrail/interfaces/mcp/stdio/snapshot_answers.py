"""Answers requests from a snapshot, exactly as the SDK would, while the SDK is not loaded yet.

Pure. Any unusual request is left to the SDK. The request that opens a connection and the handshake are replayed to
the SDK later, with an id of our own, so that its state is the same as if it had answered them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from handrail.interfaces.mcp.stdio.envelope import Request

MODERN: Final = "2026-07-28"
HANDSHAKES: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
LISTS: Final = ("tools/list", "resources/list", "resources/templates/list", "prompts/list")
META_VERSION: Final = "io.modelcontextprotocol/protocolVersion"
META_CAPABILITIES: Final = "io.modelcontextprotocol/clientCapabilities"
META_CLIENT: Final = "io.modelcontextprotocol/clientInfo"
REPLAY_PREFIX: Final = "handrail:replayed:"
APPS: Final = "io.modelcontextprotocol/ui"
APPS_TYPE: Final = "text/html;profile=mcp-app"
APPS_CAPABILITIES: Final[Mapping[str, Any]] = {"extensions": {APPS: {"mimeTypes": [APPS_TYPE]}}}
APPS_MARK: Final = "+apps"
"""Follows the version of answers that only clients get that show pages; what is the same is not kept twice."""

RecordedResults = Mapping[tuple[str, str], bytes]
"""By protocol version and method: the result, as JSON."""


class SnapshotAnswer(NamedTuple):
    """A result from the snapshot, and the request to replay to the SDK later, if any."""

    result: bytes
    replay: str | None


class SnapshotAnswers:
    """Answers one client; remembers the protocol era and version that the client has chosen."""

    def __init__(self, answers: RecordedResults) -> None:
        self._answers = answers
        self._is_modern: bool | None = None
        self._version: str | None = None
        self._mark = ""
        self._replays = 0

    def answer(self, request: Request) -> SnapshotAnswer | None:
        """The recorded answer; None if the SDK has to answer."""
        opens = self._is_modern is None
        if self._is_modern is None:
            self._is_modern = request.method != "initialize" and _claims_modern(request.params)
        result = self._modern(request) if self._is_modern else self._handshake(request)
        if result is None:
            return None
        return SnapshotAnswer(result, self._replay(request) if opens or request.method == "initialize" else None)

    def _modern(self, request: Request) -> bytes | None:
        # Only `_meta`: a cursor or any other parameter could change the answer.
        if set(request.params) != {"_meta"} or not _is_usual_envelope(request.params["_meta"]):
            return None
        self._mark = _mark(request.params["_meta"][META_CAPABILITIES])  # here each request declares them
        return self._recorded(MODERN, request.method)

    def _handshake(self, request: Request) -> bytes | None:
        if request.method == "initialize":
            return self._initialize(request)
        if _claims_modern(request.params) or not _is_bare(request.params):
            return None
        if request.method == "ping":  # the only request that is allowed before the handshake
            return self._recorded(self._version or HANDSHAKES[-1], "ping")
        return self._recorded(self._version or "", request.method)

    def _initialize(self, request: Request) -> bytes | None:
        # An unusual handshake sets an empty version, which is never in the snapshot: the SDK answers all that follows.
        usual = self._version is None and _is_usual_handshake(request.params)
        self._version = request.params["protocolVersion"] if usual else ""
        self._mark = _mark(request.params["capabilities"]) if usual else ""
        return self._recorded(self._version or "", "initialize")

    def _recorded(self, version: str, method: str) -> bytes | None:
        known = self._answers.get((version + self._mark, method))
        return self._answers.get((version, method)) if known is None else known

    def _replay(self, request: Request) -> str:
        self._replays += 1
        again = {"jsonrpc": "2.0", "id": f"{REPLAY_PREFIX}{self._replays}", "method": request.method}
        return json.dumps(again | ({"params": request.params} if request.params else {}))


def _claims_modern(params: Mapping[str, Any]) -> bool:
    meta = params.get("_meta")
    return isinstance(meta, dict) and META_VERSION in meta


def _is_bare(params: Mapping[str, Any]) -> bool:
    return not params or (set(params) == {"_meta"} and isinstance(params["_meta"], dict))


def _is_usual_envelope(meta: object) -> bool:
    if not isinstance(meta, dict) or meta.get(META_VERSION) != MODERN:
        return False
    return _are_capabilities(meta.get(META_CAPABILITIES)) and (META_CLIENT not in meta or _is_client(meta[META_CLIENT]))


def _is_usual_handshake(params: Mapping[str, Any]) -> bool:
    known = {"protocolVersion", "capabilities", "clientInfo", "_meta"}
    if not set(params) <= known or params.get("protocolVersion") not in HANDSHAKES:
        return False
    meta = params.get("_meta", {})
    return _are_capabilities(params.get("capabilities")) and _is_client(params.get("clientInfo")) and meta == {}


def _are_capabilities(value: object) -> bool:
    if not isinstance(value, dict) or not all(isinstance(part, dict) for part in value.values()):
        return False
    return all(isinstance(settings, dict) for settings in value.get("extensions", {}).values())


def _mark(capabilities: Mapping[str, Any]) -> str:
    """The mark of the answers for a client with these capabilities, as the SDK reads them."""
    types = capabilities.get("extensions", {}).get(APPS, {}).get("mimeTypes")
    return APPS_MARK if isinstance(types, list) and APPS_TYPE in types else ""


def _is_client(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("name"), str) and isinstance(value.get("version"), str)
