"""A batch of records in a table, exactly once.

Tasks copy their records into a *staging table* of the batch, each under a name of its own for this attempt, and say
under which. Then one transaction moves the rows of the attempts that were reported to the table and notes the number of
the batch in `clinker_batches`. It is there whole or not at all: a task that died or ran twice left rows that nobody
moves; a batch that comes again finds its number, and is left alone; of two processes that write the same batch one
waits for the other at the row of that number.
"""

from __future__ import annotations

import io
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.csv as pc
from pyspark.sql import DataFrame

from clinker_spark.core.types import Type
from clinker_spark.spark.arrow_batches import over_batches
from clinker_spark.spark.connectors.failures import carried, failure
from clinker_spark.spark.connectors.postgres.database import Database
from clinker_spark.spark.connectors.postgres.tables import (
    Name,
    Problem,
    create_table,
    made_type,
    problems,
    quoted,
    table_columns,
)

Copy = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""Copies records, and gives one row in the end: the name of the attempt and how many records it has copied."""
LEDGER = "clinker_batches"
_STAGE = "clinker_stage_"
_PART = "clinker part"
_HERE = "\0"
_ATTEMPT = "attempt STRING, rows BIGINT"
_LEDGER = """CREATE TABLE IF NOT EXISTS {} (stream text, output text, batch bigint NOT NULL, rows bigint NOT NULL,
written timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (stream, output))"""


@dataclass(frozen=True)
class Table:
    """A table and what is written to it."""

    database: Database
    name: Name
    columns: dict[str, Type]
    keys: tuple[str, ...] = ()
    """Of an upsert; none for rows that are added."""
    latest_by: str | None = None

    @property
    def shown(self) -> str:
        return self.name.name if self.name.schema is None else f"{self.name.schema}.{self.name.name}"


@dataclass(frozen=True)
class Copied:
    """A batch in its staging table."""

    move: Callable[[], None]
    """The transaction."""
    drop: Callable[[], None]


class TableSink:
    """What one output of one stream does with its table."""

    def __init__(self, table: Table, stream: str, output: str) -> None:
        self.table = table
        self.stream = stream
        self.output = output
        self._ledger = table.name.beside(LEDGER).sql
        self._stages = f"{_STAGE}{uuid.uuid5(uuid.NAMESPACE_OID, stream + '/' + output).hex[:12]}_"

    def prepare(self, create: bool) -> list[Problem]:
        """Before the first batch: the table, the ledger, and nothing left of earlier attempts."""
        table = self.table
        with table.database.connected(f"looking at table '{table.shown}'") as connection:
            if not table_columns(connection, table.name):
                if not create:
                    return [Problem(f"there is no table '{table.shown}'", "create it, or write if_missing: create")]
                connection.execute(create_table(table.name, table.columns, table.keys))
            found = list(problems(connection, table.name, table.columns, table.keys))
            if found:
                return found
            connection.execute(_LEDGER.format(self._ledger))
            connection.execute(
                f"INSERT INTO {self._ledger} (stream, output, batch, rows) VALUES (%s, %s, -1, 0)"
                " ON CONFLICT DO NOTHING",
                (self.stream, self.output),
            )
        self._clear()
        return []

    def stage(self, batch: DataFrame, number: int) -> Copied | None:
        """Copy the records of a batch, in the columns of the table; None when they are there already."""
        # One row of each task comes back: as many as there are partitions.
        return self.copied(
            number, lambda copy: [(row.attempt, row.rows) for row in over_batches(batch, copy, _ATTEMPT).collect()]
        )

    def copied(self, number: int, run: Callable[[Copy], list[tuple[str, int]]]) -> Copied | None:
        """The records that `run` puts through the function it is given, wherever that is called and however often: only
        those count whose attempts it gives back."""
        doing = f"writing batch {number} to table '{self.table.shown}'"
        stage = self.table.name.beside(f"{self._stages}{uuid.uuid4().hex[:8]}")
        with self.table.database.connected(doing) as connection:
            if self._last(connection, lock=False) >= number:
                return None
            columns = ", ".join(f"{quoted(name)} {made_type(t)}" for name, t in self.table.columns.items())
            # Nothing is lost with it but the attempt: it needs no log of its own.
            connection.execute(f"CREATE UNLOGGED TABLE {stage.sql} ({quoted(_PART)} text, {columns})")
        try:
            copy = _copier(self.table.database, stage.sql, tuple(self.table.columns), doing)
            done = run(copy)
        except BaseException as error:
            self._drop(stage)
            raise (carried(error) if isinstance(error, Exception) else error) from error

        def move() -> None:
            try:
                if done:
                    self._move(stage, [attempt for attempt, _ in done], sum(rows for _, rows in done), number, doing)
            finally:
                self._drop(stage)

        return Copied(move, lambda: self._drop(stage))

    def _move(self, stage: Name, attempts: list[str], rows: int, number: int, doing: str) -> None:
        """The transaction: rows and number of the batch together."""
        with self.table.database.connected(doing) as connection:
            if self._last(connection, lock=True) >= number:
                return
            connection.execute("SET LOCAL synchronous_commit = on")
            connection.execute("SET LOCAL timezone = 'UTC'")  # what records mean by a time without a zone
            moved = connection.execute(
                f"SELECT count(*) FROM {stage.sql} WHERE {quoted(_PART)} = ANY (%s)", (attempts,)
            ).fetchone()[0]
            if moved != rows:  # an unlogged table is empty after a crash of the server
                raise failure("E530", f"{doing} failed: {rows - moved} of {rows} staged rows are gone")
            connection.execute(self._insert(stage), (attempts,))
            connection.execute(
                f"UPDATE {self._ledger} SET batch = %s, rows = rows + %s, written = now()"
                " WHERE stream = %s AND output = %s",
                (number, rows, self.stream, self.output),
            )

    def _insert(self, stage: Name) -> str:
        table = self.table
        names = ", ".join(map(quoted, table.columns))
        rows = f"FROM {stage.sql} WHERE {quoted(_PART)} = ANY ({_HERE})"
        if not table.keys:
            return _with_parameter(f"INSERT INTO {table.name.sql} ({names}) SELECT {names} {rows}")
        keys = ", ".join(map(quoted, table.keys))
        rest = [name for name in table.columns if name not in table.keys]
        if table.latest_by is not None:
            rest = [table.latest_by, *(name for name in rest if name != table.latest_by)]
        # Among equals of one batch all columns decide, so that a batch which is repeated chooses the same row.
        order = [quoted(name) for name in table.keys]
        order += [f"{_ordered(name, table.columns[name])} DESC NULLS LAST" for name in rest]
        text = (
            f"INSERT INTO {table.name.sql} AS t ({names}) SELECT DISTINCT ON ({keys}) {names} {rows}"
            f" ORDER BY {', '.join(order)} ON CONFLICT ({keys}) DO "
        )
        if not rest:
            return _with_parameter(text + "NOTHING")
        text += "UPDATE SET " + ", ".join(f"{quoted(name)} = EXCLUDED.{quoted(name)}" for name in rest)
        if table.latest_by is not None:
            latest = quoted(table.latest_by)
            text += f" WHERE t.{latest} IS NULL OR t.{latest} <= EXCLUDED.{latest}"
        return _with_parameter(text)

    def _last(self, connection: Any, *, lock: bool) -> int:
        """The number of the last batch that is in the table."""
        text = f"SELECT batch FROM {self._ledger} WHERE stream = %s AND output = %s{' FOR UPDATE' if lock else ''}"
        found = connection.execute(text, (self.stream, self.output)).fetchone()
        if found is None:
            raise failure("E531", f"the row of this stream in {self._ledger} is gone", "start the stream again")
        return int(found[0])

    def _drop(self, stage: Name) -> None:
        """What stays is removed by the next start."""
        try:
            with self.table.database.connected("removing a staging table") as connection:
                connection.execute("SET LOCAL lock_timeout = '5s'")
                connection.execute(f"DROP TABLE IF EXISTS {stage.sql}")
        except Exception:
            return

    def _clear(self) -> None:
        with self.table.database.connected("looking for staging tables") as connection:
            schema = self.table.name.schema
            where = "current_schema()" if schema is None else "%s"
            left = connection.execute(
                f"SELECT tablename FROM pg_tables WHERE schemaname = {where} AND tablename LIKE %s",
                ([] if schema is None else [schema]) + [self._stages.replace("_", r"\_") + "%"],
            ).fetchall()
        for (name,) in left:
            self._drop(self.table.name.beside(name))


def _with_parameter(text: str) -> str:
    """The client looks for its parameters by a percent sign, which the name of a column may have."""
    return text.replace("%", "%%").replace(_HERE, "%s")


def _ordered(name: str, t: Type) -> str:
    """JSON has no order of its own in every form: its text has."""
    return f"{quoted(name)}::text" if made_type(t) == "jsonb" else quoted(name)


def _copier(database: Database, stage: str, columns: tuple[str, ...], doing: str) -> Copy:
    names = ", ".join(map(quoted, (_PART, *columns)))

    def copy(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        attempt, rows = uuid.uuid4().hex, 0
        first = next((batch for batch in batches if batch.num_rows), None)
        if first is None:
            return
        with database.connected(doing) as connection:
            connection.execute("SET synchronous_commit = off")  # staged rows need not survive
            with (
                connection.cursor() as cursor,
                cursor.copy(f"COPY {stage} ({names}) FROM STDIN WITH (FORMAT csv)") as target,
            ):
                for batch in _and(first, batches):
                    rows += batch.num_rows
                    target.write(_csv(batch, attempt))
        yield pa.RecordBatch.from_pydict({"attempt": [attempt], "rows": pa.array([rows], pa.int64())})

    return copy


def _and(first: pa.RecordBatch, others: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield first
    yield from others


def _csv(batch: pa.RecordBatch, attempt: str) -> bytes:
    """Texts are in quotes and nulls are not: COPY tells an empty text from none by that."""
    part = pa.DictionaryArray.from_arrays(pa.nulls(batch.num_rows, pa.int32()).fill_null(0), [attempt])
    table = pa.RecordBatch.from_arrays([part.dictionary_decode(), *batch.columns], [_PART, *batch.schema.names])
    data = io.BytesIO()
    pc.write_csv(table, data, pc.WriteOptions(include_header=False))
    return data.getvalue()
