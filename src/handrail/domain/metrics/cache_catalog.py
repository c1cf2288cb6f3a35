"""The catalogue of caches: every one that there is, at which level, what it keeps, and what bounds it.

The one table: `handrail cache`, `/metrics` and the page about caches read it. What a process keeps because it needs it,
such as idempotency keys, is not a cache, and not here. How often each helped is counted in
foundation/cache_use.py."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from msgspec import Struct


class CacheLevel(StrEnum):
    """Where a cache is, and so who shares it."""

    MEMORY = "memory"
    """In one process, gone with it."""
    DISK = "disk"
    """In HANDRAIL_HOME, for all processes of this home."""
    SHARED = "shared"
    """On a server, for all machines that name it."""


class CacheCard(Struct, frozen=True):
    """One cache."""

    name: str
    level: CacheLevel
    keeps: str
    bound: str
    place: str = ""
    """On disk: its file or folder in HANDRAIL_HOME/cache."""


def _memory(name: str, keeps: str, bound: str) -> CacheCard:
    return CacheCard(name, CacheLevel.MEMORY, keeps, bound)


def _disk(name: str, place: str, keeps: str, bound: str) -> CacheCard:
    return CacheCard(name, CacheLevel.DISK, keeps, bound, place)


RUN_STATES: Final = _memory("run_states", "states of open runs, folded from their events, for changes", "10,000 runs")
RUNS_READ: Final = _memory("runs_read", "states of runs for readers; only new events are read", "100 runs a reader")
AGENDAS: Final = _memory("agendas", "what each run could do next", "50 runs, and those being executed")
DEFINITIONS: Final = _memory("definitions", "definitions that runs are pinned to", "500 definitions")
LOADED: Final = _memory("loaded_definitions", "definitions that were read and checked, by their text", "4 MB of text")
DOCUMENTS: Final = _memory("documents", "files of the library, as parsed", "4 MB of text a library")
AUTHOR_SCHEMAS: Final = _memory("author_schemas", "compiled schemas of authors", "512 schemas")
TREES: Final = _memory("tree_digests", "digests of a project's files, while no file changes", "200,000 files")
FILES: Final = _memory("file_digests", "digests of single files, while the file does not change", "200,000 files")
GIT_FACTS: Final = _memory("git_facts", "what git said of a repository", "100 repositories, 1,000,000 names")
FOLDERS: Final = _memory("folders", "what is in the folders of a project", "200,000 names")
ARCHIVES: Final = _memory("archives", "unpacked archives of ended runs", "4 files of up to 2 MB")
RUN_LISTS: Final = _memory("run_lists", "sorted lists of runs for the console", "16 lists")

CHECK_RESULTS: Final = _disk("check_results", "rules", "results of checks, by all that they read", "1,000, 50 MB")
LIBRARY_INDEX: Final = _disk("library_index", "library.json", "entries of workflow files, by time and size", "20 MB")
RULE_CARDS: Final = _disk("rule_cards", "rule-cards", "cards of rules of installed packages", "one a rule and version")
SERVER_TOOLS: Final = _disk("server_tools", "server-tools", "which tools servers said they have", "one a server, 4 MB")
SERVER_ERAS: Final = _disk("server_eras", "servers.json", "which servers speak the older protocol", "1,000 servers")
AGENT_ANSWERS: Final = _disk("agent_answers", "mcp", "first answers of `handrail mcp`", "20 files of up to 2 MB")

SHARED_RESULTS: Final = CacheCard(
    "shared_results", CacheLevel.SHARED, "sealed results of checks, from all machines", "`keep`, and the server's own"
)

CACHES: Final = (
    RUN_STATES, RUNS_READ, AGENDAS, DEFINITIONS, LOADED, DOCUMENTS, AUTHOR_SCHEMAS, TREES, FILES, GIT_FACTS, FOLDERS,
    ARCHIVES, RUN_LISTS, CHECK_RESULTS, LIBRARY_INDEX, RULE_CARDS, SERVER_TOOLS, SERVER_ERAS, AGENT_ANSWERS,
    SHARED_RESULTS,
)  # fmt: skip
