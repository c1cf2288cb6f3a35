"""The table of steps: a new version costs nothing, and an older one still shows what it was."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from handrail.domain.run.versioned_table import VersionedTable

rows = st.dictionaries(st.sampled_from("abcdef"), st.integers(), max_size=4)


@given(st.lists(rows, max_size=8), st.lists(st.integers(0, 8), max_size=8))
def test_every_version_stays_what_it_was_in_whatever_order_they_are_looked_at(
    changes: list[dict[str, int]], looks: list[int]
) -> None:
    version: VersionedTable[int] = VersionedTable()
    versions, models = [version], [dict[str, int]()]
    for change in changes:
        version = version.with_rows(change)
        versions.append(version)
        models.append({**models[-1], **change})
    for look in [*looks, *range(len(versions))]:
        if look < len(versions):
            assert dict(versions[look]) == models[look]
            assert list(versions[look]) == list(models[look])
            assert len(versions[look]) == len(models[look])


def test_two_branches_of_one_version_do_not_see_each_other() -> None:
    base = VersionedTable({"a": 1})
    left, right = base.with_rows({"a": 2}), base.with_rows({"b": 3})
    assert (dict(base), dict(left), dict(right)) == ({"a": 1}, {"a": 2}, {"a": 1, "b": 3})
    assert left != right
    assert repr(left) == "Table({'a': 2})"


def test_a_change_of_nothing_is_the_same_table() -> None:
    table = VersionedTable({"a": 1})
    assert table.with_rows({}) is table
    assert table.get("a") == 1
    assert table.get("b", 5) == 5
