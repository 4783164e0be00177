"""The function that Spark runs in its workers for a fragment. Polars is loaded there, and nowhere else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

import pyarrow as pa

from clinker_spark.spark.fragments.task import FIELDS, FragmentTask
from clinker_spark.spark.scan.scans import Then

__all__ = ["FIELDS", "then"]


def then(task: FragmentTask | None) -> Then | None:
    """What is done with the batches of a split."""
    return None if task is None else partial(_work, task)


def _work(task: FragmentTask, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    from clinker_spark.spark.fragments.runner import Runner  # with Polars, which only workers with a fragment need

    return Runner(task).run(batches)
