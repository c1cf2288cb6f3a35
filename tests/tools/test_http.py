"""http.request: what it sends, what it gives back, what statuses mean, and which addresses it never reaches."""

from __future__ import annotations

import asyncio
import gzip
import socket
import ssl
import subprocess
import sys
import zlib
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpcore
import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.domain.definition.model import Category, Effect
from handrail.engine.tool import ToolFailed
from handrail.tools.configuration import ToolConfiguration
from handrail.tools.web import http_client
from handrail.tools.web.http import category_of, request_flaws, retry_after_ms, server_of
from handrail.tools.web.http_client import checked_addresses, redirected
from handrail.tools.web.http_message import HttpRequest
from tools.calls import Fails, call_of, registry
from tools.loopback import Loopback, reply, serving

Request = Callable[..., Any]
FORBIDDEN_HOSTS = [
    "127.0.0.1",
    "127.1",
    "2130706433",
    "0x7f.0.0.1",
    "0177.0.0.1",
    "0.0.0.0",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.1.1",
    "169.254.169.254",
    "100.64.0.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "198.18.0.1",
    "192.0.2.1",
    "::1",
    "::",
    "fe80::1",
    "fd00:ec2::254",
    "fc00::1",
    "ff02::1",
    "::ffff:127.0.0.1",
    "::ffff:a9fe:a9fe",
    "::127.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b:1::a00:1",
    "2002:7f00:1::",
    "2001:db8::1",
    "localhost",
    "localhost.",
]


@asynccontextmanager
async def calling(folder: Path, allow: tuple[str, ...] = ("127.0.0.1",)) -> AsyncIterator[Request]:
    tools = registry(folder, configuration=ToolConfiguration(allow=allow))
    tool = tools.find("http.request")

    async def request(url: str, **args: Any) -> Any:
        return await tool.call(call_of("http.request", {"url": url, **args}))

    try:
        yield request
    finally:
        await tools.close()


async def test_a_get_carries_our_headers_and_gives_json_back(tmp_path: Path) -> None:
    answers: dict[str, Any] = {
        "/a?b=%20c": reply(200, b'{"ok": true}', Content_Type="application/problem+json; charset=utf-8", X="1")
    }
    async with serving(answers) as server, calling(tmp_path) as request:
        found = await request(server.url("/a?b=%20c"), headers={"X-Mine": "yes", "User-Agent": "other"})
    assert (found["status"], found["json"], found["headers"]["x"]) == (200, {"ok": True}, "1")
    (asked,) = server.asked
    assert asked.method == "GET"
    assert asked.headers["idempotency-key"] == "key-1"
    assert asked.headers["host"] == f"127.0.0.1:{server.port}"
    assert (asked.headers["x-mine"], asked.headers["user-agent"]) == ("yes", "other")


async def test_a_post_sends_json_or_text(tmp_path: Path) -> None:
    async with serving({"/": reply(201)}) as server, calling(tmp_path) as request:
        found = await request(server.url("/"), method="post", json={"a": [1, None]})
        await request(server.url("/"), method="PUT", body="é")
        await request(server.url("/"), method="PUT", body="<a/>", headers={"content-type": "text/xml"})
    assert (found["status"], found["body"]) == (201, "")
    first, second, third = server.asked
    assert (first.method, first.body, first.headers["content-type"]) == ("POST", b'{"a":[1,null]}', "application/json")
    assert (second.body.decode(), second.headers["content-type"]) == ("é", "text/plain; charset=utf-8")
    assert third.headers["content-type"] == "text/xml"
    assert first.headers["user-agent"].startswith("handrail/")


