"""Compressed files that are damaged say so, and which one it is."""

from __future__ import annotations

import bz2
import gzip
from pathlib import Path

import pyarrow as pa
import pytest

from clinker_spark.core.errors import InputError
from clinker_spark.spark.scan.text.streams import open_binary

DATA = b"".join(b"%d,%d\n" % (i, i * i) for i in range(1000))
PACKED = {
    "gzip": gzip.compress(DATA),
    "bz2": bz2.compress(DATA),
    "zstd": pa.compress(DATA, codec="zstd", asbytes=True),
}


@pytest.mark.parametrize("kind", PACKED)
def test_what_is_cut_off_is_not_taken_for_the_end(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "x"
    path.write_bytes(PACKED[kind])
    with open_binary(str(path), kind) as file:
        assert file.read() == DATA
    for kept in (12, len(PACKED[kind]) // 2, len(PACKED[kind]) - 1):
        path.write_bytes(PACKED[kind][:kept])
        with open_binary(str(path), kind, "orders") as file, pytest.raises(InputError) as caught:
            while file.read(4096):
                pass
        [found] = caught.value.diagnostics
        assert found.code == "E452" and found.message.startswith("'orders' is damaged: ")
        assert str(caught.value).startswith("E452: ")  # what a task can send
    path.write_bytes(DATA)
    with pytest.raises(OSError, match="not compressed"):
        open_binary(str(path), kind)
    path.write_bytes(b"")
    with open_binary(str(path), kind) as file:
        assert not file.read()
