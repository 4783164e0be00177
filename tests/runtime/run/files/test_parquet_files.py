"""Parquet outputs in several files end where those of other formats do, however the rows lie in the parts."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from clinker_spark.config.model.output import Split
from clinker_spark.runtime.run.files import parquet_files
from clinker_spark.runtime.run.files.parquet_files import SeveralParquet


def expected(rows: list[dict[str, Any]], split: Split | None, keyed: bool) -> tuple[list[list[int]], list[str]]:
    """Row by row: a file is left when it is full and, with keys, when the key changes."""
    files: list[list[int]] = []
    groups: list[list[Any]] = []
    count = size = 0
    for i, row in enumerate(rows):
        changed = keyed and (not i or rows[i - 1]["$key"] != row["$key"])
        full = split is None or (
            (split.max_records is not None and count >= split.max_records)
            or (split.max_bytes is not None and size >= split.max_bytes)
        )
        if not files or (full and (changed or not keyed)):
            files.append([])
            count = size = 0
        if changed:
            groups.append([row["$key"], 0, 0])
        files[-1].append(row["v"])
        count, size = count + 1, size + row["$bytes"]
        if keyed:
            groups[-1][1] += 1
            groups[-1][2] += row["$bytes"]
    most = (None, None) if split is None else (split.max_records, split.max_bytes)
    large = [key for key, n, b in groups if (most[0] and n > most[0]) or (most[1] and b > most[1])]
    return files, large


SPLITS = [{"max_records": 3}, {"max_bytes": 40}, {"max_records": 4, "max_bytes": 25}]


@pytest.mark.parametrize(("split", "keyed"), [*((s, k) for s in SPLITS for k in (False, True)), (None, True)])
def test_files_end_where_they_should(tmp_path: Path, monkeypatch: Any, split: Any, keyed: bool) -> None:
    monkeypatch.setattr(parquet_files, "_ROW_GROUP", 7)
    chance = random.Random(repr((split, keyed)))
    rule = None if split is None else Split(**split)
    for turn in range(12):
        rows = [{"v": i, "$bytes": chance.randint(0, 20)} for i in range(chance.choice([1, 5, 60]))]
        key = 0
        for row in rows:
            key += chance.random() < 0.4
            row |= {"$key": str(key)} if keyed else {}
        schema = pa.schema({"v": pa.int64(), "$bytes": pa.int64(), **({"$key": pa.string()} if keyed else {})})
        cuts = sorted(chance.choices(range(len(rows) + 1), k=turn % 4))
        parts = []
        for begin, end in zip([0, *cuts], [*cuts, len(rows)], strict=True):
            parts.append(tmp_path / f"part-{len(parts)}.parquet")
            pq.write_table(pa.Table.from_pylist(rows[begin:end], schema=schema), parts[-1])
        writer = SeveralParquet(rule, "zstd", lambda n, key: tmp_path / f"out-{n}")
        found = [pq.read_table(made.path) for made in writer.write(parts)]
        files, large = expected(rows, rule, keyed)
        assert [table.column("v").to_pylist() for table in found] == files
        assert all(table.column_names == ["v"] for table in found)
        assert writer.oversize == large
        if rule is None:
            assert [made.key for made in writer.made] == [str(rows[file[0]]["$key"]) for file in files]


def test_nothing_is_one_empty_file(tmp_path: Path) -> None:
    pq.write_table(pa.table({"v": pa.array([], pa.int64())}), tmp_path / "part")
    [made] = SeveralParquet(Split(max_records=1), "snappy", lambda n, key: tmp_path / "out").write([tmp_path / "part"])
    assert pq.read_table(made.path).num_rows == 0 and made.records == 0
