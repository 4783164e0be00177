"""Batches in a table of a real PostgreSQL server: once, whatever happens in between."""

from __future__ import annotations

import datetime as dt
import itertools
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from clinker_spark.core.errors import InputError
from clinker_spark.core.types import ANY, BOOL, DATE, DATETIME, DECIMAL, FLOAT, INT, STRING, Type, decimal
from clinker_spark.spark.connectors.postgres.database import Database
from clinker_spark.spark.connectors.postgres.sink import Copy, Table, TableSink
from clinker_spark.spark.connectors.postgres.tables import Name
from tests.support.services import Postgres

_NAMES = (f"t{os.getpid()}_{i}" for i in itertools.count())
"""The server is shared with other processes."""


class Written:
    """A table of its own and a sink for it."""

    def __init__(self, server: Postgres, columns: dict[str, Type], keys: Sequence[str] = (), **more: Any) -> None:
        self.server = server
        self.name = more.pop("name", None) or next(_NAMES)
        self.database = Database(server.url, {"password": server.password})
        self.table = Table(self.database, Name.of(self.name), columns, tuple(keys), **more)
        self.stream = f"stream of {self.name}"
        self.sink = TableSink(self.table, self.stream, "out")

    def prepared(self) -> Written:
        assert self.sink.prepare(create=True) == []
        return self

    def write(self, number: int, *rows: dict[str, Any], schema: pa.Schema | None = None) -> None:
        batches = [pa.RecordBatch.from_pylist([row], schema=schema) for row in rows]
        self.publish(number, lambda copy: _run(copy, iter(batches)))

    def publish(self, number: int, run: Callable[[Copy], list[tuple[str, int]]]) -> None:
        copied = self.sink.copied(number, run)
        if copied is not None:
            copied.move()

    def staged(self) -> list[tuple[Any, ...]]:
        """The staging tables of the stream that are there."""
        return self.server.run("SELECT tablename FROM pg_tables WHERE starts_with(tablename, %s)", self.sink._stages)

    def rows(self, order: str = "1") -> list[tuple[Any, ...]]:
        return self.server.run(f"SELECT * FROM {self.table.name.sql} ORDER BY {order}")


def _run(copy: Copy, batches: Iterator[pa.RecordBatch]) -> list[tuple[str, int]]:
    return [(row["attempt"], row["rows"]) for batch in copy(batches) for row in batch.to_pylist()]


def test_values_of_all_types_come_back_as_they_were(postgres: Postgres) -> None:
    types = {"i": INT, "f": FLOAT, "d": decimal(2), "e": DECIMAL, "s": STRING, "b": BOOL, "day": DATE, "at": DATETIME}
    columns = {**{name: t.as_nullable() for name, t in types.items()}, "j": ANY}
    out = Written(postgres, columns).prepared()
    day, at = dt.date(1999, 12, 31), dt.datetime(2026, 1, 2, 3, 4, 5, 678901)
    odd = 'a "quoted", \\ tab\t line\n end \u00e9\U0001f600'
    digits, json = "0.1000000000000000000000000001", '{"a":[1,null]}'
    row = [2**63 - 1, 1e-300, Decimal("-12345.67"), digits, odd, True, day, at, json]
    text, arrow = pa.string(), [pa.int64(), pa.float64(), pa.decimal128(29, 2)]
    arrow += [text, text, pa.bool_(), pa.date32(), pa.timestamp("us"), text]
    schema = pa.schema(list(zip(columns, arrow, strict=True)))
    nothing = dict.fromkeys(columns)
    others = {**nothing, "i": 0, "f": float("inf"), "s": "", "j": "null"}
    out.write(0, dict(zip(columns, row, strict=True)), others, nothing, schema=schema)
    found = out.rows("i NULLS LAST")
    assert found[0][:2] == (0, float("inf")) and found[0][4] == ""
    assert found[1] == (*row[:3], Decimal(row[3]), *row[4:8], {"a": [1, None]})
    assert found[2] == (None,) * 9


