"""Jobs that write parts: folders that only we read, from which the files of an output are made.

Java has no way to set the rights of a file that suits Hadoop, which starts a process (`chmod`) for each file and folder
that it makes: nine for a job with one task, some six milliseconds each. Here are the settings that leave two for each
task.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, DataFrameWriter, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

__all__ = ["DataFrame", "part_writer", "read_parts", "without_checksum_files"]

_MARK = "mapreduce.fileoutputcommitter.marksuccessfuljobs"
_WORKPLACE = os.path.join("_temporary", "0", "_temporary")
"""Where tasks write before the job is done. Spark removes it then."""


def part_writer(frame: DataFrame, folder: str) -> DataFrameWriter:
    """Writes the parts of a frame to a folder; what an earlier job left there is gone.

    A job that fails raises, so nobody looks for Spark's mark of success."""
    with suppress(FileNotFoundError):
        shutil.rmtree(folder)
    os.makedirs(os.path.join(folder, _WORKPLACE))
    return frame.write.mode("append").option(_MARK, "false")


def read_parts(spark: SparkSession, folder: str, schema: pa.Schema) -> DataFrame:
    """Parts in Parquet files, of which the schema is known: Spark would run a job to find it."""
    return spark.read.schema(from_arrow_schema(schema)).parquet(folder)


def without_checksum_files(context: Any) -> None:
    """From now on, Hadoop writes no file of checksums beside each local file: parts are read once, by us, a moment
    later. What has one already is still compared with it."""
    from py4j.java_gateway import JavaClass  # Spark Connect has no gateway to Java

    # By its whole name: asked for `jvm.org.apache...`, Py4J would look through all jars once for each dot.
    systems: Any = JavaClass("org.apache.hadoop.fs.FileSystem", context._gateway._gateway_client)
    systems.getLocal(context._jsc.hadoopConfiguration()).setWriteChecksum(False)
