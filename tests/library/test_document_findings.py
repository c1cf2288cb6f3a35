"""Texts that can't be read: the position, the message, and the fix."""

from __future__ import annotations

import re

import pytest
import yaml

from handrail.domain.checks.finding import Finding, Severity
from handrail.domain.errors import Invalid
from handrail.library.documents import yaml_document
from handrail.library.documents.document import FINDINGS_MAX, document_of, read_document

LARGEST = "9007199254740991"
INEXACT = f"a number beyond {LARGEST} is too large to be exact (put it in quotes if it is a string)"


def refusals(text: str | bytes, name: str) -> list[Finding]:
    with pytest.raises(Invalid) as refused:
        read_document(text, name=name)
    assert str(refused.value).startswith(f"{name} can't be read: ")
    return list(refused.value.findings)


def line_of(finding: Finding) -> str:
    """A finding as one line: place, message, and how to fix it."""
    assert finding.severity is Severity.CRITICAL
    assert finding.fix
    assert finding.at is not None
    return f"{finding.at.line}:{finding.at.column} {finding.message} ({finding.fix})"


YAML_SLIPS = {
    "a: b: c": "1:5 a `:` where no key can be (indent it like its neighbours, or quote a string with `: ` in it)",
    "a: 1\n b: 2": "2:3 a `:` where no key can be (indent it like its neighbours, or quote a string with `: ` in it)",
    "a:\n\t- 1": "2:1 a tab can't indent YAML (indent with spaces)",
    "a: 1\n\tb: 2": "2:1 a tab can't indent YAML (indent with spaces)",
    "a: @x": "1:4 a string can't start with this character (put the text in quotes)",
    "a: `x`": "1:4 a string can't start with this character (put the text in quotes)",
    "a: ?": "1:4 a `?` where no key can be (put the text in quotes)",
    "a: - b": "1:4 a list can't start here (start it on a line of its own)",
    "a: x\nb\nc: 1": "2:1 a key without its `:` (write `key: value`, or indent the line under its text)",
    "a: 'x\n\n": "1:4 the quote is never closed (close it)",
    'a: "x\n': "1:4 the quote is never closed (close it)",
    'a: "x\n---\n': "1:4 the quote is never closed (close it)",
    "a: [1, 2\nb: 3\n": "2:2 the list opened with `[` on line 1 is not closed (add `]` or a comma, or quote the text)",
    "a: {b: 1\nc: 2": "2:2 the object opened with `{` on line 1 is not closed (add `}` or a comma, or quote the text)",
    "a: *.py": "1:5 a string can't start with `*` (put the text in quotes)",
    "a: & b": "1:5 a string can't start with `&` (put the text in quotes)",
    "a: >x\n y": "1:5 not a text block that YAML knows (write | or > alone, then indent all lines alike)",
    "a: 'it's'": (
        "1:8 this belongs to no key (indent it like its neighbours; quote the whole of a string that has quotes in it)"
    ),
    "- a\nb: 1": "2:1 this belongs to no list (indent it like its neighbours, and start each item with `- `)",
    "a: !<": "1:6 a string can't start with `!` (put the text in quotes)",
    "a: !x!y z": "1:4 a string can't start with `!` (put the text in quotes)",
    "  a: 1\nb: 2": "2:1 this belongs to nothing above it (start all keys of the document in the same column)",
    "]": "1:1 no value can start here (put the text in quotes)",
    "a: {{ x }}": "1:5 an object or list can't be a key (quote a string that starts with {{: '{{ ... }}')",
    "- {{ x }} more": "1:4 an object or list can't be a key (quote a string that starts with {{: '{{ ... }}')",
    "? [a]\n: b": "1:3 an object or list can't be a key (a key is a string)",
    "a: 1\na: 2": "2:1 `a` is given twice: first on line 1 (keep one of the two)",
    "x:\n  a: 1\n  'a': 2": "3:3 `a` is given twice: first on line 2 (keep one of the two)",
    "5: a": "1:1 the key `5` is not a string (put it in quotes: '5')",
    "true: a": "1:1 the key `true` is not a string (put it in quotes: 'true')",
    "~: a": "1:1 the key `~` is not a string (put it in quotes: '~')",
    "1.5: a": "1:1 the key `1.5` is not a string (put it in quotes: '1.5')",
    "a: {<<: {b: 1}}": (
        "1:5 merge keys (`<<`) are not read (write the keys out; a whole workflow can be inherited with `extends`)"
    ),
    "a: !!python/object/apply:os.system ['true']": (
        "1:4 the tag `!!python/object/apply:os.system` is not read (remove it; quote a string that starts with !)"
    ),
    "a: !env HOME": "1:4 the tag `!env` is not read (remove it; quote a string that starts with !)",
    "a: !!set {b}": "1:4 the tag `!!set` is not read (remove it; quote a string that starts with !)",
    "a: !!timestamp 2026-01-02": "1:4 the tag `!!timestamp` is not read (remove it; quote a string that starts with !)",
    "a: !!binary aGk=": "1:4 the tag `!!binary` is not read (remove it; quote a string that starts with !)",
    "a: ! b": "1:4 the tag `!` is not read (remove it; quote a string that starts with !)",
    "a: !!int x": "1:4 `x` is not `!!int` (remove the tag)",
    "a: !!bool 'yes'": "1:4 `yes` is not `!!bool` (remove the tag)",
    "a: !!seq {}": "1:4 the tag `!!seq` is not read (remove it; quote a string that starts with !)",
    "a: .inf": "1:4 JSON has no such number (put it in quotes if it is a string)",
    "a: -.Inf": "1:4 JSON has no such number (put it in quotes if it is a string)",
    "a: .NaN": "1:4 JSON has no such number (put it in quotes if it is a string)",
    "a: 1e999": "1:4 JSON has no such number (put it in quotes if it is a string)",
    "a: 9007199254740992": f"1:4 {INEXACT}",
    f"a: -{'9' * 5000}": f"1:4 {INEXACT}",
    "a: 0xfffffffffffff0": f"1:4 {INEXACT}",
    "a: 1\n---\nb: 2": "2:1 a second document starts here (keep one workflow in each file)",
    "": "1:1 the document is empty (write at least a name and steps)",
    "# nothing\n": "1:1 the document is empty (write at least a name and steps)",
    "---\n": "2:1 the document is empty (write at least a name and steps)",
    "a: *b": "1:4 `*b` has no anchor `&b` before it (quote a string that starts with *)",
    "a: &a [*a]": "1:8 `*a` contains itself (write the value out)",
    "a: &a\n  b: {c: *a}": "2:10 `*a` contains itself (write the value out)",
    "a: &x b\n*x : c": "2:1 an alias can't be a key (write the key out)",
    "&x a: b": "1:1 a key can't have an anchor (put it on the value)",
    "a: \x07": '1:4 U+0007 is not allowed in YAML (write "\\u0007", in double quotes)',
    "a: b\nc: \x00": "2:4 U+0000 is not allowed in YAML (save it as UTF-8)",
    "a: b\u2028c: d": '1:5 U+2028 is not allowed in YAML (write "\\u2028", in double quotes)',
    "a: \ufeff": '1:4 U+FEFF is not allowed in YAML (write "\\ufeff", in double quotes)',
}
FAST_ONLY = {
    'a: "\\q"': "1:5 not an escape that YAML knows (double the `\\`, or use single quotes)",
    'a: "\\ud83d\\ude00"': "1:7 not an escape that YAML knows (double the `\\`, or use single quotes)",
    "%x\n": "1:3 a line can't start with `%` (put the text in quotes)",
    "%YAML 1.3\n---\na: 1": "1:1 not a version of YAML that is read here (remove the %YAML line)",
    "x: 1\na: !%ED%A0%80 x": "2:1 an escape names no character (write the character itself)",
}
PURE_ONLY = {
    'a: "\\ud83d\\ude00"': "1:4 half a surrogate pair is not a character (write the character itself)",
    'x: 1\na: "\\U00110000"': "2:1 an escape names no character (write the character itself)",
}

