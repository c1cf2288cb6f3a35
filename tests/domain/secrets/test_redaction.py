"""Secrets never reach the journal, and what is no secret is never touched."""

from __future__ import annotations

import time
from typing import Any
from unittest.mock import patch

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handrail.domain.errors import Limited
from handrail.domain.journal import event as facts
from handrail.domain.journal.codec import KINDS, decode_event, encode_body, kind_of
from handrail.domain.secrets import redaction
from handrail.domain.secrets.redaction import (
    REDACTED,
    STRUCTURE,
    looks_secret,
    marked_inputs,
    redact_body,
    redact_inputs,
)
from handrail.domain.secrets.scrubbing import SecretScrubber
from handrail.domain.secrets.secret_forms import FORMS, names_secret


def listed(names: str) -> list[str]:
    return names.split()


# Put together here, so that no scanner takes this file for a leak.
WORD = "a1B2c3D4e5F6g7H8i9J0kLmNoPqRsTuVwXyZ"
AWS_ID = "AKIA" + "IOSFODNN7EXAMPLE"
AWS_SECRET = "wJalrXUtnFEMI/K7MDENG/" + "bPxRfiCYEXAMPLEKEY"
TOKENS = {
    "github personal": "gh" + "p_" + WORD,
    "github oauth": "gh" + "o_" + WORD,
    "github user": "gh" + "u_" + WORD,
    "github server": "gh" + "s_" + WORD,
    "github refresh": "gh" + "r_" + WORD,
    "github fine-grained": "github" + "_pat_" + "11ABCDEFG0" + WORD,
    "gitlab": "gl" + "pat-" + "x1Y2z3A4b5C6d7E8f9G0",
    "openai": "sk" + "-" + WORD,
    "openai project": "sk" + "-proj-" + WORD + "_-" + WORD,
    "anthropic": "sk" + "-ant-api03-" + WORD + "-AA",
    "hex api key": "sk" + "-" + "0123456789abcdef" * 2,
    "slack bot": "xox" + "b-1234567890-1234567890-AbCdEfGh",
    "slack user": "xox" + "p-1234567890-AbCdEfGhIj",
    "stripe live": "sk" + "_live_" + "4eC39HqLyjWDarjtT1zdp7dc",
    "stripe restricted": "rk" + "_live_" + "4eC39HqLyjWDarjtT1zdp7dc",
    "stripe test": "sk" + "_test_" + "4eC39HqLyjWDarjtT1zdp7dc",
    "google": "AI" + "za" + "SyA1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q",
    "npm": "npm" + "_" + WORD,
    "pypi": "pypi" + "-AgE" + "IcHlwaS5vcmcCJDAwMDAwMDAwLTAwMDAtMDAwMC0wMDAwLTAw",
    "jwt": "ey" + "JhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N",
    "aws id": AWS_ID,
    "aws temporary id": "ASIA" + "IOSFODNN7EXAMPLE",
    "private key": "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nabc+/==\n-----END RSA PRIVATE KEY-----",
    "openssh key": "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNz\n-----END OPENSSH PRIVATE KEY-----",
    "encrypted key": "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nabc\n-----END RSA PRIVATE KEY-----",
    "cut key": "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC",
}
SECRET_NAMES = listed("""
    password Password dbPassword DB_PASSWORD user-password passwd passphrase secret client_secret
    clientSecret token GITHUB_TOKEN accessToken refresh_token x-auth-token api_key apikey API-KEY apiKey X-Api-Key
    authorization Authorization Proxy-Authorization private_key privateKey access_key AWS_SECRET_ACCESS_KEY secret_key
    credential credentials cookie Set-Cookie session session_id sessionId password2 signing_key secrets""")
