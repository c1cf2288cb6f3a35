"""One server, several projects: each request is answered by the right one; one that is not open is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
import pytest

from handrail.domain.errors import Unavailable
from handrail.interfaces.cli.words.browser import fresh_link
from interfaces.http.live_console import PLAN, LiveConsole, entered, serving
from interfaces.shell import Shell, until

OWN = "id: {name}-only\nname: Only in {name}\nversion: 1.0.0\nsteps: [{{id: a, prompt: Say a.}}]\n"
LONGER = {**PLAN, "steps": [*PLAN["steps"], {"id": "more", "approve": "More?"}]}
SHELL = {"id": "sh", "name": "Sh", "steps": [{"id": "run", "tool": "shell.run", "args": {"argv": ["true"]}}]}


def project(parent: Path, name: str, home: Path) -> Shell:
    """A person's shell in a project of its own; it has a workflow that no other has."""
    shell = Shell(parent / name)
    shell.home = home
    shell.write(OWN.format(name=name), f".handrail/workflows/{name}-only.yaml")
    return shell


@dataclass
class TwoProjects:
    """A server that was started in `shop`, and has `site` open, too; `docs` has a run, and is not open."""

    console: LiveConsole
    site: Shell
    docs: Shell
    docs_run: str

    def id(self, shell: Shell) -> str:
        with self.console.script() as script:
            listed = script.get("/api/v1/projects").json()["projects"]
        (found,) = [one["id"] for one in listed if one["folder"] == str(shell.folder)]
        return str(found)

    @contextmanager
    def browser(self, shell: Shell) -> Iterator[httpx.Client]:
        """A browser that came in by the link of `handrail open` in a project."""
        link = shell.json("open")["url"]
        with entered(self.console, link) as browser:
            yield browser


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwoProjects]:
    parent = tmp_path_factory.mktemp("projects")
    with serving(parent / "shop") as console:
        home = console.shell.home
        site, docs = project(parent, "site", home), project(parent, "docs", home)
        docs.write(json.dumps(PLAN), "plan.json")
        docs_run = docs.json("run", "start", str(docs.folder / "plan.json"), code=4)["run"]
        yield TwoProjects(console, site, docs, docs_run)


def workflows(client: httpx.Client, **query: str) -> set[str]:
    answer = client.get("/api/v1/library", params={"limit": "500", **query})
    assert answer.status_code == 200, answer.text
    return {one["id"] for one in answer.json()["workflows"]}


def waits(client: httpx.Client, run: str) -> dict[str, Any]:
    """What a run asks, once it does."""

    def seen() -> Any:
        answer = client.get(f"/api/v1/approvals/{run}/ask")
        return answer.json() if answer.status_code == 200 else None

    found: dict[str, Any] = until(seen)
    return found


def test_a_project_that_is_handed_over_is_worked_on_in_its_own_folder(two: TwoProjects) -> None:
    shop = two.console.shell.folder
    (shop / "x.txt").write_text("of the shop", encoding="utf-8")
    before = sorted(one.name for one in shop.iterdir())
    with two.browser(two.site) as browser:
        run = browser.post("/api/v1/runs", json={"definition": LONGER}).json()["run"]
        asked = waits(browser, run)
        assert (two.site.folder / "x.txt").read_text(encoding="utf-8") == "hi"
        yes = {"answer": "approve", "reason": "fine", "digest": asked["digest"]}
        assert browser.post(f"/api/v1/approvals/{run}/ask", json=yes).status_code == 200
        until(lambda: browser.get(f"/api/v1/approvals/{run}/more").status_code == 200)
        assert (two.site.folder / "shipped.txt").exists()
        undone = browser.post(f"/api/v1/runs/{run}/compensate", json={"reason": "no"})
        assert undone.status_code == 200, undone.text
        until(lambda: browser.get(f"/api/v1/runs/{run}").json()["status"] == "compensated")
        assert browser.get(f"/api/v1/runs/{run}").json()["project"]["folder"] == str(two.site.folder)
    assert not (two.site.folder / "x.txt").exists()
    assert not (two.site.folder / "shipped.txt").exists()
    assert (shop / "x.txt").read_text(encoding="utf-8") == "of the shop"
    assert sorted(one.name for one in shop.iterdir()) == before


