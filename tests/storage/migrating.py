"""A child process that applies slow migrations of many statements, to be killed in the middle of them."""

from __future__ import annotations

import sqlite3
import sys

from handrail.storage.migrations import Migration
from handrail.storage.sqlite.migration import applied_schema, migrate

ROWS = "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 500) SELECT x FROM n"


def slow(number: int) -> Migration:
    tables = (f"CREATE TABLE t{number}_{part} (x);\nINSERT INTO t{number}_{part} {ROWS};\n" for part in range(20))
    return Migration(number, "slow", "".join(tables))


def main(path: str) -> None:
    connection = sqlite3.connect(path, isolation_level=None, timeout=10)
    connection.execute("PRAGMA journal_mode = WAL")
    sys.stdout.write("begun\n")
    sys.stdout.flush()
    if not applied_schema(connection):  # a new database would get all of them at once
        migrate(connection, [slow(1)])
    migrate(connection, [slow(number) for number in range(1, 40)])


if __name__ == "__main__":
    main(sys.argv[1])
