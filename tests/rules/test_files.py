"""Rules about files: they look inside the project alone, within bounds, and say what is wrong with a place."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from handrail.rules.files import project as project_module
from handrail.rules.files.file_contains import file_contains
from handrail.rules.files.file_exists import file_exists
from handrail.rules.files.project import PathRefused, is_in, literal_folder, project_at
from handrail.rules.function_rule import FINDINGS_MAX
from rules.on_project import found, reported, setting_of, write


async def test_a_file_that_is_there_is_enough(tmp_path: Path) -> None:
    write(tmp_path, {"a.py": "x", "docs/b.md": "y"})
    assert await reported(file_exists, tmp_path, path="a.py") == []
    assert await reported(file_exists, tmp_path, paths=["a.py", "docs"]) == []
    assert await reported(file_exists, tmp_path, path="docs/b.md", kind="file", min_bytes=1) == []
    assert await reported(file_exists, tmp_path, path="docs/", kind="folder") == []


async def test_a_file_that_is_missing_is_named_with_what_to_do(tmp_path: Path) -> None:
    [finding] = await found(file_exists, tmp_path, path="tests/test_empty.py")
    assert finding.where == "tests/test_empty.py"
    assert finding.message == "tests/test_empty.py does not exist"
    assert finding.fix == "create it, or submit the path you wrote"
    assert await reported(file_exists, tmp_path, path="a.py/b") == [("a.py/b", "a.py/b does not exist")]


async def test_a_file_of_another_kind_or_too_small_is_reported(tmp_path: Path) -> None:
    write(tmp_path, {"a.py": "", "docs/b.md": "y"})
    os.mkfifo(tmp_path / "pipe")
    assert await reported(file_exists, tmp_path, path="docs", kind="file") == [("docs", "docs is a folder, not a file")]
    assert await reported(file_exists, tmp_path, path="a.py", kind="folder") == [
        ("a.py", "a.py is a file, not a folder")
    ]
    [(_, message)] = await reported(file_exists, tmp_path, path="a.py", min_bytes=5)
    assert message == "a.py has 0 bytes, at least 5 are needed"
    assert await reported(file_exists, tmp_path, path="pipe") == [("pipe", "pipe is neither file nor folder")]


@pytest.mark.parametrize(("rule", "more"), [(file_exists, {}), (file_contains, {"text": "root"})])
@pytest.mark.parametrize(
    "path", ["/etc/passwd", "../secret", "out/passwd", "a\0b", "a/../../secret", "x" * 2_000, "a\ud800"]
)
async def test_no_path_leads_out_of_the_project(tmp_path: Path, rule: Any, more: dict[str, str], path: str) -> None:
    inside = tmp_path / "project"
    write(tmp_path, {"secret": "root", "project/a/x": ""})
    (inside / "out").symlink_to("/etc")
    [finding] = await found(rule, inside, path=path, **more)
    assert "leads out of the project" in finding.message or "control characters" in finding.message
    assert await rule.inputs({"path": path, **more}, setting_of(inside)) != await rule.inputs(
        {"path": "a/x", **more}, setting_of(inside)
    )
    finding.message.encode()
    finding.where.encode()


async def test_a_link_that_stays_inside_is_followed_and_a_ring_is_not(tmp_path: Path) -> None:
    write(tmp_path, {"real/a.txt": "hello"})
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "ring").symlink_to("ring")
    assert await reported(file_contains, tmp_path, path="link/a.txt", text="hello") == []
    [(_, message)] = await reported(file_exists, tmp_path, path="ring")
    assert message in {"ring leads nowhere", "ring is neither file nor folder"}


async def test_private_folders_are_closed_however_they_are_spelled(tmp_path: Path) -> None:
    write(tmp_path, {"home/key": "secret"})
    (tmp_path / "door").symlink_to("home")
    for path in ("home/key", "door/key", "./home//key", "home"):
        [(_, message)] = await reported(file_exists, tmp_path, tmp_path / "home", tmp_path / "none", path=path)
        assert message == f"{path} belongs to handrail itself"
    [finding] = await found(file_contains, tmp_path, tmp_path / "home", path="door/key", text="secret")
    assert "belongs to handrail itself" in finding.message
    assert await reported(file_exists, tmp_path, tmp_path / "home", path="homely") == [
        ("homely", "homely does not exist")
    ]


async def test_what_a_file_must_say_is_looked_for(tmp_path: Path) -> None:
    write(tmp_path, {"log.md": "# Log\n## 1.2.3\nfixed\n"})
    assert await reported(file_contains, tmp_path, path="log.md", text="1.2.3") == []
    assert await reported(file_contains, tmp_path, path="log.md", texts=["Log", "fixed"], pattern=r"## \d+\.\d+") == []
    assert await reported(file_contains, tmp_path, path="log.md", texts=["Log", "2.0"]) == [
        ("log.md", "`2.0` is not in log.md")
    ]
    [(_, message)] = await reported(file_contains, tmp_path, path="log.md", pattern="^broken")
    assert message == "a match of `^broken` is not in log.md"
    [(_, message)] = await reported(file_contains, tmp_path, path="none.md", text="a")
    assert message == "none.md can't be read: No such file or directory"
    [(_, message)] = await reported(file_contains, tmp_path, path=".", text="a")
    assert message == ". is not a plain file"


async def test_what_a_file_must_not_say_is_reported_line_by_line(tmp_path: Path) -> None:
    write(tmp_path, {"a.py": "one\n  # TODO later\n" + "# TODO\n" * 9})
    findings = await found(file_contains, tmp_path, path="a.py", text="TODO", absent=True)
    assert [one.where for one in findings] == ["a.py:2", "a.py:3", "a.py:4"]
    assert findings[0].excerpt == "# TODO later"
    assert findings[0].message == "`TODO` is in a.py, 10 lines in all"
    assert await reported(file_contains, tmp_path, path="a.py", pattern="on[e]", absent=True) == [
        ("a.py:1", "a match of `on[e]` is in a.py")
    ]
    assert await reported(file_contains, tmp_path, path="a.py", text="one\n ", absent=True) == [
        ("a.py", "`one?` is in a.py".replace("one?", "one? "))
    ]
    assert await reported(file_contains, tmp_path, path="a.py", text="none", absent=True) == []


async def test_a_check_without_anything_to_look_for_can_not_be_applied(tmp_path: Path) -> None:
    write(tmp_path, {"a": "x"})
    assert "can't be applied" in (await reported(file_exists, tmp_path))[0][1]
    assert "can't be applied" in (await reported(file_contains, tmp_path, path="a"))[0][1]
    assert "can't be applied" in (await reported(file_contains, tmp_path, path="a", pattern="(?=a)"))[0][1]


async def test_a_hostile_pattern_takes_no_time(tmp_path: Path) -> None:
    write(tmp_path, {"a": "a" * 100_000})
    assert len(await reported(file_contains, tmp_path, path="a", pattern="^(a+)+$b")) == 1


async def test_many_findings_are_counted_not_reported(tmp_path: Path) -> None:
    findings = await found(file_exists, tmp_path, paths=[f"f{count}" for count in range(50)])
    assert len(findings) == FINDINGS_MAX + 1
    assert findings[-1].message == "and 30 more like these"


async def test_a_file_is_read_within_a_bound(tmp_path: Path) -> None:
    write(tmp_path, {"a": "12345"})
    place = project_at(tmp_path, [])
    assert place.read("a", bytes_max=5) == b"12345"
    with pytest.raises(PathRefused, match="larger than 4 bytes"):
        place.read("a", bytes_max=4)


async def test_a_link_that_is_swapped_in_meanwhile_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, {"out/a": "secret", "in/sub/a": "fine"})
    place = project_at(tmp_path / "in", [])

    def swapped(self: project_module.ProjectFiles, path: str) -> Path:
        return self.root / path  # as it was resolved a moment ago

    (tmp_path / "in" / "door").symlink_to(tmp_path / "out")
    (tmp_path / "in" / "leaf").symlink_to(tmp_path / "out" / "a")
    monkeypatch.setattr(project_module.ProjectFiles, "place", swapped)
    assert place.read("sub/a") == b"fine"
    for path, words in (("door/a", "can't be read: Not a directory"), ("leaf", "is not a plain file")):
        with pytest.raises(PathRefused, match=f"^{path} {words}$"):
            place.read(path)


async def test_without_handles_for_folders_files_are_read_by_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(project_module, "HAS_HANDLES", False)
    write(tmp_path, {"a/b": "x"})
    assert project_at(tmp_path, []).read("a/b") == b"x"


async def test_a_place_that_can_not_be_looked_at_is_reported(tmp_path: Path) -> None:
    with pytest.raises(PathRefused, match=r"can't be checked|leads nowhere"):
        project_at(tmp_path, []).status("/".join(["n" * 300, "x"]))


@pytest.mark.parametrize(
    ("path", "glob", "fits"),
    [
        ("a.py", "a.py", True),
        ("a.py", "*.py", True),
        ("src/a.py", "*.py", False),
        ("src/a.py", "**/*.py", True),
        ("a.py", "**/*.py", True),
        ("src/x/y/a.py", "src/**/a.py", True),
        ("src/x/y/a.py", "src/**/b.py", False),
        ("src/a.py", "src", True),
        ("src/a.py", "src/", True),
        ("src/a.py", "./src/*", True),
        ("src/x/a.py", "src/*", False),
        ("src/x/a.py", "src/**", True),
        ("srcs/a.py", "src", False),
        ("src/a.py", "s?c/[ab].py", True),
        ("src/c.py", "s?c/[ab].py", False),
        ("anything/at/all", ".", True),
        ("sub/", "sub", True),
        ("sub/", "*", True),
        ("x/" * 400 + "y", "**/a/" * 100 + "*", False),
    ],
)
def test_globs_name_paths_as_people_expect(path: str, glob: str, fits: bool) -> None:
    assert is_in(path, [glob]) is fits


def test_a_glob_is_looked_for_from_its_last_plain_folder_on() -> None:
    assert literal_folder("src/a/**/*.py") == "src/a"
    assert literal_folder("./build/out.txt") == "build/out.txt"
    assert literal_folder("*.py") == ""


async def test_what_a_rule_depends_on_changes_with_the_file(tmp_path: Path) -> None:
    write(tmp_path, {"a": "x"})
    before = await file_exists.inputs({"path": "a"}, setting_of(tmp_path))
    content = await file_contains.inputs({"path": "a"}, setting_of(tmp_path))
    assert before == await file_exists.inputs({"path": "a"}, setting_of(tmp_path))
    write(tmp_path, {"a": "xy"})
    assert before != await file_exists.inputs({"path": "a"}, setting_of(tmp_path))
    assert content != await file_contains.inputs({"path": "a"}, setting_of(tmp_path))
    assert await file_contains.inputs({"path": "none"}, setting_of(tmp_path)) == ""
