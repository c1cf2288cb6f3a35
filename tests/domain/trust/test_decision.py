"""A decision counts for exactly the content that a person saw."""

from __future__ import annotations

from handrail.domain.trust.decision import (
    ItemChange,
    ProjectTrust,
    TrustDecision,
    TrustItem,
    TrustState,
    changes,
    content_digest,
    off_words,
    trust_of,
    untrusted_words,
)

ITEM = TrustItem("calls", "9")
DECISION = TrustDecision(project="/p", digest="sha256:a", by="person:ada", at="now", items=(ITEM,))


def state(decision: TrustDecision | None, digest: str, *, items: bool = True, servers: bool = False) -> TrustState:
    return trust_of(decision, digest=digest, settings=[ITEM] if items else [], has_servers=servers).state


def test_only_the_same_content_is_trusted() -> None:
    assert state(DECISION, "sha256:a") is TrustState.TRUSTED
    assert state(DECISION, "sha256:b") is TrustState.CHANGED
    assert state(None, "sha256:a") is TrustState.NEVER
    assert state(None, "sha256:a", items=False) is TrustState.NOTHING
    assert state(None, "sha256:a", items=False, servers=True) is TrustState.NEVER
    assert state(DECISION, "sha256:b", items=False) is TrustState.NOTHING


def test_the_digest_changes_with_every_file_and_with_which_there_are() -> None:
    digests = [
        content_digest({"a": b"1", "b": None}),
        content_digest({"a": b"2", "b": None}),
        content_digest({"a": b"1", "b": b""}),
        content_digest({"a": None, "b": b"1"}),
        content_digest({"a": None, "b": None}),
    ]
    assert len(set(digests)) == len(digests)


def test_a_difference_has_what_is_new_changed_and_gone() -> None:
    now = [TrustItem("calls", "9"), TrustItem("new", "1"), TrustItem("other", "2")]
    before = [TrustItem("calls", "9"), TrustItem("other", "1"), TrustItem("gone", "0")]
    assert changes(before, now) == [
        ItemChange("new", None, "1"),
        ItemChange("other", "1", "2"),
        ItemChange("gone", "0", None),
    ]


def test_what_is_off_is_said_in_words() -> None:
    off = trust_of(None, digest="d", settings=[ITEM], has_servers=True)
    assert off_words(off) == (
        "this project is not trusted: 2 things in its files are off: calls, the servers of tools.json"
    )
    changed = trust_of(DECISION, digest="d", settings=[ITEM], has_servers=False)
    assert off_words(changed).endswith("has changed since it was trusted: 1 thing in its files is off: calls")
    assert off_words(ProjectTrust()) == ProjectTrust().what_is_off == ""
    assert "have changed since a person trusted them" in untrusted_words("git", TrustState.CHANGED)
    assert "ask a person to look at it and to run `handrail trust`" in untrusted_words("git", TrustState.NEVER)
