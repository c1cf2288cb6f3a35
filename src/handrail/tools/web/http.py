"""`http.request`: one call of an HTTP API, and what its status means for the step.

The address guard, redirects and connections are in http_client.py."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection, Mapping, Sequence
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

import msgspec

from handrail.domain.definition.effect import READING_METHODS
from handrail.domain.definition.model import Category, Effect
from handrail.engine.clock import system_clock
from handrail.engine.passed_in import Clock
from handrail.engine.tool import ToolCall, ToolFailed, ToolSpec
from handrail.tools.arguments import closed
from handrail.tools.configuration import NONE_WITHHELD, WithheldHosts
from handrail.tools.python.function_tool import FunctionTool
from handrail.tools.web.http_message import HttpRequest, HttpResponse

if TYPE_CHECKING:
    from handrail.tools.web.http_client import HttpClient

METHODS: Final = ("DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT")
OWN_HEADERS: Final = frozenset({"idempotency-key", "host", "content-length", "transfer-encoding", "connection"})
PORTS: Final = {"http": 80, "https": 443}
BODY_BYTES_MAX: Final = 1_000_000
EXCERPT_MAX: Final = 200
PAUSE_MS_MAX: Final = 86_400_000
CATEGORIES: Final = {
    401: Category.PERMISSION,
    403: Category.PERMISSION,
    404: Category.NOT_FOUND,
    408: Category.TIMEOUT,
    409: Category.CONFLICT,
    410: Category.NOT_FOUND,
    412: Category.CONFLICT,
    429: Category.RATE_LIMITED,
    504: Category.TIMEOUT,
}
PAUSING: Final = frozenset({429, 503})
SPEC: Final = ToolSpec(
    name="http.request",
    description="Call an HTTP API; fails unless the status is expected (2xx).",
    effect=Effect.COMPENSATABLE,
    args=closed(
        {
            "method": {"type": "string", "default": "GET"},
            "url": {"type": "string", "minLength": 1, "maxLength": 8_000},
            "headers": {"type": "object", "maxProperties": 100, "additionalProperties": {"type": "string"}},
            "json": {},
            "body": {"type": "string", "maxLength": BODY_BYTES_MAX},
            "expect": {
                "type": "array",
                "minItems": 1,
                "maxItems": 100,
                "items": {"type": "integer", "minimum": 100, "maximum": 599},
            },
        },
        required=["url"],
    ),
    output=closed(
        {"status": {"type": "integer"}, "headers": {"type": "object"}, "json": {}, "body": {"type": "string"}},
        required=["status", "headers"],
    ),
    timeout="30s",
)

_header_name = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,200}")
_header_value = re.compile(r"[\t\x20-\x7e]{0,8000}")
_not_in_urls = re.compile(r"[\x00-\x20\x7f\\]")


class HttpTools:
    """The tools of this family, with the connections that they share."""

    def __init__(
        self, allow: Collection[str], *, withheld: WithheldHosts = NONE_WITHHELD, clock: Clock = system_clock
    ) -> None:
        self._allow, self._withheld = tuple(allow), withheld
        self._clock = clock
        self._wires: WeakKeyDictionary[asyncio.AbstractEventLoop, HttpClient] = WeakKeyDictionary()

    def tools(self) -> list[FunctionTool]:
        """The tools of this family."""
        return [
            FunctionTool(spec=SPEC, do=self._request, effect_of=_effect, server_of=server_of, flaws_of=request_flaws)
        ]

    async def close(self) -> None:
        """Close the connections of this event loop."""
        wire = self._wires.pop(asyncio.get_running_loop(), None)
        if wire is not None:
            await wire.close()

    async def status(self, url: str, within_s: float) -> int:
        """The status of a GET of a URL, through the same address guard."""
        if flaws := request_flaws({"url": url}):
            raise ToolFailed(Category.INVALID_INPUT, "; ".join(flaws))
        ask = HttpRequest(method="GET", url=url, headers={})
        async with asyncio.timeout(within_s):
            answer = await self._wire().fetch(ask, wanted=frozenset(range(200, 300)))
        return answer.status

    async def _request(self, call: ToolCall) -> Any:
        wanted = frozenset(call.args.get("expect") or range(200, 300))
        answer = await self._wire().fetch(_ask(call), wanted=wanted)
        if answer.status not in wanted:
            raise self._failure(answer, call.args["url"])
        return {"status": answer.status, "headers": answer.headers, **_content(answer)}

    def _wire(self) -> HttpClient:
        """The HTTP client of the running event loop: connections can't be shared between loops."""
        loop = asyncio.get_running_loop()
        if loop not in self._wires:
            # Imported late: httpx takes 100 ms (measured), which plans without http should not pay.
            from handrail.tools.web.http_client import HttpClient

            self._wires[loop] = HttpClient(self._allow, self._withheld)
        return self._wires[loop]

    def _failure(self, answer: HttpResponse, url: str) -> ToolFailed:
        text = " ".join(_text(answer).split())[:EXCERPT_MAX]
        message = f"{answer.status} from {urlsplit(url).hostname}{': ' if text else ''}{text}"
        pause = retry_after_ms(answer.headers.get("retry-after", ""), self._clock())
        return ToolFailed(
            category_of(answer.status), message, retry_after_ms=pause if answer.status in PAUSING else None
        )


