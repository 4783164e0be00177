"""Dead letters are looked at, corrected and run again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from clinker_spark.cli.clinker.main import clinker
from clinker_spark.core.errors import ClinkerError, InputError
from clinker_spark.plan.prepare import prepare
from clinker_spark.runtime.commit.manifest import load
from clinker_spark.runtime.commit.seam import SYSTEM
from clinker_spark.runtime.paths.places import places
from clinker_spark.runtime.paths.reservations import replayed_before
from clinker_spark.runtime.reject.letter_files import read_letters, reasons
from clinker_spark.runtime.reject.replay import replay_plan
from clinker_spark.runtime.reject.replay_files import replay_files
from clinker_spark.runtime.reject.replay_rounds import free_round
from clinker_spark.runtime.run.options import Options
from clinker_spark.runtime.run.pipeline import run

PIPELINE = """
pipeline: { name: test }
nodes:
  - type: source
    name: orders
    config: { type: csv, path: orders.csv, schema: { id: int, amount: float, qty: int } }
  - type: transform
    name: unit
    input: orders
    config: { cxl: "emit unit = amount.to_int() / qty" }
  - { type: output, name: out, input: unit, config: { type: csv, path: out.csv } }
error_handling: { strategy: continue, dlq: { path: dead.csv } }
"""


def prepared(bench: Any) -> None:
    bench.file("orders.csv", "id,amount,qty\n1,10,2\n2,oops,1\n3,7,0\n4,8,0\n")
    assert bench.run(PIPELINE).dead_letters == 3


def replay(bench: Any, mode: str, folder: Path, letters: str = "dead.csv") -> Any:
    original = prepare(bench.folder / "pipeline.yaml")
    folder.mkdir()
    known = replayed_before(original, bench.folder) if mode == "append" else frozenset()
    feed = replay_files(original, read_letters(bench.folder / letters), folder, known, bench.folder / letters)
    plan = replay_plan(original, feed.files)
    options = Options(files=feed.files, replay=mode, feed=feed)
    options.round = free_round(plan, options, bench.folder)
    return run(plan, bench.spark, options)


def test_reasons_are_grouped_with_samples(bench: Any) -> None:
    prepared(bench)
    found = reasons(read_letters(bench.folder / "dead.csv"))
    assert [(r.stage, r.field, r.count) for r in found] == [("transform:unit", "unit", 2), ("source", "amount", 1)]
    assert found[1].samples[0].record == {"id": "2", "amount": "oops", "qty": "1"}
    shown = CliRunner().invoke(clinker, ["dlq", "inspect", str(bench.folder / "dead.csv")])
    assert shown.exit_code == 0 and "2 x division by zero" in shown.output and "orders.csv row 3" in shown.output


def test_only_the_dead_letters_run_again(bench: Any, tmp_path: Path) -> None:
    prepared(bench)
    before = bench.text("out.csv")
    dead = bench.text("dead.csv").replace("oops", "12").replace("3,7,0", "3,7,2")
    bench.file("dead.csv", dead)
    report = replay(bench, "beside", tmp_path / "replay")
    assert bench.text("out.csv") == before
    assert bench.text("out-replay.csv") == "id,amount,qty,unit\n2,12,1,12\n3,7,2,3\n"
    [left] = bench.letters("dead-replay.csv")
    assert left["id"] == "4" and left["_cxl_dlq_source_file"] == "orders.csv" and report.exit_code == 2


def test_corrected_records_can_be_added_to_the_output(bench: Any, tmp_path: Path) -> None:
    prepared(bench)
    inputs = load(SYSTEM, bench.folder, "test").inputs
    bench.file("dead.csv", bench.text("dead.csv").replace("oops", "12").replace(",0\n", ",4\n"))
    assert replay(bench, "append", tmp_path / "replay").exit_code == 0
    assert bench.text("out.csv") == "id,amount,qty,unit\n1,10,2,5\n2,12,1,12\n3,7,4,1\n4,8,4,2\n"
    # What is known about the outputs: the inputs are those of the whole run, and letters were replayed since.
    plan = prepare(bench.folder / "pipeline.yaml")
    assert replayed_before(plan, bench.folder) == {letter["_cxl_dlq_id"] for letter in bench.letters()}
    assert load(SYSTEM, bench.folder, "test").inputs == inputs


def test_what_is_no_dead_letter_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InputError) as caught:
        list(read_letters(tmp_path / "x.csv"))
    assert caught.value.diagnostics[0].code == "E019"
    with pytest.raises(InputError) as caught:
        list(read_letters(tmp_path / "none.csv"))
    assert caught.value.diagnostics[0].code == "E224"


BROKEN = """
pipeline: { name: test }
nodes:
  - type: source
    name: orders
    config:
      type: csv
      path: orders.csv
      correlation_key: id
      options: { delimiter: ";", encoding: iso-8859-1 }
      schema: { id: int, amount: float, qty: int }
  - type: transform
    name: unit
    input: orders
    config: { cxl: "emit unit = amount.to_int() / qty" }
  - type: transform
    name: rest
    input: orders
    config: { cxl: "emit rest = amount.to_int() % qty" }
  - { type: output, name: out, input: unit, config: { type: csv, path: out.csv } }
  - { type: output, name: more, input: rest, config: { type: csv, path: more.csv, include_unmapped: false } }
