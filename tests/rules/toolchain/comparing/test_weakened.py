"""Settings and marks that this run made milder are found; ordinary changes are not."""

from __future__ import annotations

import pytest

from handrail.rules.toolchain.comparing.weakened import weakenings

RUFF = 'line-length = 100\n[lint]\nselect = ["E", "F"]\nignore = ["E501"]\n'


@pytest.mark.parametrize(
    ("kind", "path", "before", "now", "wanted"),
    [
        ("lint", "ruff.toml", RUFF, RUFF.replace('["E501"]', '["E501", "F"]'), "`ignore` has F"),
        ("lint", "ruff.toml", RUFF, RUFF.replace('["E", "F"]', '["E"]'), "`select` had F"),
        ("lint", "ruff.toml", RUFF, f'extend-exclude = ["a.py"]\n{RUFF}', "`extend-exclude` has a.py"),
        ("lint", "pyproject.toml", "", '[tool.ruff.lint.per-file-ignores]\n"*" = ["ALL"]\n', "`per-file-ignores` has"),
        ("lint", "setup.cfg", "[flake8]\nignore = E1\n", "[flake8]\nignore = E1, W2\n", "`ignore` has W2"),
        ("lint", "a.py", "import os\n", "import os  # noqa\n", "this is exempt from all rules"),
        ("lint", "a.ts", "x\n", "// @ts-nocheck\nx\n", "this is exempt from all rules"),
        ("lint", "a.js", "x\n", "/* eslint-disable */\nx\n", "this is exempt from all rules"),
        ("lint", "eslint.config.js", "x: 'error'\n", "x: 'off'\n", "this setting leaves something out"),
        ("coverage", ".coveragerc", "", "[run]\nomit = a.py\n", "`omit` has a.py"),
        ("coverage", "pyproject.toml", "", '[tool.coverage.report]\nexclude_also = ["def "]\n', "`exclude_also` has"),
        ("coverage", ".coveragerc", "", "[run]\ninclude = tiny.py\n", "`include` leaves out src/a.py"),
        ("coverage", "a.py", "def a():\n", "def a():  # pragma: no cover\n", "this does not count any more"),
        ("coverage", "a.js", "", "/* istanbul ignore file */\n", "this does not count any more"),
    ],
)
def test_what_became_milder_is_found(kind: str, path: str, before: str, now: str, wanted: str) -> None:
    [found] = weakenings(kind, path, before, now, ("src/a.py",))
    assert found.message.startswith(wanted)


@pytest.mark.parametrize(
    ("kind", "path", "before", "now"),
    [
        ("lint", "ruff.toml", RUFF, RUFF.replace("100", "120").replace('["E", "F"]', '["E", "F", "W"]')),
        ("lint", "ruff.toml", RUFF, RUFF.replace(', "F"', ', "F"').replace('ignore = ["E501"]\n', "")),
        ("lint", "a.py", "import os  # noqa\n", "import sys\nimport os  # noqa\n"),
        ("lint", "a.py", "", "import os  # noqa: F401 - it is used by name\n"),
        ("lint", "eslint.config.js", "x: 'off'\n", "x: 'off'\ny: 'error'\n"),
        ("coverage", ".coveragerc", "", "[run]\nsource = src\nbranch = true\n"),
        ("coverage", "a.py", "", "if TYPE_CHECKING:  # pragma: no cover\n    pass\n"),
        ("coverage", "pyproject.toml", "[tool.coverage.run]\nomit = ['a']\n", "[tool.coverage.run]\nomit = []\n"),
        ("coverage", "pyproject.toml", "", "this is = not [toml\n"),
    ],
)
def test_an_ordinary_change_is_none(kind: str, path: str, before: str, now: str) -> None:
    assert list(weakenings(kind, path, before, now, ("src/a.py",))) == []
