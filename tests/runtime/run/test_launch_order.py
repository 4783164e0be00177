"""Of independent chains the heavier one starts first; what is written, and how it is reported, stays the same."""

from __future__ import annotations

from typing import Any

from clinker_spark.plan.prepare import prepare
from clinker_spark.runtime.run.options import Options
from clinker_spark.runtime.run.pipeline import run

PIPELINE = """
pipeline: { name: test }
nodes:
  - { type: source, name: light, config: { type: csv, path: light.csv, schema: { id: int } } }
  - { type: source, name: heavy, config: { type: csv, path: heavy.csv, schema: { id: int } } }
  - { type: aggregate, name: few, input: light, config: { group_by: [id], cxl: "emit n = count(*)" } }
  - { type: aggregate, name: more, input: heavy, config: { group_by: [id], cxl: "emit n = count(*)" } }
  - { type: output, name: first, input: few, config: { type: csv, path: first.csv } }
  - { type: output, name: second, input: more, config: { type: json, path: second.json } }
"""


def test_the_heavier_chain_starts_first(bench: Any) -> None:
    (bench.folder / "light.csv").write_text("id\n1\n")
    (bench.folder / "heavy.csv").write_text("id\n1\n2\n2\n")
    (bench.folder / "pipeline.yaml").write_text(PIPELINE)
    started: list[str] = []

    def listen(event: str, details: dict[str, Any]) -> None:
        if event == "output_started":
            started.append(details["output"])

    report = run(prepare(bench.folder / "pipeline.yaml"), bench.spark, Options(), listen)
    assert started == ["second", "first"]
    assert [(output.name, output.records) for output in report.outputs] == [("first", 1), ("second", 2)]
    assert (bench.folder / "first.csv").read_text() == "id,n\n1,1\n"
    assert (bench.folder / "second.json").read_text() == '[\n{"id":1,"n":1},\n{"id":2,"n":2}\n]\n'
