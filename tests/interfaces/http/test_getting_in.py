"""Getting in: the one-time link, the session, the key; and what other sites, other ports and strangers get."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from handrail.interfaces.http.edge.sign_in import SESSION_S, TICKET_S, TICKETS_MAX, SignIn
from handrail.interfaces.http.edge.static_files import policy_of, read_static_files
from interfaces.http.live_console import PATIENCE_S, LiveConsole, serving
from interfaces.shell import Shell, until

posix = pytest.mark.skipif(os.name != "posix", reason="file modes as POSIX knows them")
PAUSE = {"reason": "wait"}


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveConsole]:
    with serving(tmp_path_factory.mktemp("getting-in")) as live:
        yield live


# --- the link -----------------------------------------------------------------------------------------


def test_a_link_opens_one_session_once(console: LiveConsole) -> None:
    link = console.ticket()
    with console.nobody() as first, console.nobody() as second:
        answer = first.get(link)
        assert answer.status_code == 303
        cookie = answer.headers["set-cookie"]
        assert {"HttpOnly", "SameSite=strict", "Path=/"} <= {part.strip() for part in cookie.split(";")}
        assert "Domain" not in cookie
        assert first.get("/api/v1/session").json()["channel"] == "console"
        again = second.get(link)
        assert (again.status_code, "set-cookie" in again.headers) == (401, False)
        assert second.get("/api/v1/session").status_code == 401


def test_a_preview_of_the_link_does_not_use_it_up(console: LiveConsole) -> None:
    link = console.ticket()
    with console.nobody() as previewer, console.nobody() as person:
        seen = previewer.head(link)
        assert (seen.status_code, "set-cookie" in seen.headers) == (200, False)
        assert person.get(link).status_code == 303


def test_the_page_key_is_behind_the_hash_and_in_no_log(console: LiveConsole) -> None:
    with console.browser() as browser:
        key = browser.headers["x-handrail-key"]
        cookie = browser.cookies[f"handrail_{console.port}"]
    logs = "".join(one.read_text(encoding="utf-8") for one in (console.shell.home / "logs").iterdir())
    kept = (console.shell.home / "console-sessions.json").read_text(encoding="utf-8")
    assert key not in logs + kept
    assert cookie not in logs + kept


@posix
def test_keys_and_sessions_are_private(console: LiveConsole) -> None:
    with console.browser():
        for name in ("console-key", "console-sessions.json", "server.json"):
            assert (console.shell.home / name).stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("to", ["https://evil.example/", "//evil.example", "/\\evil", "javascript:alert(1)"])
def test_a_link_never_leads_to_another_site(console: LiveConsole, to: str) -> None:
    with console.nobody() as client:
        link = httpx.URL(console.ticket()).copy_add_param("to", to)
        assert client.get(link).headers["location"].startswith("/?project=prj_")
        good = client.get(httpx.URL(console.ticket()).copy_add_param("to", "/runs/run_x"))
        assert good.headers["location"].startswith("/runs/run_x#key=")


def test_tickets_and_sessions_end(tmp_path: Path) -> None:
    now = [1_000_000.0]
    sign_in = SignIn(tmp_path, now_s=lambda: now[0])
    late = sign_in.new_ticket()
    now[0] += TICKET_S
    assert sign_in.redeem(late) is None
    assert sign_in.redeem("") is None
    new = sign_in.redeem(sign_in.new_ticket())
    assert new is not None
    session = SignIn(tmp_path, now_s=lambda: now[0]).session(new.cookie)  # as after a restart
    assert session is not None
    assert sign_in.has_key(session, new.key)
    assert not sign_in.has_key(session, new.cookie)
    now[0] += SESSION_S
    assert sign_in.session(new.cookie) is None


def test_old_tickets_give_way_to_new_ones(tmp_path: Path) -> None:
    sign_in = SignIn(tmp_path, now_s=lambda: 1_000_000.0)
    tickets = [sign_in.new_ticket() for _ in range(TICKETS_MAX + 1)]
    assert sign_in.redeem(tickets[0]) is None
    assert sign_in.redeem(tickets[1]) is not None


def test_a_broken_session_file_signs_everybody_out(tmp_path: Path) -> None:
    (tmp_path / "console-sessions.json").write_text("{", encoding="utf-8")
    assert SignIn(tmp_path, now_s=lambda: 0.0).session("x") is None


# --- the session --------------------------------------------------------------------------------------


def test_a_browser_acts_as_the_person_of_this_machine(console: LiveConsole) -> None:
    run = console.started()
    with console.browser() as browser:
        assert browser.post(f"/api/v1/runs/{run}/pause", json=PAUSE).json()["status"] == "paused"
        events = browser.get(f"/api/v1/runs/{run}/journal", params={"kind": "run_paused"}).json()["events"]
    assert [one["actor"] for one in events] == ["person:" + Path.home().owner()]


def test_who_signs_out_is_out(console: LiveConsole) -> None:
    with console.browser() as browser, console.browser() as other:
        cookie = browser.cookies[f"handrail_{console.port}"]
        assert browser.post("/api/v1/logout", json={}).json() == {"ended": True}
        assert f"handrail_{console.port}" not in browser.cookies
        browser.cookies.set(f"handrail_{console.port}", cookie)
        assert browser.get("/api/v1/home").status_code == 401
        assert other.get("/api/v1/home").status_code == 200


def test_a_session_survives_a_killed_server(tmp_path: Path) -> None:
    with serving(tmp_path) as first:
        port = first.port
        with first.browser() as browser:
            headers, cookies = dict(browser.headers), dict(browser.cookies)
        first.process.kill()
    shell = Shell(tmp_path)
    with shell.process("serve", "--port", str(port), "--json") as process:
        assert json.loads(process.line())["console"] == f"http://127.0.0.1:{port}/"
        with httpx.Client(base_url=first.url, headers=headers, cookies=cookies, trust_env=False) as browser:
            assert browser.get("/api/v1/home").status_code == 200


# --- strangers, other sites, other ports ---------------------------------------------------------------


def test_a_stranger_sees_the_program_and_no_data(console: LiveConsole) -> None:
    with console.nobody() as stranger:
        for path in ("/api/v1/home", "/runs.json", "/index.json", "/api/v1/events", "/api/v1/about"):
            answer = stranger.get(path)
            assert (answer.status_code, answer.headers["content-type"]) == (401, "application/problem+json"), path
            assert "handrail open" in answer.json()["hint"]
        assert stranger.get("/").status_code == 200
        assert stranger.get("/api/v1/openapi.json").status_code == 200
        assert stranger.post("/api/v1/runs", json={}).status_code == 401
        assert stranger.post("/api/v1/ticket", json={}).status_code == 401


def test_the_token_of_agents_is_no_key(console: LiveConsole) -> None:
    token = (console.shell.home / "http-token").read_text(encoding="utf-8").strip()
    with console.nobody(authorization=f"Bearer {token}") as agent:
        assert agent.get("/api/v1/home").status_code == 401
        assert agent.post("/api/v1/ticket", json={}).status_code == 401
    with console.script() as script:
        assert script.post("/mcp", json={}).status_code == 401


def test_a_form_of_another_site_changes_nothing(console: LiveConsole) -> None:
    run = console.started()
    path = f"/api/v1/runs/{run}/pause"
    with console.browser() as browser:
        forged = [
            {"origin": "https://evil.example"},
            {"origin": "null"},
            {"sec-fetch-site": "cross-site"},
            {"sec-fetch-site": "same-site"},
            {"x-handrail-key": ""},
            {"x-handrail-key": "guess"},
            {"origin": f"http://127.0.0.1:{console.port + 1}"},
        ]
        for headers in forged:
            assert browser.post(path, json=PAUSE, headers=headers).status_code == 403, headers
        form = {"content-type": "text/plain"}
        assert browser.post(path, content=json.dumps(PAUSE), headers=form).status_code == 400
        form = {"content-type": "application/x-www-form-urlencoded"}
        assert browser.post(path, content="reason=x", headers=form).status_code == 400
        del browser.headers["origin"]
        assert browser.post(path, json=PAUSE).status_code == 403
        assert browser.get(f"/api/v1/runs/{run}").json()["status"] == "waiting"


def test_a_page_of_another_port_reads_nothing(console: LiveConsole) -> None:
    """Browsers send the cookie to every port of a host, and count ports of one host as one site."""
    with console.browser() as browser:
        del browser.headers["x-handrail-key"]
        for site in ("same-site", "cross-site"):
            for path in ("/api/v1/home", "/index.json", "/api/v1/events"):
                assert browser.get(path, headers={"sec-fetch-site": site}).status_code == 403
        other = {"origin": f"http://127.0.0.1:{console.port + 1}"}
        assert browser.get("/api/v1/events", headers=other).status_code == 403


def test_a_cookie_that_another_port_took_can_not_write(console: LiveConsole) -> None:
    run = console.started()
    with console.browser() as browser:
        cookies = dict(browser.cookies)
    with httpx.Client(base_url=console.url, cookies=cookies, trust_env=False) as thief:
        thief.headers["origin"] = console.url  # a program can say what it likes
        assert thief.post(f"/api/v1/runs/{run}/pause", json=PAUSE).status_code == 403
        assert thief.post("/api/v1/ticket", json={}).status_code == 401


def test_a_cookie_of_another_server_is_none_here(console: LiveConsole, tmp_path: Path) -> None:
    with serving(tmp_path) as other, other.browser() as browser:
        value = browser.cookies[f"handrail_{other.port}"]
    with console.nobody() as client:
        client.cookies.set(f"handrail_{console.port}", value)
        assert client.get("/api/v1/home").status_code == 401


def test_another_host_name_is_refused_everywhere(console: LiveConsole) -> None:
    with console.browser() as browser:
        for path in ("/", "/api/v1/home", "/index.json", "/enter?ticket=x", "/livez"):
            assert browser.get(path, headers={"host": "evil.example"}).status_code == 421


def test_every_answer_forbids_frames_sniffing_and_other_origins(console: LiveConsole) -> None:
    with console.script() as client:
        for path in ("/", "/runs", "/api/v1/home", "/api/v1/openapi.json", "/nothing", "/livez", "/api/v1/runs/nope"):
            headers = client.get(path).headers
            assert headers["x-frame-options"] == "DENY", path
            assert headers["x-content-type-options"] == "nosniff"
            assert "frame-ancestors 'none'" in headers["content-security-policy"]
            assert headers["content-security-policy"].startswith("default-src 'none'")
            assert "access-control-allow-origin" not in headers
            assert headers["cross-origin-resource-policy"] == "same-origin"


# --- files ----------------------------------------------------------------------------------------------


TRICKS = [
    "/../openapi.json",
    "/..%2fopenapi.json",
    "/%2e%2e/openapi.json",
    "/app/../../openapi.json",
    "/app/..%5c..%5copenapi.json",
    "/app/%00",
    "//etc/passwd",
    "/etc/passwd",
    "/static/index.html",
    "/app/",
    "/app/.",
    "/APP/APP.JS",
]


@pytest.mark.parametrize("path", TRICKS)
def test_a_path_leads_to_no_other_file(console: LiveConsole, path: str) -> None:
    with socket.create_connection(("127.0.0.1", console.port), timeout=PATIENCE_S) as raw:
        raw.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{console.port}\r\nConnection: close\r\n\r\n".encode())
        said = b"".join(iter(lambda: raw.recv(65_536), b""))
    assert said.split(b" ", 2)[1] == b"404", said[:200]


def test_static_files_are_those_that_were_read_and_carry_a_tag(console: LiveConsole) -> None:
    files = read_static_files()
    with console.nobody() as client:
        for path, file in files.files.items():
            answer = client.get(path)
            assert (answer.content, answer.headers["content-type"]) == (file.content, file.media_type)
            if file is not files.index:
                assert client.get(path, headers={"if-none-match": file.etag}).status_code == 304


def test_a_link_in_the_folder_of_files_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret", encoding="utf-8")
    folder = tmp_path / "static"
    folder.mkdir()
    (folder / "index.html").write_text("<p>", encoding="utf-8")
    (folder / "out").symlink_to(tmp_path / "secret")
    assert set(read_static_files(folder).files) == {"/index.html"}


def test_only_the_scripts_that_a_page_was_built_with_may_run() -> None:
    policy = policy_of(b'<script src="/a.js"></script><script>go()</script>')
    assert policy.count("sha256-") == 1
    assert "script-src 'self' 'sha256-" in policy
    assert "unsafe" not in policy


def test_people_who_follow_a_wrong_link_see_the_console_and_programs_an_error(console: LiveConsole) -> None:
    with console.nobody() as client:
        page = client.get("/no/such/page", headers={"accept": "text/html"})
        error = client.get("/no/such/page")
    assert (page.status_code, page.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert (error.status_code, error.json()["name"]) == (404, "not_found")


# --- bodies ---------------------------------------------------------------------------------------------


def test_a_body_that_is_too_large_or_no_json_is_refused(console: LiveConsole) -> None:
    with console.script() as client:
        large = client.post("/api/v1/runs/run_x/pause", json={"reason": "x" * 1_100_000})
        assert (large.status_code, large.json()["name"]) == (413, "limited")
        for body in (b"", b"[]", b"{", b"nul", b"\xff", b"[" * 100_000, b'{"reason": 1}', b'{"because": "x"}'):
            answer = client.post(
                "/api/v1/runs/run_x/submit", content=body, headers={"content-type": "application/json"}
            )
            assert (answer.status_code, answer.json()["name"]) == (400, "invalid"), body[:20]
        many = client.get("/api/v1/home", headers={"x": "y" * 40_000})
        assert many.status_code in (400, 431)


async def test_a_body_that_does_not_come_blocks_no_one(console: LiveConsole) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", console.port)
    head = f"POST /api/v1/runs HTTP/1.1\r\nHost: 127.0.0.1:{console.port}\r\nAuthorization: Bearer {console.key}\r\n"
    writer.write((head + "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{").encode())
    await writer.drain()
    async with httpx.AsyncClient(base_url=console.url, trust_env=False, timeout=PATIENCE_S) as other:
        assert (await other.get("/livez")).status_code == 200
    writer.close()
    assert reader is not None


# --- one server a user ------------------------------------------------------------------------------------


def announced(shell: Shell) -> dict[str, Any]:
    """What a server says of itself to other processes of this home."""
    said: dict[str, Any] = json.loads((shell.home / "server.json").read_bytes())
    return said


def test_a_second_start_finds_the_first_and_says_so(console: LiveConsole) -> None:
    second = console.shell.json("serve", "--port", "0")
    assert (second["running"], second["console"]) == (True, f"{console.url}/")
    words = console.shell.run("serve")
    assert (words.exit_code, f"already serving at {console.url}" in words.stderr) == (0, True)
    assert announced(console.shell)["console"] == console.url, "what answers of agents link to"


def test_open_gives_a_link_to_the_running_server(console: LiveConsole) -> None:
    run = console.started()
    for page, place in ((run, f"/runs/{run}"), ("/library/a@1", "/library/a@1?project=")):
        link = console.shell.json("open", page)["url"]
        with console.nobody() as client:
            assert client.get(link).headers["location"].startswith(place)


@pytest.mark.parametrize("page", ["run_x", "/nowhere", "/runs/../x"])
def test_open_refuses_a_run_or_a_page_that_is_not_there(console: LiveConsole, page: str) -> None:
    refused = console.shell.json("open", page, code=3)["error"]
    assert (refused["name"], page in refused["message"]) == ("not_found", True)


def test_a_killed_server_is_no_server(tmp_path: Path) -> None:
    with serving(tmp_path) as first:
        first.process.kill()
        assert (first.shell.home / "server.json").exists()
    with serving(tmp_path) as second:
        assert second.url != first.url
        with second.nobody() as client:
            assert until(lambda: client.get("/readyz").status_code == 200)


def test_without_a_desktop_open_prints_the_link(console: LiveConsole, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    shown = console.shell.run("open")
    assert (shown.exit_code, f"open {console.url}/enter?ticket=" in shown.stderr) == (0, True)


def test_beyond_loopback_there_is_no_console(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    with shell.process("serve", "--port", "0", "--host", "0.0.0.0", "--json") as process:
        endpoint = json.loads(process.line())
        assert "console" not in endpoint
        assert announced(shell)["console"] == ""
        url = endpoint["url"].replace("/mcp", "")
        assert httpx.get(f"{url}/api/v1/openapi.json", trust_env=False).status_code == 404
        assert httpx.get(f"{url}/runs", trust_env=False).status_code == 404
