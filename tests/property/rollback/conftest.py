"""Pipelines that fail, as users run small ones."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from clinker_spark.spark.session.small_inputs import SETTING, SMALL
from tests.support.sessions import quick


@pytest.fixture(scope="session")
def spark(spark: SparkSession) -> SparkSession:
    session = quick(spark)
    session.conf.set(SETTING, str(SMALL))
    return session
