"""A task in a folder below the site: what it says about files and tests is named from the site. Pure."""

from __future__ import annotations

from msgspec.structs import replace

from handrail.engine.sandbox import Ran
from handrail.rules.toolchain.site import Site
from handrail.rules.toolchain.task import CannotRun, Result, Task


def in_folder(task: Task | CannotRun, folder: str, site: Site) -> Task | CannotRun:
    """The task in a folder; itself if none is named."""
    if isinstance(task, CannotRun) or not folder:
        return task
    own = task.read

    def read(ran: Ran) -> Result:
        result = own(ran)
        problems = tuple(replace(one, file=_named(one.file, folder, site)) for one in result.problems)
        tests = {_test_in(name, folder): how for name, how in result.tests.items()}
        raised = {_test_in(name, folder): kind for name, kind in result.raised.items()}
        return replace(result, problems=problems, tests=tests, raised=raised)

    return replace(task, read=read, folder=folder)


def _test_in(name: str, folder: str) -> str:
    return f"{folder}/{name}" if "::" in name else f"{folder}::{name}"


def _named(file: str, folder: str, site: Site) -> str:
    return file if not file or file.startswith(("/", "file:")) else str(site.folder / folder / file)
