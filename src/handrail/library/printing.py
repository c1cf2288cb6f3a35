"""Printing: a definition's data as YAML that reads back as the same data. Reading is yaml_document.py's."""

from __future__ import annotations

from typing import Any

import yaml

from handrail.library.yaml_document import reads_as_text


class _Printer(yaml.SafeDumper):
    """Writes texts so that YAML 1.2 and 1.1 both read them as texts, and nothing by reference."""

    def ignore_aliases(self, data: object) -> bool:
        return True

    def text(self, value: str) -> yaml.ScalarNode:
        style = "|" if "\n" in value else None if reads_as_text(value) else '"'
        return self.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Printer.add_representer(str, _Printer.text)
_Printer.add_representer(tuple, _Printer.represent_list)


def yaml_text(data: Any) -> str:
    """The data as YAML, keys in their order."""
    text: str = yaml.dump(data, Dumper=_Printer, sort_keys=False, allow_unicode=True, width=100)
    return text