def test_what_is_about_no_run_is_answered_by_the_project_that_is_asked_for(two: TwoProjects) -> None:
    with two.browser(two.site) as browser, two.console.script() as script:
        site, shop = two.id(two.site), two.id(two.console.shell)
        assert browser.get("/api/v1/session").json()["project"] == site
        assert "site-only" in workflows(browser)
        assert "site-only" not in workflows(browser, project=shop)
        assert "site-only" not in workflows(script), "a script that does not say is in the project of the server"
        assert "site-only" in workflows(script, project=site)
        assert script.get("/api/v1/about", params={"project": site}).json()["project"]["name"] == "site"
        assert browser.get("/index.json").headers["handrail-project"] == site
        body = {"plan": {**PLAN, "id": "of-the-site"}}
        assert script.post("/api/v1/plans", params={"project": site}, json=body).status_code == 201
        assert script.get("/api/v1/plans/of-the-site").status_code == 404
        assert browser.get("/api/v1/plans/of-the-site").status_code == 200
        started = browser.post("/api/v1/library/site-only/start", json={})
        assert started.status_code == 201, started.text
        run = started.json()["run"]
        assert script.post("/api/v1/library/site-only/start", json={}).status_code == 404
        next_ = script.get(f"/api/v1/runs/{run}/next")
        assert next_.json()["step"]["prompt"] == "Say a.", "whoever asks, the run's own project answers"
        listed = {one["run"] for one in browser.get("/api/v1/runs").json()["runs"]}
        assert run in listed
        assert run not in {one["run"] for one in script.get("/api/v1/runs").json()["runs"]}
        spanning = script.get("/api/v1/runs", params={"project": "*"}).json()["runs"]
        assert {"site", "docs"} <= {one["project"]["name"] for one in spanning}


def test_a_key_starts_one_run_in_each_project(two: TwoProjects) -> None:
    key = {"idempotency-key": "one-in-each"}
    with two.browser(two.site) as browser, two.console.script() as script:
        body = {"definition": PLAN}
        runs = [client.post("/api/v1/runs", json=body, headers=key).json()["run"] for client in (browser, script)]
        again = browser.post("/api/v1/runs", json=body, headers=key).json()["run"]
    assert (runs[0] != runs[1], again) == (True, runs[0])


def test_approvals_can_be_answered_where_their_project_is_open(two: TwoProjects) -> None:
    with two.browser(two.site) as browser, two.console.script() as script:
        run = browser.post("/api/v1/runs", json={"definition": PLAN}).json()["run"]
        waits(browser, run)
        all_ = {one["run"]: one for one in script.get("/api/v1/approvals?project=*").json()["approvals"]}
        assert (all_[run]["may_answer"], all_[two.docs_run]["may_answer"]) == (True, False)
        assert all_[two.docs_run]["project"]["name"] == "docs"
        docs = two.id(two.docs)
        only = script.get("/api/v1/approvals", params={"project": docs}).json()
        assert ([one["run"] for one in only["approvals"]], only["answered"]) == ([two.docs_run], [])
        home = script.get("/api/v1/home").json()
        assert run not in {one["run"] for one in home["waiting_for_me"]}
        assert home["elsewhere"] >= 1
        both = script.get("/api/v1/home?project=*").json()
        assert run in {one["run"] for one in both["waiting_for_me"]}
        assert two.docs_run in {one["run"] for one in both["waiting_for_others"]}


