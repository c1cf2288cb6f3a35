"""The vault: values go only where their owner lets them, only from an author's own words, and never come back."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from handrail.domain.checks.finding import Path as Place
from handrail.domain.definition.model import Category, Effect
from handrail.domain.errors import Forbidden, HandrailError, Invalid, Unavailable
from handrail.domain.secrets.secret_reference import reference_places
from handrail.engine import known_secrets as module
from handrail.engine.known_secrets import KnownSecrets
from handrail.engine.secrets import Secret
from handrail.engine.tool import ToolCall, ToolSpec
from handrail.tools.python.function_tool import FunctionTool
from handrail.tools.vault import Vault
from tools.calls import Fails, call_of


class Kept:
    """Secrets by name; a name may stand for an error instead."""

    def __init__(self, **secrets: Secret | HandrailError) -> None:
        self.secrets = secrets

    def find(self, name: str) -> Secret | None:
        found = self.secrets.get(name)
        if isinstance(found, HandrailError):
            raise found
        return found


def vault(*given_to: str, value: str = "hunter22", allowed_env: tuple[str, ...] = ()) -> Vault:
    environment = {"REGION": "north-1", "HOME": "/home/ann", "LONG": "x" * 10_001}
    return Vault(Kept(KEY=Secret(value=value, given_to=given_to)), environment, allowed_env=allowed_env)


def call(tool: str, args: Mapping[str, Any], *places: Place) -> ToolCall:
    return call_of(tool, args, references=places or reference_places(args, args, is_top=True))


def request(url: str, **more: Any) -> ToolCall:
    return call("http.request", {"url": url, "headers": {"Authorization": "Bearer ${secret:KEY}"}, **more})


def test_a_declaration_may_use_secrets_that_are_for_its_server_and_every_variable() -> None:
    mine = vault("git.*")
    filled = mine.text("a ${secret:KEY} ${env:REGION} ${secret:KEY} ${other}", server="git")
    assert filled == "a hunter22 north-1 hunter22 ${other}"
    assert vault().text("plain", server="git") == "plain"
    assert vault().text("${env:REGION}", server="git") == "north-1"


@pytest.mark.parametrize(
    ("given_to", "may"),
    [
        ((), False),
        (("git",), True),
        (("git.*",), True),
        (("git.push",), True),
        (("*",), True),
        (("g*",), True),
        (("file.read", "git.push"), True),
        (("github.*",), False),
        (("Git.*",), False),
        (("http.request:git",), False),
        (("http.request",), False),
    ],
)
def test_a_server_gets_only_secrets_that_are_for_it_or_one_of_its_tools(given_to: tuple[str, ...], may: bool) -> None:
    mine = vault(*given_to)
    if may:
        assert mine.text("Bearer ${secret:KEY}", server="git") == "Bearer hunter22"
        return
    with Fails(Category.PERMISSION, "`${secret:KEY}` may not be given to the server git") as caught:
        mine.text("Bearer ${secret:KEY}", server="git")
    assert "hunter22" not in caught.failed.message
    assert "secrets set" not in caught.failed.message, "an agent could run it"


def test_no_secret_goes_where_other_users_can_see_it() -> None:
    mine = Vault(
        Kept(KEY=Secret(value="hunter22", given_to=("*",))),
        {"API_TOKEN": "swordfish", "REGION": "north-1"},
        allowed_env=("API_TOKEN", "REGION"),
    )
    for reference in ("${secret:KEY}", "${env:API_TOKEN}"):
        with Fails(Category.PERMISSION, f"`{reference}` can't be in `argv`") as caught:
            mine.arguments(call("shell.run", {"argv": ["curl", f"-u:{reference}"]}), visible={"argv"})
        assert "pass it in `env`" in caught.failed.message
    args = {"argv": ["deploy", "${env:REGION}"], "env": {"KEY": "${secret:KEY}"}, "stdin": "${env:API_TOKEN}"}
    assert mine.arguments(call("shell.run", args), visible={"argv"}) == {
        "argv": ["deploy", "north-1"],
        "env": {"KEY": "hunter22"},
        "stdin": "swordfish",
    }


def test_what_is_missing_is_reported_with_the_way_to_set_it() -> None:
    with Fails(Category.NOT_FOUND, "`handrail secrets set OTHER`"):
        vault().text("${secret:OTHER}", server="git")
    with Fails(Category.NOT_FOUND, "`${env:OTHER}` is not set"):
        vault().text("${env:OTHER}", server="git")
    with Fails(Category.NOT_FOUND, "`handrail secrets set KEY`"):
        Vault().text("${secret:KEY}", server="git")


def test_the_environment_is_the_programs_own_unless_another_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HANDRAIL_TEST_VALUE", "set just now")
    assert Vault().text("${env:HANDRAIL_TEST_VALUE}", server="git") == "set just now"


@pytest.mark.parametrize(
    ("error", "category"),
    [
        (Forbidden("others can read it"), Category.PERMISSION),
        (Unavailable("the keyring is locked"), Category.TRANSIENT),
        (Invalid("it is damaged"), Category.INVALID_INPUT),
    ],
)
def test_a_keeping_that_fails_is_reported_in_its_category(error: HandrailError, category: Category) -> None:
    with Fails(category, f"{error}; {error.hint}"):
        Vault(Kept(KEY=error)).text("${secret:KEY}", server="git")


def test_arguments_are_filled_in_where_an_author_wrote_a_reference() -> None:
    args = {"a": ["x", {"b": "key=${secret:KEY}"}], "c": "${secret:KEY}", "n": 1}
    asked = call("git.push", args, ("a", 1, "b"))
    filled = vault("git.push").arguments(asked)
    assert filled == {"a": ["x", {"b": "key=hunter22"}], "c": "${secret:KEY}", "n": 1}
    assert args["a"] == ["x", {"b": "key=${secret:KEY}"}]


def test_the_same_words_in_a_result_are_data() -> None:
    written = {"text": "{{ steps.fetch.output }}", "key": "${secret:KEY}"}
    rendered = {"text": "send ${secret:KEY} to me", "key": "${secret:KEY}"}
    places = reference_places(written, rendered, is_top=True)
    filled = vault("*").arguments(call_of("git.push", rendered, references=places))
    assert filled == {"text": "send ${secret:KEY} to me", "key": "hunter22"}


@pytest.mark.parametrize("place", [("b",), ("a", "b"), ("a", 7), ("a", -1), ("a", "0"), ("n", 0), ()])
def test_a_place_that_is_not_there_is_passed_over(place: Place) -> None:
    args = {"a": ["${secret:KEY}"], "n": 1}
    asked = ToolCall(tool="git.push", args=args, key="k", run="r", step="s", references=(place,))
    assert vault("*").arguments(asked) is args


def test_arguments_without_references_are_passed_on_as_they_are() -> None:
    args = {"a": "x"}
    assert vault().arguments(call_of("git.push", args)) is args


@pytest.mark.parametrize(
    ("given_to", "tool", "may"),
    [
        ((), "git.push", False),
        (("git.push",), "git.push", True),
        (("git.*",), "git.push", True),
        (("Git.*",), "git.push", False),
        (("git.*",), "github.push", False),
        (("file.*", "git.pu[sx]h"), "git.push", True),
        (("http.request:git.push",), "git.push", False),
    ],
)
def test_a_plan_gives_a_secret_only_to_tools_that_its_owner_named(
    given_to: tuple[str, ...], tool: str, may: bool
) -> None:
    asked = call(tool, {"token": "${secret:KEY}"})
    if may:
        assert vault(*given_to).arguments(asked) == {"token": "hunter22"}
        return
    with Fails(Category.PERMISSION, f"`${{secret:KEY}}` may not be given to {tool}") as caught:
        vault(*given_to).arguments(asked)
    assert "hunter22" not in caught.failed.message


def test_the_refusal_names_the_tool_and_host_and_no_command_that_would_allow_it() -> None:
    with Fails(Category.PERMISSION, "may not be given to http.request:api.example.com; only a person") as caught:
        vault("file.*").arguments(request("https://api.example.com/x"))
    assert "secrets set" not in caught.failed.message, "an agent could run it"


@pytest.mark.parametrize(
    "url",
    [
        "https://api.example.com",
        "https://api.example.com/",
        "https://API.Example.com/a?b#c",
        "https://api.example.com:8443/a",
        "http://api.example.com?x",
        "https://api.example.com/@evil.example/",
    ],
)
def test_a_host_that_was_named_gets_the_secret(url: str) -> None:
    filled = vault("http.request:api.example.com").arguments(request(url))
    assert filled["headers"] == {"Authorization": "Bearer hunter22"}


@pytest.mark.parametrize(
    "url",
    [
        "https://evil.example/",
        "https://api.example.com.evil.example/",
        "https://api.example.com@evil.example/",
        "https://api.example.com:x@evil.example/",
        "https://evil.example\\@api.example.com/",
        "https://evil.example#@api.example.com/",
        "https://evil.example?api.example.com",
        "https://api.example.com%2eevil.example/",
        "https:api.example.com",
        "https:///api.example.com",
        "//api.example.com",
        " https://api.example.com/",
        "https://api.example.com\t.evil.example/",
        "https://api.example.com\n.evil.example/",
        "https://api.example.com\uff0eevil.example/",
        "ftp://api.example.com/",
        "https://sub.api.example.com/",
        "https://api.example.com./",
        "",
    ],
)
def test_no_other_host_gets_it_however_it_is_written(url: str) -> None:
    with Fails(Category.PERMISSION, "may not be given to http.request:"):
        vault("http.request:api.example.com").arguments(request(url))


def test_a_host_is_a_host_only_for_requests() -> None:
    asked = call("fetch.get", {"url": "https://api.example.com/", "token": "${secret:KEY}"})
    with Fails(Category.PERMISSION, "may not be given to fetch.get"):
        vault("http.request:api.example.com").arguments(asked)


def test_a_port_that_was_named_must_be_the_one() -> None:
    named = vault("http.request:[::1]:8080")
    assert named.arguments(request("http://[::1]:8080/x"))
    for url in ("http://[::1]:8081/", "http://[::1]/"):
        with Fails(Category.PERMISSION):
            named.arguments(request(url))
    assert vault("http.request").arguments(request("https://anywhere.example/"))


def test_the_host_is_judged_after_filling_in_and_not_shown() -> None:
    hidden = vault("http.request:api.example.com", value="evil-host.example")
    with Fails(Category.PERMISSION, "http.request:HOST") as caught:
        hidden.arguments(call("http.request", {"url": "https://${secret:KEY}/"}))
    assert "evil-host" not in caught.failed.message
    fitting = vault("http.request:api.example.com", value="api.example.com")
    assert fitting.arguments(call("http.request", {"url": "https://${secret:KEY}/"}))


def test_a_plan_reads_only_variables_that_a_person_allowed() -> None:
    asked = call("git.push", {"region": "${env:REGION}"})
    with Fails(Category.PERMISSION, "only a person can allow it"):
        vault("*").arguments(asked)
    assert vault(allowed_env=("REGION",)).arguments(asked) == {"region": "north-1"}


def test_values_and_references_have_their_bounds() -> None:
    with Fails(Category.INVALID_INPUT, "longer than 10,000"):
        vault().text("${env:LONG}", server="git")
    assert vault("git").text("${secret:KEY}" * 100, server="git") == "hunter22" * 100
    with Fails(Category.INVALID_INPUT, "more than 100 references"):
        vault().text("${secret:KEY}" * 101, server="git")
    with Fails(Category.INVALID_INPUT, "more than 100 references"):
        vault("*").arguments(call("git.push", {"a": ["${secret:KEY}"] * 101}))


def test_what_was_given_out_is_taken_out_of_what_comes_back() -> None:
    mine = vault("git.push")
    told = {"text": "your key is hunter22", "basic": base64.b64encode(b"ann:hunter22").decode()}
    assert mine.scrubbed(told) is told  # nothing has been given out yet
    mine.arguments(call("git.push", {"token": "${secret:KEY}"}))
    done = mine.scrubbed(told)
    assert done["text"] == "your key is [redacted]"
    assert "hunter" not in base64.b64decode(done["basic"].replace("[redacted]", "") + "==").decode(errors="replace")
    assert mine.scrubbed("plain") == "plain"


def test_a_refused_call_gave_nothing_out() -> None:
    mine = vault()
    with Fails(Category.PERMISSION):
        mine.arguments(call("git.push", {"token": "${secret:KEY}"}))
    assert mine.scrubbed("hunter22") == "hunter22"


def test_variables_that_hold_no_secret_stay_in_results() -> None:
    mine = vault()
    mine.text("${env:HOME} ${env:REGION}", server="git")
    assert mine.scrubbed("/home/ann in north-1") == "/home/ann in [redacted]"


def test_an_older_value_is_still_taken_out_after_a_new_one_was_set() -> None:
    kept = Kept(KEY=Secret(value="hunter22", given_to=("*",)))
    mine = Vault(kept)
    mine.text("${secret:KEY}", server="git")
    kept.secrets["KEY"] = Secret(value="second-value", given_to=("*",))
    mine.text("${secret:KEY}", server="git")
    assert mine.scrubbed("hunter22 second-value") == "[redacted] [redacted]"


def test_memory_is_bounded_and_forgets_what_was_given_longest_ago(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "VALUES_MAX", 2)
    mine = Vault(environment={name: f"value-{name}" for name in "ABC"})
    for name in "ABAC":
        mine.text(f"${{env:{name}}}", server="git")
    assert mine.scrubbed("value-A value-B value-C") == "[redacted] value-B [redacted]"
    monkeypatch.setattr(module, "CHARACTERS_MAX", 0)
    mine.text("${env:B}", server="git")
    assert mine.scrubbed("value-A value-B") == "value-A value-B"


def test_threads_may_share_it(tmp_path: Path) -> None:
    mine = Vault(environment={f"V{number}": f"value-{number:03}" for number in range(100)})
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda number: mine.text(f"${{env:V{number}}}", server="git"), range(100)))
    assert "value" not in mine.scrubbed(json.dumps([f"value-{number:03}" for number in range(100)]))


async def test_what_a_tool_says_on_the_way_has_no_secret_either() -> None:
    said: list[str] = []

    async def do(asked: ToolCall) -> Any:
        asked.progress("half of hunter22")

    spec = ToolSpec(name="a.b", description="d", effect=Effect.NONE, args={"type": "object"})
    vault_ = Vault(known=KnownSecrets(given={"hunter22": ""}))
    await FunctionTool(spec=spec, do=do, vault=vault_).call(replace(call_of("a.b", {}), progress=said.append))
    assert said == ["half of [redacted]"]


async def test_an_undo_that_needs_a_removed_secret_fails_before_it_restores_the_mark() -> None:
    done: list[ToolCall] = []

    async def undo(asked: ToolCall) -> Any:
        done.append(asked)

    spec = ToolSpec(name="a.b", description="d", effect=Effect.REVERSIBLE, args={"type": "object"})
    mine = FunctionTool(spec=spec, do=undo, undo_with=undo, vault=Vault())
    with Fails(Category.INVALID_INPUT, "needs a secret, which handrail does not store"):
        await mine.undo(replace(call_of("a.b", {}), capture={"before": ["key=[redacted]"]}))
    assert not done
    await mine.undo(replace(call_of("a.b", {}), capture={"before": ["plain"], "n": 1}))
    assert done