error_handling: { strategy: continue, dlq: { path: dead.csv } }
"""
LINES = [
    b"2;caf\xe9;1;10",
    b"1;x;2;7",
    b"1;x;2;8;9",
    b"0;x;3;7",
    b"4;x;3;7",
    b"1;\xff\xfe;4",
    b'1;"x;5;1',
    b'1;"y";5;2',
    b"1;z;6;oops",
]


def test_unedited_letters_come_again_and_edited_ones_are_added_once(bench: Any, tmp_path: Path) -> None:
    bench.file("orders.csv", b"qty;note;id;amount\n" + b"\r\n".join(LINES))
    bench.run(BROKEN)
    out, more, letters = bench.text("out.csv"), bench.text("more.csv"), bench.letters()
    assert out == "id,amount,qty,unit,note\n1,10,2,5,café\n5,2,1,2,y\n" and len(letters) == 8
    assert sum(letter["_cxl_dlq_source_row"] == "4" for letter in letters) == 2  # on both branches

    def same(found: list[dict[str, str]]) -> list[dict[str, str]]:
        return [{name: cell for name, cell in letter.items() if name != "_cxl_dlq_timestamp"} for letter in found]

    replay(bench, "append", tmp_path / "unedited")
    assert (bench.text("out.csv"), bench.text("more.csv")) == (out, more)
    assert same(bench.letters("dead-replay.csv")) == same(letters)
    # Of group 2 the line is mended, of group 6 a cell; of group 3 one record of two.
    text = bench.text("dead.csv").replace("1;x;2;8;9", "1;x;2;8").replace(",6,oops,1,", ",6,9,1,")
    bench.file("dead.csv", text)
    report = replay(bench, "append", tmp_path / "edited")
    added = "2,7,1,7,x\n2,8,1,8,x\n6,9,1,9,z\n"
    assert bench.text("out.csv") == out + added and report.dead_letters == 5
    report = replay(bench, "append", tmp_path / "twice")
    assert bench.text("out.csv") == out + added and [w.code for w in report.warnings] == ["W454", "W453"]
    # What is left is mended where it failed last: it still is the letter that it was.
    text = bench.text("dead-replay.csv").replace(",3,7,0,", ",3,7,1,")
    bench.file("dead-replay.csv", text)
    replay(bench, "append", tmp_path / "again", "dead-replay.csv")
    assert bench.text("out.csv") == out + added + "3,7,1,7,x\n3,7,4,1,x\n"


def edit(bench: Any, name: str, old: str, new: str) -> None:
    text = bench.text(name)
    assert old in text
    bench.file(name, text.replace(old, new))


def ids(bench: Any, name: str) -> list[str]:
    return [letter["id"] for letter in bench.letters(name)]


def test_letters_of_a_replay_are_replayed_without_losing_it(bench: Any, tmp_path: Path) -> None:
    prepared(bench)
    edit(bench, "dead.csv", "oops", "12")
    replay(bench, "beside", tmp_path / "1")
    edit(bench, "dead-replay.csv", "3,7,0", "3,7,7")
    edited = bench.text("dead-replay.csv")
    replay(bench, "beside", tmp_path / "2", "dead-replay.csv")
    assert (ids(bench, "out-replay.csv"), ids(bench, "out-replay-2.csv")) == (["2"], ["3"])
    assert bench.text("dead-replay.csv") == edited and ids(bench, "dead-replay-2.csv") == ["4"]
    # The same letters again replace what the same letters made; the first file, whose round was edited, does not.
    edit(bench, "dead-replay.csv", "4,8,0", "4,8,8")
    replay(bench, "beside", tmp_path / "3", "dead-replay.csv")
    assert ids(bench, "out-replay-2.csv") == ["3", "4"] and not (bench.folder / "dead-replay-2.csv").exists()
    replay(bench, "beside", tmp_path / "4")
    assert (ids(bench, "out-replay-3.csv"), ids(bench, "dead-replay-3.csv")) == (["2"], ["3", "4"])
    assert ids(bench, "out-replay.csv") == ["2"] and ids(bench, "out-replay-2.csv") == ["3", "4"]


def test_what_was_added_is_known_whatever_other_replays_do(bench: Any, tmp_path: Path) -> None:
    """Those beside the outputs have the same manifest. A file that nobody wrote for a replay stays what it is."""
    prepared(bench)
    bench.file("out-replay.csv", "of the user")
    edit(bench, "dead.csv", "oops", "12")
    replay(bench, "append", tmp_path / "1")
    added = bench.text("out.csv")
    assert added.endswith("2,12,1,12\n") and ids(bench, "dead-replay.csv") == ["3", "4"]
    inputs = load(SYSTEM, bench.folder, "test").inputs
    replay(bench, "beside", tmp_path / "2")
    assert bench.text("out-replay.csv") == "of the user" and ids(bench, "out-replay-2.csv") == ["2"]
    assert load(SYSTEM, bench.folder, "test").inputs == inputs
    replay(bench, "append", tmp_path / "3")
    assert bench.text("out.csv") == added
    # What is left is added from the letters of the first replay, which stay.
    edit(bench, "dead-replay.csv", "3,7,0", "3,7,7")
    replay(bench, "append", tmp_path / "4", "dead-replay.csv")
    assert bench.text("out.csv") == added + "3,7,7,1\n" and ids(bench, "dead-replay.csv") == ["3", "4"]


@pytest.mark.parametrize(
    ("path", "more", "reason"),
    [
        ("out.csv", "", None),
        ("gone.csv", "", "there is no file 'gone.csv'"),
        ("{source_name}.csv", "", "there is no file 'orders.csv'"),
        ("x-{source_file}.csv", "", "it has a file for each input file"),
        ("x-{timestamp}.csv", "", "it is another file in every run"),
        ("x{n:-:}.csv", "if_exists: unique_suffix", "it is another file in every run"),
        ("out.csv", "if_exists: unique_suffix", "it is another file in every run"),
    ],
)
def test_what_cannot_be_added_to(tmp_path: Path, path: str, more: str, reason: str | None) -> None:
    (tmp_path / "out.csv").write_text("x")
    output = PIPELINE.replace("path: out.csv", f'path: "{path}", {more}')
    (tmp_path / "pipeline.yaml").write_text(output.replace("path: orders.csv", "path: in/orders.csv"))
    _, problems = places(prepare(tmp_path / "pipeline.yaml"), Options(replay="append"), tmp_path, {})
    assert [(d.code, d.message.partition(": ")[2]) for d in problems] == ([] if reason is None else [("E020", reason)])


def test_lines_are_added_under_their_own_header_only(bench: Any, tmp_path: Path) -> None:
    prepared(bench)
    edit(bench, "dead.csv", "oops", "12")
    edit(bench, "pipeline.yaml", "emit unit", "emit half = qty\\nemit unit")
    before = bench.text("out.csv")
    with pytest.raises(ClinkerError) as caught:
        replay(bench, "append", tmp_path / "1")
    assert caught.value.diagnostics[0].code == "E020" and bench.text("out.csv") == before
    edit(bench, "pipeline.yaml", "emit half = qty\\n", "")
    bench.file("out.csv", before.rstrip("\n"))  # as some editors leave it
    replay(bench, "append", tmp_path / "2")
    assert bench.text("out.csv") == before + "2,12,1,12\n"


LOOKUP = """
pipeline: { name: test }
nodes:
  - type: source
    name: orders
    config: { type: csv, path: orders.csv, schema: { id: int, product: string } }
  - type: source
    name: products
    config: { type: csv, path: products.csv, schema: { product: string, price: int } }
  - type: combine
    name: priced
    input: { o: orders, p: products }
    config:
      where: "o.product == p.product"
      match: first
      on_miss: skip
      cxl: |
        emit id = o.id
        emit price = p.price
      propagate_ck: driver
  - { type: output, name: out, input: priced, config: { type: csv, path: out.csv } }
