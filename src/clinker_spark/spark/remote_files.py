"""Files on storage that only Hadoop's file systems reach: `s3a://`, `hdfs://`, `abfs://`, whatever the session has.

Text formats are parsed in Python, which cannot open these. A session on one machine copies them first, as a stream;
Parquet files are read by Spark where they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession


@dataclass(frozen=True)
class RemoteFile:
    """A file, or a folder of parts, on a remote storage. `modified` is in seconds since 1970."""

    uri: str
    size: int
    modified: float
    is_folder: bool


class RemoteFiles:
    """The file systems of a session with a JVM of its own. Everything raises OSError with the reason in words."""

    def __init__(self, spark: SparkSession) -> None:
        self._context: Any = spark.sparkContext

    # Asked for when a file is remote: for each dot in a name, the JVM looks through all its jars.

    @cached_property
    def _path(self) -> Any:
        return self._context._jvm.org.apache.hadoop.fs.Path

    @cached_property
    def _conf(self) -> Any:
        return self._context._jsc.hadoopConfiguration()

    def status(self, uri: str) -> RemoteFile:
        try:
            path = self._path(uri)
            return _file(path.getFileSystem(self._conf).getFileStatus(path))
        except Py4JJavaError as error:
            raise OSError(_reason(error)) from None

    def matching(self, pattern: str) -> list[RemoteFile]:
        """The files of a pattern: *, ?, [a-z], {a,b}. A name that begins with . or _ is none."""
        try:
            path = self._path(pattern)
            found = path.getFileSystem(self._conf).globStatus(path) or []
            return [_file(status) for status in found if status.getPath().getName()[:1] not in "._"]
        except Py4JJavaError as error:
            raise OSError(_reason(error)) from None

    def copy(self, uri: str, place: Path) -> None:
        """Copy a file to a place on this machine."""
        try:
            path = self._path(uri)
            raw = True  # no file of checksums beside it
            path.getFileSystem(self._conf).copyToLocalFile(False, path, self._path(place.absolute().as_uri()), raw)
        except Py4JJavaError as error:
            raise OSError(_reason(error)) from None


def _file(status: Any) -> RemoteFile:
    uri = str(status.getPath().toString())
    return RemoteFile(uri, int(status.getLen()), status.getModificationTime() / 1000, bool(status.isDirectory()))


def _reason(error: Py4JJavaError) -> str:
    cause = error.java_exception
    name = str(cause.getClass().getSimpleName())
    return f"{name}: {cause.getMessage()}".splitlines()[0]
