"""Projects: names that carry one, and the words of a refusal."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from handrail.domain.errors import Invalid
from handrail.domain.project import (
    Project,
    plan_in,
    plan_stream,
    quoted,
    refusal,
    scoped,
    server_in,
    server_stream,
    unknown_project,
    unscoped,
)

SHOP = Project(id="prj_22222222", folder="/home/ann/my shop", name="my shop")


@pytest.mark.parametrize("name", ["ship", "acme/ship", "prj", "prj-22222222/ship"])
def test_a_scoped_name_is_taken_apart_again_and_a_plain_one_has_no_project(name: str) -> None:
    assert unscoped(scoped(SHOP.id, name)) == (SHOP.id, name)
    assert unscoped(scoped("", name)) == ("", name)


def test_the_streams_of_two_projects_are_two_and_those_from_before_are_kept() -> None:
    assert plan_stream("", "ship") == "plan/ship"
    assert plan_stream(SHOP.id, "acme/ship") == "plan/prj_22222222/acme/ship"
    assert plan_in("plan/prj_22222222/acme/ship") == (SHOP.id, "acme/ship")
    assert plan_in("plan/acme/ship") == ("", "acme/ship")
    assert server_stream(SHOP.id, "http:ci.example:443") == "server/prj_22222222/http:ci.example:443"
    assert server_in("server/http:ci.example:443") == ("", "http:ci.example:443")


@pytest.mark.parametrize("stream", [plan_stream, server_stream])
@pytest.mark.parametrize("project", ["", "prj_33333333"])
def test_a_name_that_carries_a_project_has_no_stream(stream: Callable[[str, str], str], project: str) -> None:
    with pytest.raises(Invalid, match="'prj_22222222/ship' names a project"):
        stream(project, "prj_22222222/ship")


def test_a_refusal_names_the_project_its_folder_and_the_command_that_works() -> None:
    error = refusal("run_a", SHOP.id, lambda _: SHOP)
    assert str(error) == "run_a belongs to another project: my shop, in /home/ann/my shop"
    there = "work on it from there: `handrail --project '/home/ann/my shop' ...`"
    assert error.hint == f"{there}; if that folder was moved: `handrail project move prj_22222222 FOLDER`"
    assert (error.name, error.code) == ("conflict", -32003)


@pytest.mark.parametrize(("project", "words"), [("", "no project"), ("prj_33333333", "was forgotten")])
def test_a_run_without_a_project_is_to_be_adopted(project: str, words: str) -> None:
    error = refusal("run_a", project, unknown_project)
    assert words in str(error)
    assert "`handrail project adopt run_a`" in error.hint


@pytest.mark.parametrize(
    ("folder", "word"),
    [("/a/b-c_1.d", "/a/b-c_1.d"), ("/a b", "'/a b'"), ("/a'b", "'/a'\"'\"'b'"), ("/$(x)", "'/$(x)'"), ("", "''")],
)
def test_a_folder_is_one_word_of_a_command_line(folder: str, word: str) -> None:
    assert quoted(folder) == word
