"""The Python processes of Spark find PySpark where it is compiled, and everything else where they found it before."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from clinker_spark.spark.session import worker_path
from clinker_spark.spark.session.worker_path.sitecustomize import in_order

HERE = str(Path(worker_path.__file__).parent)


def installed(site: Path, *more: str) -> list[str]:
    """A path as Spark makes it for a PySpark that is installed in `site`."""
    home = site / "pyspark"
    (home / "python" / "lib").mkdir(parents=True)
    (home / "__init__.py").touch()
    names = ("python/lib/pyspark.zip", "python/lib/py4j-1-src.zip", "jars/spark-core_2.13-4.3.0.jar")
    return ["", *(str(home / name) for name in names), "/ours", "/std.zip", *more]


def test_archives_beside_a_package_come_last(tmp_path: Path) -> None:
    site = tmp_path / "site"
    path = installed(site, str(site), "/more")
    assert in_order(path) == ["", "/ours", "/std.zip", str(site), "/more", *path[1:4]]


def test_archives_that_a_python_needs_stay(tmp_path: Path) -> None:
    """It has no PySpark of its own, or Spark is not a package but a distribution."""
    path = installed(tmp_path / "site", str(tmp_path / "other"))
    assert in_order(path) == path
    home = tmp_path / "spark"
    path = [str(home / "python/lib/pyspark.zip"), str(home / "jars/core.jar"), str(tmp_path)]
    (home / "python" / "lib").mkdir(parents=True)
    assert in_order(path) == path


@pytest.mark.parametrize(
    "text", [None, "print('theirs')", "import nothing_of_this_name"], ids=["none", "one", "broken"]
)
def test_what_the_machine_does_first_is_done(tmp_path: Path, text: str | None) -> None:
    """A module of the same name that comes later; what is wrong with it is said as ever, and ends nothing."""
    if text is not None:
        (tmp_path / "sitecustomize.py").write_text(text)
    said = {}
    for first in ("", HERE):
        places = os.pathsep.join([first, str(tmp_path)] if first else [str(tmp_path)])
        script = "import sys; print(sys.argv, [place for place in sys.path if 'worker_path' in place])"
        line = [sys.executable, "-c", script, "given"]
        done = subprocess.run(line, env={"PYTHONPATH": places, "LANG": "C"}, capture_output=True, text=True, timeout=60)
        said[first] = done.returncode, done.stdout, done.stderr
    assert said[HERE] == said[""] and said[""][1].endswith("['-c', 'given'] []\n")


def test_workers_take_the_modules_that_are_compiled(spark: SparkSession) -> None:
    def where(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyspark.serializers

        yield from (pa.RecordBatch.from_pydict({"file": [pyspark.serializers.__file__]}) for _ in batches)

    import pyspark

    [row] = spark.range(1).coalesce(1).mapInArrow(where, "file STRING").collect()
    assert row.file == str(Path(pyspark.__file__).with_name("serializers.py"))
