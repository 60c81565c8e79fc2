"""Tests that share a database, which has one schema at a time. Needs pytest and pytest-xdist:

    pytest -n 4 test_schemas.py

Tests of one schema run together, in all workers and in other runs of this user. Tests of the other schema wait.
The first test that enters creates the schema, and the last one that leaves drops it. With `batch:8`, tests of the
current schema go first, until a waiting test was overtaken eight times. So a schema is created a few times, not for
every test.
"""

import contextlib
import functools
import os
import sqlite3
import tempfile

import pytest

DATABASE = os.environ.get("DATABASE", os.path.join(tempfile.gettempdir(), "grouplock-example.sqlite"))


def execute(statement, *values):
    """Executes a statement, and returns the rows."""
    with contextlib.closing(sqlite3.connect(DATABASE, timeout=60)) as database, database:
        return database.execute(statement, values).fetchall()


def create(schema):
    execute(f"CREATE TABLE {schema} (number INTEGER)")


def drop(schema):
    execute(f"DROP TABLE {schema}")


def schema(name):
    """The marker of a test that needs this schema."""
    return pytest.mark.room(
        "database",
        name,
        policy="batch:8",
        set_up=functools.partial(create, name),
        tear_down=functools.partial(drop, name),
    )


def tables():
    return [name for (name,) in execute("SELECT name FROM sqlite_master WHERE type = 'table'")]


@schema("schema_41")
@pytest.mark.parametrize("number", range(20))
def test_with_schema_41(number):
    execute("INSERT INTO schema_41 VALUES (?)", number)
    assert (number,) in execute("SELECT number FROM schema_41")
    assert tables() == ["schema_41"]


@schema("schema_42")
@pytest.mark.parametrize("number", range(20))
def test_with_schema_42(number):
    execute("INSERT INTO schema_42 VALUES (?)", number)
    assert tables() == ["schema_42"]
