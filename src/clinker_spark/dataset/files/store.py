"""Where the bytes of a dataset are: a folder, a web server, or any file system that Arrow knows.

A store reads whole files and ranges of them. It can be pickled: tasks on other machines open the same dataset.
"""

from __future__ import annotations

import http.client
import os
import random
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

from clinker_spark.dataset.errors import DatasetDamaged

T = TypeVar("T")
_GONE = (400, 401, 403, 404, 405, 410)
"""What a server says that it will say again."""


class Store(Protocol):
    """Bytes by name. Raises OSError."""

    remote: bool

    @property
    def shown(self) -> str:
        """What people call it."""

    def read(self, name: str, offset: int = 0, length: int | None = None) -> bytes:
        """A file, or a part of it. What is shorter than asked for is an error."""


def open_store(place: str) -> Store:
    """The store of a path or an address."""
    scheme = place.partition("://")[0].lower() if "://" in place else ""
    if scheme in ("http", "https"):
        return HttpStore(place.rstrip("/"))
    if scheme in ("", "file"):
        return FolderStore(os.path.abspath(place.removeprefix("file://")))
    return ArrowStore(place.rstrip("/"))


@dataclass(frozen=True)
class FolderStore:
    """A folder of this machine."""

    path: str
    remote = False

    @property
    def shown(self) -> str:
        return self.path

    def read(self, name: str, offset: int = 0, length: int | None = None) -> bytes:
        with open(Path(self.path) / name, "rb", buffering=0) as file:
            if offset:
                file.seek(offset)
            found = file.read() if length is None else file.read(length)
        return _whole(found, length, name)


@dataclass(frozen=True)
class Retries:
    """How often a remote read is tried, and how long it waits in between: twice as long each time, and a little less
    than that at random, so that many tasks do not come back at the same moment."""

    attempts: int = 5
    first_pause: float = 0.2
    longest_pause: float = 10.0
    timeout: float = 30.0

    def run(self, what: str, read: Callable[[], T]) -> T:
        last: Exception | None = None
        for attempt in range(self.attempts):
            if attempt:
                pause = min(self.first_pause * 2 ** (attempt - 1), self.longest_pause)
                time.sleep(pause * random.uniform(0.5, 1.0))
            try:
                return read()
            except FileNotFoundError:
                raise
            except urllib.error.HTTPError as error:
                error.close()  # it is an answer, too, and holds its connection
                if error.code in _GONE:
                    raise DatasetDamaged("E855", f"cannot read {what}: the server answers {error.code}") from None
                last = error
            except (OSError, http.client.HTTPException) as error:
                last = error
        reason = str(last) or type(last).__name__
        help_text = "check the network and the server, then ask again: queries change nothing"
        raise DatasetDamaged("E855", f"cannot read {what}, after {self.attempts} tries: {reason}", help_text) from last


@dataclass(frozen=True)
class HttpStore:
    """A web server that has the files of a dataset below an address. It should understand `Range`."""

    address: str
    retries: Retries = field(default_factory=Retries)
    remote = True

    @property
    def shown(self) -> str:
        return self.address

    def read(self, name: str, offset: int = 0, length: int | None = None) -> bytes:
        url = f"{self.address}/{urllib.parse.quote(name)}"
        return self.retries.run(url, lambda: self._read(url, name, offset, length))

    def _read(self, url: str, name: str, offset: int, length: int | None) -> bytes:
        request = urllib.request.Request(url)
        if length is not None:
            request.add_header("Range", f"bytes={offset}-{offset + length - 1}")
        try:
            with urllib.request.urlopen(request, timeout=self.retries.timeout) as answer:
                found = answer.read()
                part = answer.status == 206
        except urllib.error.HTTPError as error:
            if error.code == 404:
                error.close()
                raise FileNotFoundError(f"'{url}' is not there") from None
            raise
        if length is not None and not part:  # a server that gives the whole file
            found = found[offset : offset + length]
        return _whole(found, length, name)


@dataclass(frozen=True)
class ArrowStore:
    """A file system that Arrow opens by its address: s3://, gs://, hdfs://."""

    address: str
    retries: Retries = field(default_factory=Retries)
    remote = True

    @property
    def shown(self) -> str:
        return self.address

    def read(self, name: str, offset: int = 0, length: int | None = None) -> bytes:
        return self.retries.run(f"{self.address}/{name}", lambda: self._read(name, offset, length))

    def _read(self, name: str, offset: int, length: int | None) -> bytes:
        system, folder = _file_system(self.address)
        with system.open_input_file(f"{folder}/{name}") as file:
            found = file.read_at(file.size() if length is None else length, offset)
        return _whole(found, length, name)


def _file_system(address: str) -> Any:
    from pyarrow import ArrowException, fs  # loaded where a dataset is on such a file system

    try:
        return fs.FileSystem.from_uri(address)
    except ArrowException as error:
        help_text = "datasets are read from folders, http(s)://, s3://, gs:// and hdfs://"
        raise DatasetDamaged("E850", f"cannot open '{address}': {error}", help_text) from None


def _whole(found: bytes, length: int | None, name: str) -> bytes:
    if length is not None and len(found) != length:
        raise OSError(f"'{name}' ends early: {len(found)} of {length} bytes")
    return found
