"""What waits in a state: nothing before a batch is finished, and files that come and go."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from clinker_spark.cli.clinker.actions.state_session import node_bytes
from clinker_spark.spark.streaming.waiting import held


def test_nothing_is_held_before_the_first_batch_is_finished(tmp_path: Path) -> None:
    """When it is planned, Spark writes what will hold state, and it can be read; what is in it cannot."""
    nobody: Any = None  # Spark is not even asked
    assert list(held(nobody, tmp_path / "spark")) == []
    (tmp_path / "spark" / "commits").mkdir(parents=True)
    (tmp_path / "spark" / "commits" / ".0.tmp").touch()
    assert list(held(nobody, tmp_path / "spark")) == []


def test_bytes_belong_to_the_nodes_that_hold_them(tmp_path: Path) -> None:
    for name, size in (("0/0/a", 3), ("0/1/b", 4), ("0/_metadata/metadata", 1), ("1/0/c", 5), ("7/0/d", 2)):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"x" * size)
    assert node_bytes(tmp_path, ["second", "first"]) == {"second": 8, "first": 5, "operator 7": 2}
    assert node_bytes(tmp_path / "nothing", []) == {}