JSON_SLIPS = {
    "": "1:1 the document is empty (write at least a name and steps)",
    " \n ": "2:2 the document is empty (write at least a name and steps)",
    "{": "1:2 the document ends inside what was opened on line 1 (add `}`)",
    '{\n"a": [1': "2:8 the document ends inside what was opened on line 2 (add `]`)",
    '{"a"': "1:5 the document ends inside what was opened on line 1 (add `}`)",
    '{"a":': "1:6 the document ends inside what was opened on line 1 (add `}`)",
    '{"a": 1,': "1:9 the document ends inside what was opened on line 1 (add `}`)",
    '{"a": 1,}': "1:8 a comma before `}` (remove the comma)",
    "[1,\n 2 ,\n]": "2:4 a comma before `]` (remove the comma)",
    "[,]": "1:2 a value is missing here (write one, or remove what waits for it)",
    '{"a": }': "1:7 a value is missing here (write one, or remove what waits for it)",
    '{"a": 1,, "b": 2}': "1:9 a value is missing here (write one, or remove what waits for it)",
    "[1 2]": "1:4 `,` or `]` is missing before this (add it, or see whether a quote ends early)",
    "[1}": "1:3 `,` or `]` is missing before this (add it, or see whether a quote ends early)",
    '{"a" 1}': "1:6 `:` is missing before this (add it, or see whether a quote ends early)",
    '{"a": "say "hi""}': "1:13 `,` or `}` is missing before this (add it, or see whether a quote ends early)",
    "{a: 1}": '1:2 a string needs double quotes (write "..." around it)',
    "{'a': 1}": "1:2 a string needs double quotes (write \"...\" instead of '...')",
    "[nul]": '1:2 a string needs double quotes (write "..." around it)',
    "[True]": "1:2 JSON knows true, false and null (write it in small letters, and null for None)",
    '{"a": None}': "1:7 JSON knows true, false and null (write it in small letters, and null for None)",
    "[01]": "1:2 not a number that JSON knows (write it like 12, -3 or 0.5, and a string in double quotes)",
    "[.5]": "1:2 not a number that JSON knows (write it like 12, -3 or 0.5, and a string in double quotes)",
    "[1.]": "1:2 not a number that JSON knows (write it like 12, -3 or 0.5, and a string in double quotes)",
    "[+1]": "1:2 not a number that JSON knows (write it like 12, -3 or 0.5, and a string in double quotes)",
    "[0x1F]": "1:2 not a number that JSON knows (write it like 12, -3 or 0.5, and a string in double quotes)",
    "[1_000]": "1:2 not a number that JSON knows (write it like 12, -3 or 0.5, and a string in double quotes)",
    '["a\nb"]': "1:2 a string can't go on in the next line (close the quote, or write \\n)",
    '["a\tb"]': "1:4 a control character in a string (write it as \\t or \\u....)",
    '["ok \\n C:\\dir"]': "1:11 not an escape that JSON knows (double the \\)",
    '["\\u12x4"]': "1:3 not an escape that JSON knows (double the \\)",
    '["abc': "1:2 the quote is never closed (close it)",
    "# note\n{}": "1:1 JSON has no comments (remove the comment, or write the document as YAML)",
    '{"a": 1 /* never closed': "1:9 `,` or `}` is missing before this (add it, or see whether a quote ends early)",
    "[/* never closed": "1:2 JSON has no comments (remove the comment, or write the document as YAML)",
    "// note\n{}": "1:1 JSON has no comments (remove the comment, or write the document as YAML)",
    "[1, /* two */ 2]": "1:5 JSON has no comments (remove the comment, or write the document as YAML)",
    "[1] 2": "1:5 the document ends before this (keep one JSON value in each file)",
    "\x00": "1:1 no value can start here (remove it)",
    '{"a": 1,\r\n "a": 2}': "2:2 `a` is given twice: first on line 1 (keep one of the two)",
    '{"a": 1, "\\u0061": 2}': "1:10 `a` is given twice: first on line 1 (keep one of the two)",
    "[NaN]": "1:2 JSON has no such number (put it in quotes if it is a string)",
    "[-Infinity]": "1:2 JSON has no such number (put it in quotes if it is a string)",
    "[1e999]": "1:2 JSON has no such number (put it in quotes if it is a string)",
    "[-9007199254740992]": f"1:2 {INEXACT}",
    f"[{'9' * 5000}]": f"1:2 {INEXACT}",
    '["\\ud800"]': "1:2 half a surrogate pair is not a character (write the character itself)",
    '{"\\udc00": 1}': "1:2 half a surrogate pair is not a character (write the character itself)",
}


