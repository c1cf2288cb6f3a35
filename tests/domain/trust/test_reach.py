"""What a project's config.toml may say for itself."""

from __future__ import annotations

from typing import Any

import pytest

from handrail.domain.trust.reach import (
    ANY_NAME,
    REACH_MEANINGS,
    REACHES,
    UNLISTED,
    Reach,
    project_settings,
    setting_name,
    with_project,
)
from handrail.settings import TABLES, Choices
from handrail.tools.configuration import CallChoice
from handrail.tools.shell import ShellConfiguration


def counted(project: dict[str, Any], home: dict[str, Any] | None = None, *, is_trusted: bool = False) -> Any:
    return with_project(home or {}, project_settings(home or {}, project), is_trusted=is_trusted)


@pytest.mark.parametrize(
    ("home", "stricter", "looser"),
    [
        ({}, {"agents_may_approve": False}, {"agents_may_approve": True}),
        ({"agents_may_approve": True}, {"agents_may_approve": False}, {"agents_may_approve": "yes"}),
        ({}, {"calls": 50}, {"calls": 101}),
        ({"calls": 10}, {"calls": 9}, {"calls": 11}),
        ({}, {"busy": "4s"}, {"busy": "5001ms"}),
        ({}, {"checkpoint_every": 10}, {"checkpoint_every": 1_001}),
        ({"http": {"allow": ["a", "b"]}}, {"http": {"allow": ["b"]}}, {"http": {"allow": ["b", "c"]}}),
        ({}, {"http": {"allow": []}}, {"http": {"allow": ["127.0.0.1"]}}),
        ({"shell": {"allow": True}}, {"shell": {"allow": False}}, {"shell": {"network": True}}),
        ({}, {"shell": {"memory": "512MiB"}}, {"shell": {"memory": "2GiB"}}),
        ({}, {"shell": {"timeout": "1s"}}, {"shell": {"timeout": "61s"}}),
        ({}, {"shell": {"read": []}}, {"shell": {"read": ["/"]}}),
    ],
)
def test_a_stricter_value_counts_at_once_and_a_looser_one_once_trusted(
    home: dict[str, Any], stricter: dict[str, Any], looser: dict[str, Any]
) -> None:
    assert counted(stricter, home) == counted(stricter, home, is_trusted=True) != home
    assert counted(looser, home) == home
    assert counted(looser, home, is_trusted=True) != home


@pytest.mark.parametrize(
    "value",
    [
        {"lease": "1s"},
        {"library": "/x"},
        {"checks": "run"},
        {"groups": {"managers": ["ann"]}},
        {"tools": {"http.request": {"rate": "1/s"}}},
        {"servers": {"git": {"retry": {"attempts": 1}}}},
        {"shell": {"surprise": 1}},
        {"tools": {"file": {"read": {"rate": "1/s"}}}},
        {"calls": "1"},
        {"busy": "soon"},
        {"http": {"allow": "127.0.0.1"}},
    ],
)
def test_what_has_no_stricter_side_or_is_not_known_counts_only_once_trusted(value: dict[str, Any]) -> None:
    assert counted(value) == {}
    assert counted(value, is_trusted=True) == value


def test_what_the_user_has_set_alike_needs_no_trust() -> None:
    home = {"agents_may_approve": True, "lease": "1s", "shell": {"allow": True}}
    assert all(one.counts for one in project_settings(home, home))


def test_what_guards_nothing_counts_at_once_beside_the_users_own() -> None:
    project: dict[str, Any] = {"log_level": "debug", "built_in": False, "models": {"mine": {"tier": "strong"}}}
    assert counted(project, {"models": {"other": {}}}) == {**project, "models": {"other": {}, **project["models"]}}


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ({"store": "x"}, "store"),
        ({"secrets_in": "file"}, "secrets_in"),
        ({"log_days": 1}, "log_days"),
        ({"secrets": {"env": ["A"]}}, "[secrets]"),
        ({"approvals": {"passphrase": "none"}}, "[approvals]"),
        ({"policy": {}}, "[policy]"),
        ({"witnesses": {"a": 1}}, "[witnesses]"),
        ({"checks": {"sandbox": "off"}}, "[checks] sandbox"),
        ({"shell": {"bubblewrap": "./bwrap"}}, "[shell] bubblewrap"),
        ({"shell": {"bubblewrap": {"x": 1}}}, "[shell] bubblewrap"),
    ],
)
def test_what_belongs_to_the_home_never_counts(value: dict[str, Any], name: str) -> None:
    (one,) = project_settings({}, value)
    assert (one.reach, one.name) == (Reach.HOME, name)
    assert counted(value, is_trusted=True) == {}


def test_every_setting_and_table_has_a_reach_and_the_right_default() -> None:
    listed = {one.path: one for one in REACHES}
    assert len(listed) == len(REACHES)
    assert {path[0] for path in listed} == {*Choices.__struct_fields__, *TABLES}
    assert {path[0] for path in listed if len(path) == 1} >= set(Choices.__struct_fields__)
    assert {path[1] for path in listed if path[0] == "shell"} == set(ShellConfiguration.__struct_fields__)
    for name in CallChoice.__struct_fields__:
        for table in ("tools", "servers"):
            (found,) = project_settings({}, {table: {"x.y": {name: 1}}})
            assert found.reach is Reach.TRUSTED
    for path, one in listed.items():
        if one.reach is Reach.TIGHTENS and path[0] != "http":
            defaults: Any = ShellConfiguration() if path[0] == "shell" else Choices()
            assert getattr(defaults, path[-1]) == one.otherwise, path
    assert set(REACH_MEANINGS) == set(Reach)
    assert UNLISTED.reach is Reach.TRUSTED


def test_a_setting_is_named_as_it_is_written() -> None:
    assert setting_name(("calls",)) == "calls"
    assert setting_name(("shell", "allow")) == "[shell] allow"
    assert setting_name(("tools", "http.request", "rate")) == '[tools."http.request"] rate'
    assert setting_name(("groups", ANY_NAME)) == f"[groups] {ANY_NAME}"
