"""The kit for rules in Python: what a function says of itself, and what it may look at."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import pytest

from handrail.domain.checks.rule import Reads, RuleCard
from handrail.domain.errors import Invalid
from handrail.rules.context import Context, Unreadable
from handrail.rules.plugins.plugin_host import found_by
from handrail.rules.sdk import Finding, PythonRule, TryAgain, Unwell, rule


@rule("few_words", version="1.2.0", timeout="5s", example={"most": 3})
def few_words(
    context: Context,
    *,
    most: Annotated[int, msgspec.Meta(ge=1)],
    kind: Literal["a", "b"] = "a",
    skip: list[str] = [],  # noqa: B006 - authors write it, and mean a fresh one
) -> Iterator[Finding]:
    """It has few words.

    More about it."""
    skip.append("the")
    words = [word for word in str(context.output).split() if word not in skip]
    if len(words) > most:
        yield Finding(f"it has {len(words)} words, {kind} {skip}", fix="say less")


def bare() -> list[Finding]:
    return []


def test_a_card_comes_from_the_function() -> None:
    assert few_words.card == RuleCard(
        name="few_words",
        summary="It has few words.",
        parameters={
            "most": {"type": "integer", "minimum": 1},
            "kind": {"enum": ["a", "b"], "default": "a"},
            "skip": {"type": "array", "items": {"type": "string"}, "default": []},
        },
        required=("most",),
        reads=Reads.OUTPUT,
        version="1.2.0",
        timeout="5s",
        example={"most": 3},
    )
    assert rule("bare", version="1.0.0")(bare).card.summary == "bare"


def test_a_function_is_still_one_and_gets_fresh_defaults() -> None:
    context = Context("the one two three", None)
    assert [found.message for found in few_words(context, most=2)] == ["it has 3 words, a ['the']"]
    for _ in range(2):
        assert found_by(few_words, {"most": 1, "kind": "b"}, context) == [
            Finding("it has 3 words, b ['the']", fix="say less")
        ]
    with pytest.raises(msgspec.ValidationError, match="most"):
        found_by(few_words, {"most": 0}, context)


def test_schemas_can_be_given_instead() -> None:
    def function(*, path: str) -> list[Finding]:
        return []

    schema = {"path": {"type": "string", "maxLength": 5}}
    made = rule("short_path", version="1.0.0", parameters=schema)(function)
    assert (made.card.parameters, made.card.required) == (schema, ("path",))
    with pytest.raises(TypeError, match="differ in `other`"):
        rule("short_path", version="1.0.0", parameters={**schema, "other": {}})(function)


def strange(*paths: str) -> list[Finding]:
    return []


def untyped(path) -> list[Finding]:  # type: ignore[no-untyped-def]
    return []


def taken(severity: str) -> list[Finding]:
    return []


def shaped(card: RuleCard) -> list[Finding]:
    return []


def odd(what: Callable[[], int]) -> list[Finding]:
    return []


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (strange, "a check can't pass the parameter"),
        (untyped, "has no type"),
        (taken, "every check has its own `severity`"),
        (shaped, "no classes"),
        (odd, "use types that JSON has"),
    ],
)
def test_a_function_that_no_check_could_call_is_refused(function: Callable[..., Any], words: str) -> None:
    with pytest.raises(TypeError, match=words):
        rule("a_rule", version="1.0.0")(function)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"name": "No-Todo", "version": "1.0.0"}, "lower-case letters"),
        ({"name": "no_todo", "version": "1"}, "not a version"),
        ({"name": "no_todo", "version": "1.0.0", "timeout": "1d"}, "between 1ms and 10m"),
        ({"name": "no_todo", "version": "1.0.0", "timeout": "soon"}, "not a duration"),
        ({"name": "no_todo", "version": "1.0.0", "reads": "network"}, "it can't reach the network"),
    ],
)
def test_what_a_rule_says_of_itself_must_hold(given: dict[str, Any], words: str) -> None:
    with pytest.raises((ValueError, Invalid), match=words):
        rule(given.pop("name"), **given)


def findings_of(function: Callable[..., Any], **parameters: Any) -> list[Finding]:
    made = rule("a_rule", version="1.0.0", reads="project")(function)
    return found_by(made, parameters, Context(None, Path()))


def test_a_function_may_be_async_in_either_way() -> None:
    async def returning() -> list[Finding]:
        return [Finding("one")]

    async def yielding() -> AsyncIterator[Finding]:
        while True:
            yield Finding("again")

    assert findings_of(returning) == [Finding("one")]
    assert len(findings_of(yielding)) == 51


@pytest.mark.parametrize("nonsense", [None, 42, "", "words", b"", {}, {"a": 1}, [1], [Finding("a"), None]])
def test_what_is_no_list_of_findings_is_refused(nonsense: Any) -> None:
    def returning() -> Any:
        return nonsense

    with pytest.raises(TypeError, match=r"a_rule (returned|found)"):
        findings_of(returning)


def test_a_rule_of_the_output_does_not_read_files() -> None:
    for look in (lambda one: one.project, lambda one: one.read_text("a"), lambda one: list(one.files())):
        with pytest.raises(PermissionError, match="reads='project'"):
            look(Context("words", None))


class TestFiles:
    """What a context reads."""

    @pytest.fixture
    def context(self, tmp_path: Path) -> Context:
        for name in ("a.py", "src/b.py", "src/deep/c.py", "node_modules/d.py", "state/e.py", "notes.txt"):
            (tmp_path / "project" / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "project" / name).write_text(name)
        (tmp_path / "secret.py").write_text("secret")
        (tmp_path / "project" / "link.py").symlink_to(tmp_path / "secret.py")
        (tmp_path / "project" / "near.py").symlink_to(tmp_path / "project" / "a.py")
        return Context(None, tmp_path / "project", private=[tmp_path / "project" / "state"])

    def test_files_are_found_by_globs_and_links_and_folders_of_tools_are_not(self, context: Context) -> None:
        assert list(context.files()) == ["a.py", "notes.txt", "src/b.py", "src/deep/c.py"]
        assert list(context.files("**/*.py")) == ["a.py", "src/b.py", "src/deep/c.py"]
        assert list(context.files("*.py", "src/*.py")) == ["a.py", "src/b.py"]
        assert list(context.files("src")) == ["src/b.py", "src/deep/c.py"]

    def test_a_text_is_read_inside_the_project_only(self, context: Context) -> None:
        assert context.read_text("src/b.py") == "src/b.py"
        assert context.read_text("near.py") == "a.py"
        for path in ("../secret.py", str(context.project.parent / "secret.py"), "link.py", "state/e.py", "a\0b"):
            with pytest.raises(Unreadable):
                context.read_text(path)
            with pytest.raises(Unreadable):
                context.exists(path)

    def test_what_can_not_be_read_says_why(self, context: Context) -> None:
        (context.project / "large").write_bytes(b"x" * 1_000_001)
        (context.project / "odd").write_bytes(b"\xff")
        assert context.exists("src")
        assert not context.exists("nothing")
        assert context.read_text("odd") == "\ufffd"
        for path, words in {
            "nothing": "does not exist",
            "large": "larger than 1,000,000",
            "src": "not a plain",
        }.items():
            with pytest.raises(Unreadable, match=words):
                context.read_text(path)

    def test_there_is_an_end_to_looking(self, context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("handrail.rules.context.FILES_MAX", 2)
        assert len(list(context.files())) == 2
        monkeypatch.setattr("handrail.rules.context.ENTRIES_MAX", 3)
        with pytest.raises(Unreadable, match="more than 3 files"):
            list(context.files())

    def test_a_file_that_is_not_there_is_a_finding(self, context: Context) -> None:
        def reading(context: Context, *, path: str) -> list[Finding]:
            return [Finding(context.read_text(path))]

        made = rule("a_rule", version="1.0.0", reads="project")(reading)
        found = found_by(made, {"path": "b.py"}, context)
        assert found == [Finding("b.py does not exist", "b.py", "create it, or name the file that you mean")]


def test_the_kit_has_the_names_that_authors_need() -> None:
    assert issubclass(TryAgain, Exception)
    assert Unwell is TryAgain  # what packages imported before
    assert isinstance(few_words, PythonRule)