def _ask(call: ToolCall) -> HttpRequest:
    args = call.args
    headers = {name.lower(): value for name, value in args.get("headers", {}).items()}
    content = None
    if "json" in args:
        content = msgspec.json.encode(args["json"])
        headers.setdefault("content-type", "application/json")
    elif "body" in args:
        content = args["body"].encode()
        headers.setdefault("content-type", "text/plain; charset=utf-8")
    headers["idempotency-key"] = call.key
    headers = {**call.trace, **headers}  # what the author wrote counts
    return HttpRequest(
        method=_method(args), url=args["url"], headers=headers, content=content, stays=bool(call.references)
    )


def category_of(status: int) -> Category:
    """The failure category of a status that was not expected."""
    if status in CATEGORIES:
        return CATEGORIES[status]
    if status >= 500:
        return Category.TRANSIENT
    return Category.INVALID_INPUT if status >= 400 else Category.TOOL_ERROR


def retry_after_ms(value: str, now_ms: int) -> int | None:
    """How long the server asks to wait: seconds, or a date."""
    if value.isascii() and value.isdigit():
        return min(int(value[:9]) * 1_000, PAUSE_MS_MAX)
    try:
        until_ms = int(parsedate_to_datetime(value).timestamp() * 1_000)
    except (ValueError, OverflowError):
        return None
    return min(max(until_ms - now_ms, 0), PAUSE_MS_MAX)


def server_of(args: Mapping[str, Any]) -> str:
    """The host and port that a call connects to first."""
    try:
        parts = urlsplit(str(args.get("url", "")))
        port = parts.port or PORTS.get(parts.scheme)
    except ValueError:
        return ""
    return f"http:{parts.hostname}:{port}" if parts.hostname and port else ""


def request_flaws(args: Mapping[str, Any]) -> Sequence[str]:
    """Errors in a request that fits the schema."""
    flaws = [*url_flaws(args["url"]), *_header_flaws(args.get("headers", {}))]
    if _method(args) not in METHODS:
        flaws.append(f"`method` is not one of {', '.join(METHODS)}")
    if "json" in args and "body" in args:
        flaws.append("both `json` and `body` are given; leave one out")
    size = len(msgspec.json.encode(args.get("json"))) + len(args.get("body", "").encode())
    if size > BODY_BYTES_MAX:
        flaws.append(f"the request body is larger than {BODY_BYTES_MAX:,} bytes; send less")
    return flaws


def url_flaws(url: str) -> list[str]:
    """What is wrong with an address."""
    try:
        parts = urlsplit(url)
        port_is_bad = parts.port == 0
    except ValueError:
        return ["`url` can't be read; write it as https://host/path"]
    if parts.scheme not in PORTS or not parts.hostname:
        return ["`url` is not http or https; write it as https://host/path"]
    if "@" in parts.netloc:
        return ["`url` contains a user name or password; put credentials into the header Authorization"]
    if port_is_bad or _not_in_urls.search(url):
        return ["`url` contains spaces, control characters, a backslash or port 0; percent-encode them"]
    return []


def _header_flaws(headers: Mapping[str, str]) -> list[str]:
    flaws = []
    for name, value in headers.items():
        if not _header_name.fullmatch(name) or not _header_value.fullmatch(value):
            flaws.append(f"`headers.{name[:50]!r}` contains line breaks or characters that are not allowed in headers")
        elif name.lower() in OWN_HEADERS:
            flaws.append(f"`headers.{name}` is set by handrail itself; leave it out")
    return flaws


def _effect(args: Mapping[str, Any]) -> Effect:
    return Effect.NONE if _method(args) in READING_METHODS else SPEC.effect


def _method(args: Mapping[str, Any]) -> str:
    return str(args.get("method", "GET")).upper()


def _content(answer: HttpResponse) -> dict[str, Any]:
    kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
    if answer.content and (kind == "application/json" or kind.endswith("+json")):
        try:
            return {"json": msgspec.json.decode(answer.content)}
        except (msgspec.DecodeError, RecursionError, UnicodeError):
            return {"body": _text(answer)}  # declared as JSON but invalid: the step gets the raw text
    return {"body": _text(answer)}


def _text(answer: HttpResponse) -> str:
    try:
        return answer.content.decode(answer.charset, errors="replace")
    except LookupError:  # an unknown charset
        return answer.content.decode("utf-8", errors="replace")
