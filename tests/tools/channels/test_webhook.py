"""Webhooks to a real receiver: signed as Standard Webhooks says, to nowhere but where the owner allows, and every
answer means one thing."""

from __future__ import annotations

import asyncio
import base64
import json
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from standardwebhooks import Webhook, WebhookVerificationError

from handrail.domain.errors import Forbidden, Invalid, NotFound
from handrail.domain.notify.channel import SlackChannel, WebhookChannel
from handrail.domain.notify.notice import Notice
from handrail.engine.clock import system_clock, system_entropy
from handrail.engine.known_secrets import KnownSecrets
from handrail.engine.notify.sender import NotSent
from handrail.engine.secrets import Secret
from handrail.tools.channels.channel_secrets import ChannelSecrets
from handrail.tools.channels.posting import Posting
from handrail.tools.channels.webhook import SlackSender, WebhookSender
from handrail.tools.channels.webhook_keys import new_secret, receivers_key
from tools.loopback import Asked, Loopback, reply, serving

LOOPBACK = ("127.0.0.1", "localhost")
NOTICE = Notice(
    id="ntc_1",
    when="run_failed",
    at=1_763_230_000_000,
    subject="run_abc",
    text="run_abc <failed> & \N{SNOWMAN}",
    source="st_1",
    data={"run": "run_abc", "n": 3},
)


class Given:
    """Secrets that a test sets."""

    def __init__(self, **values: str) -> None:
        self.values = values
        self.given_to = ("notify.ops",)

    def find(self, name: str) -> Secret | None:
        value = self.values.get(name)
        return Secret(value=value, given_to=self.given_to) if value is not None else None


def sender(
    url: str, given: Given, *, post_s: float = 5.0, allow: tuple[str, ...] = LOOPBACK, **more: str
) -> WebhookSender:
    channel = WebhookChannel(url=url, secret="key", allow=allow, **more)
    secrets = ChannelSecrets("ops", given, KnownSecrets())
    return WebhookSender(channel, secrets, Posting(allow, post_s=post_s))


def secret_of(kind: str = "hmac") -> str:
    return new_secret(system_entropy, is_ed25519=kind == "ed25519")


async def send(made: WebhookSender) -> None:
    try:
        await made.send(NOTICE, now=system_clock())
    finally:
        await made.close()


async def sent(loopback: Loopback, given: Given, path: str = "/in", **more: Any) -> Asked:
    await send(sender(loopback.url(path), given, **more))
    return loopback.asked[-1]


async def test_a_webhook_is_a_cloud_event_that_standard_webhooks_verifies() -> None:
    given = Given(key=secret_of())
    async with serving({"/in": reply(204)}) as loopback:
        asked = await sent(loopback, given)
    body = Webhook(given.values["key"]).verify(asked.body, asked.headers)
    assert asked.method == "POST"
    assert asked.headers["content-type"] == "application/cloudevents+json"
    assert body == {
        "specversion": "1.0",
        "id": "ntc_1",
        "source": "urn:handrail:store:st_1",
        "type": "handrail.run_failed",
        "time": "2025-11-15T18:06:40Z",
        "subject": "run_abc",
        "datacontenttype": "application/json",
        "data": {"text": NOTICE.text, "run": "run_abc", "n": 3},
    }
    with pytest.raises(WebhookVerificationError):
        Webhook(given.values["key"]).verify(asked.body + b" ", asked.headers)
    with pytest.raises(WebhookVerificationError):
        Webhook(secret_of()).verify(asked.body, asked.headers)


async def test_while_keys_change_both_sign_and_afterwards_only_the_new_one() -> None:
    given = Given(key=secret_of(), old=secret_of())
    async with serving({"/in": reply(200, b"taken")}) as loopback:
        made = sender(loopback.url("/in"), given, old_secret="old")
        await made.send(NOTICE, now=system_clock())
        old = given.values.pop("old")
        await made.send(NOTICE, now=system_clock())
        await made.close()
        both, one = loopback.asked
    for secret in (given.values["key"], old):
        Webhook(secret).verify(both.body, both.headers)
    Webhook(given.values["key"]).verify(one.body, one.headers)
    with pytest.raises(WebhookVerificationError):
        Webhook(old).verify(one.body, one.headers)


async def test_a_private_key_signs_so_that_receivers_need_no_secret() -> None:
    given = Given(key=secret_of("ed25519"))
    async with serving({"/in": reply(204)}) as loopback:
        asked = await sent(loopback, given)
    version, _, signature = asked.headers["webhook-signature"].partition(",")
    public = receivers_key(given.values["key"])
    assert (version, public[:5]) == ("v1a", "whpk_")
    signed = f"{asked.headers['webhook-id']}.{asked.headers['webhook-timestamp']}.".encode() + asked.body
    key = Ed25519PublicKey.from_public_bytes(base64.b64decode(public.removeprefix("whpk_")))
    key.verify(base64.b64decode(signature), signed)