def test_a_project_that_is_not_open_is_refused_with_what_opens_it(two: TwoProjects) -> None:
    run, docs = two.docs_run, two.id(two.docs)
    command = f"`handrail --project {two.docs.folder} open`"
    before = {one.name: one.read_bytes() for one in two.docs.folder.iterdir() if one.is_file()}
    with two.browser(two.site) as browser:
        seen = browser.get(f"/api/v1/runs/{run}")
        assert (seen.status_code, seen.json()["actions"]) == (200, []), "everyone may read"
        assert command in seen.json()["project"]["hint"]
        assert browser.get(f"/api/v1/runs/{run}/steps/ask").json()["actions"] == []
        approval = {"answer": "reject", "reason": "no"}
        refused = [
            browser.post(f"/api/v1/approvals/{run}/ask", json=approval),
            browser.post(f"/api/v1/runs/{run}/compensate", json={"reason": "no"}),
            browser.post(f"/api/v1/runs/{run}/compensate?dry_run=1", json={}),
            browser.post(f"/api/v1/runs/{run}/compensation", json={"step": "note", "description": "x"}),
            browser.get(f"/api/v1/runs/{run}/do/cancel"),
            browser.get(f"/api/v1/runs/{run}/next"),
            browser.post("/api/v1/plans/check", json={"run": run, "step": "ask", "output": 1}),
            browser.get("/api/v1/library", params={"project": docs}),
            browser.post("/api/v1/runs", params={"project": docs}, json={"definition": PLAN}),
        ]
        for answer in refused:
            told = answer.json()
            assert (answer.status_code, told["name"]) == (409, "conflict"), answer.text
            assert f"docs, in {two.docs.folder}" in told["detail"]
            assert command in told["hint"]
        listed = browser.get("/api/v1/runs", params={"project": docs}).json()["runs"]
        assert [one["run"] for one in listed] == [run], "a list can be of any project"
        entry = {one["id"]: one for one in browser.get("/api/v1/projects").json()["projects"]}[docs]
        assert (entry.get("is_open", False), entry["command"]) == (False, command.strip("`"))
    assert {one.name: one.read_bytes() for one in two.docs.folder.iterdir() if one.is_file()} == before


def test_an_unknown_project_is_answered_with_the_nearest(two: TwoProjects) -> None:
    with two.browser(two.site) as browser:
        for path in ("runs", "approvals", "library", "home", "stats", "journal", "events"):
            answer = browser.get(f"/api/v1/{path}", params={"project": "sitte"})
            assert (answer.status_code, answer.json()["name"]) == (400, "invalid"), path
            assert two.id(two.site) in answer.json()["hint"]
        wide = browser.get("/api/v1/library?project=*")
        assert (wide.status_code, wide.json()["name"]) == (400, "invalid")


def test_only_the_key_of_the_user_opens_a_project(two: TwoProjects) -> None:
    asked = {"project": str(two.docs.folder)}
    with two.browser(two.site) as browser, two.console.nobody() as stranger, two.console.script() as script:
        for client in (browser, stranger):
            assert client.post("/api/v1/ticket", json=asked).status_code == 401
        for wrong in ({"project": "docs"}, {"project": str(two.docs.folder / "gone")}):
            assert script.post("/api/v1/ticket", json=wrong).status_code == 404
        assert script.post("/api/v1/ticket", json={"folder": "x"}).status_code == 400
        assert script.post("/api/v1/ticket", json={"project": "/" * 30_000}).status_code == 413
        assert script.get("/api/v1/runs/" + two.docs_run).json()["actions"] == []


def test_a_second_server_is_not_started_and_says_what_is_not_used(two: TwoProjects) -> None:
    told = two.site.run("serve", "--port", "1", "--host", "127.0.0.1")
    assert told.exit_code == 0
    assert "already serving" in told.stderr
    assert "--port is not used" in told.stderr
    assert "--host is not used" in told.stderr
    assert "stop that server" in told.stderr
    assert "open` opens this project in its console" in told.stderr
    data = two.site.json("serve", "--open", "--port", "1")
    assert (data["running"], data["unused"], data["project"]) == (True, ["--port"], two.id(two.site))
    assert two.site.json("serve")["running"] is True


