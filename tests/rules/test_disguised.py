"""Secrets in disguise are found; what only looks like an encoding is not."""

from __future__ import annotations

import base64

import pytest

from handrail.rules.files.disguised import disguised

TOKEN = "ghp_" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE3fG5"


@pytest.mark.parametrize(
    ("text", "how"),
    [
        (f'token = "{base64.b64encode(TOKEN.encode()).decode()}"', "in Base64"),
        (f"{base64.urlsafe_b64encode(b'x: ' + TOKEN.encode()).decode()}", "in Base64"),
        (f'bytes.fromhex("{TOKEN.encode().hex()}")', "in hexadecimal"),
        (f'"{TOKEN[::-1]}"[::-1]', "backwards"),
        (f'"{TOKEN[:9]}" + "{TOKEN[9:]}"', "in parts"),
        (f"['{TOKEN[:9]}', '{TOKEN[9:20]}', '{TOKEN[20:]}'].join('')", "in parts"),
        (f'(\n    "{TOKEN[:9]}"\n    "{TOKEN[9:]}"\n)', "in parts"),
    ],
)
def test_a_secret_in_disguise_is_found(text: str, how: str) -> None:
    [(start, end, kind)] = disguised(text)
    assert kind == f"github token, {how}"
    assert 0 <= start < end <= len(text)


@pytest.mark.parametrize(
    "text",
    [
        "sha256:" + "0123456789abcdef" * 4,
        base64.b64encode(b"a picture, or any other content of a file" * 9).decode(),
        '["alpha", "beta", "gamma"]',
        '"password" + "=" + "abcdef123"',
        "integrity sha512-" + base64.b64encode(bytes(range(64))).decode(),
    ],
)
def test_other_texts_are_none(text: str) -> None:
    assert list(disguised(text)) == []