IN_TEXT = {
    "url": ("postgres://ada:hunter2@db/x", "hunter2"),
    "url without user": ("redis://:hunter2@cache", "hunter2"),
    "url with @ in the password": ("https://ada:p@ss@host/x", "p@ss"),
    "bearer": ("curl -H 'Authorization: Bearer abcdefghij0123456789'", "abcdefghij0123456789"),
    "bearer alone": ("it was sent with Bearer abcdefghij0123456789 again", "abcdefghij0123456789"),
    "basic": ("Authorization: Basic YWRhOmh1bnRlcjI=", "YWRhOmh1bnRlcjI"),
    "token header": ('"authorization": "token abcdef123456"', "abcdef123456"),
    "environment": ("export DB_PASSWORD=hunter22 && make", "hunter22"),
    "configuration": ("aws_secret_access_key = " + AWS_SECRET, AWS_SECRET),
    "query": ("GET /x?api_key=a1b2c3d4e5&page=2", "a1b2c3d4e5"),
    "json in text": ('{"password": "hunter22", "user": "ada"}', "hunter22"),
    "python in text": ("{'client_secret': 'hunter22x'}", "hunter22x"),
    "yaml in quotes": ('password: "hunter22"', "hunter22"),
    "pair": (f"{AWS_ID}:{AWS_SECRET}", AWS_SECRET),
}
CLEAN_VALUES = {
    "git hash": "9f2c41d07ab3e655c0ffee00deadbeef12345678",
    "short hash": "9f2c41d",
    "content hash": "sha256:" + "0f" * 32,
    "uuid": "123e4567-e89b-12d3-a456-426614174000",
    "run id": "run_7k3m9q2x",
    "receipt": "14:9f2c41d07ab3e655",
    "base64 picture": "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgG",
    "base64 with eyJ inside": "aGVsbG8eyJhbGciOiJIUzI1NiJ9AAAA",
    "path": "src/handrail/storage/keys.py",
    "windows path": "C:\\Users\\ada\\token\\file.txt",
    "test path": "tests/test_secrets.py::test_the_token_is_gone",
    "kebab name": "sk-deploy-to-all-regions-of-europe-1",
    "task name": "task-1234-fix-the-flaky-login-test",
    "risk": "low risk-adjusted returns in 2026",
    "prose about passwords": "The password must have at least 12 characters; reset your password in 3 days.",
    "prose about a token": "Each token is one vote; the token expires after 30 minutes.",
    "prose about bearers": "bearer of bad news, bearer bonds and the bearer responsibilities",
    "a heading": "Secrets: how we keep them",
    "a question": "password: must be changed by friday?",
    "placeholder": "password=<your-password>",
    "variable": 'export TOKEN=$GITHUB_TOKEN; curl -H "Authorization: Bearer $TOKEN"',
    "stars": "password=********",
    "code": "def login(user, password=None, token=default_token): ...",
    "call": "token = get_token(settings)",
    "attribute": "secret=settings.client.secret",
    "lookup": "api_key=os.environ.get(name)",
    "reference": "${env:GITHUB_TOKEN}",
    "template": "https://{{ user }}:{{ password }}@host",
    "url with a port": "http://localhost:8080/path?x=1",
    "url with an at": "https://github.com/@ada/repo",
    "ssh address": "git@github.com:ada/handrail.git",
    "ssh url": "ssh://git@github.com:22/ada/handrail.git",
    "mail": "ada@example.com",
    "reference in a url": "https://ada:${env:PASSWORD}@host",
    "version": "handrail-1.2.0-py3-none-any.whl",
    "npm setting": "npm_config_registry=https://packages.example.org",
    "pypi name": "pypi-publish-action-with-a-rather-long-name-that-goes-on-and-on",
    "public key": "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA\n-----END PUBLIC KEY-----",
    "certificate": "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
    "rule": "-----------------------------",
    "asia": "ASIA and AKIA are words; ASIAPACIFIC1 too",
    "short jwt-like": "eyJ.a.b",
    "hex": "deadbeef" * 5,
    "slack word": "xoxo, your friends",
    "stripe name": "pk_live_4eC39HqLyjWDarjtT1zdp7dc",
    "google word": "AIzawa is a surname",
    "unicode": "pässwörd: größe",
    "already redacted": "[redacted:github token] and [redacted]",
}
CLEAN_NAMES = listed("""
    tokens token_count max_tokens secretary secretariat tokenizer passwords_policy password_length key
    public_key primary_key idempotency_key sort_key user_id run_id next_page_token nextToken continuation_token
    possession obsession sessions author authority description version cookiecutter credentialed keynote step""")


