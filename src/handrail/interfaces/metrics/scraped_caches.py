"""What the caches of a running process counted, read from its `/metrics`.

Only that process knows it. The text is ours (exposition.py), so that no library is needed to read it."""

from __future__ import annotations

import re
import urllib.request
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from handrail.domain.errors import Unavailable
from handrail.domain.metrics import catalog
from handrail.engine.measuring.cache_use import CacheCount
from handrail.interfaces.metrics.metrics_part import PATH, TOKEN_FILE
from handrail.interfaces.web.token_file import open_token

ASK_S: Final = 10.0
TEXT_MAX: Final = 20_000_000

_sample = re.compile(r"^(\w+)\{([^}]*)\} (\S+)$", re.MULTILINE)
_label = re.compile(r'(\w+)="([^"]*)"')


def scraped(home: Path, url: str) -> Mapping[str, tuple[CacheCount, int]]:
    """By name of the cache: what was counted, and how many entries there are; Unavailable if nobody answers."""
    token, _ = open_token(home, TOKEN_FILE)
    request = urllib.request.Request(  # noqa: S310 - of this home, or named by its user
        f"{url.rstrip('/')}{PATH}", headers={"authorization": f"Bearer {token}"}
    )
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # no proxy may see the token
    try:
        with direct.open(request, timeout=ASK_S) as answer:
            return caches_in(answer.read(TEXT_MAX).decode())
    except (OSError, ValueError) as error:
        raise Unavailable(
            f"{url} does not say what its caches did: {error}",
            hint="give the address of `handrail serve`, or of `handrail worker --metrics`, of this home",
        ) from error


def caches_in(text: str) -> Mapping[str, tuple[CacheCount, int]]:
    """The same, from the text of a scrape."""
    found: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for name, labels, value in _sample.findall(text):
        label = dict(_label.findall(labels))
        if "cache" in label:
            found[label["cache"]][f"{name} {label.get('result', '')}".strip()] = float(value)
    return {
        cache: (_count(values), int(values.get(catalog.CACHE_ENTRIES.exposed, 0))) for cache, values in found.items()
    }


def _count(values: Mapping[str, float]) -> CacheCount:
    requests, seconds = catalog.CACHE_REQUESTS.exposed, catalog.CACHE_SECONDS.exposed
    return CacheCount(
        hits=int(values.get(f"{requests} hit", 0)),
        misses=int(values.get(f"{requests} miss", 0)),
        hit_s=values.get(f"{seconds} hit", 0.0),
        miss_s=values.get(f"{seconds} miss", 0.0),
        made=int(values.get(catalog.CACHE_MADE.exposed, 0)),
    )
