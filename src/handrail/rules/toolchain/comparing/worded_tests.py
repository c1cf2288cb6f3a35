"""What tests check, read from the words of their source: JavaScript, Go, Rust and Java. Pure.

No grammar is known: brackets are matched, comments are dropped, and words are looked for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import IntEnum
from itertools import islice
from typing import Final

from msgspec import Struct

_literal = r"(?:true|false|null|undefined|-?\d[\d.]*|'[^'\n]*'|\"[^\"\n]*\"|`[^`$]*`|\[\s*\]|\{\s*\})"
_inner = r"(?:[^()]|\((?:[^()]|\([^()]*\)){0,500}\)){0,2000}"
_js_test = re.compile(
    r"(?<![\w.$])(?:it|test|specify)((?:\.\w{1,20}(?:\([^()\n]{0,100}\))?){0,3})\s*\(\s*"
    r"(['\"`])((?:\\.|(?!\2)[^\\]){1,300})\2\s*,"
)
_js_helper = re.compile(
    r"^(?:export\s+)?(?:async\s+)?(?:function\s+([\w$]{1,100})\s*\(|(?:const|let|var)\s+([\w$]{1,100})\s*=\s*"
    r"(?:async\s*)?(?:function\b[^(]{0,100})?\()",
    re.MULTILINE,
)
_js_assert = re.compile(
    r"(?<![\w$])(?:expect|assert\w*|should|sinon|chai|t|strictEqual|deepEqual|throws|check\w*|verify\w*)\b"
)
_js_constant = re.compile(
    rf"(?:expect\(\s*{_literal}\s*\)(?:\.\w+){{1,6}}\(\s*{_literal}?\s*\)"
    rf"|assert(?:\.\w+)?\(\s*{_literal}(?:\s*,\s*{_literal}){{0,3}}\s*\))\s*;?"
)
_js_uncalled = re.compile(
    rf"\bexpect\({_inner}\)(?:\.\w+){{0,6}}\s*(?=[;}}\n]|$)(?!\s*\.)|\bassert(?:\.\w+)?\s*(?=[;}}\n]|$)"
)
_js_always = re.compile(r"\b(?:expect|assert(?:\.\w+)?)\([^;\n]{0,500}\|\|\s*(?:true|1)\b[^;\n]{0,200}")
_js_called = re.compile(r"[\w$]\s*\(")
_js_printed = re.compile(r"console\.\w+\([^()\n]*\)\s*;?")
_js_catch = re.compile(r"\bcatch\s*(?:\([^)]*\)\s*)?(?=\{)")
_js_catching = re.compile(r"\.catch\s*\(")
_js_goes_on = re.compile(r"\b(?:throw|expect|assert|fail|reject|done|next)\b")
_js_never = re.compile(
    r"\b(?:if|while)\s*\(\s*(?:false|0|null|undefined|!1|!true)\s*\)\s*(?=\{)"
    r"|\bfor\s*\([^()]{0,200}\bof\s*\[\s*\]\s*\)\s*(?=\{)"
)
_js_never_each = re.compile(r"\[\s*\]\.\w{1,20}\s*\(")
_js_never_and = re.compile(r"(?:(?<=[;{}\n])|^)\s*(?:false|0|null)\s*&&[^;\n]*")
_js_itself = re.compile(r"\bexpect\(\s*([\w.$]{1,100})\s*\)(?:\.\w{1,40})\(\s*\1\s*\)")
_js_compared = re.compile(r"(?<![\w.$])(?:assert\s*\.\s*\w{1,40}|expect)\s*\(")
_js_with = re.compile(r"\)\s*\.\s*\w{1,40}\s*\(")
_js_quoted = re.compile(r"^\s*(['\"`])[^'\"`\n]*\1\s*;?\s*$", re.MULTILINE)
_js_left = re.compile(r"\s*return(?:[ \t]*[;\n]|\s+(?:void\s+0|undefined|null)\b)")
_js_finally = re.compile(r"\bfinally\s*\{[^{}]{0,500}\breturn\b")
_js_defined = re.compile(r"\b(?:const|let|var)\s+([\w$]{1,100})\s*=\s*(?:async\s*)?\([^()]{0,200}\)\s*=>\s*(?=\{)")
_js_if = re.compile(r"\bif\s*\(")
_js_may_leave = re.compile(r"\bif\s*\([^;{}\n]{1,500}\)\s*(?:\{\s*)?return\s*(?:;|\n|\}|void\b|undefined\b|null\b)")
_js_end = re.compile(r";|\n(?!\s*[.?:&|+(\[])|$")
_js_and = re.compile(r"(?:(?<=[;{}\n])|^)[^;\n{}=]{1,500}(?:&&|\|\|)\s*(?=(?:await\s+)?(?:expect|assert)\b)[^;\n]*")
"""An assertion that is made only if something before it says so."""
_js_later = re.compile(r"\b(?:setTimeout|setInterval|setImmediate|queueMicrotask|process\.nextTick)\s*\(")
_js_block = re.compile(r"^[^{]*(?:=>|\))\s*\{")
_js_then = re.compile(r"\.\s*(?:then|finally)\s*\(")
_js_settled = re.compile(r"\bexpect\([^;\n]{0,500}\)\s*\.\s*(?:resolves|rejects)\b[^;\n]{0,300}")
"""An assertion that is made after the test has ended, unless something waits for it."""
_js_waits = re.compile(r"\b(?:await|return|done|resolve)\b")
_js_throws = re.compile(r"\b(?:expect|(?:assert\.)?throws|rejects)\s*\(\s*(?:async\s*)?\(\s*\)\s*=>\s*")
_comment = re.compile(r"/\*.{0,20000}?\*/|(?<![:'\"`\\])//[^\n]*", re.DOTALL)
MUST_FAIL: Final = frozenset({"fails", "failing"})
BODIES_MAX: Final = 2_000_000
"""How many characters of bodies are read in a file: more are only in one whose brackets are never closed."""
CLOSELY_MAX: Final = 20_000
"""How long a body may be to be read closely."""
BLOCKS_MAX: Final = 50
HEAD_MAX: Final = 500


class Checks(IntEnum):
    """How much a test checks."""

    NOTHING = 0
    RUNS = 1
    """It calls something, which might fail."""
    SOMETIMES = 2
    """It asserts something under a condition."""
    ASSERTS = 3


class WrittenTest(Struct, frozen=True):
    """A test in a file."""

    name: str
    """With the classes around it: `TestA::test_b`; in JavaScript only its own title."""
    line: int
    checks: Checks
    body: str
    """The same for two tests that do the same."""
    is_test: bool = True
    """Whether it is one itself, and not a function that helps tests."""
    must_fail: bool = False
    """Whether it is marked such that it passes if it fails."""

    @property
    def bare(self) -> str:
        """Without the classes around it."""
        return self.name.rpartition("::")[2]


class Grammar(Struct, frozen=True):
    """How a language writes tests, and what asserts in them."""

    test: re.Pattern[str]
    """Its first group is the name; the block that follows is the body."""
    asserts: re.Pattern[str]


GRAMMARS: Final = {
    ".go": Grammar(
        re.compile(r"^func\s+(Test\w{0,200})\s*\([^)]*\)\s*(?=\{)", re.MULTILINE),
        re.compile(r"\bt\w*\.(?:Error|Fatal|Fail|Run)|\b(?:assert|require|is|cmp|check\w*|want\w*)\s*[.(]"),
    ),
    ".rs": Grammar(
        re.compile(
            r"#\[(?:\w+::)?test[^\]]*\](?:\s*#\[[^\]]{0,200}\]){0,10}\s*(?:pub\s+)?(?:async\s+)?fn\s+(\w{1,200})[^{]*(?=\{)"
        ),
        re.compile(r"\b(?:\w*assert\w*|panic|unwrap|expect\w*|check\w*|prop_\w+)\b|\?;"),
    ),
    ".java": Grammar(
        re.compile(
            r"@(?:Test|ParameterizedTest|RepeatedTest)\b[^{;]{0,500}?\b(\w{1,200})\s*\([^)]{0,1000}\)\s*"
            r"(?:throws\s[\w.,\s]{1,200})?(?=\{)"
        ),
        re.compile(r"\b(?:assert\w*|fail|verify\w*|expect\w*|should\w*|check\w*|that)\b"),
    ),
}


def worded_tests(path: str, text: str) -> Iterator[WrittenTest]:
    """The tests of a file, and in JavaScript the functions that help them."""
    suffix, read = path[path.rfind(".") :], 0
    for test in _blocks(GRAMMARS[suffix], text) if suffix in GRAMMARS else _javascript(text):
        yield test
        read += len(test.body)
        if read > BODIES_MAX:
            return


def _blocks(grammar: Grammar, text: str) -> Iterator[WrittenTest]:
    for found in grammar.test.finditer(text):
        inner = _comment.sub("", _between(text, found.end()))
        is_left = re.match(r"\s*return\b", inner) is not None
        checks = Checks.ASSERTS if grammar.asserts.search(inner) else Checks.RUNS if inner.strip() else Checks.NOTHING
        line = text.count("\n", 0, found.end()) + 1
        yield WrittenTest(found[1], line, Checks.NOTHING if is_left else checks, " ".join(inner.split()))


def _javascript(text: str) -> Iterator[WrittenTest]:
    for found in _js_test.finditer(text):
        body = closed_by(text, found.end())
        line = text.count("\n", 0, found.start()) + 1
        must_fail = bool(MUST_FAIL & set(re.findall(r"\w+", found[1])))
        yield WrittenTest(found[3], line, _js_checks(body), " ".join(body.split()), must_fail=must_fail)
    for found in _js_helper.finditer(text):
        head = closed_by(text, found.end(), HEAD_MAX)
        start = text.find("{", found.end() + len(head))
        body = _between(text, start) if start >= 0 else ""
        line = text.count("\n", 0, found.start()) + 1
        yield WrittenTest(found[1] or found[2], line, _js_checks(f"{{{body}"), " ".join(body.split()), is_test=False)


def javascript_bodies(text: str) -> Iterator[tuple[str, str]]:
    """The title of each test in JavaScript, and the rest of its call."""
    return ((found[3], closed_by(text, found.end())) for found in _js_test.finditer(text))


def closed_by(text: str, start: int, longest: int = BODIES_MAX) -> str:
    """From here to the bracket that closes the call; quotes are passed over."""
    depth, at, quote, end = 1, start, "", min(len(text), start + longest)
    while at < end and depth:
        one = text[at]
        if quote:
            at += one == "\\"
            quote = "" if one == quote else quote
        elif one in "'\"`":
            quote = one
        else:
            depth += (one in "([{") - (one in ")]}")
        at += 1
    return text[start : at - 1]


def _between(text: str, brace: int) -> str:
    """What is in a block whose bracket is there."""
    return closed_by(text, brace + 1)


def _js_checks(body: str) -> Checks:
    inner = _comment.sub("", body.partition("{")[2] if "{" in body else body)
    if _js_left.match(inner):
        return Checks.NOTHING
    if len(inner) > CLOSELY_MAX:
        return Checks.ASSERTS if _js_assert.search(inner) else Checks.RUNS
    if _js_block.search(body) and not _js_waits.search(inner):  # else an arrow may return what it waits for
        inner = _js_settled.sub("run()", _without_arguments(inner, _js_then))
    left = _js_printed.sub("", _js_constant.sub("", _js_always.sub("", _js_uncalled.sub("", _unreached(inner)))))
    if not _js_assert.search(left):
        return Checks.RUNS if _js_called.search(inner) and _js_called.search(left) else Checks.NOTHING
    if _is_caught(left):
        return Checks.RUNS
    always = _js_and.sub("", _without_blocks(_before_leaving(left), _js_if))
    return Checks.ASSERTS if _js_assert.search(always) else Checks.SOMETIMES


def _unreached(inner: str) -> str:
    """Without what is never run, run after the test has ended, or expected to throw."""
    text = _js_never_and.sub("", _js_itself.sub("", _js_quoted.sub("", _without_blocks(inner, _js_never))))
    text = _itself_gone(text)
    text = _without_arguments(_uncalled_gone(text), _js_never_each)
    if not _js_waits.search(text):
        text = _without_arguments(text, _js_later)
    for found in list(_js_throws.finditer(text))[:BLOCKS_MAX][::-1]:
        start = text.find("{", found.end() - 1)
        block = _between(text, start) if 0 <= start <= found.end() else ""
        if block and _js_assert.search(block):
            text = f"{text[: found.start()]} run(){text[start + len(block) + 2 :]}"
    return text


def _itself_gone(text: str) -> str:
    """Without assertions that compare something with itself."""
    for found in list(_js_compared.finditer(text))[:BLOCKS_MAX][::-1]:
        first = closed_by(text, found.end())
        end = found.end() + len(first)
        sides = arguments_of(first)
        if after := _js_with.match(text, end):
            second = closed_by(text, after.end())
            sides, end = [first, second], after.end() + len(second)
        if len(sides) > 1 and "".join(sides[0].split()) == "".join(sides[1].split()):
            text = f"{text[: found.start()]}run(){text[end + 1 :]}"
    return text


def arguments_of(text: str) -> list[str]:
    """The arguments of a call."""
    depth, start, found = 0, 0, list[str]()
    for at, one in enumerate(text):
        depth += (one in "([{") - (one in ")]}")
        if one == "," and not depth:
            found.append(text[start:at])
            start = at + 1
    return [*found, text[start:]]


def _uncalled_gone(text: str) -> str:
    """Without functions that are defined and never mentioned again."""
    for found in list(_js_defined.finditer(text))[:BLOCKS_MAX][::-1]:
        if len(re.findall(rf"(?<![\w$]){re.escape(found[1])}(?![\w$])", text)) == 1:
            text = text[: found.start()] + text[found.end() + len(_between(text, found.end())) + 2 :]
    return text


def _without_blocks(text: str, head: re.Pattern[str]) -> str:
    """Without the blocks behind such a head: `if (...) {...}`; what has an `else` stays."""
    for found in list(head.finditer(text))[:BLOCKS_MAX][::-1]:
        after = found.end() if text[found.end() : found.end() + 1] == "{" else -1
        if after < 0:
            condition = closed_by(text, found.end())
            after = found.end() + len(condition) + 1
            after += len(text[after:]) - len(text[after:].lstrip())
        if text[after : after + 1] == "{":
            end = after + len(_between(text, after)) + 2
        elif head is _js_if:
            end = _statement_end(text, after)
        else:
            continue
        if not text[end:].lstrip().startswith("else"):
            text = text[: found.start()] + text[end:]
    return text


def _before_leaving(text: str) -> str:
    """What is run in any case: up to where the test may end early, if it has an assertion before."""
    found = _js_may_leave.search(text)
    return text[: found.start()] if found else text


def _statement_end(text: str, start: int) -> int:
    """Where a statement without a block ends: behind its semicolon, or with its line."""
    found = _js_end.search(text, start)
    return found.end() if found else len(text)


def _without_arguments(text: str, head: re.Pattern[str]) -> str:
    for found in list(head.finditer(text))[:BLOCKS_MAX][::-1]:
        text = text[: found.end()] + text[found.end() + len(closed_by(text, found.end())) :]
    return text


def _is_caught(text: str) -> bool:
    """Whether a failed assertion ends in a handler that does nothing about it."""
    blocks = [_between(text, found.end()) for found in islice(_js_catch.finditer(text), BLOCKS_MAX)]
    handlers = [closed_by(text, found.end()) for found in islice(_js_catching.finditer(text), BLOCKS_MAX)]
    if _js_finally.search(text):
        return True
    return any(not _js_goes_on.search(one) for one in (*blocks, *handlers))