error_handling: { strategy: continue, dlq: { path: dead.csv } }
"""


def test_a_combine_finds_its_build_side(bench: Any, tmp_path: Path) -> None:
    bench.file("orders.csv", "id,product\n1,a\nx,b\n")
    bench.file("products.csv", "product,price\na,1\nb,2\nc,oops\n")
    assert bench.run(LOOKUP).dead_letters == 2
    bench.file("dead.csv", bench.text("dead.csv").replace(",x,b", ",2,b").replace(",x,", ",2,"))
    report = replay(bench, "beside", tmp_path / "replay")
    assert bench.text("out-replay.csv") == "id,price\n2,2\n"
    assert [w.code for w in report.warnings] == ["W455"]
    [left] = bench.letters("dead-replay.csv")
    assert left["_cxl_dlq_source_line"] == "c,oops"


def test_a_run_does_not_replace_letters_that_somebody_works_on(bench: Any, tmp_path: Path) -> None:
    prepared(bench)
    pipeline = bench.text("pipeline.yaml")
    saved_again = bench.text("dead.csv").replace("\n", "\r\n")
    bench.file("dead.csv", saved_again)
    bench.run(pipeline)
    edit(bench, "dead.csv", "oops", "12")
    edited, out = bench.text("dead.csv"), bench.text("out.csv")
    for data in (bench.text("orders.csv"), "id,amount,qty\n1,10,2\n"):  # records fail again, or none does
        bench.file("orders.csv", data)
        with pytest.raises(ClinkerError) as caught:
            bench.run(pipeline)
        assert [d.code for d in caught.value.diagnostics] == ["E445"]
        assert bench.text("dead.csv") == edited and bench.text("out.csv") == out and bench.left_over() == []
    replay(bench, "beside", tmp_path / "1")
    bench.run(pipeline)
    assert not (bench.folder / "dead.csv").exists()


@pytest.mark.parametrize("how", ["append", "force"])
def test_edited_letters_may_go_once_they_were_fed_or_with_force(bench: Any, tmp_path: Path, how: str) -> None:
    prepared(bench)
    pipeline = bench.text("pipeline.yaml")
    edit(bench, "dead.csv", "oops", "still wrong")  # fails again: its letter is that of the replay now
    if how == "append":
        replay(bench, "append", tmp_path / "1")
    bench.run(pipeline, force=how == "force")
    assert "still wrong" not in bench.text("dead.csv")
