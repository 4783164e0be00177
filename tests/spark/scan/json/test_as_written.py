"""Members that are copied from lines are the members that would be written for their values."""

from __future__ import annotations

import random

import polars as pl
import pyarrow as pa
import pytest

from clinker_spark.core.types import BOOL, DATE, FLOAT, INT, STRING, Type
from clinker_spark.plan.columns import CELLS_PREFIX
from clinker_spark.spark.fragments.lines import with_members
from clinker_spark.spark.fragments.task import Cell, Members
from clinker_spark.spark.render.cell_text import CellStyle
from clinker_spark.spark.scan.json.values import JsonColumn
from clinker_spark.spark.scan.json.whole import WholeLines

GIVEN = f"{CELLS_PREFIX}0"
VALUES: dict[str, tuple[Type, list[str]]] = {
    "i": (INT, ["0", "7", "-12", "9223372036854775807", "10"]),
    "f": (FLOAT, ["0.5", "-12.0", "100.25", "0.001", "0.00001", "123456789.123456", "12345678901234.5"]),
    "s": (STRING, ['"a"', '""', '"straße"', '"\u2028"', '"a, b: {c}"', '"null"']),
    "b": (BOOL, ["true", "false"]),
    "d": (DATE, ['"2024-02-29"', '"0001-01-01"', '"9999-12-31"']),
}
ODD = {
    "i": ["-0", "null"],
    "f": ["7", "0.50", "10.00", "1.2345678901234567", "0.10", "123456789012345678.5", "-0.0", "null", "1e3"],
    "s": ['"\\u0041"', "null"],
    "b": ["null"],
    "d": ["null"],
}
LAYOUTS = ['{{"i":{i},"f":{f},"s":{s},"b":{b},"d":{d}}}', '{{ "i": {i}, "f":{f},"s":{s},"b":{b},"d":{d} }}']
LAYOUTS += ['{{"s":{s},"i":{i},"f":{f},"d":{d},"b":{b}}}', '{{"f":{f},"i":{i},"s":{s},"b":{b},"d":{d}}}']


def _written(values: dict[str, pa.Array], members: Members) -> pl.Series:
    frame = pl.DataFrame({cell.column: pl.from_arrow(values[cell.column]) for cell in members.cells})
    return with_members(frame, [members], ())[GIVEN]


@pytest.mark.parametrize("nulls", [True, False])
def test_what_is_copied_is_what_is_written(nulls: bool) -> None:
    rng = random.Random(11)
    columns = [JsonColumn(name, t.as_nullable()) for name, (t, _) in VALUES.items()]
    copied = odd = 0
    for _ in range(1500):
        names = rng.choice([["i", "f"], ["f", "s"], ["i", "f", "s", "b", "d"], ["s", "b", "d"], ["d", "b"]])
        written = [name if rng.random() < 0.95 else name.upper() for name in names]
        cells = [Cell(to, name, VALUES[name][0], CellStyle()) for to, name in zip(written, names, strict=True)]
        members = Members(tuple(cells), nulls)
        layout, usual = rng.choice(LAYOUTS), rng.random() < 0.6
        lines = []
        for _ in range(rng.randint(1, 6)):
            pools = {n: ODD[n] if rng.random() < 0.1 and not usual else good for n, (_, good) in VALUES.items()}
            lines.append(layout.format(**{name: rng.choice(pool) for name, pool in pools.items()}))
        data = ("\n".join(lines) + rng.choice(["", "\n"])).encode()
        found = WholeLines(columns, list(VALUES), [members]).read(data)
        if found is None or GIVEN not in found[1]:
            odd += 1
            continue
        copied += 1
        assert found[1][GIVEN].to_pylist() == _written(found[1], members).to_list(), data
    assert copied > 200
    assert odd > 200


def test_members_of_a_batch_that_the_reader_gave_in_part() -> None:
    cells = (Cell("a", "x", INT, CellStyle()), Cell("b", "y", STRING, CellStyle()))
    frame = pl.DataFrame({"x": [1, None], "y": ["u", None], "z": [1, 2], GIVEN: ['"a":1,"b":"u"', None]})
    left_out = with_members(frame, [Members(cells, nulls=False)], ("x", "y"))
    assert left_out.to_dict(as_series=False) == {"z": [1, 2], GIVEN: ['"a":1,"b":"u"', None]}
    written = with_members(frame, [Members(cells, nulls=True)], ("x",))
    assert written[GIVEN].to_list() == ['"a":1,"b":"u"', '"a":null,"b":null']
    assert written.columns == ["y", "z", GIVEN]
