"""Which linter a JavaScript or TypeScript project uses (eslint or biome), and how its output is read.

The one that the project configures: without settings neither says anything of worth. They never fix anything."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import unquote

from handrail.engine.sandbox import Ran
from handrail.rules.toolchain.program import FoundProgram, find
from handrail.rules.toolchain.reading import LINE_MAX, json_of, maps, whole
from handrail.rules.toolchain.site import Site
from handrail.rules.toolchain.task import MESSAGE_MAX, PROBLEMS_MAX, CannotRun, Problem, Result, Task, TaskOptions

QUIET: Final = {"NO_COLOR": "1", "FORCE_COLOR": "0", "CI": "true", "NODE_DISABLE_COMPILE_CACHE": "1"}
SUFFIXES: Final = (".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx", ".vue", ".svelte")
SETTINGS: Final = {
    "eslint": (
        *(f"eslint.config.{suffix}" for suffix in ("js", "mjs", "cjs", "ts", "mts", "cts")),
        *(f".eslintrc{suffix}" for suffix in ("", ".js", ".cjs", ".json", ".yaml", ".yml")),
    ),
    "biome": ("biome.json", "biome.jsonc", ".biome.json", ".biome.jsonc"),
}
PACKAGES: Final = {"eslint": "eslint", "biome": "@biomejs/biome"}
NO_LINTER: Final = CannotRun(
    message="the project has no linter: neither eslint nor biome is configured",
    fix="add eslint or biome with its settings to have one",
    is_note=True,
)

_biome = re.compile(r"^::(?:error|warning) title=([^,]{1,200}),file=([^,]{1,500}),line=(\d{1,7}),[^:]{0,200}::(.*)")
_biome_column = re.compile(r",col=(\d{1,6})")


def javascript_lint(
    site: Site, asked: TaskOptions, node: FoundProgram, package: Mapping[str, Any]
) -> Sequence[Task | CannotRun]:
    """What to run; `package` is the content of package.json."""
    targets = asked.targets(*SUFFIXES)
    if not targets:
        return []
    configured = [name for name in SETTINGS if _is_configured(site, name, package)]
    for name in configured:
        if program := find(site, name):
            argv, read = COMMANDS[name]
            words = (str(program.path), *argv, *asked.args, *targets)
            fix = f"fix it; `{name} {'--fix' if name == 'eslint' else 'lint --write'}` fixes much"
            return [Task(argv=words, read=read, programs=(program, node), fix=fix, env=QUIET)]
    if not configured:
        return [NO_LINTER]
    message = f"the project is linted by {' and '.join(configured)}, but that is not installed here"
    return [CannotRun(message=message, fix="install the project's packages: npm ci")]


def _is_configured(site: Site, linter: str, package: Mapping[str, Any]) -> bool:
    """Whether the project or the workspace around it has settings for a linter."""
    names = SETTINGS[linter]
    if any((folder / name).is_file() for folder in site.above() for name in names):
        return True
    return linter == "eslint" and isinstance(package.get("eslintConfig"), Mapping)


def _eslint(ran: Ran) -> Result:
    said = json_of(ran.stdout)
    if not isinstance(said, list):
        return Result(is_whole=False)
    files = maps(said)
    pairs = [(str(file.get("filePath", "")), one) for file in files for one in maps(file.get("messages"))]
    counted = [(name, one) for name, one in pairs if not _is_ignored(one)]
    problems = tuple(_of_eslint(name, one) for name, one in counted[:PROBLEMS_MAX])
    return Result(counts={"files": len(files), "problems": len(counted)}, problems=problems)


def _is_ignored(one: Mapping[str, Any]) -> bool:
    """Whether it only says that the project's settings leave the file out."""
    return one.get("ruleId") is None and not one.get("fatal") and str(one.get("message")).startswith("File ignored")


def _of_eslint(file: str, one: Mapping[str, Any]) -> Problem:
    message = f"{one.get('ruleId') or 'syntax'}: {one.get('message', '')}"[:MESSAGE_MAX]
    return Problem(file=file, line=whole(one.get("line")), column=whole(one.get("column")), message=message)


def _biome_report(ran: Ran) -> Result:
    """Biome's report for GitHub: one line for each problem. Its JSON is not stable yet."""
    problems = tuple(_of_biome(ran.stdout))
    return Result(counts={"problems": len(problems)}, problems=problems[:PROBLEMS_MAX])


def _of_biome(text: str) -> Iterator[Problem]:
    for line in text.splitlines():
        if found := _biome.match(line[:LINE_MAX]):
            column = _biome_column.search(line[:LINE_MAX])
            message = f"{found[1]}: {unquote(found[4])}"[:MESSAGE_MAX]
            yield Problem(
                file=unquote(found[2]), line=int(found[3]), column=int(column[1]) if column else 0, message=message
            )


COMMANDS: Final[dict[str, tuple[tuple[str, ...], Callable[[Ran], Result]]]] = {
    "eslint": (("--format", "json", "--no-fix"), _eslint),
    "biome": (
        ("lint", "--reporter=github", "--colors=off", "--max-diagnostics=none", "--no-errors-on-unmatched"),
        _biome_report,
    ),
}
"""By linter: its options, and how its output is read."""
