"""`trim` and `null_values`: what becomes of texts before they are read, for every kind of column."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from clinker_spark.config.model.schema import Column
from clinker_spark.config.model.sources.formats import CsvRead, FixedWidthRead, XmlRead
from clinker_spark.spark.scan.json.values import JsonColumn
from clinker_spark.spark.scan.text.cleaning import Cleaning
from clinker_spark.spark.scan.text.values import TextColumn
from tests.support.read_requests import read_request

CLEANING = Cleaning(trim=True, null_words=("", "NA", "-999"))
TEXTS = pa.array([" 7\t", "NA", " NA ", "-999", "", "   ", None])


def converted(kind: str, cleaning: Cleaning = CLEANING) -> tuple[list[Any], list[bool]]:
    found = TextColumn.of(Column(name="c", type=kind), (), cleaning).convert(TEXTS)
    failed = [False] * len(TEXTS) if found.failed is None else found.failed.to_pylist()
    return found.values.to_pylist(), failed


@pytest.mark.parametrize(("kind", "value"), [("int", 7), ("float", 7.0), ("string", "7")])
def test_null_words_are_missing_where_no_null_may_be(kind: str, value: Any) -> None:
    nothing = [None] * 6
    assert converted(f"nullable({kind})") == ([value, *nothing], [False] * 7)
    assert converted(kind) == ([value, *nothing], [False, *[True] * 5, False])


def test_without_the_empty_word_an_empty_text_stays_one() -> None:
    values, failed = converted("string", Cleaning(trim=True, null_words=("NA",)))
    assert values == ["7", None, None, "-999", "", "", None]
    assert failed == [False, True, True, False, False, False, False]


def test_words_are_compared_as_they_stand_when_nothing_is_trimmed() -> None:
    values, _ = converted("nullable(string)", Cleaning(null_words=("NA",)))
    assert values == [" 7\t", None, " NA ", "-999", None, "   ", None]


def test_an_error_says_which_word_means_null() -> None:
    column = TextColumn.of(Column(name="c", type="int"), (), CLEANING)
    assert column.error("NA")["message"] == "'c' is 'NA', which means null, and its type Int is not nullable"
    assert column.error("")["message"] == "'c' is empty, and its type Int is not nullable"
    assert column.error("x")["kind"] == "type_coercion_failure"


def test_json_cleans_texts_wherever_they_are() -> None:
    column = JsonColumn.of(Column(name="c", type="nullable(array(nullable(string)))"), (), CLEANING)
    assert column.convert([[" a ", "NA", ""], "NA", None]).values.to_pylist() == [["a", None, None], None, None]
    numbers = JsonColumn.of(Column(name="c", type="int"), (), CLEANING).convert([7, "NA"])
    assert numbers.errors[1]["kind"] == "missing_required_field"


def _read(kind: str, path: Path, columns: tuple[Column, ...], options: Any) -> list[dict[str, Any]]:
    from clinker_spark.spark.scan.csv.planning import make_plan
    from clinker_spark.spark.scan.csv.records import read_split
    from clinker_spark.spark.scan.fixed.source import fixed_plan
    from clinker_spark.spark.scan.record_batches import read_batches
    from clinker_spark.spark.scan.request import SourceFile
    from clinker_spark.spark.scan.xml.source import xml_plan

    request = read_request(SourceFile(str(path), path.name), columns, options, cleaning=CLEANING)
    if kind == "csv":
        plan = make_plan(request, parallelism=1)
        batches = [batch for split in plan.splits for batch in read_split(plan, split)]
    else:
        found = xml_plan(request) if kind == "xml" else fixed_plan(request, parallelism=1)
        batches = [batch for split in found.splits for batch in read_batches(found, split)]
    return [row for batch in batches for row in batch.to_pylist()]


COLUMNS = (Column(name="n", type="int", width=4), Column(name="s", type="nullable(string)", width=4))


@pytest.mark.parametrize(
    ("kind", "text", "options"),
    [
        ("csv", "n,s,more\n 7 , x , y \nNA,NA,NA\n", CsvRead()),
        ("xml", "<r><p><n> 7 </n><s> x </s><more> y </more></p><p><n>NA</n><s>NA</s><more>NA</more></p></r>", None),
        ("fixed_width", "7    x  \nNA  NA  \n", FixedWidthRead()),
    ],
)
def test_every_text_format(kind: str, text: str, options: Any, tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text(text)
    good, bad = _read(kind, path, COLUMNS, options or XmlRead(record_path="r/p"))
    assert (good["n"], good["s"], good["$error"]) == (7, "x", None)
    assert bad["s"] is None
    assert bad["$error"]["kind"] == "missing_required_field"
    if kind != "fixed_width":
        assert dict(good["$widened"]) == {"more": "y"}
        assert dict(bad["$widened"]) == {"more": None}
