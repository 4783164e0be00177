"""Groups that are too large are dead letters as a whole, whatever is shown of retracted records."""

from __future__ import annotations

from typing import Any

import pytest

from clinker_spark.runtime.errors import AccountingError
from clinker_spark.runtime.rollback.groups import Groups

PIPELINE = """
pipeline: {{ name: test }}
nodes:
  - type: source
    name: orders
    config: {{ type: csv, path: orders.csv, correlation_key: id, schema: {{ id: int, amount: int }} }}
  - {{ type: output, name: lines, input: orders, config: {{ type: csv, path: lines.csv }} }}
error_handling:
  strategy: continue
  max_group_buffer: 2
  dlq: {{ path: dead.csv, include_retracted: {shown} }}
"""


@pytest.mark.parametrize("shown", ["true", "false"])
def test_every_record_of_a_group_that_is_too_large_has_a_letter(bench: Any, shown: str) -> None:
    bench.file("orders.csv", "id,amount\n1,5\n2,1\n2,2\n2,3\n2,4\n3,6\n")
    report = bench.run(PIPELINE.format(shown=shown))
    assert report.exit_code == 2 and bench.text("lines.csv") == "id,amount\n1,5\n3,6\n"
    assert [letter["_cxl_dlq_source_row"] for letter in bench.letters()] == ["2", "3", "4", "5"]


@pytest.mark.parametrize("shown", ["true", "false"])
def test_a_letter_of_such_a_group_that_gets_lost_stops_the_run(
    bench: Any, monkeypatch: pytest.MonkeyPatch, shown: str
) -> None:
    bench.file("orders.csv", "id,amount\n1,5\n2,1\n2,2\n2,3\n2,4\n3,6\n")
    take = Groups._take_large_groups

    def losing(groups: Groups, *given: Any) -> bool:
        found = take(groups, *given)
        groups.taken.clear()
        groups.overflown.clear()
        return found

    monkeypatch.setattr(Groups, "_take_large_groups", losing)
    with pytest.raises(AccountingError, match="6 read <> 2 written \\+ 1 dead letters"):
        bench.run(PIPELINE.format(shown=shown))
    assert not (bench.folder / "lines.csv").exists()
