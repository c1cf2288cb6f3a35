"""Prints a definition's data as YAML that reads back as the same data; yaml_document.py reads YAML.

The text has no raw control characters: it can be shown in a terminal."""

from __future__ import annotations

import re
from typing import Any

import yaml

from handrail.library.documents.yaml_document import reads_as_text

# PyYAML escapes other control characters itself; these end a line, or change the direction of the text after them.
_control = re.compile("[\x85\u200e\u200f\u2028-\u202e\u2066-\u2069]")


class _Printer(yaml.SafeDumper):
    """Writes strings that both YAML 1.2 and 1.1 read as strings, and no aliases."""

    def ignore_aliases(self, data: object) -> bool:
        return True

    def text(self, value: str) -> yaml.ScalarNode:
        is_quoted = not reads_as_text(value) or _control.search(value)
        style = '"' if is_quoted else "|" if "\n" in value else None
        return self.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Printer.add_representer(str, _Printer.text)
_Printer.add_representer(tuple, _Printer.represent_list)


def yaml_text(data: Any) -> str:
    """The data as YAML, keys in their order."""
    text: str = yaml.dump(data, Dumper=_Printer, sort_keys=False, allow_unicode=True, width=100)
    # All of them are in double quotes now, where an escape means the character.
    return _control.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
