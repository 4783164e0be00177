"""The engine of query programs: files, lists and DataFrames as rows on Spark, which starts when they are needed.

What needs pyspark is imported where the first job starts: checking and explaining a program must not wait for it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from clinker_spark.core.span import Span
from clinker_spark.cxl.syntax import ast as cxl
from clinker_spark.plan.memory import held_whole
from clinker_spark.query.check.declared import TypeTable
from clinker_spark.query.evaluate.expressions import Env
from clinker_spark.query.failures import Failed
from clinker_spark.query.files.csv import shown_path
from clinker_spark.query.files.formats import FileSource, format_of
from clinker_spark.query.lower.base import failing_at
from clinker_spark.query.lower.values import VALUE, Column, SparkDataset
from clinker_spark.query.prepare import Queries
from clinker_spark.query.syntax import ast
from clinker_spark.query.values import Dataset
from clinker_spark.runtime.errors import IoError
from clinker_spark.runtime.query.failures import failure
from clinker_spark.sql import tree as sql
from clinker_spark.sql.render import render

_PREVIEW = 101


def _parsed_bytes(content: Any) -> int:
    """The size of files that Python reads, which Spark takes for tiny; 0 for others, of which it knows the size."""
    if not isinstance(content, FileSource) or content.rows is not None or content.format not in ("csv", "tsv"):
        return 0
    size = 0
    for path in content.paths:
        with suppress(OSError):  # whoever reads it says so
            size += os.path.getsize(path)
    return size


class QueryEngine(Queries):
    """Everything between a program and Spark. `spark` is called when the first job starts."""

    def __init__(self, spark: Callable[[], Any]) -> None:
        super().__init__()
        self._spark = spark
        self._views: dict[str, str] = {}
        self.origins: dict[str, Span] = {}

    def frame(self, name: str, frame: Any) -> SparkDataset:
        """A DataFrame of the caller. Its rows have no order of their own."""
        from clinker_spark.spark.query.types import row_type  # a query over lists needs no Spark

        return self.source(name, row_type(frame.schema), frame, ())

    # ----------------------------------------------------------------- results

    def evaluate(self, e: cxl.Expr, scope: Env, types: TypeTable) -> Any:
        found = self.lowered(e, scope, types)
        if isinstance(found, Column):
            return self.scalar(found)
        return NotImplemented if found is None else found

    def sql(self, query: sql.Query) -> Any:
        """A DataFrame of a query; the views it reads are made first."""
        from clinker_spark.spark.query.patterns import register_patterns  # a query over lists needs no Spark
        from clinker_spark.spark.query.views import view_of

        spark = self._spark()
        large = self._reads_much()

        def view(source: sql.Source) -> str:
            name = self.name(source)
            if name not in self._views:
                content = self.scans[source.number].content
                held = large and _parsed_bytes(content) in range(1, held_whole(None) + 1)
                self._views[name] = view_of(spark, name, content, source.ordered, held=held)
            return self._views[name]

        printed = render(query)
        self.origins |= printed.origins
        register_patterns(spark, printed.functions)
        return spark.sql(printed.text(view))

    def dataframe(self, value: SparkDataset) -> Any:
        """The rows in order, as a DataFrame."""
        return self.sql(self.ordered(value))

    def scalar(self, column: Column) -> Any:
        from clinker_spark.spark.query.results import value_of  # a query over lists needs no Spark

        with self._explained():
            # A sub-query runs as it is, not as a part of another.
            alone = sql.Query((sql.Select((sql.As(column.sql, VALUE),)),))
            query = column.sql.query if isinstance(column.sql, sql.Subquery) else alone
            return value_of(self.sql(query).collect()[0][0])

    def rows(self, value: Dataset) -> list[Any]:
        from clinker_spark.spark.query.results import collect  # a query over lists needs no Spark

        assert isinstance(value, SparkDataset)
        with self._explained():
            return collect(self.dataframe(value), value.relation.row)

    def preview(self, value: SparkDataset) -> list[Any]:
        """The first rows, and one more to show that there are more."""
        from clinker_spark.spark.query.results import collect  # a query over lists needs no Spark

        with self._explained():
            return collect(self.dataframe(value).limit(_PREVIEW), value.relation.row)

    def stream(self, value: SparkDataset) -> Iterator[Any]:
        """All rows, without holding them all."""
        from clinker_spark.spark.query.results import stream  # a query over lists needs no Spark

        with self._explained():
            yield from stream(self.dataframe(value), value.relation.row)

    def _reads_much(self) -> bool:
        """Is there a file that not every task may hold, and whose size Spark does not know?"""
        return any(_parsed_bytes(scan.content) > held_whole(None) for scan in self.scans)

    # -------------------------------------------------------------------- save

    def save(self, e: ast.Save, value: Any, path: str | None, options: dict[str, Any]) -> None:
        with failing_at(e.span):
            self.write(value, path or "", options)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """What Spark says about a value it cannot go on with, as a failure of the query. Meanwhile no file goes to
        all tasks that is too large to be held by them."""
        try:
            if not self._reads_much():
                yield
                return
            from clinker_spark.spark.session.unknown_sizes import by_sight  # a query over lists needs no Spark

            with by_sight(self._spark()):
                yield
        except Failed:
            raise
        except Exception as error:
            found = failure(error, self.origins)
            if found is not None:
                raise self._located(found) from None
            from clinker_spark.runtime.run.engine_failures import engine_failure  # only when something failed

            engine = engine_failure(error)
            if engine is None:
                raise
            raise IoError([engine]) from error

    def _located(self, found: Failed) -> Failed:
        """The failure, with the file and the record that it is about if it is about one."""
        from clinker_spark.spark.query.csv_frames import first_broken  # a query over lists needs no Spark

        if found.code != "E712":
            return found
        for scan in self.scans:
            read = any(scan.name(ordered) in self._views for ordered in (False, True))
            if read and isinstance(scan.content, FileSource) and scan.content.format in ("csv", "tsv"):
                broken = first_broken(self._spark(), scan.content)
                if broken is not None:
                    message = f"record {broken.row} of '{shown_path(broken.file)}' cannot be used: {broken.reason}"
                    return Failed(message, found.help, code="E712")
        return found

    def _check_target(self, path: str) -> None:
        """Rows are read when they are needed: a file that is loaded must not become another one. Raises `Failed`."""
        target = os.path.realpath(path)
        for scan in self.scans:
            for loaded in scan.content.paths if isinstance(scan.content, FileSource) else ():
                read = os.path.realpath(loaded)
                with suppress(OSError):  # what is not there cannot be the same
                    read = target if os.path.samefile(target, read) else read
                if read == target or Path(target) in Path(read).parents:
                    message = f"'{path}' would replace '{shown_path(loaded)}', which the program loads"
                    raise Failed(message, "write to another file, and rename it afterwards", code="E430")

    def write(self, value: Any, path: str, options: Mapping[str, Any] | None = None, *, force: bool = False) -> None:
        """The rows as a file; its ending, or an option, says how."""
        from clinker_spark.runtime.query.files import write_dataset, write_list  # a query over lists needs no Spark

        kind = format_of(path, options or {})
        if not force:
            self._check_target(path)
        if isinstance(value, SparkDataset):
            with self._explained():
                write_dataset(self.dataframe(value), value.relation.row, path, kind, options or {}, force=force)
        else:
            write_list(value, path, kind, options or {})
