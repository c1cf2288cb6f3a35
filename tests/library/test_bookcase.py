"""The library: every workflow in its best version, found by words, read again when a file has changed."""

from __future__ import annotations

import os
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import yaml

from domain.places import survey_with
from handrail.domain.definition.model import Effect
from handrail.domain.errors import Invalid, NotFound, Unavailable
from handrail.library.shelf.catalog import FolderCatalog
from handrail.library.shelf.search_words import stem_of
from handrail.library.shelf.workflow_entry import WorkflowEntry, WorkflowSource
from handrail.library.shelf.workflow_library import WorkflowLibrary

BUILT_IN = WorkflowLibrary([str(files("handrail.library").joinpath("workflows"))])
STEPS = [{"id": "one", "prompt": "x"}, {"id": "two", "title": "Second thing", "prompt": "y"}]


def put(folder: Path, file: str, **document: Any) -> Path:
    """A workflow file; its id is the file's stem unless said otherwise."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / file
    path.write_text(yaml.safe_dump({"id": path.stem, "steps": STEPS, **document}))
    return path


def ids(entries: list[WorkflowEntry]) -> list[str]:
    return [entry.id for entry in entries]


def stamped(path: Path, nanoseconds: int) -> None:
    """Let a file look as if it had been written at this time, so that no test depends on the clock's steps."""
    os.utime(path, ns=(nanoseconds, nanoseconds))


# --- listing -----------------------------------------------------------------------------------------------


def test_a_book_tells_a_workflow_at_a_glance(tmp_path: Path) -> None:
    put(
        tmp_path,
        "ship.yaml",
        name="Ship it",
        version="1.2.0",
        description="Ships.",
        category="release",
        tags=["git", "ci"],
        inputs={"v": {"type": "string"}},
    )
    assert WorkflowLibrary([tmp_path]).entries() == (
        WorkflowEntry(
            file=str(tmp_path / "ship.yaml"),
            id="ship",
            name="Ship it",
            version="1.2.0",
            description="Ships.",
            category="release",
            tags=("git", "ci"),
            steps=2,
            titles=("one", "Second thing"),
            inputs={"v": {"type": "string"}},
        ),
    )


def test_entries_stand_by_id_and_nothing_is_no_book(tmp_path: Path) -> None:
    for name in ("b", "a", "c"):
        put(tmp_path, f"{name}.yaml")
    put(tmp_path, "no-steps.yaml").write_text("id: no-steps\n")
    put(tmp_path, "a-list.yaml").write_text("- id: x\n  steps: []\n")
    put(tmp_path, "number.yaml", id=7)
    put(tmp_path, "notes.txt")
    assert ids(list(WorkflowLibrary([tmp_path]).entries())) == ["a", "b", "c"]
    assert WorkflowLibrary([tmp_path / "nowhere"]).entries() == ()


def test_a_book_of_half_a_document_is_reported_as_far_as_it_goes(tmp_path: Path) -> None:
    (tmp_path / "odd.yaml").write_text(
        "id: odd\nname:\nversion:\ndescription:\ncategory:\ntags: git\ninputs: []\nsteps: {}\n"
    )
    put(tmp_path, "even.yaml", steps=["text", {"id": "x"}, {}], tags=[1, None])
    odd, even = sorted(WorkflowLibrary([tmp_path]).entries(), key=lambda entry: entry.id, reverse=True)
    assert odd == WorkflowEntry(id="odd", name="odd", file=str(tmp_path / "odd.yaml"))
    assert (even.steps, even.titles, even.tags) == (3, ("x", ""), ("1", "None"))


def test_a_nearer_folder_shadows_the_others_whatever_their_versions(tmp_path: Path) -> None:
    mine, theirs = tmp_path / "mine", tmp_path / "theirs"
    put(mine, "a.yaml", name="mine", version="1.0.0")
    put(theirs, "a.yaml", name="theirs", version="1.0.0")
    put(mine, "b.yaml", name="old", version="1.9.0")
    put(theirs, "b.yaml", name="new", version="1.10.0")
    put(theirs, "c.yaml", name="alone")
    case = WorkflowLibrary([WorkflowSource("project", str(mine)), WorkflowSource("built in", str(theirs))])
    assert [(entry.id, entry.name, entry.source, entry.shadows) for entry in case.entries()] == [
        ("a", "mine", "project", ("built in",)),
        ("b", "old", "project", ("built in",)),
        ("c", "alone", "built in", ()),
    ]
    for wanted, name in (("a", "mine"), ("b", "old"), ("b@^1", "old"), ("b@1.10.0", "new"), ("b@>=1.10", "new")):
        definition = case.load(wanted).definition
        assert definition is not None
        assert definition.name == name