def test_a_server_that_does_not_know_of_projects_is_not_believed(tmp_path: Path) -> None:
    """One of an older version ignores the folder, and its link would open another project without a word."""

    class Older(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{"url": "http://127.0.0.1/enter?ticket=x", "seconds": 120}')

        def log_message(self, *_: object) -> None:
            """Quiet."""

    with HTTPServer(("127.0.0.1", 0), Older) as server:
        thread = Thread(target=server.handle_request)
        thread.start()
        with pytest.raises(Unavailable, match="gives no link"):
            fresh_link(tmp_path, f"http://127.0.0.1:{server.server_port}", tmp_path)
        thread.join()


# --- trust ------------------------------------------------------------------------------------------------


HOSTILE = (
    'agents_may_approve = true\nlibrary = "/"\ncalls = 9999\n[shell]\nallow = true\n[http]\nallow = ["127.0.0.1"]\n'
)


def test_a_hostile_second_project_gains_nothing_and_takes_nothing(tmp_path: Path) -> None:
    shop = Shell(tmp_path / "shop")
    shop.write("[shell]\nallow = true\n", ".handrail/config.toml")
    shop.trust()
    with serving(tmp_path / "shop") as console:
        site = project(tmp_path, "site", shop.home)
        site.write(HOSTILE, ".handrail/config.toml")
        servers = {"bad": {"command": "touch", "args": [str(tmp_path / "started")]}}
        site.write(json.dumps({"mcpServers": servers}), ".handrail/tools.json")
        link = site.json("open")
        with entered(console, link["url"]) as browser, console.script() as script:
            settings = browser.get("/api/v1/settings").json()
            assert settings["trust"] == "not trusted"
            values = {one["setting"]: one["value"] for one in settings["settings"] if not one.get("is_off")}
            assert (values["agents_may_approve"], values["library"], values["calls"]) == (False, "", 100)
            tools = browser.get("/api/v1/tools").json()
            assert [(one["server"], one["state"]) for one in tools["servers"]] == [("bad", "untrusted")]
            assert {one["name"]: one.get("off") for one in tools["tools"]}["shell.run"]
            here = browser.post("/api/v1/runs", json={"definition": SHELL}).json()["run"]
            until(lambda: browser.get(f"/api/v1/runs/{here}").json()["status"] == "waiting")
            assert browser.get(f"/api/v1/runs/{here}").json()["failure"]["category"] == "permission"
            there = script.post("/api/v1/runs", json={"definition": SHELL}).json()["run"]
            ended = until(lambda: (seen := script.get(f"/api/v1/runs/{there}").json())["status"] != "running" and seen)
            assert "shell.run is off" not in str(ended.get("failure", {})), "the first project keeps its own trust"
            assert {one["name"]: one.get("off") for one in script.get("/api/v1/tools").json()["tools"]}[
                "shell.run"
            ] is None
    assert not (tmp_path / "started").exists()


def test_a_session_is_never_answered_by_another_project(tmp_path: Path) -> None:
    """The server is started again, in the first project only: the browser of the second is told so."""
    with serving(tmp_path / "shop") as console:
        site = project(tmp_path, "site", console.shell.home)
        with entered(console, site.json("open")["url"]) as browser:
            headers, cookies, port = dict(browser.headers), dict(browser.cookies), console.port
        console.process.kill()
    with console.shell.process("serve", "--port", str(port), "--json") as process:
        assert process.line()
        with httpx.Client(base_url=console.url, headers=headers, cookies=cookies, trust_env=False) as browser:
            for path in ("/api/v1/home", "/api/v1/library", "/api/v1/runs", "/api/v1/approvals"):
                answer = browser.get(path)
                assert answer.status_code == 409, path
                assert f"handrail --project {site.folder} open" in answer.json()["hint"]
            start = browser.post("/api/v1/runs", json={"definition": PLAN})
            assert start.status_code == 409
            assert browser.get("/api/v1/projects").status_code == 200
        opened = site.json("open")["project"]
        assert "its settings have changed" not in site.run("open").stderr
        site.write("calls = 3\n", ".handrail/config.toml")
        assert "its settings have changed" in site.run("open").stderr
        moved = project(tmp_path, "moved", site.home)
        moved.json("project", "move", opened, str(moved.folder))
        refused = moved.json("open", code=6)["error"]
        assert "was moved here while this server had it open" in refused["message"]


def test_a_server_says_that_its_configuration_has_changed_and_offers_no_undo_of_nothing(tmp_path: Path) -> None:
    with serving(tmp_path) as console, console.script() as script:
        run = console.started(SHELL)
        view = script.get(f"/api/v1/runs/{run}").json()
        assert "retry" in {one["action"] for one in view["actions"]}
        assert "compensate" not in {one["action"] for one in view["actions"]}
        assert "restart" not in script.get("/api/v1/about").json()
        console.shell.configure("[shell]\nallow = true\n")
        assert "restart `handrail serve`" in script.get("/api/v1/about").json()["restart"]
