"""Addresses as they may be shown."""

from __future__ import annotations

import pytest

from handrail.foundation.address_text import passwords_in, without_password


@pytest.mark.parametrize(
    ("address", "shown", "hidden"),
    [
        ("postgresql://ann:sword%40fish@h/b", "postgresql://ann:***@h/b", {"sword%40fish", "sword@fish"}),
        ("postgresql://h/b?password=x1&sslmode=on", "postgresql://h/b?password=***&sslmode=on", {"x1"}),
        ("https://w/in?a=1&Sig=x2&TOKEN=x3#end", "https://w/in?a=1&Sig=***&TOKEN=***#end", {"x2", "x3"}),
        ("https://w/in?monkey=x4", "https://w/in?monkey=x4", set()),
        ("file:/srv/audit", "file:/srv/audit", set()),
    ],
)
def test_an_address_is_shown_without_what_opens_it(address: str, shown: str, hidden: set[str]) -> None:
    assert without_password(address) == shown
    assert passwords_in(address) == hidden