def knows(*values: str) -> SecretScrubber:
    return SecretScrubber(dict.fromkeys(values, ""))


def redacted(value: Any) -> Any:
    return msgspec.json.decode(redact_body(encode_body({"output": value})))["output"]


@pytest.mark.parametrize("token", TOKENS.values(), ids=TOKENS.keys())
def test_a_token_is_replaced_inside_the_text_it_stands_in(token: str) -> None:
    clean = redacted(f"before {token} after")
    assert token not in clean
    assert clean.startswith("before [redacted:")
    assert clean.endswith(" after") or "PRIVATE KEY" in token
    assert looks_secret(token) is not None


@pytest.mark.parametrize(("text", "secret"), IN_TEXT.values(), ids=IN_TEXT.keys())
def test_a_secret_in_a_command_or_a_file_is_replaced_and_the_rest_stays(text: str, secret: str) -> None:
    clean = redacted(text)
    assert secret not in clean
    assert "[redacted" in clean
    start = text.index(secret)
    assert clean.startswith(text[:start]) or AWS_ID in text


@pytest.mark.parametrize("name", SECRET_NAMES)
def test_a_text_under_a_name_for_secrets_is_replaced(name: str) -> None:
    assert names_secret(name)
    assert redacted({name: "hunter"}) == {name: REDACTED}
    assert redacted({"deep": [{name: ["a", {"b": "c"}]}]}) == {"deep": [{name: [REDACTED, {"b": REDACTED}]}]}


@pytest.mark.parametrize("name", CLEAN_NAMES)
def test_a_name_that_only_sounds_like_a_secret_is_none(name: str) -> None:
    assert not names_secret(name)
    assert redacted({name: "hunter"}) == {name: "hunter"}


@pytest.mark.parametrize("value", CLEAN_VALUES.values(), ids=CLEAN_VALUES.keys())
def test_what_only_looks_like_a_secret_stays(value: str) -> None:
    body = encode_body({"output": value})
    assert redact_body(body) is body
    assert looks_secret(value) is None


def test_the_tables_are_long_enough_to_mean_something() -> None:
    assert len(TOKENS) + len(IN_TEXT) + len(SECRET_NAMES) >= 40
    assert len(CLEAN_VALUES) >= 40
    assert {form.kind for form in FORMS} == {looks_secret(text) for text in (*TOKENS.values(), *dict(IN_TEXT.values()))}


def test_numbers_yes_no_and_nothing_stay_under_a_name_for_secrets() -> None:
    value = {"token": 12, "password": None, "secret": True, "api_key": "", "session": 1.5}
    assert redacted(value) == value


def test_a_reference_to_a_secret_is_no_secret() -> None:
    value = {"password": "${env:DB_PASSWORD}", "Authorization": "Bearer ${secret:CI_TOKEN}"}
    assert redacted(value) == value


def test_a_token_can_not_hide_under_a_name_for_secrets() -> None:
    token = TOKENS["github personal"]
    assert redacted({"password": {token: "x"}}) == {"password": {"[redacted:github token]": REDACTED}}
    assert redacted({"password": f"${{env:{token}}}"}) == {"password": "${env:[redacted:github token]}"}


def test_the_other_half_of_an_aws_pair_is_found_wherever_it_stands() -> None:
    assert redacted({"id": AWS_ID, "other": [AWS_SECRET]}) == {
        "id": "[redacted:aws access key]",
        "other": ["[redacted:aws secret key]"],
    }
    alone = {"other": AWS_SECRET, "token": 12}
    assert redacted(alone) == alone


def test_a_known_secret_is_replaced_wherever_it_stands() -> None:
    known = ["correct horse", 'with "quotes"\n', "naïve-ö", "short"]
    body = encode_body({"output": ['say correct horse! with "quotes"\n', {"x naïve-ö": "a short one"}]})
    clean = redact_body(body, knows(*known))
    assert msgspec.json.decode(clean) == {"output": ["say [redacted]! [redacted]", {"x [redacted]": "a short one"}]}