def test_a_batch_that_comes_again_adds_nothing(postgres: Postgres) -> None:
    out = Written(postgres, {"n": INT}).prepared()
    for number in (0, 0, 1, 0, 1):
        out.write(number, {"n": number}, {"n": number})
    assert out.rows() == [(0,), (0,), (1,), (1,)]
    assert postgres.run("SELECT batch, rows FROM clinker_batches WHERE stream = %s", out.stream) == [(1, 4)]
    again = Written(postgres, {"n": INT}, name=out.name).prepared()  # another process with the same checkpoint
    again.write(1, {"n": 99})
    again.sink = TableSink(again.table, "stream-2", "out")  # another checkpoint: its batches are others
    again.prepared().write(1, {"n": 7})
    assert out.rows() == [(0,), (0,), (1,), (1,), (7,)]


def test_only_attempts_that_were_reported_count(postgres: Postgres) -> None:
    out = Written(postgres, {"n": INT}).prepared()
    batch = pa.RecordBatch.from_pydict({"n": [1, 2]})

    def twice(copy: Copy) -> list[tuple[str, int]]:
        _run(copy, iter([batch]))  # its task was lost after it had copied all
        return [*_run(copy, iter([batch])), *_run(copy, iter([]))]

    out.publish(0, twice)
    assert out.rows() == [(1,), (2,)]


def test_a_task_that_fails_leaves_nothing(postgres: Postgres) -> None:
    out = Written(postgres, {"n": INT}).prepared()

    def broken() -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pydict({"n": [1]})
        raise RuntimeError("the task is gone")

    with pytest.raises(RuntimeError, match="gone"):
        out.publish(0, lambda copy: _run(copy, broken()))
    assert out.rows() == []
    out.write(0, {"n": 1})
    assert out.rows() == [(1,)]
    assert out.staged() == []


@pytest.mark.parametrize("when", ["copied", "moved", "noted"])
def test_a_process_that_is_killed_leaves_all_or_nothing(postgres: Postgres, when: str) -> None:
    out = Written(postgres, {"n": INT}).prepared()
    child = os.fork()
    if not child:
        _killed(out, when)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    assert out.rows() == []
    again = Written(postgres, {"n": INT}, name=out.name).prepared()
    assert out.staged() == []
    again.write(0, {"n": 1}, {"n": 2})
    again.write(0, {"n": 1}, {"n": 2})
    assert again.rows() == [(1,), (2,)]


def _killed(out: Written, when: str) -> None:
    """In a process of its own: a batch up to some point of the transaction."""

    class Dying(TableSink):
        def _move(self, *given: Any) -> None:
            if when == "copied":
                os.kill(os.getpid(), signal.SIGKILL)
            super()._move(*given)

        def _insert(self, stage: Name) -> str:
            if when == "moved":
                os.kill(os.getpid(), signal.SIGKILL)
            return super()._insert(stage)

        def _last(self, connection: Any, *, lock: bool) -> int:
            found = super()._last(connection, lock=lock)
            if lock and when == "noted":
                execute = connection.execute

                def last(text: str, *given: Any) -> Any:
                    done = execute(text, *given)
                    if text.startswith("UPDATE"):
                        os.kill(os.getpid(), signal.SIGKILL)
                    return done

                connection.execute = last
            return found

    out.sink = Dying(out.table, out.stream, "out")
    out.write(0, {"n": 1}, {"n": 2})
    os._exit(0)


def test_upserts_replace_rows_and_the_latest_stays(postgres: Postgres) -> None:
    columns = {"k": STRING, "at": INT, "v": STRING.as_nullable(), "100% %s": INT}
    out = Written(postgres, columns, ["k"], latest_by="at").prepared()

    def row(k: str, at: int, v: str | None) -> dict[str, Any]:
        return {"k": k, "at": at, "v": v, "100% %s": 1}

    out.write(0, row("a", 1, "old"), row("a", 3, "new"), row("b", 1, None))
    out.write(1, row("a", 2, "late"), row("b", 1, "same time"), row("c", 0, "first"))
    assert [found[:3] for found in out.rows()] == [("a", 3, "new"), ("b", 1, "same time"), ("c", 0, "first")]
    plain = Written(postgres, {"k": INT, "v": INT}, ["k"]).prepared()
    plain.write(0, {"k": 1, "v": 5}, {"k": 1, "v": 9})
    plain.write(1, {"k": 1, "v": 2})
    assert plain.rows() == [(1, 2)]
    only = Written(postgres, {"k": INT}, ["k"]).prepared()
    only.write(0, {"k": 1}, {"k": 1})
    only.write(1, {"k": 1})
    assert only.rows() == [(1,)]


