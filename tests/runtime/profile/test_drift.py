"""`clinker drift` and `clinker guess --check`: what files hold now, compared with what is declared."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from click.testing import CliRunner, Result

from clinker_spark.cli.clinker.main import clinker

PIPELINE = """
pipeline: { name: p }
nodes:
  - { type: source, name: c, config: { type: csv, glob: "c*.csv", schema: { id: int, when: date, gone: string } } }
  - { type: source, name: j, config: { type: json, path: j.json, schema: { id: int, deep: map }, on_unmapped: drop } }
  - { type: source, name: q, config: { type: parquet, path: q.parquet, schema: { id: int, x: string } } }
  - type: source
    name: f
    config: { type: fixed_width, path: f.txt, schema: [{ name: a, type: int, width: 2 }] }
  - type: source
    name: n
    config: { type: csv, path: n.csv, options: { has_header: false }, schema: { a: int, b: string } }
"""
OUTPUTS = "".join(
    f"  - {{ type: output, name: o{name}, input: {name}, config: {{ type: json, path: out/{name}.json }} }}\n"
    for name in "cjqfn"
)


def called(folder: Path, *args: str) -> Result:
    (folder / "p.yaml").write_text(PIPELINE + OUTPUTS)
    return CliRunner().invoke(clinker, [*args, str(folder / "p.yaml")], standalone_mode=False)


def write(folder: Path) -> None:
    (folder / "c1.csv").write_text("id,when,gone\n1,2026-01-01,x\n")
    (folder / "c2.csv").write_text("id,when,more\n1,01/02/2026,1.50\nx,2026-01-01,2.25\n")
    (folder / "j.json").write_text('{"id": 1, "deep": {"a": 1}, "new": [1]}\n{"id": "2", "deep": {}}\n')
    pq.write_table(pa.table({"id": [1], "x": [5], "y": [True]}), folder / "q.parquet")
    (folder / "f.txt").write_text("12\nxx\n")
    (folder / "n.csv").write_text("1,x\n2,y\n")


def test_what_differs(tmp_path: Path) -> None:
    write(tmp_path)
    result = called(tmp_path, "drift")
    assert result.return_value == 2
    assert result.output.splitlines() == [
        "c: 2 files",
        "  + more is not declared, and is in 1 of 2 files, first in 'c2.csv'; it looks like decimal(2)",
        "  ! id: 1 of 2 values are not int in 1 of 2 files, first in 'c2.csv': 'x'; they look like string",
        "  ! when: 1 of 2 values are not date in 1 of 2 files, first in 'c2.csv': '01/02/2026'; they look like string",
        "  - gone (string) is missing in 1 of 2 files, first in 'c2.csv'",
        "  on_unmapped is auto_widen: undeclared columns, they are carried along to the outputs",
        "j: 1 file",
        "  + new is not declared, and is in 'j.json'; it looks like array(int)",
        "  ! id: 1 of 2 values are not int in 'j.json': '2'; they look like any",
        "  on_unmapped is drop: undeclared columns, they are left out",
        "q: 1 file",
        "  + y is not declared, and is in 'q.parquet'; it looks like bool",
        "  ! x is declared as string, and is int in 'q.parquet'",
        "  on_unmapped is auto_widen: undeclared columns, they are carried along to the outputs",
        "f: 1 file",
        "  ! a: 1 of 2 values are not int in 'f.txt': 'xx'; they look like string",
        "n: 1 file, as declared",
    ]
    rows = [json.loads(line) for line in called(tmp_path, "drift", "--json").output.splitlines()]
    assert [row["name"] for row in rows] == ["c", "j", "q", "f", "n"]


def test_coverage_of_what_is_declared(tmp_path: Path) -> None:
    write(tmp_path)
    result = called(tmp_path, "guess", "--check")
    assert result.return_value == 2
    assert "    id: 66.67 % of 3 values" in result.output.splitlines()


def test_damaged_files_are_named(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "q.parquet").write_bytes(b"no table")
    (tmp_path / "j.json").write_text('[{"id": 1')
    result = called(tmp_path, "drift")
    assert result.return_value == 2 and result.exception is None
    assert any(line.startswith("  ? ") and "q.parquet" in line for line in result.output.splitlines())
    assert any(line.startswith("  ? ") and "j.json" in line for line in result.output.splitlines())


KINDS = """
pipeline: { name: k }
nodes:
  - type: source
    name: bank
    config:
      type: fixed_width
      path: a.txt
      schema:
        discriminator: { start: 0, width: 1 }
        records:
          - { id: head, tag: H, columns: [{ name: day, type: date, start: 1, width: 8 }] }
          - id: item
            tag: D
            columns:
              - { name: id, type: int, start: 1, width: 2, pad: "0", justify: right }
              - { name: amount, type: float, start: 3, width: 4 }
          - { id: tail, tag: T, columns: [{ name: number, type: int, start: 1, width: 2 }] }
        structure: [{ record: tail, count: number }]
  - { type: output, name: o, input: bank, config: { type: csv, path: out/o.csv } }
"""


def test_files_with_several_kinds_of_records(tmp_path: Path) -> None:
    path = tmp_path / "k.yaml"
    path.write_text(KINDS)
    (tmp_path / "a.txt").write_text("H20260131\nD01 5.5\nD02 1.0\nT 3\n")
    result = CliRunner().invoke(clinker, ["drift", str(path)], standalone_mode=False)
    assert (result.return_value, result.output) == (0, "bank: 1 file, as declared\n")
    (tmp_path / "a.txt").write_text("H20260131\nD01 5.5\nDxx 1.0\nDyy 1.0\nZ\nT 3\n")
    result = CliRunner().invoke(clinker, ["drift", str(path)], standalone_mode=False)
    assert result.return_value == 2
    assert result.output.splitlines() == [
        "bank: 1 file",
        "  ? 'a.txt': its record of kind 'tail' counts 3 records, and there are 5",
        "  + 1 line of a kind with the tag 'Z' in 'a.txt'",
        "  ! item.id: 2 of 3 values are not int in 'a.txt': 'xx'; they look like string",
    ]


def test_dates_of_another_format_and_blanks(tmp_path: Path) -> None:
    """`date` is what is declared already: only the format says what to do. Undeclared texts are cleaned like others."""
    (tmp_path / "d.csv").write_text("at,since,more\n31.12.2025,2026-01-01,1.50 \n30.11.2025,13/01/2026,-\n")
    (tmp_path / "p.yaml").write_text("""
pipeline: { name: t }
nodes:
  - type: source
    name: d
    config: { type: csv, path: d.csv, trim: true, null_values: ["-"], schema: { at: date, since: date } }
  - { type: output, name: o, input: d, config: { type: csv, path: o.csv } }
""")
    result = CliRunner().invoke(clinker, ["drift", str(tmp_path / "p.yaml")], standalone_mode=False)
    assert result.output.splitlines()[1:-1] == [
        "  + more is not declared, and is in 'd.csv'; it looks like nullable(float)",
        "  ! at: 2 of 2 values are not date in 'd.csv': '31.12.2025'; they look like date with format: %d.%m.%Y",
        "  ! since: 1 of 2 values are not date in 'd.csv': '13/01/2026'; they look like string",
    ]