@pytest.mark.parametrize("text", [*YAML_SLIPS, *FAST_ONLY])
def test_a_slip_in_yaml_is_reported_with_its_place_and_how_to_fix_it(text: str) -> None:
    assert [line_of(finding) for finding in refusals(text, "x.yaml")] == [{**YAML_SLIPS, **FAST_ONLY}[text]]


@pytest.mark.parametrize("text", [*YAML_SLIPS, *PURE_ONLY])
def test_the_pure_parser_tells_the_same_slips(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_document, "_Loader", yaml.SafeLoader)
    found = [finding.message for finding in refusals(text, "x.yaml")]
    said = {**YAML_SLIPS, **PURE_ONLY}[text]
    assert len(found) == 1
    assert re.sub("^[0-9:]+ ", "", said).startswith(found[0])


@pytest.mark.parametrize("text", JSON_SLIPS)
def test_a_slip_in_json_is_reported_with_its_place_and_how_to_fix_it(text: str) -> None:
    assert [line_of(finding) for finding in refusals(text, "x.json")] == [JSON_SLIPS[text]]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"\xff\xfea\x00:\x00", "1:1 the text is UTF-16 (save it as UTF-8)"),
        (b"\xfe\xff\x00a\x00:", "1:1 the text is UTF-16 (save it as UTF-8)"),
        (b"a: 1\r\nb: caf\xe9", "2:7 the text is not UTF-8 (byte 0xe9) (save it as UTF-8)"),
        ("a: \ud83d", "1:4 the text is not UTF-8 (byte 0xed) (save it as UTF-8)"),
    ],
)
def test_only_utf_8_is_read(text: str | bytes, said: str) -> None:
    assert [line_of(finding) for finding in refusals(text, "x.yaml")] == [said]


