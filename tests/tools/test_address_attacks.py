"""The address guard against URLs that want to reach this machine or its neighbours: none gets as far as a connection.

One list. A real server listens on loopback, over IPv4 and IPv6, and every connection that is asked of the network is
written down before it is made: neither may see anything but addresses that are public."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import httpcore
import pytest

from handrail.engine.tool import ToolFailed
from handrail.tools.configuration import ToolConfiguration
from tools.calls import call_of, registry
from tools.loopback import Loopback, reply

PUBLIC = "93.184.216.34"
HOSTS = {
    "plain": "127.0.0.1",
    "another one of loopback": "127.8.9.10",
    "short": "127.1",
    "shorter": "127.0.1",
    "decimal": "2130706433",
    "hexadecimal": "0x7f000001",
    "hexadecimal in parts": "0x7f.0x0.0x0.0x1",
    "hexadecimal in capitals": "0X7F.0.0.1",
    "octal": "0177.0.0.1",
    "octal with more noughts": "00000177.0.0.01",
    "octal at a stretch": "017700000001",
    "mixed": "0x7f.0.1",
    "beyond its bytes": "127.0.0.257",
    "a last dot": "127.0.0.1.",
    "nought": "0.0.0.0",
    "nought alone": "0",
    "letters in circles": "\u2460\u2461\u2466.\u24ea.\u24ea.\u2460",
    "wide digits": "\uff11\uff12\uff17.\uff10.\uff10.\uff11",
    "a wide dot": "127\u30020\u30020\u30021",
    "a raised digit": "127.0.0.\u00b9",
    "encoded dots": "127%2e0%2e0%2e1",
    "encoded digits": "%31%32%37.0.0.1",
    "a name": "localhost",
    "a name with a dot": "localhost.",
    "a name in capitals": "LOCALHOST",
    "a name in wide letters": "\uff4cocalhost",
    "a name below it": "anything.localhost",
    "six": "[::1]",
    "six at length": "[0000:0000:0000:0000:0000:0000:0000:0001]",
    "six nought": "[::]",
    "mapped": "[::ffff:127.0.0.1]",
    "mapped in hexadecimal": "[::ffff:7f00:1]",
    "mapped at length": "[0:0:0:0:0:ffff:7f00:0001]",
    "translated in the old way": "[::ffff:0:127.0.0.1]",
    "compatible": "[::127.0.0.1]",
    "six to four": "[2002:7f00:1::1]",
    "nat64": "[64:ff9b::7f00:1]",
    "nat64 of a network": "[64:ff9b:1::7f00:1]",
    "teredo": "[2001:0:7f00:1::]",
    "teredo turned over": "[2001:0:4136:e378:8000:63bf:80ff:fffe]",
    "a zone": "[fe80::1%25lo]",
    "a zone without its code": "[fe80::1%lo]",
    "a zone on loopback": "[::1%25lo]",
    "site": "[fec0::1]",
    "own six": "[fd00::1]",
    "metadata": "169.254.169.254",
    "metadata in decimal": "2852039166",
    "metadata mapped": "[::ffff:169.254.169.254]",
    "metadata in six": "[fd00:ec2::254]",
    "metadata of others": "100.100.100.200",
    "ten": "10.0.0.1",
    "one seven two": "172.16.0.1",
    "one nine two": "192.168.0.1",
    "carriers": "100.64.0.1",
    "everybody": "255.255.255.255",
    "many": "224.0.0.1",
    "many in six": "[ff02::1]",
    "tests": "198.18.0.1",
}
URLS = {
    "a person before it": "http://example.com@127.0.0.1:{port}/",
    "a person with a word": "http://example.com:80@127.0.0.1:{port}/",
    "a backslash": "http://example.com\\@127.0.0.1:{port}/",
    "a backslash after it": "http://127.0.0.1:{port}\\@example.com/",
    "a hash": "http://127.0.0.1:{port}#@example.com/",
    "a question": "http://127.0.0.1:{port}?@example.com/",
    "a line end": "http://example.com/\r\nHost: 127.0.0.1:{port}",
    "a line end in the host": "http://127.0.0.1\r\n:{port}/",
    "a tab in the host": "http://127.0\t.0.1:{port}/",
    "a space": "http://127.0.0.1 :{port}/",
    "a space before": " http://127.0.0.1:{port}/",
    "many slashes": "http:////127.0.0.1:{port}/",
    "one slash": "http:/127.0.0.1:{port}/",
    "no slash": "http:127.0.0.1:{port}/",
    "no scheme": "//127.0.0.1:{port}/",
    "capitals": "HTTP://127.0.0.1:{port}/",
    "file": "file:///etc/passwd",
    "ftp": "ftp://127.0.0.1:{port}/",
    "gopher": "gopher://127.0.0.1:{port}/_GET",
    "dict": "dict://127.0.0.1:{port}/",
    "unix": "http+unix://%2Frun%2Fdocker.sock/",
    "a web socket": "ws://127.0.0.1:{port}/",
    "data": "data:text/plain,x",
    "brackets around four": "http://[127.0.0.1]:{port}/",
    "an open bracket": "http://[::1:{port}/",
    "nothing": "http://:{port}/",
    "a port beyond": "http://127.0.0.1:{beyond}/",
    "a port with a sign": "http://127.0.0.1:+{port}/",
    "NUL": "http://127.0.0.1\0.example.com:{port}/",
    "a soft hyphen": "http://127.0.0\u00ad.1:{port}/",
    "nothing of width": "http://127.0.0.1\u200b:{port}/",
}
LOCATIONS = (
    "http://127.0.0.1:{port}/",
    "//127.0.0.1:{port}/",
    "http://[::1]:{port}/",
    "http://localhost:{port}/",
    "http://2130706433:{port}/",
    "http://[::ffff:127.0.0.1]:{port}/",
    "http://x@127.0.0.1:{port}/",
    "http:\\\\127.0.0.1:{port}/",
    "\\\\127.0.0.1:{port}/",
    "/\\127.0.0.1:{port}/",
    "file:///etc/passwd",
    "gopher://127.0.0.1:{port}/",
)


@dataclass
class Wire:
    """A network that lets only loopback through, and writes down who was asked for; `leads` sends a public address to
    a server of ours."""

    asked: list[str] = field(default_factory=list)
    leads: dict[str, tuple[str, int]] = field(default_factory=dict)


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Wire:
    found = Wire()
    connect = httpcore.AnyIOBackend.connect_tcp

    async def watched(self: Any, host: str, port: int, *rest: Any) -> Any:
        found.asked.append(host)
        if host in found.leads:
            return await connect(self, *found.leads[host], *rest)
        if not ip_address(host).is_loopback:
            raise httpcore.ConnectError("nobody is there")
        return await connect(self, host, port, *rest)

    monkeypatch.setattr(httpcore.AnyIOBackend, "connect_tcp", watched)
    return found


@asynccontextmanager
async def listening() -> AsyncIterator[Loopback]:
    """A server at the same port of both loopbacks."""
    met = Loopback({"/": reply(200, b"reached")})
    four = await asyncio.start_server(met.talk, "127.0.0.1", 0)
    met.port = four.sockets[0].getsockname()[1]
    servers = [four]
    if socket.has_ipv6:
        servers.append(await asyncio.start_server(met.talk, "::1", met.port))
    try:
        yield met
    finally:
        for server in servers:
            server.close()


async def asked_for(folder: Path, url: str, *, allow: tuple[str, ...] = ()) -> str:
    tools = registry(folder, configuration=ToolConfiguration(allow=allow))
    try:
        found = await tools.find("http.request").call(call_of("http.request", {"url": url}))
    except ToolFailed as error:
        return error.message
    finally:
        await tools.close()
    return f"answered: {found}"


def test_there_are_at_least_sixty_urls() -> None:
    assert len(HOSTS) + len(URLS) + len(LOCATIONS) >= 60


async def test_the_server_is_there_to_be_reached(wire: Wire, tmp_path: Path) -> None:
    async with listening() as met:
        for host in ("127.0.0.1", "[::1]"):
            said = await asked_for(tmp_path, met.url("/", host), allow=("127.0.0.1", "::1"))
            assert "reached" in said
    assert (met.connections, wire.asked) == (2, ["127.0.0.1", "::1"])


@pytest.mark.parametrize("name", [*HOSTS, *URLS])
async def test_no_url_reaches_what_is_not_public(name: str, wire: Wire, tmp_path: Path) -> None:
    async with listening() as met:
        url = URLS.get(name, f"http://{HOSTS.get(name)}:{{port}}/").format(port=met.port, beyond=met.port + 65_536)
        said = await asked_for(tmp_path, url)
    assert (met.connections, wire.asked) == (0, [])
    assert not said.startswith("answered")


@pytest.mark.parametrize("status", [301, 307])
@pytest.mark.parametrize("location", LOCATIONS)
async def test_no_redirect_reaches_what_is_not_public(
    location: str, status: int, wire: Wire, names: Callable[..., Any], tmp_path: Path
) -> None:
    guide = Loopback({})
    server = await asyncio.start_server(guide.talk, "127.0.0.1", 0)
    wire.leads[PUBLIC] = server.sockets[0].getsockname()[:2]
    names({"guide.example": [[PUBLIC]] * 9})
    async with listening() as met:
        guide.answers["/"] = reply(status, Location=location.format(port=met.port))
        said = await asked_for(tmp_path, "http://guide.example/")
    server.close()
    assert len(guide.asked) >= 1
    assert (met.connections, set(wire.asked)) == (0, {PUBLIC})
    assert not said.startswith("answered")


@pytest.mark.parametrize(
    "answers",
    [
        [["127.0.0.1"]],
        [[PUBLIC, "127.0.0.1"]],
        [["127.0.0.1", PUBLIC]],
        [[PUBLIC], ["127.0.0.1"]],
        [["::ffff:127.0.0.1"]],
        [["fe80::1%lo"]],
        [["0.0.0.0"]],
    ],
)
async def test_no_name_that_changes_its_mind_leads_here(
    answers: list[list[str]], wire: Wire, names: Callable[..., Any], tmp_path: Path
) -> None:
    names({"rebinding.example": answers})
    async with listening() as met:
        for _ in range(2):
            await asked_for(tmp_path, f"http://rebinding.example:{met.port}/")
    assert met.connections == 0
    assert set(wire.asked) <= {PUBLIC}


@pytest.fixture
async def names(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """A name server of ours: each name has a list of answers, the last of which is repeated."""
    table: dict[str, list[list[str]]] = {}
    real = asyncio.get_running_loop().getaddrinfo

    async def look_up(host: Any, port: Any, **options: Any) -> Any:
        answers = table.get(host if isinstance(host, str) else host.decode())
        if answers is None:
            return await real(host, port, **options)
        addresses = answers.pop(0) if len(answers) > 1 else answers[0]
        return [(0, 0, 0, "", (address, port)) for address in addresses]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", look_up, raising=False)
    return table.update
