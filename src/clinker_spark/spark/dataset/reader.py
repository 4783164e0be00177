"""`clinker_spark.dataset(path).reader(...)`: a query of a dataset as a DataFrame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from clinker_spark.dataset.files.manifest import Dataset
from clinker_spark.dataset.selection import Query
from clinker_spark.spark.dataset.partitions import Partitions, sql_fields
from clinker_spark.spark.scan.record_source import parallelism_of
from clinker_spark.spark.scan.scans import scan
from clinker_spark.spark.session.sessions import session


@dataclass(frozen=True)
class DatasetFrames:
    """A dataset whose queries are DataFrames. It is as it was when it was opened."""

    dataset: Dataset

    @property
    def segments(self) -> tuple[str, ...]:
        return tuple(self.dataset.catalogue.segments)

    @property
    def entities(self) -> tuple[str, ...]:
        return self.dataset.entities

    @property
    def indexes(self) -> tuple[str, ...]:
        return tuple(self.dataset.catalogue.indexes)

    def reader(
        self,
        index: str | None,
        *,
        entities: str | Sequence[str] = (),
        segments: str | Sequence[str] | None = None,
        range: tuple[Any, Any] | None = None,
        using_index_values: Sequence[Any] | Mapping[str, Sequence[Any]] | None = None,
        every: str | int | None = None,
        fill_latest_at: bool = False,
        columns: str | Sequence[str] | None = None,
        origin_time: bool = False,
        row_ids: bool = False,
        all_values: bool = False,
        spark: SparkSession | None = None,
    ) -> DataFrame:
        """One row for each value of the index, one column for each component (`/entity:component`).

        `entities`, `segments`, `range` and `columns` are known before anything is fetched: chunks that they leave out
        are not read. Filters of the DataFrame act on its rows, after values were filled in. The partitions, one after
        the other, have the rows in order. Raises DatasetError when the query does not fit the dataset.
        """
        used = spark or session()
        asked = Query(
            index,
            _names(entities),
            None if segments is None else _names(segments),
            range,
            using_index_values,
            None if every is None else str(every),
            fill_latest_at,
            None if columns is None else _names(columns),
            origin_time,
            row_ids,
            all_values,
        )
        partitions = Partitions.of(self.dataset, asked, parallelism_of(used))
        frame, _ = scan(used, len(partitions.groups), sql_fields(partitions.spark_schema), partitions.read)
        return frame


def _names(given: str | Sequence[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def dataset(place: str) -> DatasetFrames:
    """Open a dataset: a folder, or an address that has the same files."""
    return DatasetFrames(Dataset.open(str(place)))
