"""Whole runs over a few records: Spark compiles nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark(quick: SparkSession) -> SparkSession:
    return quick
