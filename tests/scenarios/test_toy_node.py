"""A node type can be added from outside, by three modules and one row: nothing else knows of it."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from clinker_spark.config.node_types import registered
from clinker_spark.config.reference.json_schema import json_schema
from clinker_spark.config.reference.node_reference import entry, reference
from clinker_spark.core.errors import ClinkerError
from clinker_spark.plan.prepare import prepare
from clinker_spark.report.explain import explain
from clinker_spark.runtime.run.options import Options
from clinker_spark.runtime.run.pipeline import run
from tests.scenarios.toy_node import MASK

PIPELINE = """\
pipeline: { name: cards }
nodes:
  - { type: source, name: cards, config: { type: csv, path: cards.csv, schema: { id: int, card: string } } }
  - { type: mask, name: hide, input: cards, config: { column: card } }
  - { type: transform, name: clean, input: hide, config: { cxl: emit twice = id * 2 } }
  - { type: output, name: shown, input: clean, config: { type: csv, path: shown.csv } }
error_handling: { strategy: continue, dlq: { path: dead.csv } }
"""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "pipeline.yaml").write_text(PIPELINE)
    (tmp_path / "cards.csv").write_text("id,card\n1,4929123456781234\n2,77\n3,5500999988887777\nx,6011111122223333\n")
    with registered(MASK):
        yield tmp_path


def test_it_runs_and_what_fails_is_a_dead_letter(folder: Path, spark: Any) -> None:
    report = run(prepare(folder / "pipeline.yaml"), spark, Options())
    shown = "id,card,twice\n1,************1234,2\n3,************7777,6\n"
    assert (folder / "shown.csv").read_text() == shown
    with (folder / "dead.csv").open(newline="") as file:
        letters = list(csv.DictReader(file))
    known = [(row["_cxl_dlq_stage"], row["_cxl_dlq_error_category"], row["id"], row["card"]) for row in letters]
    assert known == [
        ("mask:hide", "too_short_to_mask", "2", "77"),
        ("source", "type_coercion_failure", "x", "6011111122223333"),
    ]
    [node] = [found for found in report.nodes if found.name == "hide"]
    assert (node.passed, node.failed) == (2, 1)
    assert [balance.sources for balance in report.balances] == [["cards"]]


def test_explain_shows_what_it_says_about_itself(folder: Path) -> None:
    plan = prepare(folder / "pipeline.yaml")
    text = explain(plan, "text")
    assert "=== Masks ===\n'hide' hides card from clean\n" in text
    assert "  hides: all but 4 characters of card\n" in text
    assert "     records can fail at: cards, hide, clean, shown\n" in text
    assert "     order: source order, kept in place\n" in text
    [node] = [node for node in json.loads(explain(plan, "json"))["nodes"] if node["name"] == "hide"]
    assert (node["type"], node["keep"]) == ("mask", 4)
    assert "[mask] hide" in explain(plan, "dot")


def test_what_is_wrong_with_it_is_told(folder: Path) -> None:
    (folder / "pipeline.yaml").write_text(PIPELINE.replace("column: card", "column: crad, kep: 1"))
    with pytest.raises(ClinkerError) as found:
        prepare(folder / "pipeline.yaml")
    assert [(d.code, d.help) for d in found.value.diagnostics] == [("E005", "did you mean 'keep'?")]
    (folder / "pipeline.yaml").write_text(PIPELINE.replace("column: card", "column: crad"))
    with pytest.raises(ClinkerError) as found:
        prepare(folder / "pipeline.yaml")
    assert [(d.code, d.help) for d in found.value.diagnostics] == [("E203", "did you mean 'card'?")]


def test_editors_know_it(folder: Path) -> None:
    schema = json_schema()
    assert schema["$defs"]["MaskConfig"]["properties"]["keep"]["description"].startswith("How many characters")
    assert "mask" in schema["properties"]["nodes"]["items"]["properties"]["type"]["enum"]


def test_it_has_an_entry_in_the_documentation(folder: Path) -> None:
    assert "| `config.keep` | How many characters at the end stay readable. Default: `4`. |" in entry(MASK)
    assert "## mask\n\nHides all but the last characters of a text.\n" in reference()


def test_nothing_of_it_stays_behind(tmp_path: Path) -> None:
    (tmp_path / "pipeline.yaml").write_text(PIPELINE)
    with pytest.raises(ClinkerError) as found:
        prepare(tmp_path / "pipeline.yaml")
    assert found.value.diagnostics[0].message == "there is no node type 'mask'"
    assert "mask" not in json.dumps(json_schema())
    with pytest.raises(ValueError, match="there is a node type 'mask' already"), registered(MASK), registered(MASK):
        pass