@pytest.mark.parametrize("secret", ['say "please"', "two\nlines", "back\\slash", "grün & blau"])
def test_a_known_secret_is_found_however_json_writes_it(secret: str) -> None:
    assert msgspec.json.decode(redact_body(encode_body({"output": secret}), knows(secret))) == {"output": REDACTED}


def test_of_two_known_secrets_the_longer_is_replaced_first() -> None:
    assert redact_body(b'{"output":"secret-one-two"}', knows("one-two", "secret-one-two")) == b'{"output":"[redacted]"}'


def test_an_escape_does_not_hide_a_token() -> None:
    token = TOKENS["github personal"]
    hidden = b'{"output":"' + token.encode().replace(b"_", b"\\u005f") + b'","x":"a"}'
    assert token.encode() not in redact_body(hidden)
    assert b"github token" in redact_body(hidden)
    assert b"hunter" not in redact_body(b'{"output":{"pass\\u0077ord":"hunter"}}')
    assert b"hunter" not in redact_body(b'{"output":"https:\\/\\/a:hunter@host"}')


def test_spaces_before_a_colon_do_not_hide_a_name() -> None:
    assert b"hunter" not in redact_body(b'{"output" : {"password" : "hunter"}}')


def test_two_tokens_as_keys_stay_two_keys() -> None:
    one, two = TOKENS["github personal"], TOKENS["github oauth"]
    assert redacted({one: 1, two: 2, "x": 3}) == {
        "[redacted:github token]": 1,
        "[redacted:github token] (1)": 2,
        "x": 3,
    }


def test_a_text_whose_marks_make_new_secrets_is_replaced_as_a_whole() -> None:
    growing = msgspec.json.decode(redact_body(b'{"output":"a redacted text"}', knows("redacted")))
    assert growing == {"output": REDACTED}
    uncovered = msgspec.json.decode(redact_body(encode_body({"output": "hunter" + TOKENS["openai"]}), knows("hunter")))
    assert uncovered == {"output": "[redacted][redacted:api key]"}


def test_what_holds_an_event_together_is_never_touched() -> None:
    event = facts.StepCompleted(step="publish", output={"note": "publish it"})
    clean = decode_event(kind_of(event), 1, redact_body(encode_body(event), knows("publish")))
    assert clean == facts.StepCompleted(step="publish", output={"note": "[redacted] it"})
    fields = {name for kind in KINDS.values() for name in kind.__struct_fields__}
    assert fields >= STRUCTURE
    assert not [name for name in fields if names_secret(name)]


def test_a_body_that_is_no_object_is_cleaned_too() -> None:
    assert redact_body(encode_body([{"password": "x"}])) == b'[{"password":"[redacted]"}]'


def test_a_value_nested_too_deep_is_refused() -> None:
    deep: Any = "sk-" + WORD
    for _ in range(400):
        deep = [deep]
    with pytest.raises(Limited, match="nested deeper"):
        redacted(deep)
    with pytest.raises(Limited, match="nested deeper"):
        redacted({"password": deep})


def test_an_input_is_marked_by_its_schema() -> None:
    schemas = {
        "a": {"type": "string", "secret": True},
        "b": {"type": "string", "writeOnly": True},
        "c": {"type": "string", "format": "password"},
        "d": {"type": "string", "secret": False},
        "e": {"type": "string", "format": "uri"},
        "f": True,
    }
    assert marked_inputs(schemas) == {"a", "b", "c"}


def test_marked_inputs_are_kept_as_marks_and_their_values_are_known() -> None:
    schemas = {name: {"secret": True} for name in ("pin", "login", "list", "none", "flag", "ref", "absent")}
    inputs = {
        "pin": 12345678,
        "login": {"user": "ada-lovelace", "pass": "short"},
        "list": ["correct horse", 1.5],
        "none": None,
        "flag": True,
        "ref": "${env:PIN}",
        "open": "stays",
    }
    kept, known = redact_inputs(inputs, schemas)
    hidden = dict.fromkeys(("pin", "login", "list", "flag"), REDACTED)
    assert kept == {**hidden, "none": None, "ref": "${env:PIN}", "open": "stays"}
    assert known == ("correct horse", "ada-lovelace", "12345678")