@pytest.mark.parametrize(
    ("answer", "words", "wait_ms", "is_final"),
    [
        (reply(500), "answered 500", 0, False),
        (reply(302, location="http://127.0.0.1:1/other"), "redirects are not followed", 0, False),
        (reply(429, retry_after="7"), "answered 429", 7_000, False),
        (reply(410), "answered 410", 0, True),
        (b"", "127.0.0.1", 0, False),
    ],
)
async def test_every_other_answer_means_that_it_did_not_arrive(
    answer: bytes, words: str, wait_ms: int, is_final: bool
) -> None:
    async with serving({"/in": answer}) as loopback:
        with pytest.raises(NotSent, match=words) as found:
            await sent(loopback, Given(key=secret_of()), post_s=0.5)
        assert len(loopback.asked) >= 1
        assert {one.path for one in loopback.asked} == {"/in"}
    failed = found.value.failed
    assert (failed.retry_after_ms, failed.is_final) == (wait_ms, is_final)


async def test_a_receiver_that_nobody_listens_at_has_not_got_it() -> None:
    with pytest.raises(NotSent, match=r"127\.0\.0\.1"):
        await send(sender("http://127.0.0.1:9/in", Given(key=secret_of())))


@pytest.mark.parametrize(
    ("url", "allow", "error", "words"),
    [
        ("https://127.0.0.1:9/secret-path", (), NotSent, "not a public address"),
        ("https://169.254.169.254/secret-path", LOOPBACK, NotSent, "not a public address"),
        ("http://127.0.0.1:9/secret-path", ("127.0.0.1:10",), Invalid, "without TLS"),
        ("http://user:word@127.0.0.1/secret-path", LOOPBACK, Invalid, "can't be used"),
        ("ftp://127.0.0.1/secret-path", LOOPBACK, Invalid, "can't be used"),
    ],
)
async def test_nothing_is_sent_to_where_the_owner_does_not_allow_it(
    url: str, allow: tuple[str, ...], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words) as found:
        await send(sender(url, Given(key=secret_of()), allow=allow))
    assert "secret-path" not in str(found.value)


async def test_a_secret_that_is_missing_wrong_or_for_others_says_how_to_set_it() -> None:
    url = "http://127.0.0.1:9/in"
    with pytest.raises(NotFound) as missing:
        await sender(url, Given()).send(NOTICE, now=0)
    assert "for notify.ops" in missing.value.hint
    other = Given(key=secret_of())
    other.given_to = ("git.*",)
    with pytest.raises(Forbidden):
        await sender(url, other).send(NOTICE, now=0)
    for value in ("no-key-at-all", "whsec_!!", "whsec_c2hvcnQ=", "whsk_c2hvcnQ="):
        with pytest.raises(Invalid) as wrong:
            await sender(url, Given(key=value)).send(NOTICE, now=0)
        assert value not in str(wrong.value)


async def test_slack_gets_a_line_of_text_and_its_address_is_a_secret() -> None:
    async with serving({"/hook": reply(200, b"ok"), "/bad": reply(403)}) as loopback:
        given = Given(where=loopback.url("/hook") + "\n")
        known = KnownSecrets()
        slack = SlackSender(
            SlackChannel(url_secret="where", allow=LOOPBACK), ChannelSecrets("ops", given, known), Posting(LOOPBACK)
        )
        await slack.send(NOTICE, now=0)
        given.values["where"] = loopback.url("/bad")
        with pytest.raises(NotSent) as found:
            await slack.send(NOTICE, now=0)
        await slack.close()
        assert json.loads(loopback.asked[0].body) == {"text": "run_abc &lt;failed&gt; &amp; \N{SNOWMAN}"}
        assert "/bad" not in str(found.value)
        assert "/bad" not in known.scrubber().text(f"posted to {loopback.url('/bad')}")


async def test_the_receiver_of_the_examples_takes_what_is_signed_once_and_nothing_else(tmp_path: Path) -> None:
    import sys

    script = Path(__file__).parents[3] / "examples" / "webhook-receiver" / "receiver.py"
    given = Given(key=secret_of())
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, str(script), "0"),
        env={"WEBHOOK_SECRET": f"{secret_of()} {given.values['key']}"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=tmp_path,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        url = (await process.stderr.readline()).decode().split()[-1]
        made = sender(f"{url}in", given)
        for _ in range(2):
            await made.send(NOTICE, now=system_clock())
        with pytest.raises(NotSent, match="answered 401"):
            await made.send(NOTICE, now=system_clock() - 400_000)
        with pytest.raises(NotSent, match="answered 401"):
            await send(sender(f"{url}in", Given(key=secret_of())))
        await made.close()
    finally:
        process.terminate()
        await process.wait()
    assert (await process.stdout.read()).decode().splitlines() == [
        f"2025-11-15T18:06:40Z handrail.run_failed run_abc {NOTICE.text}"
    ]
