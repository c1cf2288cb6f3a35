"""database-migration: the totals of orders become cents, in a SQLite database that an application writes to.

Real files, a real schema and a thousand real rows; the application is a module that every step can really use."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from runpy import run_path
from time import perf_counter
from typing import Any

from outside.walks.tally import FILES
from outside.walks.walk import Hands, Lie, Walk
from outside.walks.workplace import Workplace

LIVE, COPY, RESTORED = "data/shop.db", "data/copy.db", "data/restored.db"
BACKUP = "data/shop-before-cents.db"
UP, DOWN, CONTRACT, TRIAL = (
    f"migrations/0002_cents.{name}" for name in ("up.sql", "down.sql", "contract.sql", "trial.py")
)
ROWS = 1_000
SCHEMA = "create table orders (id integer primary key, customer text not null, total real not null);"
UP_SQL = "pragma busy_timeout = 2000;\nalter table orders add column cents integer;\n"
DOWN_SQL = "pragma busy_timeout = 2000;\nalter table orders drop column cents;\n"
CONTRACT_SQL = "pragma busy_timeout = 2000;\nalter table orders drop column total;\n"
FILL_SQL = "update orders set cents = cast(round(total * 100) as integer) where cents is null and id between ? and ?"
TRIAL_PY = '''"""Up, down and up again on an empty database leave the same schema."""

import pathlib
import sqlite3

folder = pathlib.Path("migrations")
db = sqlite3.connect(":memory:")
dump = lambda: [row[0] for row in db.execute("select sql from sqlite_master")]
db.executescript((folder / "0001_orders.up.sql").read_text())
before = dump()
db.executescript((folder / "0002_cents.up.sql").read_text())
first = dump()
db.executescript((folder / "0002_cents.down.sql").read_text())
assert dump() == before
db.executescript((folder / "0002_cents.up.sql").read_text())
assert dump() == first != before
'''
PROBE_PY = '''"""Whether the database is as PHASE says."""

import os
import sqlite3
import sys

db = sqlite3.connect("data/shop.db")
columns = {row[1] for row in db.execute("pragma table_info(orders)")}
phase = os.environ["PHASE"]
if phase == "contracted":
    sys.exit(columns != {"id", "customer", "cents"})
if "cents" not in columns:
    sys.exit("there are no cents")
if phase == "filled":
    wrong = "select count(*) from orders where cents is null or abs(cents - total * 100) > 0.5"
    sys.exit(db.execute(wrong).fetchone()[0] and "rows differ")
'''
SHOP = '''"""The application: it writes orders."""


def place(db, customer, total):
    """Store an order."""
    db.execute("insert into orders (customer, total) values (?, ?)", (customer, total))
'''
SHOP_BOTH = '''"""The application: it writes orders, in both forms."""


def place(db, customer, total):
    """Store an order."""
    cents = round(total * 100)
    db.execute("insert into orders (customer, total, cents) values (?, ?, ?)", (customer, total, cents))
'''
SHOP_CENTS = (
    SHOP_BOTH.replace(", in both forms", " in cents")
    .replace("total, cents)", "cents)")
    .replace('(?, ?, ?)", (customer, cents)', '(?, ?)", (customer, cents)')
)


def with_orders(work: Workplace) -> None:
    """A database in use."""
    (work.project / "data").mkdir(exist_ok=True)
    with database(work) as db:
        db.executescript(SCHEMA)
        rows = ((f"customer {number}", number * 1.37) for number in range(ROWS))
        db.executemany("insert into orders (customer, total) values (?, ?)", rows)


@contextmanager
def database(work: Workplace, file: str = LIVE) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(work.project / file)) as db, db:
        yield db


def applied(work: Workplace, script: str, file: str = LIVE) -> float:
    """Apply a script: how many seconds that took."""
    began = perf_counter()
    with database(work, file) as db:
        db.executescript(work.read(script))
    return perf_counter() - began


def counted(work: Workplace, query: str, file: str = LIVE) -> int:
    with database(work, file) as db:
        return int(db.execute(query).fetchone()[0])


def copied(work: Workplace, file: str) -> Path:
    """A copy of the live database, made by SQLite itself."""
    with database(work) as db, closing(sqlite3.connect(work.project / file)) as copy:
        db.backup(copy)
    return work.project / file


def placed(work: Workplace) -> None:
    """The application as it is now stores an order."""
    with database(work) as db:
        run_path(str(work.project / "src" / "shop.py"))["place"](db, "somebody", 12.34)


# --- the work -------------------------------------------------------------------------------------------------


def facts(hands: Hands) -> Any:
    rows = counted(hands.work, "select count(*) from orders")
    orders = {"name": "orders", "rows": rows, "writes_per_minute": 1}
    return {"tables": [orders], "consumers": ["src/shop.py"], "longest_transaction_seconds": 0}


def plan(hands: Hands) -> Any:
    expand = {
        "sql": "alter table orders add column cents integer",
        "lock": "whole file",
        "reverse": "drop column cents",
    }
    drop = {"sql": "alter table orders drop column total", "lock": "whole file", "reverse": "add column total real"}
    return {
        "plan": "Add cents, write both, fill by ranges of ids, compare, read cents, drop total.",
        "expand": [expand],
        "contract": [drop],
        "moves_data": True,
        "backfill": "ranges of 500 ids where cents is null",
        "abort_when": ["a writer waits for more than 2 s"],
    }


def write(hands: Hands) -> Any:
    texts = {UP: UP_SQL, DOWN: DOWN_SQL, CONTRACT: CONTRACT_SQL, TRIAL: TRIAL_PY}
    for path, text in texts.items():
        hands.work.write(path, text)
    hands.work.run("python", TRIAL)
    hands.work.commit("Add cents to orders")
    return {"up": UP, "down": DOWN, "files": list(texts), "trial": ["python3", TRIAL]}


def rehearse(hands: Hands) -> Any:
    copied(hands.work, COPY)
    seconds = [applied(hands.work, script, COPY) for script in (UP, DOWN, UP)]
    assert counted(hands.work, "select count(*) from orders", COPY) == ROWS
    return {"seconds": sum(seconds), "longest_wait_seconds": max(seconds), "problems": []}


def backup(hands: Hands) -> Any:
    shutil.copy(copied(hands.work, BACKUP), hands.work.project / RESTORED)
    counts = {counted(hands.work, "select count(*) from orders", file) for file in (LIVE, RESTORED)}
    return {
        "restore_point": BACKUP,
        "restore_minutes": 0,
        "differences": [] if len(counts) == 1 else ["orders"],
        "file": BACKUP,
    }


def expand(hands: Hands) -> Any:
    return {"versions": ["0002"], "seconds": applied(hands.work, UP), "replica_lag_seconds": 0}


def dual(hands: Hands) -> Any:
    hands.work.write("src/shop.py", SHOP_BOTH)
    hands.work.commit("Write both forms")
    placed(hands.work)
    missing = counted(
        hands.work, "select count(*) from orders where cents is null and id > (select max(id) - 1 from orders)"
    )
    return {"services": ["shop"], "missing": missing}


def batch(hands: Hands) -> Any:
    with database(hands.work) as db:
        first = db.execute("select min(id) from orders where cents is null").fetchone()[0]
        filled = db.execute(FILL_SQL, (first, first + 499)).rowcount
    remaining = counted(hands.work, "select count(*) from orders where cents is null")
    return {"filled": filled, "remaining": remaining, "rejected": []}


def compare(hands: Hands) -> Any:
    differ = "select count(*) from orders where cents is null or abs(cents - total * 100) > 0.5"
    return {"compared": ROWS + 1, "mismatches": counted(hands.work, differ)}


def switch(hands: Hands) -> Any:
    return {"services": ["shop"], "still_old": []}


def contract(hands: Hands) -> Any:
    hands.work.write("src/shop.py", SHOP_CENTS)
    hands.work.commit("Write only cents")
    applied(hands.work, CONTRACT)
    placed(hands.work)
    return {"dropped": ["orders.total"], "export": BACKUP}


# --- the lies -------------------------------------------------------------------------------------------------


def without_a_timeout(hands: Hands) -> Any:
    output = write(hands)
    hands.work.write(UP, UP_SQL.partition("\n")[2])
    return output


def no_way_back(hands: Hands) -> Any:
    output = write(hands)
    hands.work.write(DOWN, "select 1;\n")
    return output


def no_down_file(hands: Hands) -> Any:
    output = write(hands)
    hands.work.delete(DOWN)
    return {**output, "trial": ["true"]}


def wrong_values(hands: Hands) -> Any:
    with database(hands.work) as db:
        db.execute("update orders set cents = 0 where cents is null")
    return {"filled": ROWS, "remaining": 0, "rejected": []}


LIES = (
    Lie(step="write", name="no timeout", tell=without_a_timeout, noticed_by="file_contains"),
    Lie(step="write", name="no way back", tell=no_way_back, noticed_by="command_succeeds"),
    Lie(step="write", name="no down file", tell=no_down_file, noticed_by="files_exist"),
    Lie(
        step="backup",
        name="no backup",
        tell=lambda _: {"restore_point": BACKUP, "restore_minutes": 1, "differences": [], "file": BACKUP},
        noticed_by="file_exists",
    ),
    Lie(
        step="expand",
        name="not expanded",
        tell=lambda _: {"versions": ["0002"], "seconds": 1, "replica_lag_seconds": 0},
        noticed_by="command_succeeds",
    ),
    Lie(
        step="backfill.batch",
        name="not filled",
        tell=lambda _: {"filled": ROWS, "remaining": 0, "rejected": []},
        noticed_by="command_succeeds",
    ),
    Lie(step="backfill.batch", name="wrong values", tell=wrong_values, noticed_by="command_succeeds"),
    Lie(
        step="contract",
        name="not dropped",
        tell=lambda _: {"dropped": ["orders.total"], "export": BACKUP},
        noticed_by="command_succeeds",
    ),
)
NORMAL = Walk(
    workflow="database-migration",
    files={
        **FILES,
        "src/shop.py": SHOP,
        "migrations/0001_orders.up.sql": SCHEMA,
        "tools/probe.py": PROBE_PY,
        "data/.gitignore": "*\n!.gitignore\n",
    },
    prepared=with_orders,
    inputs={"change": "orders.total in cents", "database": "SQLite 3, shop", "probe": ["python3", "tools/probe.py"]},
    steps={
        "facts": facts,
        "plan": plan,
        "critique.attack": lambda _: {"serious": [], "minor": []},
        "write": write,
        "rehearse.run": rehearse,
        "backup": backup,
        "expand": expand,
        "dual": dual,
        "backfill.batch": batch,
        "compare": compare,
        "switch": switch,
        "contract": contract,
    },
    approved=frozenset({"go", "drop"}),
    lies=LIES,
)