def test_what_is_inlined_comes_from_the_nearest_folder_that_has_a_fitting_version(tmp_path: Path) -> None:
    mine, theirs = tmp_path / "mine", tmp_path / "theirs"
    put(mine, "part.yaml", name="mine", version="1.0.0")
    put(theirs, "part.yaml", name="theirs", version="1.5.0")
    case = WorkflowLibrary([mine, theirs])
    for wanted, name in (("part@^1", "mine"), ("part@^1.2", "theirs"), ("part", "mine")):
        loaded = case.load_plan({"id": "p", "steps": [{"id": "a", "workflow": wanted}]})
        assert loaded.definition is not None
        assert [one.name for one in loaded.definition.pinned.values()] == [name]


def test_a_broken_file_is_reported_and_hides_nothing(tmp_path: Path) -> None:
    put(tmp_path, "good.yaml")
    bad = tmp_path / "bad.yaml"
    bad.write_text("id: bad\nsteps: [")
    (tmp_path / "bomb.yaml").write_text("id: bomb\nsteps: " + "[" * 5_000)
    (tmp_path / "python.yaml").write_text("id: evil\nsteps: !!python/object/apply:os.system ['true']\n")
    case = WorkflowLibrary([tmp_path])
    assert ids(list(case.entries())) == ["good"]
    assert [Path(one.file).name for one in case.broken()] == ["bad.yaml", "bomb.yaml", "python.yaml"]
    assert all(one.message for one in case.broken())
    put(tmp_path, "bad.yaml")
    assert ids(list(case.entries())) == ["bad", "good"]
    assert len(case.broken()) == 2


def test_tests_beside_a_workflow_are_no_workflows(tmp_path: Path) -> None:
    put(tmp_path, "good.yaml")
    put(tmp_path, "good.tests.yaml", id="good")
    assert [entry.file for entry in WorkflowLibrary([tmp_path]).entries()] == [str(tmp_path / "good.yaml")]


def test_what_was_seen_is_kept_for_the_next_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, kept = tmp_path / "w", tmp_path / "cache" / "library.json"
    for number in range(3):
        put(folder, f"w{number}.yaml")
    first = WorkflowLibrary([folder], cache_file=kept).entries()
    read: list[str] = []
    document = FolderCatalog.document

    def counted(self: FolderCatalog, path: str, changed: int, size: int, place: int) -> Any:
        read.append(path)
        return document(self, path, changed, size, place)

    monkeypatch.setattr(FolderCatalog, "document", counted)
    assert WorkflowLibrary([folder], cache_file=kept).entries() == first
    assert read == []
    stamped(put(folder, "w1.yaml", name="another"), 1)
    assert [entry.name for entry in WorkflowLibrary([folder], cache_file=kept).entries()] == ["w0", "another", "w2"]
    assert [Path(path).name for path in read] == ["w1.yaml"]


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"format": 99, "files": {}}', b"\xff"])
def test_a_memory_that_cant_be_read_is_made_again(tmp_path: Path, content: bytes) -> None:
    kept = tmp_path / "library.json"
    kept.write_bytes(content)
    put(tmp_path / "w", "a.yaml")
    assert ids(list(WorkflowLibrary([tmp_path / "w"], cache_file=kept).entries())) == ["a"]
    assert b'"a"' in kept.read_bytes()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has file names that are not UTF-8")
def test_a_file_name_that_is_not_text_does_no_harm_to_the_memory_of_the_others(tmp_path: Path) -> None:
    kept = tmp_path / "library.json"
    put(tmp_path / "w", "a.yaml")
    put(tmp_path / "w", os.fsdecode(b"\xff.yaml"), id="b")
    for _ in range(2):
        assert ids(list(WorkflowLibrary([tmp_path / "w"], cache_file=kept).entries())) == ["a", "b"]
    assert b"a.yaml" in kept.read_bytes()


