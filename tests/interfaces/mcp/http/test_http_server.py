"""Where the HTTP server listens, its host names, and what it refuses to do beyond loopback."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from handrail.domain.errors import Forbidden, HandrailError, Invalid, Unavailable
from handrail.interfaces.mcp.http.app import McpPart
from handrail.interfaces.web.http_server import Endpoint, ServeOptions, serve
from handrail.interfaces.web.limits import HttpLimits
from handrail.interfaces.web.listen_address import ListenAddress, listen_on, resolve_address
from handrail.interfaces.web.site import Ready, SitePart
from interfaces.mcp.http.live_server import PATIENCE_S, Calls, always_ready

ASKED = 400
"""What MCP answers to a bare GET: this status means that the guard let it pass."""


@asynccontextmanager
async def open_server(endpoint: Endpoint, limits: HttpLimits) -> AsyncIterator[tuple[Sequence[SitePart], Ready]]:
    yield [McpPart(Calls().server(), guard=endpoint.guard, limits=limits)], always_ready


@asynccontextmanager
async def never(_: Endpoint, __: HttpLimits) -> AsyncIterator[tuple[Sequence[SitePart], Ready]]:
    raise AssertionError("nothing may be opened")
    yield


@asynccontextmanager
async def served(options: ServeOptions) -> AsyncIterator[Endpoint]:
    loop = asyncio.get_running_loop()
    stop, endpoint = loop.create_future(), loop.create_future()
    serving = asyncio.ensure_future(serve(options, open_server, stop=stop, on_ready=endpoint.set_result))
    await asyncio.wait({serving, endpoint}, timeout=PATIENCE_S, return_when=asyncio.FIRST_COMPLETED)
    try:
        yield endpoint.result()
    finally:
        stop.set_result(None)
        await asyncio.wait_for(serving, PATIENCE_S)


def has_ipv6() -> bool:
    try:
        listen_on(resolve_address("::1", 0)).close()
    except HandrailError:
        return False
    return True


NAMES: Any = [
    ("127.0.0.1", socket.AF_INET, "127.0.0.1", ("127.0.0.1", "localhost")),
    ("localhost", socket.AF_INET, "127.0.0.1", ("127.0.0.1", "localhost")),
    ("127.0.0.2", socket.AF_INET, "127.0.0.2", ("127.0.0.2",)),
    ("::1", socket.AF_INET6, "::1", ("[::1]", "localhost")),
    ("0.0.0.0", socket.AF_INET, "0.0.0.0", ("127.0.0.1", "localhost")),
    ("::", socket.AF_INET6, "::", ("[::1]", "localhost")),
    ("192.0.2.7", socket.AF_INET, "192.0.2.7", ("192.0.2.7",)),
    ("Rail.Example", socket.AF_INET, "192.0.2.7", ("192.0.2.7", "rail.example")),
    ("near.example", socket.AF_INET, "127.0.0.1", ("127.0.0.1", "localhost", "near.example")),
]


@pytest.mark.parametrize(("asked", "family", "address", "names"), NAMES)
def test_an_address_has_only_its_own_names(asked: str, family: Any, address: str, names: tuple[str, ...]) -> None:
    resolved = ListenAddress(asked=asked, family=family, address=address, port=7420)
    assert resolved.names == names
    assert resolved.is_loopback == (address.startswith("127.") or address == "::1")
    assert resolved.url == f"http://{names[0]}:7420"


@pytest.mark.parametrize(
    "host", ["no.such.host.invalid", "192.0.2.7", "300.1.1.1", "", "a b", "x" * 300, "\u00e9" * 70]
)
def test_what_is_not_an_address_of_this_machine_is_invalid(host: str) -> None:
    with pytest.raises(Invalid, match="not an address of this machine"):
        listen_on(resolve_address(host, 0)).close()


def test_a_port_in_use_is_reported_with_a_hint() -> None:
    with closing(listen_on(resolve_address("127.0.0.1", 0))) as first:
        with pytest.raises(Unavailable, match="is in use") as refused:
            listen_on(resolve_address("127.0.0.1", first.getsockname()[1]))
        assert "--port" in refused.value.hint


def test_answers_do_not_wait_for_more_to_send() -> None:
    with closing(listen_on(resolve_address("127.0.0.1", 0))) as listener:
        assert listener.proto == socket.IPPROTO_TCP  # what asyncio looks at before it switches the waiting off


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7"])
async def test_beyond_loopback_nothing_is_served_without_a_token(host: str, tmp_path: Path) -> None:
    options = ServeOptions(home=tmp_path, host=host, port=0, needs_token=False)
    stop = asyncio.get_running_loop().create_future()
    with pytest.raises(Forbidden, match="without a token"):
        await serve(options, never, stop=stop, on_ready=print)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["", "*", "*.example", "http://x", "a b", "x/y", "x:*", "x\n", "fd00::1", "[x]"])
async def test_patterns_and_urls_are_not_hosts(name: str, tmp_path: Path) -> None:
    stop = asyncio.get_running_loop().create_future()
    with pytest.raises(Invalid, match="is not a host name"):
        await serve(ServeOptions(home=tmp_path, port=0, allowed=[name]), never, stop=stop, on_ready=print)


async def test_beyond_loopback_a_token_is_asked_for_and_a_warning_given(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    options = ServeOptions(home=tmp_path, host="0.0.0.0", port=0, allowed=["rail.example"])
    async with served(options) as endpoint, httpx.AsyncClient(trust_env=False) as client:
        assert (await client.get(f"{endpoint.url}/mcp")).status_code == 401
        shown = {"authorization": f"Bearer {endpoint.guard.token}"}
        assert (await client.get(f"{endpoint.url}/mcp", headers=shown)).status_code == ASKED
        page = {"host": "rail.example", "origin": "https://rail.example", **shown}
        assert (await client.get(f"{endpoint.url}/mcp", headers=page)).status_code == ASKED
        assert (await client.get(f"{endpoint.url}/mcp", headers={"host": "other.example", **shown})).status_code == 421
    assert "nothing is encrypted" in caplog.text
    assert "--allow-host" not in caplog.text


async def test_on_loopback_the_token_may_be_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with served(ServeOptions(home=tmp_path, port=0, needs_token=False)) as endpoint:
        assert (endpoint.guard.token, endpoint.token_file) == (None, None)
        async with httpx.AsyncClient(trust_env=False) as client:
            assert (await client.get(f"{endpoint.url}/mcp")).status_code == ASKED
    assert not list(tmp_path.iterdir())
    assert not [record for record in caplog.records if record.levelname == "WARNING"]


@pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6")
async def test_ipv6_is_served_under_its_own_names(tmp_path: Path) -> None:
    async with (
        served(ServeOptions(home=tmp_path, host="::1", port=0)) as endpoint,
        httpx.AsyncClient(trust_env=False) as client,
    ):
        base = httpx.URL(endpoint.url)
        assert base.host == "::1"
        assert (await client.get(base.join("/livez"))).status_code == 200
        other = {"host": f"127.0.0.1:{base.port}"}
        assert (await client.get(base.join("/livez"), headers=other)).status_code == 421
