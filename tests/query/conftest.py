"""Small queries spend their time on compiling and scheduling, so Spark is told not to bother."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support import sessions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def quick(spark: SparkSession) -> SparkSession:
    return sessions.quick(spark)