def test_a_place_that_cant_be_written_does_no_harm(tmp_path: Path) -> None:
    put(tmp_path / "w", "a.yaml")
    (tmp_path / "file").write_text("")
    assert ids(list(WorkflowLibrary([tmp_path / "w"], cache_file=tmp_path / "file" / "library.json").entries())) == [
        "a"
    ]


@pytest.mark.parametrize(
    "versions", [["", "draft"], ["1.0.0-beta.1", "1.0.0-beta.2"], ["draft"], ["", "1.0.0"], ["2.0.0-rc.1", "1.0.0"]]
)
def test_what_is_listed_is_what_is_loaded_whatever_its_versions_are(tmp_path: Path, versions: list[str]) -> None:
    for number, version in enumerate(versions):
        more = {"version": version} if version else {}
        put(tmp_path, f"{number}.yaml", id="a", name=f"the {number}.", **more)
    case = WorkflowLibrary([tmp_path])
    (entry,) = case.entries()
    loaded = case.load("a")
    assert loaded.definition is not None
    assert loaded.definition.name == entry.name
    assert entry.version == ("1.0.0" if "1.0.0" in versions else versions[0])


# --- loading -----------------------------------------------------------------------------------------------


def test_an_unknown_workflow_is_not_found_with_the_nearest_name(tmp_path: Path) -> None:
    case = WorkflowLibrary([tmp_path])
    with pytest.raises(NotFound, match="no workflow 'ship'") as empty:
        case.load("ship")
    assert ".handrail/workflows" in empty.value.hint
    put(tmp_path, "ship-it.yaml")
    with pytest.raises(NotFound) as near:
        case.load("ship-if")
    assert near.value.hint == "did you mean `ship-it`?"


def test_a_version_that_is_not_there_is_reported_with_those_that_are(tmp_path: Path) -> None:
    put(tmp_path, "a.yaml", version="1.0.0")
    put(tmp_path, "old.yaml", id="a", version="0.9.0")
    put(tmp_path, "bare.yaml")
    case = WorkflowLibrary([tmp_path])
    with pytest.raises(NotFound, match="'a' has no version \\^2") as known:
        case.load("a@^2")
    assert known.value.hint == "it has 1.0.0, 0.9.0"
    with pytest.raises(NotFound) as bare:
        case.load("bare@^2")
    assert "without one" in bare.value.hint
    with pytest.raises(Invalid, match="not a range"):
        case.load("a@newest")


def test_a_workflow_is_loaded_with_what_it_extends_and_inlines(tmp_path: Path) -> None:
    put(tmp_path, "inner.yaml", version="1.1.0")
    put(tmp_path, "outer.yaml", steps=[{"id": "k", "workflow": "inner@^1"}])
    case = WorkflowLibrary([tmp_path])
    definition = case.load("outer").definition
    assert definition is not None
    assert list(definition.pinned) == ["inner@1.1.0"]
    plan = case.load_plan({"id": "p", "steps": [{"id": "k", "workflow": "inner"}]})
    assert plan.definition is not None
    assert list(plan.definition.pinned) == ["inner@1.1.0"]


def test_tools_that_nobody_knows_are_findings_if_it_is_said_which_there_are(tmp_path: Path) -> None:
    put(tmp_path, "a.yaml", steps=[{"id": "t", "tool": "x.do", "effect": "none"}])
    case = WorkflowLibrary([tmp_path])
    assert case.load("a").is_valid
    assert case.load("a", survey=survey_with({"x.do": Effect.NONE})).is_valid
    assert not case.load("a", survey=survey_with({"y.do": Effect.NONE})).is_valid
    assert not case.load_plan({"id": "p", "steps": [{"id": "t", "tool": "x.do"}]}, survey=survey_with()).is_valid


def test_a_file_that_goes_away_just_then_is_not_a_crash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put(tmp_path, "a.yaml")
    case = WorkflowLibrary([tmp_path])
    found = case.catalog.find("a")
    path.unlink()
    monkeypatch.setattr(FolderCatalog, "find", lambda *_: found)
    with pytest.raises(Unavailable, match=r"a\.yaml can't be read"):
        case.load("a")


