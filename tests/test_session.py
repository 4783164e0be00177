"""The shared session works, and its Python workers are this interpreter."""

from __future__ import annotations

import sys

import pytest

pytest.importorskip("pyspark")


def test_workers_run_this_python(spark) -> None:  # type: ignore[no-untyped-def]
    from pyspark.sql.functions import udf

    executable = udf(lambda _: sys.version, "string")
    assert spark.range(1).select(executable("id")).first()[0] == sys.version
