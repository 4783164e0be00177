"""Generated programs and pipelines: thousands, over a few records each."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.support.sessions import quick


@pytest.fixture(scope="session")
def spark(spark: SparkSession) -> SparkSession:
    return quick(spark)
