"""Reads the tests of a workflow: `NAME.tests.yaml`, next to `NAME.yaml`.

All errors are reported at once, each with its position and a suggestion. domain/rehearsing/ runs the tests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path as FilePath
from typing import Any, Final, cast

from msgspec import Struct

from handrail.domain.checks.finding import Finding, Flaw, Path, Severity
from handrail.domain.definition.model import Approve, Call, Category, Definition, Prompt, Step, Tool
from handrail.domain.errors import Invalid
from handrail.domain.rehearsal.script import Expected, Script, listed, names_in, plain
from handrail.domain.run.step_path import UNDO
from handrail.domain.suggestion import did_you_mean
from handrail.library.documents.document import Document, finding_of, read_document
from handrail.library.documents.document_tree import shown

TESTS_SUFFIX: Final = ".tests.yaml"
TOP_KEYS: Final = ("workflow", "tests")
TEST_KEYS: Final = (
    "name",
    "inputs",
    "outputs",
    "outcomes",
    "tools",
    "approvals",
    "vars",
    "confirmed",
    "expect",
)
EXPECT_KEYS: Final = ("end", "path", "skipped", "findings", "undone", "outputs")
ENDS: Final = ("completed", "failed", "waiting", "compensated", "compensation_failed", "cancelled")
OUTCOMES: Final = ("done", "failed", "skipped")
APPROVALS: Final = ("approve", "reject", "expire")
LISTS: Final = ("path", "skipped", "undone")
RULES_OF_EVERY_PROMPT: Final = frozenset({"schema", "output", "confirm"})
"""Rules that every prompt step has: the schema of its output, by two names, and the user's confirmation."""
KINDS_UNDER: Final[Mapping[str, tuple[type, ...]]] = {
    "outputs": (Prompt, Call),
    "outcomes": (Prompt,),
    "tools": (Tool,),
    "approvals": (Approve,),
    "vars": (Prompt,),
}
"""The kinds of step that a test may name under each key."""
CATEGORIES: Final = tuple(category.value for category in Category)

_KINDS: Final[Mapping[type, str]] = {
    dict: "an object",
    list: "a list",
    str: "a string",
    bool: "true or false",
}


class Suite(Struct, frozen=True, kw_only=True):
    """The tests of a workflow that could be read, with all errors."""

    __test__ = False
    workflow: str = ""
    scripts: tuple[Script, ...] = ()
    findings: tuple[Finding, ...] = ()


def suite_file(file: str | FilePath) -> FilePath:
    """The test file of the workflow in a file."""
    path = FilePath(file)
    return path.with_name(path.name.removesuffix(path.suffix) + TESTS_SUFFIX)


def read_tests(text: str | bytes, *, name: str, definition: Definition | None = None) -> Suite:
    """The tests in a string; with a definition, the names of steps are checked too."""
    try:
        document = read_document(text, name=name)
    except Invalid as error:
        return Suite(findings=error.findings)
    reader = _TestsReader(definition)
    value = document.value if isinstance(document.value, dict) else None
    if value is None:
        reader.wrong((), "tests are an object with `workflow` and `tests`", "start with `workflow: NAME`")
        return Suite(findings=reader.placed(document))
    reader.keys(value, TOP_KEYS, ())
    reader.workflow(value.get("workflow"))
    scripts = reader.scripts(value.get("tests"))
    return Suite(workflow=str(value.get("workflow", "")), scripts=scripts, findings=reader.placed(document))


