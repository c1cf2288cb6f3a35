"""Writes docs/clients/: the bundle and the skill for clients, from the code.

python docs/manifests.py            `make manifests` does the same; a test keeps the files equal to the code"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from handrail.interfaces.clients.manifests import documents, product
from handrail.interfaces.mcp.surface.handlers.catalog import TOOLS

HERE: Final = Path(__file__).parent / "clients"


def pages() -> Mapping[str, str]:
    """Every document by its path."""
    return documents(product([(tool.name, first_sentence(tool.description)) for tool in TOOLS]))


def first_sentence(text: str) -> str:
    """When to call it; examples are for models that can."""
    sentence = text.partition(". ")[0].partition(": {")[0].rstrip(".")
    return f"{sentence}."


def main() -> None:
    for name, text in pages().items():
        (HERE / name).parent.mkdir(parents=True, exist_ok=True)
        (HERE / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
