"""Reads what caches counted out of the text of a scrape. Pure.

The text is ours (exposition.py), so that no library is needed to read it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping

from handrail.domain.metrics import catalog
from handrail.engine.measuring.cache_states import Counts
from handrail.foundation.cache_use import CacheCount

_sample = re.compile(r"^(\w+)\{([^}]*)\} (\S+)$", re.MULTILINE)
_label = re.compile(r'(\w+)="([^"]*)"')


def caches_in(text: str) -> Counts:
    """By name of the cache: what was counted, and how many entries there are."""
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
