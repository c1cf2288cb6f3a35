"""Finds workflows by what a person types: a file, a folder, an id, or an id with a version.

The library decides whether a workflow is valid (library/loading.py)."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from handrail import definitions
from handrail.assembly.tools import library_of
from handrail.domain.definition.model import Definition
from handrail.domain.errors import NotFound
from handrail.interfaces.cli.workflow.definitions import STDIN, load_file
from handrail.library.loading import Loaded, valid
from handrail.library.shelf.catalog import SUFFIXES, FolderCatalog, chosen
from handrail.library.test_script import TESTS_SUFFIX
from handrail.settings import Settings

LIBRARY_FOLDER: Final = "workflows"
"""A folder of this name, or inside one, is read with its sub-folders."""
SCHEMA_SUFFIX: Final = ".schema.json"
ANY_VERSION: Final = "*"


def found(name: str, settings: Settings) -> Loaded:
    """The workflow in a file, or of the library by its id, with all findings; NotFound with the nearest names."""
    if is_file_name(name):
        return load_file(name, settings)
    return library_of(settings).load(name)


def found_valid(name: str, settings: Settings) -> Definition:
    """The same, if it is valid; else Invalid with all findings."""
    return valid(found(name, settings), name)


def files_of(targets: Iterable[str], settings: Settings) -> list[str]:
    """The workflow files for these names: a file, all in a folder, or by id; NotFound if there is none."""
    files: dict[str, None] = {}
    for target in targets:
        if Path(target).is_dir():
            files |= dict.fromkeys(_files_in(Path(target)))
        elif is_file_name(target):
            files[_definition_file(target)] = None
        else:
            files[file_of(target, settings)] = None
    return list(files)


def file_of(name: str, settings: Settings) -> str:
    """The file of the workflow that an id names; NotFound with the nearest names."""
    library = library_of(settings)
    library.load(name)  # raises NotFound with the nearest names
    wanted, _, versions = name.partition("@")
    best = chosen(library.catalog.find(wanted), versions or ANY_VERSION, takes_any=True)
    if best is None:  # it was removed just now
        raise NotFound(f"there is no workflow {name!r}")
    return best.document.name


def is_file_name(name: str) -> bool:
    """Whether a name is that of a file or stdin rather than an id."""
    return name == STDIN or definitions.is_file_name(name)


def _files_in(folder: Path) -> list[str]:
    # Any other folder may be a project's root, whose sub-folders are full of YAML that is not a workflow.
    is_library = LIBRARY_FOLDER in Path(os.path.realpath(folder)).parts
    catalog = FolderCatalog([folder]) if is_library else FolderCatalog([], beside=folder)
    kept = [path for path, *_ in catalog.files() if not path.endswith(SCHEMA_SUFFIX)]
    if not kept:
        raise NotFound(f"there is no workflow in {str(folder)!r}", hint="give a folder with YAML or JSON definitions")
    return kept


def _definition_file(file: str) -> str:
    """The workflow's file, even if its test file was named."""
    if not file.endswith(TESTS_SUFFIX):
        return file
    stem = file.removesuffix(TESTS_SUFFIX)
    return next((stem + suffix for suffix in SUFFIXES if Path(stem + suffix).is_file()), stem + SUFFIXES[0])
