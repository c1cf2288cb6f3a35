"""Parses the text of an expression: which symbols and words may reach Python's parser, and how long it may be.

Pure. expression_compiler.py checks what the parts mean. The parser sees only plain ASCII: strings are blanked out at
the same length first, so columns stay correct and escapes, look-alike letters and warnings never reach it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice, pairwise
from keyword import iskeyword
from typing import Final, NamedTuple

from handrail.domain.language.expression_value import ExpressionRefused

SOURCE_LENGTH_MAX: Final = 2_000
STRING_LENGTH_MAX: Final = 1_000
NUMBER_LENGTH_MAX: Final = 30
TOKENS_MAX: Final = 900
NODES_MAX: Final = 300
NESTING_MAX: Final = 40

_TOKEN: Final = re.compile(
    r"""(?P<space>[ \t\r\n]++)
    |(?P<string>[rR]?(?:"(?>(?:[^"\\\n]|\\.)*)"|'(?>(?:[^'\\\n]|\\.)*)'))
    |(?P<dashed>[A-Za-z_][A-Za-z0-9_]*+(?:-[A-Za-z0-9_]++)++)
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*+)
    |(?P<number>(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][+-]?[0-9]++)?+(?![A-Za-z0-9_.]))
    |(?P<wrong>[0-9][A-Za-z0-9_.]*+)
    |(?P<unclosed>["'])
    |(?P<sign>==|!=|<=|>=|:=|&&|\|\||\*\*|//|<<|>>|[ -~])
    """,
    re.VERBOSE,
)
_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|.)")
_ESCAPED: Final = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "\\": "\\", '"': '"', "'": "'"}
_TWO_MEANINGS: Final = frozenset("abvxUN01234567")
_CLOSED_BY: Final = {"(": ")", "[": "]", "{": "}"}
_WORDS: Final = frozenset({"and", "or", "not", "in", "True", "False", "None"})

_TOO_LARGE: Final = "the expression is too large or too deeply nested; split it, or let a step decide"
_NO_ARITHMETIC: Final = "there is no arithmetic here; let a step compute it and read its output"
_REFUSED_SIGNS: Final = {
    **dict.fromkeys(("+", "*", "**", "/", "//", "%", "@", "<<", ">>", "^", "~"), _NO_ARITHMETIC),
    "=": "write == to compare",
    ":=": "values can't be set here; write == to compare",
    "&&": "write 'and'",
    "&": "write 'and'",
    "||": "write 'or'",
    "!": "write 'not'",
    "#": "comments are not allowed in an expression",
    ";": "write one expression, without ';'",
    "\\": "a backslash is only allowed in a string",
}
_REFUSED_WORDS: Final = {
    "is": "write == to compare",
    "if": "there is no if/else here; use 'and'/'or', or {% if %} in a template",
    "else": "there is no if/else here; use 'and'/'or', or {% if %} in a template",
    "for": "there are no comprehensions here; use an `each` step, or {% for %} in a template",
    "lambda": "functions can't be defined here; use an `each` step or a tool",
}


class Token(NamedTuple):
    """A word, string, number or symbol, and its column (from 1)."""

    kind: str
    text: str
    column: int


class Parsed(NamedTuple):
    """A syntax tree, its number of nodes, and the strings that were blanked out in it, by column."""

    tree: ast.expr
    size: int
    strings: Mapping[int, str]


def parse(source: str) -> Parsed:
    """The syntax tree of an expression; refused if it is too large or has symbols that are not allowed."""
    if len(source) > SOURCE_LENGTH_MAX:
        reason = f"the expression has {len(source):,} characters; at most {SOURCE_LENGTH_MAX:,} are allowed"
        raise ExpressionRefused(reason, 1)
    strings: dict[int, str] = {}
    # Parentheses around everything allow line breaks, and make the parser's columns count from 1.
    plain = ["(", *" " * len(source), ")"]
    for token in _checked_tokens(source):
        text = token.text
        if token.kind == "string":
            text, said, shift = _blanked(token)
            strings[token.column + shift] = said
        plain[token.column : token.column + len(text)] = text
    tree = _tree("".join(plain), source)
    return Parsed(tree, _size(tree), strings)


def _checked_tokens(source: str) -> list[Token]:
    """The tokens, each allowed in its place, with matching brackets."""
    tokens = list(islice(_tokens(source), TOKENS_MAX + 1))
    if not tokens:
        raise ExpressionRefused("the expression is empty", 1)
    if len(tokens) > TOKENS_MAX:
        raise ExpressionRefused(_TOO_LARGE, tokens[-1].column)
    for before, token in pairwise([Token("", "", 0), *tokens]):
        if reason := _refusal(token, before):
            raise ExpressionRefused(reason, token.column)
    _check_brackets([token for token in tokens if token.kind == "sign" and token.text in "()[]{}"])
    return tokens


def _tokens(source: str) -> Iterator[Token]:
    position = 0
    while position < len(source):
        found = _TOKEN.match(source, position)
        if found is None:
            reason = f'{source[position]!a} is only allowed in a string; write such a name in quotes: x["..."]'
            raise ExpressionRefused(reason, position + 1)
        if found.lastgroup != "space":
            yield Token(str(found.lastgroup), found[0], position + 1)
        position = found.end()


def _refusal(token: Token, before: Token) -> str:
    """Why a token is not allowed here; empty if it is."""
    match token.kind:
        case "string" if before.kind == "string":
            return "two strings are next to each other; write one"
        case "string" if before.kind == "name" and before.column + len(before.text) == token.column:
            return "" if before.text in _WORDS else f"write the string without '{before.text}' before it"
        case "dashed":
            return f'write a name with a dash in quotes: x["{token.text}"]; there is no arithmetic'
        case "number" if len(token.text) > NUMBER_LENGTH_MAX:
            return f"the number has more than {NUMBER_LENGTH_MAX} characters"
        case "wrong":
            return f"{token.text[:NUMBER_LENGTH_MAX]} is not a number; write 12 or 0.5"
        case "unclosed":
            return "the string is never closed"
        case "sign":
            return _REFUSED_SIGNS.get(token.text, "")
        case "name" if iskeyword(token.text):
            return _word_refusal(token.text, follows_dot=before.text == ".")
        case _:
            return ""


def _word_refusal(word: str, *, follows_dot: bool) -> str:
    if follows_dot:
        return f'write a field named {word} in quotes: x["{word}"]'
    return "" if word in _WORDS else _REFUSED_WORDS.get(word, f"the word '{word}' is not allowed here")


def _check_brackets(tokens: Iterable[Token]) -> None:
    opened: list[Token] = []
    for token in tokens:
        if token.text in _CLOSED_BY:
            opened.append(token)
        elif not opened or _CLOSED_BY[opened.pop().text] != token.text:
            raise ExpressionRefused(f"'{token.text}' closes nothing", token.column)
        if len(opened) > NESTING_MAX:
            raise ExpressionRefused(_TOO_LARGE, token.column)
    if opened:
        raise ExpressionRefused(f"'{opened[-1].text}' is never closed", opened[-1].column)


def _blanked(token: Token) -> tuple[str, str, int]:
    """The token with prefix and content blanked out, its string value, and the length of its prefix."""
    prefix = int(token.text[0] in "rR")
    quote, content = token.text[-1], token.text[1 + prefix : -1]
    if len(content) > STRING_LENGTH_MAX:
        reason = f"the string has {len(content):,} characters; at most {STRING_LENGTH_MAX:,} are allowed"
        raise ExpressionRefused(reason, token.column)
    try:
        said = content if prefix else _ESCAPE.sub(_unescaped, content)
        # Joins a surrogate pair written as two escapes; half a pair is not valid text.
        said = said if said.isascii() else said.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise ExpressionRefused("the string holds half a character", token.column) from None
    except ValueError as error:
        raise ExpressionRefused(str(error), token.column) from None
    return " " * prefix + quote + "_" * len(content) + quote, said, prefix


def _unescaped(escape: re.Match[str]) -> str:
    sign = escape[1]
    if len(sign) > 1:
        return chr(int(sign[1:], 16))
    if sign == "u":
        raise ValueError("\\u needs four hexadecimal digits")
    if sign in _TWO_MEANINGS:
        raise ValueError(f'\\{sign} means one thing in a string and another in a pattern; write r"..." for a pattern')
    return _ESCAPED.get(sign, escape[0])


def _tree(plain: str, source: str) -> ast.expr:
    try:
        return ast.parse(plain, mode="eval").body
    except (RecursionError, MemoryError):
        raise ExpressionRefused(_TOO_LARGE, 1) from None
    except SyntaxError as error:
        column = min(max(1, (error.offset or 1) - 1), len(source) + 1)
        reason = _syntax_reason(error.msg, source[column - 1 :])
        raise ExpressionRefused(reason, column) from None


def _syntax_reason(said: str, rest: str) -> str:
    if "comma" in said:  # the parser's message for two values next to each other
        return "an operator is missing between two values, e.g. == or and"
    return f"'{rest.split()[0][:30]}' is not expected here" if rest.strip() else "something is missing here"


def _size(tree: ast.expr) -> int:
    pending, count = [(tree, 1)], 0
    while pending:
        node, depth = pending.pop()
        count += 1
        if count > NODES_MAX or depth > NESTING_MAX:
            raise ExpressionRefused(_TOO_LARGE, node.col_offset)
        inner = ast.iter_child_nodes(node)
        pending += [(child, depth + 1) for child in inner if isinstance(child, ast.expr)]
    return count
