"""What the caches of a running process counted, read from its `/metrics`.

Only that process knows it. Its text is read in cache_samples.py."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from handrail.domain.errors import Unavailable
from handrail.domain.secrets.key_files import TokenName
from handrail.engine.measuring.cache_states import Counts
from handrail.interfaces.metrics.cache_samples import caches_in
from handrail.interfaces.metrics.metrics_part import PATH
from handrail.interfaces.web.own_server import ask_server
from handrail.interfaces.web.token_file import open_token

ASK_S: Final = 10.0
TEXT_MAX: Final = 20_000_000


def scraped(home: Path, url: str) -> Counts:
    """By name of the cache: what was counted, and how many entries there are; Unavailable if there is no answer."""
    token, _ = open_token(home, TokenName.METRICS)
    try:
        with ask_server(f"{url.rstrip('/')}{PATH}", token, within_s=ASK_S) as answer:
            return caches_in(answer.read(TEXT_MAX).decode())
    except (OSError, ValueError) as error:
        raise Unavailable(
            f"{url} does not say what its caches did: {error}",
            hint="give the address of `handrail serve`, or of `handrail worker --metrics`, of this home",
        ) from error