# --- changes -----------------------------------------------------------------------------------------------


def test_what_changes_comes_or_goes_is_seen_at_the_next_look(tmp_path: Path) -> None:
    case = WorkflowLibrary([tmp_path])
    assert case.entries() == ()
    path = put(tmp_path, "a.yaml", name="first")
    stamped(path, 1_000)
    before = case.fingerprint()
    assert [entry.name for entry in case.entries()] == ["first"]
    assert case.entries() is case.entries()
    put(tmp_path, "a.yaml", name="other")
    stamped(path, 2_000)
    assert case.fingerprint() != before
    assert [entry.name for entry in case.entries()] == ["other"]
    loaded = case.load("a").definition
    assert loaded is not None
    assert loaded.name == "other"
    path.unlink()
    assert case.entries() == ()
    with pytest.raises(NotFound):
        case.load("a")


@pytest.mark.parametrize("content", [b"id: [", b"\xff\xfe\x00id", b"", b"id: a\nid: a\nsteps: []\n", b"{" * 5_000])
def test_a_broken_file_hides_no_good_one_and_is_seen_again_when_it_is_fixed(tmp_path: Path, content: bytes) -> None:
    put(tmp_path, "good.yaml")
    path = tmp_path / "a.yaml"
    path.write_bytes(content)
    stamped(path, 1_000)
    case = WorkflowLibrary([tmp_path])
    assert ids(list(case.entries())) == ["good"]
    assert case.load("good").is_valid
    with pytest.raises(NotFound):
        case.load("a")
    put(tmp_path, "a.yaml")
    stamped(path, 2_000)
    assert ids(list(case.entries())) == ["a", "good"]
    assert case.load("a").is_valid


def test_what_is_listed_but_not_valid_is_loaded_with_its_findings(tmp_path: Path) -> None:
    put(tmp_path, "a.yaml", steps=[{"id": "x"}])
    case = WorkflowLibrary([tmp_path])
    assert ids(list(case.entries())) == ["a"]
    loaded = case.load("a")
    assert not loaded.is_valid
    assert str(loaded.findings[0].at).startswith(str(tmp_path / "a.yaml"))


# --- searching ---------------------------------------------------------------------------------------------


@pytest.fixture
def shelf(tmp_path: Path) -> WorkflowLibrary:
    put(
        tmp_path, "bug-fix.yaml", name="Fix a bug", description="Reproduce, test, mend.", category="code", tags=["test"]
    )
    put(
        tmp_path,
        "review.yaml",
        name="Review a change",
        description="Look for bugs.",
        category="code",
        tags=["git", "Test"],
    )
    put(tmp_path, "ship.yaml", name="Ship", description="Tag and publish.", category="Release", tags=["git"])
    put(tmp_path, "tea.yaml", name="Make tea", steps=[{"id": "boil", "prompt": "x"}, {"id": "bug", "prompt": "y"}])
    return WorkflowLibrary([tmp_path])


def test_without_words_all_that_fit_come_by_id(shelf: WorkflowLibrary) -> None:
    assert ids(shelf.search()) == ["bug-fix", "review", "ship", "tea"]
    assert ids(shelf.search(" -- ")) == ["bug-fix", "review", "ship", "tea"]
    assert ids(shelf.search(category="CODE")) == ["bug-fix", "review"]
    assert ids(shelf.search(tags=["test"])) == ["bug-fix", "review"]
    assert ids(shelf.search(tags=["git", "TEST"])) == ["review"]
    assert ids(shelf.search(category="release", tags=["test"])) == []


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("bug", ["bug-fix", "review", "tea"]),  # by id and name, then by a description, then by a step's title
        ("BUGS", ["bug-fix", "review", "tea"]),  # every form of a word is the same word
        ("reviewing", ["review"]),
        ("reviewer", ["review"]),
        ("deploying", ["ship"]),  # by a word of the same meaning
        ("a defect", ["bug-fix", "review", "tea"]),
        ("publish", ["ship"]),
        ("git", ["review", "ship"]),  # as good as each other: by id
        ("git ship", ["ship", "review"]),
        ("nothing like it", []),
    ],
)
def test_with_words_the_best_match_comes_first_and_what_does_not_fit_stays_away(
    shelf: WorkflowLibrary, query: str, found: list[str]
) -> None:
    assert ids(shelf.search(query)) == found