async def test_answers_are_text_in_whatever_charset_and_packing(tmp_path: Path) -> None:
    answers: dict[str, Any] = {
        "/latin": reply(200, "é".encode("latin-1"), Content_Type="text/plain; charset=iso-8859-1"),
        "/strange": reply(200, b"plain", Content_Type="text/plain; charset=klingon"),
        "/binary": reply(200, b"\xff\x00"),
        "/liar": reply(200, b"<html>", Content_Type="application/json"),
        "/packed": reply(200, gzip.compress(b"packed"), Content_Encoding="gzip"),
        "/torn": reply(200, b"not packed", Content_Encoding="gzip"),
    }
    async with serving(answers) as server, calling(tmp_path) as request:
        bodies = [(await request(server.url(path)))["body"] for path in [*answers][:-1]]
        with Fails(Category.TOOL_ERROR, "decoded"):
            await request(server.url("/torn"))
    assert bodies == ["é", "plain", "\ufffd\x00", "<html>", "packed"]


@pytest.mark.parametrize(
    ("status", "category"),
    [
        (400, "invalid_input"),
        (401, "permission"),
        (403, "permission"),
        (404, "not_found"),
        (408, "timeout"),
        (409, "conflict"),
        (410, "not_found"),
        (412, "conflict"),
        (418, "invalid_input"),
        (422, "invalid_input"),
        (429, "rate_limited"),
        (500, "transient"),
        (502, "transient"),
        (503, "transient"),
        (504, "timeout"),
        (300, "tool_error"),
    ],
)
async def test_a_status_has_its_category(status: int, category: str, tmp_path: Path) -> None:
    answers = {"/": reply(status, b"why\n  not", Retry_After="7")}
    async with serving(dict(answers)) as server, calling(tmp_path) as request:
        with Fails(Category(category), f"{status} from 127.0.0.1: why not") as fails:
            await request(server.url("/"))
        assert fails.failed.retry_after_ms == (7_000 if status in {429, 503} else None)
        assert (await request(server.url("/"), expect=[status]))["status"] == status


async def test_a_status_that_was_not_expected_fails_even_if_it_is_a_good_one(tmp_path: Path) -> None:
    async with serving({"/": reply(200)}) as server, calling(tmp_path) as request:
        with Fails(Category.TOOL_ERROR, "200 from"):
            await request(server.url("/"), expect=[201, 404])


def test_retry_after_is_read_as_seconds_and_as_a_date() -> None:
    assert retry_after_ms("120", 0) == 120_000
    assert retry_after_ms("999999999999999999", 0) == 86_400_000
    assert retry_after_ms("Thu, 01 Jan 1970 00:01:00 GMT", 10_000) == 50_000
    assert retry_after_ms("Thu, 01 Jan 1970 00:00:01 GMT", 10_000) == 0
    assert [retry_after_ms(word, 0) for word in ("", "soon", "-5", "1.5", "²")] == [None] * 5


@pytest.mark.parametrize("host", FORBIDDEN_HOSTS)
async def test_an_address_that_is_not_public_is_refused(host: str, tmp_path: Path) -> None:
    spelled = f"[{host}]" if ":" in host else host
    async with calling(tmp_path, allow=()) as request:
        with pytest.raises(ToolFailed) as failed:
            await request(f"http://{spelled}:9/")
    # Some spellings are read by nobody, or by few systems' resolvers; none may get as far as a connection.
    assert "can't be reached" not in failed.value.message
    assert failed.value.category is not Category.TIMEOUT


@pytest.mark.parametrize(
    ("allow", "host", "is_reached"),
    [
        (("127.0.0.1",), "127.0.0.1", True),
        (("127.0.0.1",), "127.1", True),  # the address is what was allowed, however it is spelled
        (("127.0.0.1:{port}",), "127.0.0.1", True),
        (("127.0.0.1:1",), "127.0.0.1", False),
        (("127.0.0.2",), "127.0.0.1", False),
        (("LOCALHOST".lower(),), "LocalHost", True),
        (("localhost:{port}",), "localhost", True),
        (("localhost",), "127.0.0.1", False),
        (("::1", "[::1]:80"), "127.0.0.1", False),
        ((), "127.0.0.1", False),
    ],
)
async def test_what_a_person_allowed_is_reached_and_nothing_else(
    allow: tuple[str, ...], host: str, is_reached: bool, tmp_path: Path
) -> None:
    async with serving({"/": reply(200, b"here")}) as server:
        entries = tuple(entry.format(port=server.port) for entry in allow)
        async with calling(tmp_path, allow=entries) as request:
            if is_reached:
                assert (await request(server.url("/", host)))["body"] == "here"
            else:
                with Fails(Category.PERMISSION, "only a person can allow it"):
                    await request(server.url("/", host))
    assert len(server.asked) == int(is_reached)


