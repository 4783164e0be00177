"""What a pipeline's settings mean for the Spark that is started for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from clinker_spark.core.errors import ClinkerError
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.prepare import prepare
from clinker_spark.runtime.run.memory import memory_settings


def plan(folder: Path, memory: str) -> Plan:
    (folder / "p.yaml").write_text(
        f"""
pipeline: {{ name: test {memory} }}
nodes:
  - {{ type: source, name: s, config: {{ type: csv, path: a.csv, schema: {{ id: int }} }} }}
  - {{ type: output, name: o, input: s, config: {{ type: csv, path: o.csv }} }}
"""
    )
    return prepare(folder / "p.yaml")


def test_a_declared_limit_is_the_heap(tmp_path: Path) -> None:
    limited = plan(tmp_path, ", memory: { limit: 2G }")
    assert memory_settings(limited, "local[*]", {}) == {"spark.driver.memory": "2048m"}
    assert memory_settings(limited, "spark://host:7077", {}) == {"spark.executor.memory": "2048m"}
    assert memory_settings(limited, "local[2]", {"spark.driver.memory": "1g"}) == {}
    assert memory_settings(plan(tmp_path, ", memory: { backpressure: pause }"), "local[*]", {}) == {}
    assert memory_settings(plan(tmp_path, ""), "local[*]", {}) == {}


def test_a_limit_that_spark_cannot_start_with(tmp_path: Path) -> None:
    with pytest.raises(ClinkerError) as caught:
        memory_settings(plan(tmp_path, ", memory: { limit: 511M }"), "local[*]", {})
    [found] = caught.value.diagnostics
    assert (caught.value.exit_code, found.code) == (1, "E312") and found.span and "512M" in (found.help or "")
