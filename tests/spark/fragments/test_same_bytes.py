"""Outputs, dead letters and numbers of a run are the same, whether Spark or the workers compute the records."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.spark.fragments.engines import both_engines, sizes
from tests.spark.fragments.pipelines import DECIMALS, ONE_OUTPUT, ROUTED, pipeline, write_files

CASES = [
    ("csv", ONE_OUTPUT, "csv", "exclusive", True),
    ("csv", ROUTED, "mixed", "exclusive", False),
    ("json", ROUTED, "ndjson", "inclusive", True),
    ("csv", DECIMALS, "mixed", "exclusive", True),
]
MORE = [
    ("json", DECIMALS, "array", "exclusive", False),
    ("csv", ROUTED, "csv", "exclusive", False),
    ("csv", ROUTED, "mixed", "inclusive", True),
    ("csv", ONE_OUTPUT, "semicolons", "exclusive", False),
    ("json", ROUTED, "ndjson", "inclusive", False),
    ("csv", ONE_OUTPUT, "array", "exclusive", False),
    ("csv", ROUTED, "ndjson", "inclusive", True),
    ("csv", ROUTED, "csv", "exclusive", True),
    ("json", ONE_OUTPUT, "ndjson", "exclusive", True),
    ("json", ONE_OUTPUT, "array", "exclusive", False),
    ("json", ROUTED, "array", "exclusive", True),
    ("csv", ROUTED, "semicolons", "inclusive", False),
]


@pytest.mark.parametrize(
    ("source", "nodes", "kind", "mode", "small"),
    CASES + (MORE if os.environ.get("CLINKER_CASES") == "all" else []),
    ids=lambda value: {ROUTED: "routed", ONE_OUTPUT: "one", DECIMALS: "decimals"}.get(value, str(value)),
)
def test_engines_write_the_same(
    source: str,
    nodes: str,
    kind: str,
    mode: str,
    small: bool,
    tmp_path: Path,
    spark: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with sizes(spark, monkeypatch, small=small):
        text = pipeline(source, nodes, kind, "ENGINE", mode)
        files, letters, *_ = both_engines(spark, tmp_path, lambda folder: write_files(folder, 5, 400), text)
    assert all(content.count(b"\n") > 5 for content in files.values())
    assert len(letters) > 20
