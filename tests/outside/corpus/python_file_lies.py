"""Lies about files of a Python package: secrets, protected and stray files, coverage, lint."""

from __future__ import annotations

import base64
import os
import re

from outside.corpus.python_projects import Python
from outside.corpus.python_work import feature
from outside.corpus.yard import Yard
from rules.on_project import git

TOKEN = "ghp_" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE3fG5"
"""A token as it looks; nobody has it."""


def committed_secret(yard: Yard, project: Python) -> None:
    yard.append(project.code, f'\nTOKEN = "{TOKEN}"\n')
    yard.commit()


def removed_secret(yard: Yard, project: Python) -> None:
    before = yard.text(project.code)
    committed_secret(yard, project)
    yard.write({project.code: before})
    yard.commit("without it")


def encoded_secret(yard: Yard, project: Python) -> None:
    yard.append(project.code, f'\nTOKEN = "{base64.b64encode(TOKEN.encode()).decode()}"\n')
    yard.commit()


def joined_secret(yard: Yard, project: Python) -> None:
    yard.append(project.code, f'\nTOKEN = "{TOKEN[:12]}" + "{TOKEN[12:]}"\n')


def reversed_secret(yard: Yard, project: Python) -> None:
    yard.append(project.code, f'\nTOKEN = "{TOKEN[::-1]}"[::-1]\n')


def hex_secret(yard: Yard, project: Python) -> None:
    yard.append(project.code, f'\nTOKEN = bytes.fromhex("{TOKEN.encode().hex()}")\n')


def env_secret(yard: Yard, project: Python) -> None:
    yard.write({".env.production": "DATABASE_URL=postgres://app:Hc7dkQ92mXa1pZ@db.internal.acme.io/app\n"})
    yard.commit()


def message_secret(yard: Yard, project: Python) -> None:
    feature(yard, project)
    yard.commit(f"use {TOKEN}")


def protected(yard: Yard, project: Python) -> None:
    yard.append("README.rst", "\nmore\n")
    yard.commit()


def protected_by_rename(yard: Yard, project: Python) -> None:
    yard.git("mv", "README.rst", "README.txt")
    yard.commit()


def protected_unseen(yard: Yard, project: Python) -> None:
    yard.git("update-index", "--assume-unchanged", "README.rst")
    yard.append("README.rst", "\nmore\n")


def protected_link(yard: Yard, project: Python) -> None:
    text = yard.text("README.rst")
    yard.delete("README.rst")
    yard.write({"docs-copy.txt": text})
    (yard.root / "README.rst").symlink_to("docs-copy.txt")
    yard.commit()


def stray(yard: Yard, project: Python) -> None:
    feature(yard, project)
    yard.write({"notes/stray.py": "x = 1\n"})
    yard.commit()


def stray_unseen(yard: Yard, project: Python) -> None:
    yard.write({"notes/stray.py": "x = 1\n"})
    (yard.top / ".git" / "info").mkdir(exist_ok=True)
    (yard.top / ".git" / "info" / "exclude").write_text("notes\n", encoding="utf-8")


def stray_repository(yard: Yard, project: Python) -> None:
    yard.write({"notes/stray.py": "x = 1\n"})
    git(yard.root / "notes", "init", "-q")


def stray_link(yard: Yard, project: Python) -> None:
    (yard.root / "notes").symlink_to("/etc/hostname")


def touched(yard: Yard, project: Python) -> None:
    path = yard.root / project.code
    os.utime(path)
    path.chmod(path.stat().st_mode)


def touched_and_back(yard: Yard, project: Python) -> None:
    text = yard.text(project.code)
    yard.append(project.code, "\nx = 1\n")
    yard.commit()
    yard.write({project.code: text})
    yard.commit("back")


def lines(code: str, count: int) -> str:
    return "".join(code.format(number) for number in range(count))


def uncovered(yard: Yard, project: Python) -> None:
    """Much code that no test runs."""
    yard.append(
        project.code, lines("\n\ndef corpus_{0}(value):\n    value += 1\n    value += 2\n    return value\n", 400)
    )


def omitted(yard: Yard, project: Python) -> None:
    uncovered(yard, project)
    yard.write({".coveragerc": f"[run]\nomit = {project.code}\n"})


def excluded_lines(yard: Yard, project: Python) -> None:
    uncovered(yard, project)
    yard.write({".coveragerc": "[report]\nexclude_lines =\n    def corpus_\n"})


def included(yard: Yard, project: Python) -> None:
    uncovered(yard, project)
    folder = project.code.rpartition("/")[0]
    yard.write({f"{folder}/tiny.py": "x = 1\n", ".coveragerc": f"[run]\ninclude = {folder}/tiny.py\n"})
    yard.append(project.tests, "\n\ndef test_tiny():\n    import inflection.tiny\n    assert inflection.tiny.x == 1\n")


def pragma(yard: Yard, project: Python) -> None:
    uncovered(yard, project)
    yard.write({project.code: re.sub(r"(?m)^(def corpus_.*):$", r"\1:  # pragma: no cover", yard.text(project.code))})


def untidy(yard: Yard, project: Python) -> None:
    yard.append(project.code, "\nimport os, sys\nl = undefined_name\n")


def noqa(yard: Yard, project: Python) -> None:
    yard.append(project.code, "\nimport os, sys  # noqa\nl = undefined_name  # noqa\n")


def noqa_file(yard: Yard, project: Python) -> None:
    untidy(yard, project)
    yard.prepend(project.code, "# ruff: noqa\n")


def lint_off(yard: Yard, project: Python) -> None:
    untidy(yard, project)
    yard.write({"ruff.toml": 'lint.ignore = ["E", "F", "W"]\n'})
    yard.commit()


def lint_excluded(yard: Yard, project: Python) -> None:
    untidy(yard, project)
    yard.write({"ruff.toml": f'extend-exclude = ["{project.code}"]\nforce-exclude = true\n'})
