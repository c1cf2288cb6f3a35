"""Changes one member of a YAML text in place: every other line stays, comments too.

Pure. Positions come from PyYAML's nodes; no library keeps the rest of the text (docs/decisions/0011). The caller
verifies the result (entry.py)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

import yaml

from handrail.domain.errors import Invalid
from handrail.interfaces.clients.layout import after_line, indent_of, line_end, line_start, newline_of

NULL: Final = "tag:yaml.org,2002:null"
WIDE: Final = 10_000
"""Lines are not wrapped before this column."""
Pair = tuple[yaml.ScalarNode, yaml.Node]


def read(text: str) -> dict[str, Any]:
    """The text as data; an empty string is an empty mapping."""
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError as error:
        reason = " ".join(str(error).split())
        raise Invalid(reason, hint="fix it there, then repeat the call") from error
    if value is not None and not isinstance(value, dict):
        raise Invalid("it is not a mapping", hint="it should look like `name: value`")
    return value or {}


def put(text: str, path: Sequence[str], value: Any) -> str:
    """The text with this value at this path; missing mappings on the way are created."""
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    if root is None:
        return _appended(text, _block(_nested(path, value), "", text))
    parent, rest, pair = _descend(root, path)
    if pair is None:
        return _inserted(text, root, _nested(rest, value))
    if not rest:
        return _replaced(text, pair[1], value)
    if pair[1].tag == NULL:
        return _filled(text, parent, pair, _nested(rest, value))
    return _inserted(text, pair[1], _nested(rest, value))


def drop(text: str, path: Sequence[str]) -> str:
    """The text without the member at this path; the text itself if there is none."""
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    if root is None:
        return text
    parent, rest, pair = _descend(root, path)
    if rest or pair is None or not isinstance(parent, yaml.MappingNode):
        return text
    if parent.flow_style:
        return _dropped_from_flow(text, parent, pair)
    if len(parent.value) == 1:
        return text[: parent.start_mark.index] + "{}" + text[_end(pair[1]) :]
    return text[: line_start(text, pair[0].start_mark.index)] + text[_next_line(text, pair[1]) :]


def _nested(path: Sequence[str], value: Any) -> Any:
    for key in reversed(path):
        value = {key: value}
    return value


def _descend(root: yaml.Node, path: Sequence[str]) -> tuple[yaml.Node, Sequence[str], Pair | None]:
    """The mapping with the deepest existing pair on the path, the rest of the path, and that pair."""
    parent, pair = root, None
    for index, key in enumerate(path):
        inside = root if pair is None else pair[1]
        if not isinstance(inside, yaml.MappingNode):
            return parent, path[index:], pair
        found = [one for one in inside.value if one[0].value == key]
        if not found:
            return parent, path[index:], pair
        parent, pair = inside, found[0]
    return parent, (), pair


def _replaced(text: str, node: yaml.Node, value: Any) -> str:
    """The text with another value for a node; a block stays a block."""
    is_block = isinstance(node, yaml.CollectionNode) and not node.flow_style and isinstance(value, dict | list)
    written = _block(value, " " * node.start_mark.column, text).strip() if is_block else _flow(value)
    return text[: node.start_mark.index] + written + text[_end(node) :]


def _filled(text: str, parent: yaml.Node, pair: Pair, value: Any) -> str:
    """The text with a value for a key that had none."""
    key, nothing = pair
    if isinstance(parent, yaml.MappingNode) and parent.flow_style:
        return text[: nothing.start_mark.index] + " " + _flow(value) + text[nothing.end_mark.index :]
    text = text[: nothing.start_mark.index].rstrip(" ") + text[nothing.end_mark.index :]
    at = line_end(text, key.end_mark.index)
    margin = " " * key.start_mark.column + indent_of(text)
    return text[:at] + newline_of(text) + _block(value, margin, text).rstrip("\r\n") + text[at:]


def _inserted(text: str, node: yaml.Node, value: Any) -> str:
    """The text with another member at the end of a mapping."""
    if not isinstance(node, yaml.MappingNode):
        line = node.start_mark.line + 1
        raise Invalid(f"line {line}: a mapping is expected here", hint="it should look like `name: value`")
    if node.flow_style:
        written = _flow(value)[1:-1]
        at = _end(node.value[-1][1]) if node.value else node.start_mark.index + 1
        return text[:at] + (", " if node.value else "") + written + text[at:]
    block = _block(value, " " * node.value[0][0].start_mark.column, text)  # an anchor may come before the first key
    at = _next_line(text, node.value[-1][1])
    return _appended(text[:at], block) + text[at:]


def _dropped_from_flow(text: str, parent: yaml.MappingNode, pair: Pair) -> str:
    index = parent.value.index(pair)
    start, end = pair[0].start_mark.index, _end(pair[1])
    if index + 1 < len(parent.value):
        end = parent.value[index + 1][0].start_mark.index
    elif index:
        start = _end(parent.value[index - 1][1])
    return text[:start] + text[end:]


def _appended(text: str, block: str) -> str:
    gap = newline_of(text) if text and not text.endswith("\n") else ""
    return text + gap + block


def _end(node: yaml.Node) -> int:
    """Where a value really ends: the end mark of a block is after the blank lines and comments that follow it."""
    if isinstance(node, yaml.MappingNode) and not node.flow_style and node.value:
        return _end(node.value[-1][1])
    if isinstance(node, yaml.SequenceNode) and not node.flow_style and node.value:
        return _end(node.value[-1])
    return int(node.end_mark.index)


def _next_line(text: str, node: yaml.Node) -> int:
    """The start of the line after a value; the end mark of a text block is there already."""
    end = _end(node)
    return end if end and text[end - 1] == "\n" else after_line(text, end)


def _block(value: Any, margin: str, text: str) -> str:
    """A value in block style, each line with this margin."""
    step = len(indent_of(text).expandtabs(2))
    written = yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=WIDE, indent=max(2, min(step, 8)))
    return "".join(margin + line + newline_of(text) for line in written.splitlines())


def _flow(value: Any) -> str:
    """A value on one line: a string in plain style if possible, everything else as JSON, which is YAML too."""
    if isinstance(value, str) and value.isprintable():
        return yaml.safe_dump(value, allow_unicode=True, width=WIDE).splitlines()[0]
    return json.dumps(value, ensure_ascii=False)
