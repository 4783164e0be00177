"""More undeclared columns than anybody wants to look at: all of them in one CSV file."""

from __future__ import annotations

import csv
import json
from typing import Any


def test_the_union_of_columns(bench: Any) -> None:
    values: list[Any] = ["a,b", 'say "x"', "two\nlines", 1.0, 0.1, 7, True, None, "ü", "back\\slash", [1, "y"], ""]
    names: list[str] = []
    expected: list[dict[str, str]] = []
    for i in range(30):
        record: dict[str, Any] = {f"x{i}": values[i % len(values)], f"y{i // 2}": i, "same": values[-i % len(values)]}
        bench.file(f"in/{i:03}.json", json.dumps({"id": i, **dict(reversed(record.items()))}) + "\n" + '{"id": -1}\n')
        names += [name for name in reversed(record) if name not in names]
        texts = {"id": str(i), **{name: _text(value) for name, value in record.items()}}
        expected += [texts, {"id": "-1"}]
    seen = []
    for engine in ("spark", "auto"):
        text = (
            f"pipeline: {{ name: t, engine: {engine} }}"
            + """
nodes:
  - type: source
    name: s
    config: { type: json, glob: "in/*.json", options: { format: ndjson }, schema: { id: int } }
  - { type: output, name: o, input: s, config: { type: csv, path: o.csv } }
"""
        )
        bench.run(text)
        seen.append(bench.text("o.csv"))
    assert seen[0] == seen[1]
    rows = list(csv.reader(seen[0].splitlines(keepends=True)))
    assert sorted(rows[0]) == sorted(["id", *names]) and len(rows) == 61
    for row, known in zip(rows[1:], expected, strict=True):
        assert dict(zip(rows[0], row, strict=True)) == {name: known.get(name, "") for name in rows[0]}
        assert [name for name, cell in zip(rows[0], row, strict=True) if cell]


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, list):
        return json.dumps(value, separators=(",", ":"))
    if isinstance(value, float):
        return format(value, "g")
    return json.dumps(value) if isinstance(value, bool | int) else str(value)
