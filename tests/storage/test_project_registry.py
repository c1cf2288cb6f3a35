"""The registry of projects: one id for one folder, whoever asks, and no guess where its file can't be read."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from handrail.domain.errors import Conflict, HandrailError, IntegrityBroken, Invalid, Limited, NotFound, Unavailable
from handrail.domain.project import UNREGISTERED
from handrail.storage import project_registry
from handrail.storage.project_registry import ProjectRegistry
from support import seeded_entropy

REGISTER = """
import sys
from collections.abc import Callable
from pathlib import Path
from handrail.storage.project_registry import ProjectRegistry
for name in sys.argv[2:]:
    print(ProjectRegistry(Path(sys.argv[1])).register(Path(name)).id)
"""


@pytest.fixture
def registry(tmp_path: Path) -> ProjectRegistry:
    return ProjectRegistry(tmp_path / "home", seeded_entropy())


def folder(tmp_path: Path, name: str) -> Path:
    (tmp_path / name).mkdir()
    return tmp_path / name


def test_a_folder_has_one_id_for_ever_and_its_own_name(registry: ProjectRegistry, tmp_path: Path) -> None:
    shop = registry.register(folder(tmp_path, "shop"))
    assert (shop.name, shop.folder) == ("shop", os.path.realpath(tmp_path / "shop"))
    assert registry.register(tmp_path / "shop") == shop
    assert ProjectRegistry(registry.home).register(tmp_path / "shop") == shop
    assert registry.find(shop.id) == shop
    assert registry.register(folder(tmp_path, "site")).id != shop.id
    assert [one.name for one in registry.all()] == ["shop", "site"]


def test_a_link_to_a_folder_is_that_folder(registry: ProjectRegistry, tmp_path: Path) -> None:
    shop = registry.register(folder(tmp_path, "shop"))
    try:
        (tmp_path / "link").symlink_to(tmp_path / "shop")
    except OSError:  # Windows asks for a right to make links
        pytest.skip("links can't be made here")
    assert registry.register(tmp_path / "link" / ".." / "link") == shop


def test_one_folder_that_is_named_in_two_ways_is_one_project(
    registry: ProjectRegistry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = registry.register(folder(tmp_path, "shop"))
    # As on a file system to which upper and lower case are the same.
    monkeypatch.setattr(Path, "samefile", lambda own, real: str(own).lower() == str(real).lower())
    monkeypatch.setattr(Path, "is_dir", lambda own: True)
    assert registry.register(tmp_path / "Shop") == shop


def test_folders_whose_names_differ_only_in_case_are_two_projects_where_they_are_two_folders(
    registry: ProjectRegistry, tmp_path: Path
) -> None:
    shop = registry.register(folder(tmp_path, "shop"))
    if (tmp_path / "SHOP").exists():
        pytest.skip("upper and lower case are the same here")
    with pytest.raises(NotFound, match="there is no folder"):
        registry.register(tmp_path / "SHOP")
    (tmp_path / "SHOP").mkdir()
    assert registry.at(tmp_path / "SHOP").id != shop.id


def test_looking_registers_nothing(registry: ProjectRegistry, tmp_path: Path) -> None:
    assert registry.at(tmp_path).id == UNREGISTERED
    assert registry.all() == ()
    assert not registry.home.exists()


@pytest.mark.skipif(sys.platform == "win32", reason="a file has no such mode on Windows")
def test_the_file_is_private_whatever_the_umask_is(registry: ProjectRegistry, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        registry.register(tmp_path)
    finally:
        os.umask(before)
    assert registry.file.stat().st_mode & 0o777 == 0o600


def test_processes_that_register_at_the_same_time_agree(registry: ProjectRegistry, tmp_path: Path) -> None:
    folders = [str(folder(tmp_path, f"p{number}")) for number in range(20)]
    command = [sys.executable, "-c", REGISTER, str(registry.home)]
    orders = (folders, folders[::-1])
    processes = [subprocess.Popen([*command, *order], stdout=subprocess.PIPE, text=True) for order in orders]
    one, other = (process.communicate()[0].split() for process in processes)
    assert one == other[::-1]
    assert [project.id for project in sorted(registry.all(), key=lambda project: folders.index(project.folder))] == one


def test_a_project_moves_with_its_id(registry: ProjectRegistry, tmp_path: Path) -> None:
    shop = registry.register(folder(tmp_path, "shop"))
    (tmp_path / "shop").rename(tmp_path / "store")
    moved = registry.move(shop.id, tmp_path / "store")
    assert (moved.id, moved.name) == (shop.id, "store")
    assert registry.register(tmp_path / "store") == moved
    assert registry.register(folder(tmp_path, "shop")).id != shop.id
    with pytest.raises(NotFound, match="there is no folder"):
        registry.move(shop.id, tmp_path / "nowhere")
    with pytest.raises(NotFound, match="there is no project"):
        registry.move("prj_unknown2", tmp_path)


def test_a_project_does_not_move_onto_another_unless_that_one_is_replaced(
    registry: ProjectRegistry, tmp_path: Path
) -> None:
    shop, site = (registry.register(folder(tmp_path, name)) for name in ("shop", "site"))
    with pytest.raises(Conflict, match=site.id):
        registry.move(shop.id, tmp_path / "site")
    assert set(registry.all()) == {shop, site}
    assert registry.move(shop.id, tmp_path / "site", replaces=True).folder == site.folder
    assert [one.id for one in registry.all()] == [shop.id]


def test_a_forgotten_project_is_gone_and_its_folder_gets_another_id(registry: ProjectRegistry, tmp_path: Path) -> None:
    shop = registry.register(tmp_path)
    assert registry.forget(shop.id) == shop
    assert registry.find(shop.id) is None
    assert registry.register(tmp_path).id != shop.id
    with pytest.raises(NotFound, match=shop.id):
        registry.forget(shop.id)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "damaged"),
        ("{", "damaged"),
        ("[]", "damaged"),
        ('{"format":1,"projects":[{"id":"x","folder":"/a"}]}', "damaged"),
        ('{"format":1,"projects":[{"id":"prj_22222222","folder":"/a","more":1}]}', "damaged"),
        ('{"format":1,"projects":[{"id":"prj_22222222"}]}', "damaged"),
        (json.dumps({"projects": 2 * [{"id": "prj_22222222", "folder": "/a"}]}), "twice"),
        ('{"format":2}', "newer handrail"),
    ],
)
def test_a_file_that_cant_be_read_is_an_error_and_is_never_replaced(
    registry: ProjectRegistry, tmp_path: Path, text: str, words: str
) -> None:
    registry.home.mkdir()
    registry.file.write_text(text)
    with pytest.raises(Unavailable, match=words) as refused:
        registry.register(tmp_path)
    assert refused.value.hint
    with pytest.raises(HandrailError):
        registry.at(tmp_path)
    assert registry.file.read_text() == text


def test_what_is_too_much_is_refused(
    registry: ProjectRegistry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry.register(tmp_path)
    monkeypatch.setattr(project_registry, "PROJECTS_MAX", 1)
    with pytest.raises(Limited, match="1 projects"):
        registry.register(folder(tmp_path, "one-more"))
    monkeypatch.setattr(project_registry, "FOLDER_LENGTH_MAX", 3)
    with pytest.raises(Limited, match="path of the project"):
        registry.at(tmp_path)
    monkeypatch.setattr(project_registry, "BYTES_MAX", 3)
    with pytest.raises(IntegrityBroken, match="more than 3 bytes"):
        ProjectRegistry(registry.home).all()


def test_a_path_that_is_no_text_is_refused(registry: ProjectRegistry) -> None:
    with pytest.raises(Invalid, match="not UTF-8"):
        registry.register(Path("/a\udcff"))


def test_a_home_that_cant_be_written_is_reported(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file")
    with pytest.raises(Unavailable, match="can't be written"):
        ProjectRegistry(tmp_path / "home").register(tmp_path)
    (tmp_path / "other" / "projects.json").mkdir(parents=True)
    with pytest.raises(Unavailable, match="can't be read"):
        ProjectRegistry(tmp_path / "other").all()


@pytest.mark.parametrize("below", ["", "keys", "a/deep/folder"])
@pytest.mark.parametrize("is_linked", [False, True])
def test_handrails_own_folder_is_no_project_by_any_way(
    registry: ProjectRegistry, tmp_path: Path, below: str, *, is_linked: bool
) -> None:
    inside = registry.home / below
    inside.mkdir(parents=True)
    given = tmp_path / "link" if is_linked else inside
    if is_linked:
        given.symlink_to(inside)
    other = registry.register(folder(tmp_path, "shop"))
    attempts: list[Callable[[], object]] = [
        lambda: registry.register(given),
        lambda: registry.move(other.id, given),
        lambda: registry.move(other.id, given, replaces=True),
        lambda: registry.join("prj_22222222", given),
    ]
    for attempt in attempts:
        with pytest.raises(Invalid, match="it is in HANDRAIL_HOME"):
            attempt()
    assert [one.folder for one in registry.all()] == [other.folder]


def test_a_project_around_the_home_is_one(registry: ProjectRegistry, tmp_path: Path) -> None:
    registry.home.mkdir()
    assert registry.register(tmp_path).folder == os.path.realpath(tmp_path)