def test_all_faults_that_do_not_end_the_reading_are_reported_at_once() -> None:
    text = "a: .inf\na: 2\n5: !x y\nb: 99999999999999999999\n<<: {}\na: 3\n"
    assert [line_of(finding).split(" (")[0] for finding in refusals(text, "x.yaml")] == [
        "1:4 JSON has no such number",
        "2:1 `a` is given twice: first on line 1",
        "3:1 the key `5` is not a string",
        "3:4 the tag `!x` is not read",
        f"4:4 a number beyond {LARGEST} is too large to be exact",
        "5:1 merge keys",
        "6:1 `a` is given twice: first on line 1",
    ]
    text = '{"a": NaN, // one\n "a": "\\ud800" /* two */, "b": 1e400}'
    assert [line_of(finding).split(" (")[0] for finding in refusals(text, "x.json")] == [
        "1:7 JSON has no such number",
        "1:12 JSON has no comments",
        "2:2 `a` is given twice: first on line 1",
        "2:7 half a surrogate pair is not a character",
        "2:16 JSON has no comments",
        "2:32 JSON has no such number",
    ]


def test_faults_are_reported_with_the_path_of_the_value() -> None:
    found = refusals("steps:\n  - {id: a, id: b}\n  - [.nan]\n5: x\n", "x.yaml")
    assert [finding.where for finding in found] == ["steps[0].id", "steps[1][0]", "5"]


def test_a_text_that_is_neither_is_blamed_as_what_its_name_says() -> None:
    text = '{"a": [1, 2}'
    assert refusals(text, "x.yaml")[0].message == "the list opened with `[` on line 1 is not closed"
    assert refusals(text, "<plan>")[0].message == "`,` or `]` is missing before this"
    assert refusals(text, "x.json")[0].message == "`,` or `]` is missing before this"


def test_what_json_refuses_permanently_is_not_tried_as_yaml() -> None:
    assert [finding.message for finding in refusals('{"a": NaN}', "<plan>")] == ["JSON has no such number"]
    assert [finding.message for finding in refusals('{// x\n"a": 1}', "<plan>")] == ["JSON has no comments"]


def test_faults_are_listed_up_to_a_bound() -> None:
    found = refusals("".join(f"k{number}: .nan\n" for number in range(1000)), "x.yaml")
    assert len(found) == FINDINGS_MAX + 1
    assert (found[-1].message, found[-1].fix) == ("no more errors are listed", "fix these first")


def test_long_words_are_cut_in_messages() -> None:
    (found,) = refusals(f"{'x' * 5000}: 1\n{'x' * 5000}: 2\n", "x.yaml")
    assert len(found.message) < 120
    assert len(found.where) <= 300


def test_data_without_a_text_is_reported_its_faults_without_a_place() -> None:
    with pytest.raises(Invalid) as refused:
        document_of({"a": [float("inf"), 2**60], "b": "\ud800"}, name="<plan>")
    assert [(finding.where, finding.at) for finding in refused.value.findings] == [
        ("a[0]", None),
        ("a[1]", None),
        ("b", None),
    ]