def test_tables_that_do_not_fit_are_told_before_the_first_batch(postgres: Postgres) -> None:
    postgres.run("CREATE SCHEMA IF NOT EXISTS shop")
    postgres.run(
        "CREATE TABLE shop.narrow (n integer, s varchar(5), d numeric(5, 2), at timestamptz,"
        " made int GENERATED ALWAYS AS (1) STORED, must int NOT NULL, fine int NOT NULL DEFAULT 1,"
        " j json, strict text NOT NULL, big numeric)"
    )
    columns = {"n": INT, "s": STRING, "d": decimal(2), "at": DATETIME, "made": INT, "j": ANY, "big": INT, "gone": FLOAT}
    columns["strict"] = STRING.as_nullable()
    out = Written(postgres, columns, ["n"], name="shop.narrow")
    found = [problem.message for problem in out.sink.prepare(create=True)]
    for part in (
        "column 'n' of table 'shop.narrow' is integer, and the records have Int",
        "'s' of table 'shop.narrow' is character varying(5)",
        "'d' of table 'shop.narrow' is numeric(5,2)",
        "'made' of table 'shop.narrow' is computed",
        "no column 'gone'",
        "'strict' of table 'shop.narrow' takes no null",
        "'must' of table 'shop.narrow' needs a value",
        "no unique index over n",
    ):
        assert any(part in message for message in found), (part, found)
    assert len(found) == 8
    missing = Written(postgres, {"n": INT})
    assert "there is no table" in missing.sink.prepare(create=False)[0].message


def test_times_in_columns_with_a_zone_are_utc(postgres: Postgres) -> None:
    postgres.run("CREATE TABLE zoned (at timestamptz)")
    out = Written(postgres, {"at": DATETIME}, name="zoned").prepared()
    out.write(0, {"at": dt.datetime(2026, 7, 1, 12)}, schema=pa.schema([("at", pa.timestamp("us"))]))
    assert postgres.run("SELECT at AT TIME ZONE 'UTC' FROM zoned") == [(dt.datetime(2026, 7, 1, 12),)]


def test_what_the_database_refuses_has_a_code(postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    out = Written(postgres, {"n": INT}).prepared()
    postgres.run(f"ALTER TABLE {out.name} ADD CHECK (n < 10)")
    for number, code, words in ((11, "E532", "violates check constraint"), (1, "E531", "does not exist")):
        with pytest.raises(InputError) as error:
            out.write(0, {"n": number})
        assert error.value.diagnostics[0].code == code and words in str(error.value)
        if code == "E532":
            assert out.rows() == []
            postgres.run(f"ALTER TABLE {out.name} RENAME COLUMN n TO m")
    for database, code, words in (
        (Database("postgresql://tests@127.0.0.1:1/postgres", {"password": "x"}), "E530", "refused"),
        (Database(postgres.url, {"password": "not this one"}), "E530", "password authentication failed"),
        (Database(postgres.url, {"password": postgres.password, "sslmodus": "no"}), "E521", "sslmodus"),
    ):
        with pytest.raises(InputError) as error:
            TableSink(Table(database, Name.of("t"), {"n": INT}), "s", "o").prepare(create=True)
        assert error.value.diagnostics[0].code == code and words in str(error.value)
        assert "not this one" not in str(error.value)
    monkeypatch.setitem(__import__("sys").modules, "psycopg", None)
    with pytest.raises(InputError) as error:
        out.sink.prepare(create=True)
    assert (error.value.diagnostics[0].code, error.value.diagnostics[0].help) == (
        "E520",
        "pip install 'clinker-spark[postgres]'",
    )