class Names:
    """Looks names up in a table that changes with every look, as a hostile name server's does."""

    def __init__(self, *answers: list[str]) -> None:
        self.answers = list(answers)
        self.asked = 0

    async def getaddrinfo(self, *_: Any, **__: Any) -> list[tuple[Any, ...]]:
        self.asked += 1
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 0)) for address in answer]


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Names]:
    def use(*answers: list[str]) -> Names:
        made = Names(*answers)
        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", made.getaddrinfo, raising=False)
        return made

    return use


async def test_a_name_with_one_private_address_is_refused(names: Callable[..., Names]) -> None:
    names(["93.184.216.34", "10.0.0.1"])
    with Fails(Category.PERMISSION, "10.0.0.1"):
        await checked_addresses("rebinding.example", 80, ())
    names(["10.0.0.1"])
    assert await checked_addresses("ci.internal", 80, ["ci.internal:80"]) == ["10.0.0.1"]


async def test_the_address_that_was_checked_is_the_one_that_is_connected_to(
    names: Callable[..., Names], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A name server that says a public address first and a private one next gets nowhere: it is asked once."""
    table = names(["93.184.216.34"], ["127.0.0.1"])
    reached = []

    async def connect(_: Any, host: str, *__: Any) -> Any:
        reached.append(host)
        raise httpcore.ConnectError("enough")

    monkeypatch.setattr(httpcore.AnyIOBackend, "connect_tcp", connect)
    async with calling(tmp_path, allow=()) as request:
        with Fails(Category.TRANSIENT, "can't be reached"):
            await request("https://rebinding.example/")
        assert (reached, table.asked) == (["93.184.216.34"], 1)
        with Fails(Category.PERMISSION):
            await request("https://rebinding.example/")
        assert reached == ["93.184.216.34"]


async def test_a_name_without_an_address_is_a_transient_failure(names: Callable[..., Names], tmp_path: Path) -> None:
    names([])
    async with calling(tmp_path) as request:
        with Fails(Category.TRANSIENT, "has no address"):
            await request("http://nowhere.example/")


async def test_names_that_can_not_be_looked_up_fail_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    for error, category in ((socket.gaierror(-2, "unknown"), "transient"), (UnicodeError("label"), "invalid_input")):

        async def fails(*_: Any, error: Exception = error, **__: Any) -> Any:
            raise error

        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", fails, raising=False)
        with Fails(Category(category)):
            await checked_addresses("a..b", 80, ())


async def test_redirects_are_followed_and_the_method_changes_as_everybody_expects(tmp_path: Path) -> None:
    answers: dict[str, Any] = {f"/{code}": reply(code, Location="/end") for code in (301, 302, 303, 307, 308)}
    answers["/end"] = reply(200, b"end")
    async with serving(answers) as server, calling(tmp_path) as request:
        for code in (301, 302, 303, 307, 308):
            found = await request(server.url(f"/{code}"), method="POST", json=1, headers={"Authorization": "Bearer x"})
            assert found["body"] == "end"
        await request(server.url("/301"), method="DELETE")
        await request(server.url("/303"), method="HEAD", expect=[200])
    ends = [asked for asked in server.asked if asked.path == "/end"]
    assert [asked.method for asked in ends] == ["GET", "GET", "GET", "POST", "POST", "DELETE", "HEAD"]
    assert [asked.body for asked in ends][:5] == [b"", b"", b"", b"1", b"1"]
    assert {asked.headers.get("authorization") for asked in ends[:5]} == {"Bearer x"}  # the same origin
    assert {asked.headers["idempotency-key"] for asked in ends} == {"key-1"}


async def test_a_redirect_is_checked_like_any_address(tmp_path: Path) -> None:
    astray = reply(302, Location="http://169.254.169.254/latest/meta-data")
    async with serving({"/": astray}) as server, calling(tmp_path) as request:
        with Fails(Category.PERMISSION, "169.254.169.254"):
            await request(server.url("/"))
        assert (await request(server.url("/"), expect=[302]))["status"] == 302  # wanted: not followed


async def test_credentials_do_not_follow_to_another_origin(tmp_path: Path) -> None:
    secrets = {"Authorization": "Bearer x", "Cookie": "a=b", "X-Api-Key": "k", "Accept": "text/plain"}
    async with serving({"/end": reply(200)}) as other, serving({}) as server, calling(tmp_path) as request:
        server.answers["/"] = reply(307, Location=other.url("/end"))
        await request(server.url("/"), method="POST", body="x", headers=secrets)
    (asked,) = other.asked
    assert not {"authorization", "cookie", "x-api-key"} & set(asked.headers)
    assert (asked.headers["accept"], asked.body) == ("text/plain", b"x")


@pytest.mark.parametrize(
    ("location", "category"),
    [
        ("http://example.com/", "permission"),  # from https down to http
        ("file:///etc/passwd", "permission"),
        ("ftp://example.com/", "permission"),
        ("https://user:secret@example.com/", "permission"),
        ("https://exa mple.com:port/", "tool_error"),
    ],
)
def test_redirects_that_lead_astray_are_not_followed(location: str, category: str) -> None:
    with Fails(Category(category)):
        redirected(HttpRequest(method="GET", url="https://example.com/", headers={}), location, 302)


def test_a_request_with_secrets_in_it_is_not_taken_to_another_origin() -> None:
    ask = HttpRequest(method="POST", url="https://example.com/a", headers={}, content=b"secret", stays=True)
    assert redirected(ask, "/b", 307).url == "https://example.com/b"
    for elsewhere in ("https://other.example/", "https://example.com:444/b"):
        with Fails(Category.PERMISSION, "not sent to another origin"):
            redirected(ask, elsewhere, 307)


async def test_redirects_without_end_are_cut_off(tmp_path: Path) -> None:
    async with serving({"/": reply(302, Location="/")}) as server, calling(tmp_path) as request:
        with Fails(Category.TOOL_ERROR, "more than 5"):
            await request(server.url("/"))
        assert len(server.asked) == 6


async def test_an_answer_without_end_is_cut_off(tmp_path: Path) -> None:
    fits, beyond = reply(200, b"x" * 1_000_000), reply(200, b"x" * 1_000_001)
    bomb = reply(200, gzip.compress(b"x" * 5_000_000), Content_Encoding="gzip")
    async with serving({"/fits": fits, "/beyond": beyond, "/bomb": bomb}) as server, calling(tmp_path) as request:
        assert len((await request(server.url("/fits")))["body"]) == 1_000_000
        for path in ("/beyond", "/bomb"):
            with Fails(Category.TOOL_ERROR, "larger than"):
                await request(server.url(path))
        assert (await request(server.url("/fits")))["status"] == 200


async def test_encodings_on_top_of_each_other_and_unknown_ones_are_refused_with_words(tmp_path: Path) -> None:
    stacked = reply(200, gzip.compress(gzip.compress(b"x")), Content_Encoding="gzip, gzip")
    answers: dict[str, Any] = {
        "/stacked": stacked,
        "/brotli": reply(200, b"x", Content_Encoding="br"),
        "/plain": reply(200, b"plain", Content_Encoding="identity"),
        "/empty": reply(204, Content_Encoding="gzip, gzip"),
        "/deflate": reply(200, zlib.compress(b"packed"), Content_Encoding="deflate"),
    }
    async with serving(answers) as server, calling(tmp_path) as request:
        with Fails(Category.TOOL_ERROR, "is encoded 2 times (gzip, gzip): that is refused"):
            await request(server.url("/stacked"))
        with Fails(Category.TOOL_ERROR, "is encoded as 'br', which is not known here"):
            await request(server.url("/brotli"))
        assert (await request(server.url("/plain")))["body"] == "plain"
        assert (await request(server.url("/deflate")))["body"] == "packed"
        assert (await request(server.url("/empty")))["status"] == 204
    assert {asked.headers["accept-encoding"] for asked in server.asked} == {"identity"}


async def test_connections_are_used_again_and_cookies_are_not_kept(tmp_path: Path) -> None:
    answers: dict[str, Any] = {"/": reply(200, Set_Cookie="session=1")}
    async with serving(answers) as server, calling(tmp_path) as request:
        for _ in range(3):
            await request(server.url("/"))
    assert server.connections == 1
    assert not any("cookie" in asked.headers for asked in server.asked)


async def test_proxies_of_the_environment_are_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    async with serving({"/": reply(200)}) as server, calling(tmp_path) as request:
        await request(server.url("/"))


async def test_a_server_that_is_not_there_or_hangs_up_is_a_transient_failure(tmp_path: Path) -> None:
    async with serving({"/": b"garbage\r\n\r\n"}) as server, calling(tmp_path) as request:
        with Fails(Category.TRANSIENT, "can't be reached"):
            await request(server.url("/"))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        async with calling(tmp_path) as request:
            with Fails(Category.TRANSIENT, "can't be reached"):
                await request(f"http://127.0.0.1:{taken.getsockname()[1]}/")


async def test_a_server_that_never_answers_runs_into_a_time_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving({"/": b""}) as server, calling(tmp_path) as request:
        monkeypatch.setitem(http_client.TIMES, "read", 0.01)
        with Fails(Category.TIMEOUT, "in time"):
            await request(server.url("/"))
        monkeypatch.setitem(http_client.TIMES, "read", 300.0)
        monkeypatch.setattr(http_client, "OVERALL_S", 0.01)
        with Fails(Category.TIMEOUT, "no complete response"):
            await request(server.url("/"))


async def test_a_certificate_that_is_not_trusted_is_refused(tmp_path: Path) -> None:
    key, certificate = self_signed(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server = await asyncio.start_server(Loopback({}).talk, "127.0.0.1", 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    async with calling(tmp_path) as request:
        with Fails(Category.PERMISSION, "certificate"):
            await request(f"https://127.0.0.1:{port}/")
    server.close()


async def test_a_trusted_server_is_met_by_its_name_though_its_address_was_looked_up_by_us(
    tmp_path: Path, names: Callable[..., Names], monkeypatch: pytest.MonkeyPatch
) -> None:
    key, certificate = self_signed(tmp_path)
    met: list[str] = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    context.sni_callback = lambda _, name, __: met.append(str(name))
    loopback = Loopback({"/": reply(200, b"safe")})
    server = await asyncio.start_server(loopback.talk, "127.0.0.1", 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    monkeypatch.setattr(http_client, "trusted", lambda: ssl.create_default_context(cafile=certificate))
    names(["127.0.0.1"])
    async with calling(tmp_path, allow=("api.example",)) as request:
        assert (await request(f"https://api.example:{port}/"))["body"] == "safe"
    assert met == ["api.example"]
    assert loopback.asked[0].headers["host"] == f"api.example:{port}"
    server.close()


def self_signed(folder: Path) -> tuple[Path, Path]:
    from datetime import UTC, datetime, timedelta

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "api.example")])
    now = datetime.now(UTC)
    built = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    built = built.not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
    built = built.add_extension(x509.SubjectAlternativeName([x509.DNSName("api.example")]), critical=False)
    certificate = built.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True).sign(
        key, hashes.SHA256()
    )
    encoding = serialization.Encoding.PEM
    plain = serialization.NoEncryption()
    (folder / "key.pem").write_bytes(key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, plain))
    (folder / "certificate.pem").write_bytes(certificate.public_bytes(encoding))
    return folder / "key.pem", folder / "certificate.pem"


@pytest.mark.parametrize(
    "args",
    [
        {"url": "ftp://example.com/"},
        {"url": "file:///etc/passwd"},
        {"url": "gopher://example.com:70/_"},
        {"url": "example.com"},
        {"url": "//example.com/"},
        {"url": "http://"},
        {"url": "http://exa mple.com/"},
        {"url": "http://example.com/a\r\nX: y"},
        {"url": "http://example.com\\@127.0.0.1/"},
        {"url": "http://user:secret@example.com/"},
        {"url": "http://example.com:0/"},
        {"url": "http://example.com:99999/"},
        {"url": "http://[::1/"},
        {"url": "http://example.com/", "method": "TRACE"},
        {"url": "http://example.com/", "method": "GET\r\nX"},
        {"url": "http://example.com/", "json": 1, "body": "x"},
        {"url": "http://example.com/", "json": "x" * 1_000_001},
        {"url": "http://example.com/", "headers": {"X": "a\r\nY: b"}},
        {"url": "http://example.com/", "headers": {"X\r\nY": "a"}},
        {"url": "http://example.com/", "headers": {"X": "é"}},
        {"url": "http://example.com/", "headers": {"idempotency-KEY": "mine"}},
        {"url": "http://example.com/", "headers": {"Host": "internal"}},
        {"url": "http://example.com/", "headers": {"X": 1}},
        {"url": "http://example.com/", "expect": []},
        {"url": "http://example.com/", "expect": [42]},
        {"url": "http://example.com/", "proxy": "x"},
        {"url": "http://xn--\u0300/"},
        {},
    ],
)
async def test_a_request_that_could_mean_harm_is_refused_before_it_is_sent(
    args: dict[str, Any], tmp_path: Path
) -> None:
    tool = registry(tmp_path).find("http.request")
    with Fails(Category.INVALID_INPUT):
        await tool.call(call_of("http.request", args))


def test_reading_has_no_effect_and_anything_else_may_be_compensated(tmp_path: Path) -> None:
    tool = registry(tmp_path).find("http.request")
    assert [tool.effect({"url": "x", "method": method}) for method in ("GET", "head", "POST", "DELETE")] == [
        Effect.NONE,
        Effect.NONE,
        Effect.COMPENSATABLE,
        Effect.COMPENSATABLE,
    ]
    assert tool.effect({"url": "x"}) is Effect.NONE


@pytest.mark.parametrize(
    ("url", "server"),
    [
        ("https://API.example.com/x", "http:api.example.com:443"),
        ("http://example.com", "http:example.com:80"),
        ("http://example.com:8080/", "http:example.com:8080"),
        ("http://[::1]:8080/", "http:::1:8080"),
        ("http://[::1", ""),
        ("nonsense", ""),
    ],
)
def test_a_breaker_knows_its_server_by_host_and_port(url: str, server: str, tmp_path: Path) -> None:
    assert server_of({"url": url}) == server
    assert registry(tmp_path).find("http.request").server({"url": url}) == server


async def test_each_event_loop_has_connections_of_its_own(tmp_path: Path) -> None:
    tools = registry(tmp_path, configuration=ToolConfiguration(allow=("127.0.0.1",)))

    def elsewhere() -> int:
        async def once() -> int:
            async with serving({"/": reply(200)}) as server:
                found = await tools.find("http.request").call(call_of("http.request", {"url": server.url("/")}))
                await tools.close()
                await tools.close()
                return int(found["status"])

        return asyncio.run(once())

    statuses = await asyncio.gather(asyncio.to_thread(elsewhere), asyncio.to_thread(elsewhere))
    assert list(statuses) == [200, 200]


def test_httpx_is_not_imported_until_a_request_is_made() -> None:
    code = "import sys, handrail.tools.registry; print({'httpx', 'importlib.metadata'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


@given(st.integers(min_value=300, max_value=599))
def test_every_status_has_a_category(status: int) -> None:
    assert category_of(status) in Category


@given(st.text(max_size=60), st.dictionaries(st.text(max_size=10), st.text(max_size=10), max_size=3))
def test_whatever_stands_in_a_request_is_judged_without_a_crash(url: str, headers: Mapping[str, str]) -> None:
    assert all(isinstance(flaw, str) for flaw in request_flaws({"url": url, "headers": headers}))