def test_words_and_filters_count_together(shelf: WorkflowLibrary) -> None:
    assert ids(shelf.search("bug", category="code")) == ["bug-fix", "review"]
    assert ids(shelf.search("git", tags=["test"])) == ["review"]


def test_folders_in_an_id_are_words_too(tmp_path: Path) -> None:
    put(tmp_path, "a.yaml", id="team/deploy_now")
    put(tmp_path, "b.yaml", id="other", description="über den Fluss")
    case = WorkflowLibrary([tmp_path])
    assert ids(case.search("team")) == ["team/deploy_now"]
    assert ids(case.search("now")) == ["team/deploy_now"]
    assert ids(case.search("ÜBER")) == ["other"]


def test_a_name_says_more_than_a_description_and_all_words_more_than_one(tmp_path: Path) -> None:
    put(tmp_path, "c.yaml", description="deploy")
    put(tmp_path, "d.yaml", name="deploy")
    put(tmp_path, "e.yaml", tags=["deploy"], category="deploy")
    put(tmp_path, "deploy.yaml")
    put(tmp_path, "f.yaml", name="deploy", description="to production")
    case = WorkflowLibrary([tmp_path])
    assert ids(case.search("deploy production")) == ["deploy", "f", "e", "d", "c"]


def test_the_word_itself_counts_more_than_one_of_the_same_meaning(tmp_path: Path) -> None:
    put(tmp_path, "a.yaml", name="Performance")
    put(tmp_path, "b.yaml", name="A slow one")
    assert ids(WorkflowLibrary([tmp_path]).search("slow")) == ["b", "a"]


def test_what_few_workflows_have_counts_more_than_what_most_have(tmp_path: Path) -> None:
    for number in range(8):
        put(tmp_path, f"w{number}.yaml", name="Write something")
    put(tmp_path, "z.yaml", description="the manual")
    assert ids(WorkflowLibrary([tmp_path]).search("write the manual"))[0] == "z"


def test_steps_inside_loops_are_found_by_their_titles(tmp_path: Path) -> None:
    inner = [{"id": "x", "title": "Weigh the apples", "prompt": "x"}]
    put(tmp_path, "a.yaml", steps=[{"id": "loop", "each": "[1]", "steps": inner}])
    case = WorkflowLibrary([tmp_path])
    assert ids(case.search("apple")) == ["a"]
    assert case.entries()[0].steps == 1


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("the site is slow", "performance-investigation"),
        ("our pages load slowly since yesterday", "performance-investigation"),
        ("test fails sometimes", "flaky-test-hunt"),
        ("bump a dependency", "dependency-upgrade"),
        ("the README is outdated", "documentation-update"),
        ("is this PR ok?", "pull-request-lifecycle"),
        ("clean up messy code", "refactoring"),
        ("check for vulnerabilities", "security-review"),
        ("find out why it crashes", "bug-investigation"),
        ("rename a function everywhere", "bulk-change"),
        ("alter table", "database-migration"),
    ],
)
def test_a_task_in_the_words_of_a_user_finds_its_built_in_workflow(query: str, found: str) -> None:
    assert ids(BUILT_IN.search(query))[0] == found


@pytest.mark.parametrize(
    "forms",
    [
        "deploy deploys deploying deployed deployment deployments",
        "implement implementing implementation",
        "migrate migrating migration migrations",
        "library libraries",
        "flaky flakiness",
        "run runs running",
        "slow slower slowly slowness",
        "document documentation documented",
        "optimize optimizing optimization",
    ],
)
def test_all_forms_of_a_word_have_one_stem(forms: str) -> None:
    assert len({stem_of(word) for word in forms.split()}) == 1


@pytest.mark.parametrize("word", ["bus", "status", "class", "this", "red", "ring", "über", "e", ""])
def test_words_that_only_look_like_a_form_stay_as_they_are(word: str) -> None:
    assert stem_of(word) == word
