"""Tally: a small package with tests and documentation, as it is before somebody works on it."""

from __future__ import annotations

PYPROJECT = """[project]
name = "tally"
version = "1.2.0"
requires-python = ">=3.11"

[tool.pytest.ini_options]
pythonpath = ["src"]
testpaths = ["tests"]
"""
TABLE = '''"""Tables that were read from text: a header, and a row for each further line."""


def parse(text: str) -> list[dict[str, str]]:
    """The rows of a table."""
    lines = text.splitlines()
    header = lines[0].split(",")
    return [dict(zip(header, line.split(","), strict=False)) for line in lines[1:]]


def column(rows: list[dict[str, str]], name: str) -> list[float]:
    """The numbers of one column."""
    return [float(row[name]) for row in rows]
'''
REPORT = '''"""Reports about tables."""

from tally.table import column, parse


def mean(values: list[float]) -> float:
    """The mean; 0 of nothing."""
    if not values:
        return 0.0
    return sum(values) / len(values)


def summary(text: str, name: str) -> str:
    """One line about a column."""
    values = column(parse(text), name)
    return f"{name}: {len(values)} values, mean {mean(values):.2f}"


def largest(text: str, name: str) -> str:
    """The largest value of a column."""
    values = column(parse(text), name)
    return f"{name}: largest {max(values):.2f}"
'''
TEST_TABLE = """from tally.table import column, parse


def test_each_line_after_the_header_is_a_row():
    assert parse("a,b\\n1,2\\n3,4") == [{"a": "1", "b": "2"}, {"a": "3", "b": "4"}]


def test_a_column_is_numbers():
    assert column([{"a": "1"}, {"a": "2.5"}], "a") == [1.0, 2.5]
"""
TEST_REPORT = """from tally.report import mean, summary


def test_a_summary_counts_and_averages():
    assert summary("a\\n1\\n3", "a") == "a: 2 values, mean 2.00"


def test_the_mean_of_nothing_is_zero():
    assert mean([]) == 0.0
"""
README = """# tally

Reads tables and reports about them.

```python
from tally.report import summary

print(summary("a\\n1\\n3", "a"))  # a: 2 values, mean 2.00
```
"""
CHANGELOG = "# Changelog\n\n## 1.2.0\n\n- `largest` reports the largest value of a column.\n"
FILES = {
    "pyproject.toml": PYPROJECT,
    "README.md": README,
    "CHANGELOG.md": CHANGELOG,
    "src/tally/__init__.py": '"""Tables and reports."""\n',
    "src/tally/table.py": TABLE,
    "src/tally/report.py": REPORT,
    "tests/test_table.py": TEST_TABLE,
    "tests/test_report.py": TEST_REPORT,
}
