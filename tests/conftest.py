"""One Spark session for the whole test process, started by the first test that asks for it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support import archived

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support.services import Kafka, Postgres
    from tests.support.workbench import Workbench


LONGEST = (
    "test_engines_agree",
    "test_partitions_change_no_byte",
    "test_run_and_stream_have_the_same_totals",
    "test_every_overload_agrees",
    "test_joins_can_be_chained",
    "test_queries_agree_with_duckdb",
    "test_run_and_stream_agree",
    "test_a_stream_goes_on_where_it_was",
    "test_from_topics_to_a_table_and_a_topic",
    "test_run_stream_and_model_agree",
    "test_an_output_that_fails_is_written_once",
    "test_spark",
    "test_cases_on_spark",
    "test_the_next_run_after_a_lost_jvm_starts_a_new_one",
    "test_the_stream_gives_what_the_run_gives",
)
"""What takes more than ten seconds of work, the longest first."""
STREAMS = "tests/streaming/"
"""Then these, in the process that has begun with streams: the first one loads thousands of classes, and starts three
processes of Python that stay."""


QUICK_JVM = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC -Xms1g -Xmn600m"
"""Thousands of small queries: the JVM's optimising compiler would cost more than it saves. Without it, HotSpot has room
for 48 MB of compiled code, which are full after forty pipelines; from then on it would throw away what it needs next,
and compile it again. Two JVMs on two cores need no threads of their own to collect garbage; plans are garbage at once,
so most of the heap is for what is young."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes longest comes first, so that at the end nobody waits for one process."""
    places = {name: place for place, name in enumerate(LONGEST)}

    def place(item: pytest.Item) -> int:
        others = len(places) + (not item.nodeid.startswith(STREAMS))
        return places.get(item.name.split("[")[0], others)

    items.sort(key=place)


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Nothing that a run remembers comes from, or gets into, the cache of whoever runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        # Some thirty JVMs of their own start in the tests. None lives long enough for the optimising compiler. Commands
        # can be given such options by the environment only.
        patch.setenv("CLINKER_CLASS_ARCHIVE", archived.setting())
        patch.setenv("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1")
        yield


@pytest.fixture(scope="session")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The Spark of this process, as users have it."""
    from clinker_spark.spark.session.sessions import (
        session,  # most tests need no Java, and should not wait for the import
    )

    settings = {
        "spark.driver.memory": "2g",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
    }
    spark = session("local[2]", app_name="tests", conf=settings, java_options=QUICK_JVM)
    yield spark
    spark.stop()


@pytest.fixture(scope="session")
def quick(started: SparkSession) -> SparkSession:
    """The same Spark with the settings for a few rows."""
    from tests.support import sessions

    return sessions.quick(started)


@pytest.fixture(scope="session")
def spark(started: SparkSession) -> SparkSession:
    """What tests of a folder ask for: its `conftest.py` may say that `quick` is meant."""
    return started


@pytest.fixture
def bench(tmp_path: Path, quick: SparkSession) -> Workbench:
    """A folder for the files and pipelines of one test."""
    from tests.support.workbench import Workbench

    return Workbench(tmp_path, quick)


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all processes of the test run know."""
    own = tmp_path_factory.getbasetemp()
    return (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "services"


@pytest.fixture(scope="session")
def kafka(shared_folder: Path) -> Iterator[Kafka]:
    """A broker, the same for all processes of the test run."""
    from tests.support.services import Kafka

    broker = Kafka(shared_folder)
    yield broker
    broker.leave()


@pytest.fixture(scope="session")
def postgres(shared_folder: Path) -> Iterator[Postgres]:
    """A database server, the same for all processes of the test run."""
    from tests.support.services import Postgres

    server = Postgres(shared_folder)
    yield server
    server.leave()