def test_inputs_without_marks_stay_as_they_are() -> None:
    assert redact_inputs({"a": "x"}, {"a": {"type": "string"}}) == ({"a": "x"}, ())


@pytest.mark.parametrize(
    "text",
    [
        "-----BEGIN PRIVATE KEY-----" * 3_000,
        "eyJ" * 30_000,
        "eyJ-" * 25_000,
        "eyJaaaaaaaa." * 8_000,
        "sk-" * 30_000,
        "glpat-" * 16_000,
        "://a:" * 20_000,
        "password=" * 11_000,
        "bearer " * 14_000,
        "AKIA" * 25_000,
        "a" * 100_000,
        "/" * 100_000,
        "authorization: " * 6_000,
    ],
    ids=lambda text: text[:12],
)
def test_a_hostile_text_costs_no_more_than_its_length(text: str) -> None:
    start = time.perf_counter()
    redacted({"x": text, "id": AWS_ID})
    assert time.perf_counter() - start < 2.0


# --- for all values -------------------------------------------------------------------------------

words = st.text(max_size=30)
calm = st.text(alphabet="abcdefghijklmnoprtuvwxyz ABC.,0123456789\n", max_size=40).filter(lambda t: "eyJ" not in t)
names = calm.filter(lambda name: not names_secret(name))
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | words,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=4),
    max_leaves=12,
)
suspicious = st.sampled_from(
    [*TOKENS.values(), *(text for text, _ in IN_TEXT.values()), *CLEAN_VALUES.values(), *SECRET_NAMES, *"-_@:=\"' \\/9"]
)
messy = st.lists(suspicious | words, max_size=5).map("".join)
messy_values = st.recursive(
    messy | st.integers(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(messy, inner, max_size=3),
    max_leaves=8,
)


@given(messy_values)
@settings(max_examples=300, deadline=None)
def test_redaction_is_idempotent_and_its_outcome_always_decodes(value: Any) -> None:
    once = redact_body(encode_body({"output": value}))
    msgspec.json.decode(once)
    assert redact_body(once) == once


@pytest.mark.parametrize("before", ["\n", "\r", "\t", "\b", "\f", "\\", '"', " ", "", "/", "\0", "é"])
@pytest.mark.parametrize("token", sorted(TOKENS.values()))
def test_a_token_is_found_whatever_stands_before_it(before: str, token: str) -> None:
    body = encode_body({"output": f"{before}{token}"})
    assert token.encode() not in redact_body(body)


@given(messy_values)
@settings(max_examples=300, deadline=None)
def test_the_cheap_look_never_overlooks_what_the_thorough_one_finds(value: Any) -> None:
    body = encode_body({"output": value})
    with patch.object(redaction, "_shows_sign", return_value=True):
        thorough = redact_body(body)
    assert redact_body(body) == thorough


@given(st.recursive(calm | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(names, inner), max_leaves=8))
def test_redaction_never_changes_clean_data(value: Any) -> None:
    body = encode_body({"output": value})
    assert msgspec.json.decode(redact_body(body)) == {"output": value}


@given(values, st.sampled_from(sorted(TOKENS.values())), words)
@settings(max_examples=300, deadline=None)
def test_a_planted_token_never_survives(value: Any, token: str, around: str) -> None:
    planted = {"output": [value, {f"x {around}": f"{around} {token} {around}"}], "reason": f"({token})"}
    clean = redact_body(encode_body(planted))
    inside = encode_body(token)[1:-1]
    assert inside not in clean


@given(st.text(min_size=6, max_size=20), values)
@settings(deadline=None)
def test_a_known_secret_never_survives(secret: str, value: Any) -> None:
    clean = msgspec.json.decode(redact_body(encode_body({"output": [value, f"<{secret}>"]}), knows(secret)))
    assert secret not in clean["output"][1] or secret in REDACTED