class _TestsReader:
    """Reads one test file, and collects its errors."""

    def __init__(self, definition: Definition | None) -> None:
        self.definition = definition
        self.steps: Mapping[str, Step] | None = dict(names_in(definition)) if definition is not None else None
        self.flaws: list[Flaw] = []

    def placed(self, document: Document) -> tuple[Finding, ...]:
        return tuple(finding_of(flaw, document) for flaw in self.flaws)

    def wrong(self, path: Path, message: str, fix: str = "", *, rule: str = "tests", on_key: bool = False) -> None:
        flaw = Flaw(rule=rule, severity=Severity.CRITICAL, path=path, message=message, fix=fix, on_key=on_key)
        self.flaws.append(flaw)

    # --- the shape ----------------------------------------------------------------------------------

    def workflow(self, name: Any) -> None:
        """Check that the tests are for the workflow next to them."""
        if not isinstance(name, str) or not name:
            self.wrong(("workflow",), "the workflow's id is missing", "write `workflow: ID`")
        elif self.definition is not None and name != self.definition.id:
            fix = f"write `workflow: {self.definition.id}`"
            self.wrong(("workflow",), f"`{name}` is not the workflow beside it", fix)

    def scripts(self, tests: Any) -> tuple[Script, ...]:
        """All tests that can be read."""
        if not isinstance(tests, list) or not tests:
            self.wrong(("tests",), "there is no test", "write a list of tests, each with a `name` and an `expect`")
            return ()
        scripts: dict[str, Script] = {}
        for index, one in enumerate(tests):
            script = self._script(one, ("tests", index))
            if script is not None and script.name in scripts:
                self.wrong(("tests", index, "name"), f"two tests are called {script.name!r}", "name what differs")
            elif script is not None:
                scripts[script.name] = script
        return tuple(scripts.values())

    def _script(self, test: Any, path: Path) -> Script | None:
        if not isinstance(test, dict):
            self.wrong(path, "a test is an object", "give it a `name` and an `expect`")
            return None
        before = len(self.flaws)
        self.keys(test, TEST_KEYS, path)
        for key in ("name", "expect"):
            if not test.get(key):
                self.wrong((*path, key), f"the test has no `{key}`", f"give it a `{key}`")
        given = {key: self._object(test, key, path) for key in ("inputs", *KINDS_UNDER)}
        if self.definition is not None:
            self._known(given["inputs"], self.definition.inputs, (*path, "inputs"), "input")
        self._names(given, path)
        self._words(given, path)
        confirmed = self._confirmed(test.get("confirmed", True), path)
        expect = self._expected(test.get("expect") or {}, (*path, "expect"))
        if len(self.flaws) > before:
            return None
        return Script(name=str(test["name"]), confirmed=confirmed, expect=expect, **given)

    def keys(self, value: Mapping[str, Any], known: Iterable[str], path: Path) -> None:
        for key in value:
            if key not in known:
                self.wrong((*path, key), f"there is no key `{shown(key)}` here", did_you_mean(key, known), on_key=True)

    def _object(self, test: Mapping[str, Any], key: str, path: Path) -> dict[str, Any]:
        return cast("dict[str, Any]", self._of(dict, test.get(key, {}), (*path, key)) or {})

    def _of(self, kind: type, value: Any, path: Path) -> Any:
        if isinstance(value, kind):
            return value
        self.wrong(path, f"this is not {_KINDS[kind]}", f"write {_KINDS[kind]}")
        return None

    def _confirmed(self, value: Any, path: Path) -> bool | Mapping[str, bool]:
        here = (*path, "confirmed")
        if isinstance(value, bool):
            return value
        if not isinstance(value, dict):
            self.wrong(
                here,
                "`confirmed` is true, false, or an object with one of them for each step",
                "write `confirmed: false`",
            )
            return True
        for name, given in value.items():
            self._name(name, here, Prompt)
            self._of(bool, given, (*here, name))
        return value

    def _expected(self, value: Any, path: Path) -> Expected:
        expect = self._of(dict, value, path) or {}
        self.keys(expect, EXPECT_KEYS, path)
        if "end" in expect:
            self._word(expect["end"], ENDS, (*path, "end"))
        lists = {key: self._named_list(expect[key], (*path, key)) for key in LISTS if key in expect}
        findings = self._expected_findings(expect, path) if "findings" in expect else None
        outputs = self._object(expect, "outputs", path) if "outputs" in expect else None
        if self.definition is not None:
            self._known(outputs or {}, self.definition.outputs, (*path, "outputs"), "output")
        return Expected(end=expect.get("end"), findings=findings, outputs=outputs, **lists)

    def _expected_findings(self, expect: Mapping[str, Any], path: Path) -> dict[str, tuple[str, ...]]:
        findings = self._object(expect, "findings", path)
        for name, rules in findings.items():
            self._name(name, (*path, "findings"), Prompt)
            self._rules(rules, name, (*path, "findings", name))
        return {name: tuple(rules) for name, rules in findings.items() if isinstance(rules, list)}

    def _rules(self, rules: Any, name: str, path: Path) -> None:
        """Check that a step has the rules that a test expects findings of."""
        known = self._rules_of(name)
        for index, rule in enumerate(self._of(list, rules, path) or []):
            if not isinstance(rule, str):
                self.wrong((*path, index), "a rule is a name", "write the name of a rule")
            elif known is not None and rule not in known:
                self.wrong((*path, index), f"`{name}` has no check `{shown(rule)}`", did_you_mean(rule, known))

    def _rules_of(self, name: str) -> frozenset[str] | None:
        """The rules of a step; None if they are unknown: a schema adds rules of its own."""
        step = (self.steps or {}).get(plain(name))
        if step is None or not isinstance(step.work, Prompt) or step.work.output is not None:
            return None
        return RULES_OF_EVERY_PROMPT.union(check.rule for check in step.work.checks)

    # --- names and words ----------------------------------------------------------------------------

    def _known(self, given: Iterable[str], known: Iterable[str], path: Path, what: str) -> None:
        """Check that the workflow has inputs or outputs with these names."""
        names = list(known)
        for name in given:
            if name not in names:
                message = f"the workflow has no {what} `{shown(name)}`"
                self.wrong((*path, name), message, did_you_mean(name, names), on_key=True)

    def _names(self, test: Mapping[str, Any], path: Path) -> None:
        for key, kinds in KINDS_UNDER.items():
            for name in test[key]:
                self._name(name, (*path, key), *kinds)

    def _name(self, name: str, path: Path, *kinds: type) -> None:
        """Check that there is such a step, of one of these kinds."""
        if self.steps is None:
            return
        bare, is_undo = plain(name).removesuffix(UNDO), name.endswith(UNDO)
        step = self.steps.get(bare)
        if step is None:
            self.wrong((*path, name), f"there is no step `{shown(name)}`", did_you_mean(bare, self.steps), on_key=True)
        elif is_undo and step.undo is None and not isinstance(step.work, Tool):
            self.wrong((*path, name), f"`{bare}` has no undo", "give it one, or leave this out", on_key=True)
        elif not is_undo and not isinstance(step.work, kinds):
            message = f"`{bare}` is of the kind `{step.kind.value}`"
            self.wrong((*path, name), message, _where(step), on_key=True)

    def _named_list(self, value: Any, path: Path) -> tuple[str, ...]:
        names = self._of(list, value, path) or []
        for index, name in enumerate(names):
            if not isinstance(name, str):
                self.wrong((*path, index), "a step is named by its id", "write its id")
            elif self.steps is not None and plain(name) not in self.steps:
                self.wrong((*path, index), f"there is no step `{shown(name)}`", did_you_mean(plain(name), self.steps))
        return tuple(name for name in names if isinstance(name, str))

    def _words(self, test: Mapping[str, Any], path: Path) -> None:
        for key, known in (("outcomes", OUTCOMES), ("approvals", APPROVALS)):
            for place, word in _singles(test[key], (*path, key)):
                self._word(word, known, place)
        for place, answer in _singles(test["tools"], (*path, "tools")):
            if isinstance(answer, dict) and set(answer) == {"fail"}:
                self._word(answer["fail"], CATEGORIES, (*place, "fail"))

    def _word(self, value: Any, known: tuple[str, ...], path: Path) -> None:
        if value not in known:
            near = did_you_mean(value, known) if isinstance(value, str) else f"known: {', '.join(known)}"
            self.wrong(path, f"`{shown(str(value))}` is not allowed here", near)


def _singles(given: Mapping[str, Any], path: Path) -> Iterator[tuple[Path, Any]]:
    for name, value in given.items():
        yield from _single((*path, name), value)


def _single(path: Path, value: Any) -> Iterator[tuple[Path, Any]]:
    """Every single answer given for a step, from all its rounds and tries."""
    for word in ("each", "try"):
        names = listed(value, word)
        if names is not None:
            for index, one in enumerate(names):
                yield from _single((*path, word, index), one)
            return
    yield path, value


def _where(step: Step) -> str:
    """The key under which a test names a step."""
    match step.work:
        case Prompt() | Call():
            return "write it under `outputs`"
        case Tool():
            return "write it under `tools`"
        case Approve():
            return "write it under `approvals`"
        case _:
            return f"name the steps in it: `{step.id}.{step.body[0].id}`"
