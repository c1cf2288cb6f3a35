"""All spellings in which a secret must be found, by name."""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Callable, Mapping
from urllib.parse import quote, quote_plus, urlencode


def in_json(value: str) -> str:
    return json.dumps(value)[1:-1]


def percent(value: str) -> str:
    return "".join(f"%{byte:02X}" for byte in value.encode())


def units(value: str) -> str:
    pairs = value.encode("utf-16-be")
    return "".join(f"\\u{high:02x}{low:02x}" for high, low in zip(pairs[::2], pairs[1::2], strict=True))


def named(value: str) -> str:
    names = {'"': "&quot;", "/": "&sol;", "+": "&plus;", "&": "&amp;", "\n": "&NewLine;", "?": "&quest;"}
    names |= {"=": "&equals;", "ä": "&auml;", "_": "&lowbar;"}
    return "".join(names.get(character, character) for character in value)


def wrapped(encoded: str) -> str:
    return "\n".join(encoded[at : at + 76] for at in range(0, len(encoded), 76))


SPELLED: Mapping[str, Callable[[str], str]] = {
    "as it is": str,
    "json": in_json,
    "json in utf-8": lambda value: json.dumps(value, ensure_ascii=False)[1:-1],
    "json in json": lambda value: in_json(in_json(value)),
    "json in json in json": lambda value: in_json(in_json(in_json(value))),
    "json with slashes": lambda value: in_json(value).replace("/", "\\/"),
    "units": units,
    "units in capitals": lambda value: units(value).upper().replace("U", "u"),
    "units in json": lambda value: in_json(units(value)),
    "bytes of python": lambda value: "".join(f"\\x{byte:02x}" for byte in value.encode()),
    "percent": lambda value: quote(value, safe=""),
    "percent, path": quote,
    "percent, all": percent,
    "percent, small": lambda value: percent(value).lower(),
    "percent, form": quote_plus,
    "percent, twice": lambda value: quote(quote(value, safe=""), safe=""),
    "query": lambda value: urlencode({"key": value}),
    "html": html.escape,
    "html, named": named,
    "html, decimal": lambda value: "".join(f"&#{ord(character)};" for character in value),
    "html, hex": lambda value: "".join(f"&#x{ord(character):x};" for character in value),
    "html, hex capitals": lambda value: "".join(f"&#X{ord(character):X};" for character in value),
    "html in json": lambda value: in_json(html.escape(value)),
    "hex": lambda value: value.encode().hex(),
    "hex in capitals": lambda value: value.encode().hex().upper(),
    **{
        f"hex, `{separator}` between": lambda value, separator=separator: (
            value.encode()  # type: ignore[misc]
            .hex("|")
            .replace("|", separator)
        )
        for separator in (":", " ", "-", " 0x", ", 0x", ",0x")
    },
    "hex, capitals and colons": lambda value: value.encode().hex(":").upper(),
    "hex of utf-16": lambda value: value.encode("utf-16-le").hex(),
    "hex of utf-16, big end first": lambda value: value.encode("utf-16-be").hex().upper(),
    "octal": lambda value: "".join(f"\\{byte:03o}" for byte in value.encode()),
    "octal, of a shell": lambda value: "".join(f"\\0{byte:03o}" for byte in value.encode()),
    "octal in json": lambda value: in_json("".join(f"\\{byte:03o}" for byte in value.encode())),
    "wide units": lambda value: "".join(f"\\U{ord(character):08x}" for character in value),
    "units in braces": lambda value: "".join(f"\\u{{{ord(character):x}}}" for character in value),
    "bytes in braces": lambda value: "".join(f"\\x{{{ord(character):X}}}" for character in value),
    "base64 of utf-16": lambda value: base64.b64encode(value.encode("utf-16-le")).decode(),
    "base64 of utf-16 with its mark": lambda value: base64.b64encode(value.encode("utf-16")).decode(),
    "base64 of utf-16, big end first": lambda value: base64.b64encode(value.encode("utf-16-be")).decode(),
    "base64 of json": lambda value: base64.b64encode(json.dumps({"key": value}).encode()).decode(),
    "base64 of json in utf-8": lambda value: base64.b64encode(
        json.dumps({"key": value}, ensure_ascii=False).encode()
    ).decode(),
    "base64": lambda value: base64.b64encode(value.encode()).decode(),
    "base64, one before": lambda value: base64.b64encode(b"a" + value.encode()).decode(),
    "base64, two before": lambda value: base64.b64encode(b"a:" + value.encode() + b"after").decode(),
    "base64, no padding": lambda value: base64.b64encode(value.encode()).decode().rstrip("="),
    "base64, url": lambda value: base64.urlsafe_b64encode(value.encode()).decode(),
    "base64, url, one before": lambda value: base64.urlsafe_b64encode(b"?" + value.encode()).decode(),
    "base64, url, no padding": lambda value: base64.urlsafe_b64encode(b"??" + value.encode()).decode().rstrip("="),
    "base64, percent": lambda value: quote(base64.b64encode(value.encode()).decode(), safe=""),
    "base64, json": lambda value: base64.b64encode(value.encode()).decode().replace("/", "\\/"),
    "base64, lines": lambda value: wrapped(base64.b64encode(b"x" * 50 + value.encode() + b"y" * 50).decode()),
    "base32": lambda value: base64.b32encode(value.encode()).decode(),
    "base32, small": lambda value: base64.b32encode(value.encode()).decode().lower(),
    **{
        f"base32, {before} before": lambda value, before=before: base64.b32encode(  # type: ignore[misc]
            b"a" * before + value.encode() + b"after"
        ).decode()
        for before in range(1, 5)
    },
}
