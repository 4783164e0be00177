"""What replays feed: the bytes of letters as they were, or what somebody made of them. No JVM is needed for that."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from clinker_spark.core.errors import InputError
from clinker_spark.plan.prepare import prepare
from clinker_spark.runtime.reject.letter_files import Letter, read_letters
from clinker_spark.runtime.reject.replay import replay_plan
from clinker_spark.runtime.reject.replay_files import Feed, replay_files
from clinker_spark.spark.rejects.letter_marks import PREFIX, source_hash
from clinker_spark.spark.scan.csv.planning import make_plan
from clinker_spark.spark.scan.csv.records import read_split
from clinker_spark.spark.scan.lines import line_text, shown_line
from clinker_spark.spark.scan.request import ReadRequest, SourceFile
from tests.spark.scan.csv.test_unclosed import texts

SOURCE = """
  - type: source
    name: {name}
    config: {{ type: {kind}, path: {name}.data, {options} schema: {{ {schema} }} }}
"""
OUTPUT = "  - { type: output, name: out, input: %s, config: { type: csv, path: out.csv } }\n"


def plan(
    folder: Path, kind: str = "csv", options: str = "", schema: str = "id: int, name: string", tail: str = ""
) -> Any:
    nodes = SOURCE.format(name="s", kind=kind, options=options, schema=schema) + (tail or OUTPUT % "s")
    (folder / "p.yaml").write_text(f"pipeline: {{ name: p }}\nnodes:{nodes}")
    return prepare(folder / "p.yaml")


def letter(
    line: bytes | None, row: int, header: str = "", source: str = "s", stage: str = "source", **cells: str
) -> Letter:
    """A letter as a run writes it."""
    text, encoding = shown_line(line_text(line)) if line is not None else ("", "")
    engine = {"id": f"letter-{row}-{stage}", "source_file": f"{source}.data", "source_name": source}
    engine |= {"source_row": str(row), "stage": stage, "source_line": text, "source_line_encoding": encoding}
    engine |= {"source_header": header, "source_hash": source_hash(list(cells.values()), text)}
    return Letter(engine, cells, row)


def edited(of: Letter, line: str | None = None, **cells: str) -> Letter:
    engine = of.engine if line is None else {**of.engine, "source_line": line, "source_line_encoding": "utf-8"}
    return Letter(engine, {**of.record, **cells}, of.number)


def fed(feed: Feed, source: str = "s") -> list[bytes]:
    return [Path(file.path).read_bytes() for file in feed.files[source]]


def codes(of: Any, letters: list[Letter], folder: Path) -> list[tuple[str, str]]:
    with pytest.raises(InputError) as caught:
        replay_files(of, letters, folder)
    return [(d.code, d.message) for d in caught.value.diagnostics]


def test_lines_are_fed_as_they_were(tmp_path: Path) -> None:
    of = plan(tmp_path, options="options: { delimiter: ';', encoding: iso-8859-1 }, compression: gzip,")
    header = "extra;name;id"
    lines = [b"x;caf\xe9;1;2", b'y;"a\r\nb";x', b"z"]
    feed = replay_files(of, [letter(line, i, header, id="", name="") for i, line in enumerate(lines, 1)], tmp_path)
    assert fed(feed) == [b"extra;name;id\n" + b"\n".join(lines) + b"\n"]
    assert [record.row for record in feed.records["s", 0]] == ["1", "2", "3"]
    source = replay_plan(of, feed.files)["s"]
    assert source.config.options.delimiter == ";" and source.config.compression == "none"


def test_edited_cells_edited_lines_and_both(tmp_path: Path) -> None:
    of = plan(tmp_path)
    header = "name,id,more"
    first, second = letter(b"a,x,1", 1, header, id="x", name="a"), letter(b"b,y,2", 2, header, id="y", name="b")
    changed = [edited(first, id="7", name='a "quoted" b'), edited(second, "b,8,2")]
    assert fed(replay_files(of, changed, tmp_path)) == [b'name,id,more\n"a ""quoted"" b",7,1\nb,8,2\n']
    assert fed(replay_files(of, [edited(first, "a,7,1", id="7")], tmp_path)) == [b"name,id,more\na,7,1\n"]
    [(code, message)] = codes(of, [edited(first, "a,8,1", id="7")], tmp_path)
    assert code == "E456" and message.startswith("dead letter 1 cannot be replayed: its cells and its line")
    # A line that somebody cut in two is two records, which both come from the one letter.
    feed = replay_files(of, [edited(first, "a,1,1\nb,2,2"), second], tmp_path)
    assert [record.row for record in feed.records["s", 0]] == ["1", "1", "2"]
    assert (
        codes(plan(tmp_path, options="options: { encoding: ascii },"), [edited(first, name="é")], tmp_path)[0][0]
        == "E456"
    )


def test_an_open_quote_is_not_closed_by_what_happens_to_follow(tmp_path: Path) -> None:
    of = plan(tmp_path)
    lines = [b'1,"a', b"2", b'3,b"', b'4,"c', b'"5","d"', b'6,"e']
    feed = replay_files(of, [letter(line, i, "id,name", id="", name="") for i, line in enumerate(lines, 1)], tmp_path)
    assert fed(feed) == [b'id,name\n1,"a\n2\n', b'id,name\n3,b"\n4,"c\n"5","d"\n6,"e\n']
    assert [record.row for i in range(2) for record in feed.records["s", i]] == ["1", "2", "3", "4", "5", "6"]


def test_a_record_with_letters_on_two_branches_is_fed_once(tmp_path: Path) -> None:
    of = plan(tmp_path)
    one, other = (
        letter(b"1,a", 1, "id,name", id="1", name="a"),
        letter(b"1,a", 1, "id,name", id="1", name="a", stage="t"),
    )
    assert fed(replay_files(of, [one, other], tmp_path)) == [b"id,name\n1,a\n"]
    feed = replay_files(of, [edited(one, name="b"), other], tmp_path)
    assert fed(feed) == [b"id,name\n1,b\n"]
    [record] = feed.records["s", 0]
    assert (record.letter("t")["id"], record.letter("elsewhere")["id"]) == ("letter-1-t", "letter-1-source")
    assert record.ids == {"letter-1-t", "letter-1-source"}
    assert codes(of, [edited(one, name="b"), edited(other, name="c")], tmp_path)[0][0] == "E456"
    # Another file of the same name, another day: another record.
    later = letter(b"1,z", 1, "id,name", id="1", name="z")
    assert fed(replay_files(of, [one, later], tmp_path)) == [b"id,name\n1,a\n1,z\n"]


def test_known_letters_are_skipped(tmp_path: Path) -> None:
    letters = [letter(b"1,a", 1, "id,name", id="1", name="a"), letter(b"2,b", 2, "id,name", id="2", name="b")]
    feed = replay_files(plan(tmp_path), letters, tmp_path, frozenset({"letter-1-source"}))
    assert fed(feed) == [b"id,name\n2,b\n"] and (feed.fed, feed.skipped) == (1, 1)


def test_whatever_a_file_holds_is_read_again_in_the_same_way(tmp_path: Path) -> None:
    """All records of generated files as letters: fed back, they are what they were, good or broken."""
    of = plan(tmp_path)

    def found(files: Any) -> list[tuple[Any, ...]]:
        request = ReadRequest("s", tuple(files), of["s"].columns, of["s"].config.options, record=True)
        read = make_plan(request, parallelism=1)
        rows = [row for split in read.splits for batch in read_split(read, split) for row in batch.to_pylist()]
        kinds = [(row["$error"] or {}).get("message", "").partition(" line ")[0] for row in rows]
        return [(kind, row["id"], row["name"], row["$line"]) for kind, row in zip(kinds, rows, strict=True)]

    for i, body in enumerate(texts(60, 3)):
        path = tmp_path / "all.csv"
        path.write_bytes(b"id,name\n" + body.encode())
        before = found([SourceFile(str(path), "all.csv")])
        letters = [letter(row[3].encode(), at, "id,name", id=str(row[1]), name="") for at, row in enumerate(before, 1)]
        if letters:
            assert found(replay_files(of, letters, tmp_path).files["s"]) == before, (i, body)


def test_other_formats(tmp_path: Path) -> None:
    json = plan(tmp_path, "json", "options: { record_path: a.b },")
    spans, broken = letter(b'{"id": 1,\n "x": [1.50]}', 1, id="1", name=""), letter(b'{"id": 2', 2, id="2", name="")
    feed = replay_files(
        json, [spans, broken, edited(letter(b'{"id":"y","x":{"z":1}}', 3, id="y", name=""), id="3")], tmp_path
    )
    assert fed(feed) == [b'{"id": 1,  "x": [1.50]}\n{"id": 2\n{"x.z":1,"id":3}\n']
    schema = "id: { type: int, width: 3 }, name: { type: string, width: 2 }"
    fixed = plan(tmp_path, "fixed_width", "options: { line_separator: none },", schema)
    short, good = letter(b"  1", 1, id="  1", name=""), letter(b"  2ab", 2, id="  2", name="ab")
    feed = replay_files(fixed, [edited(good, id="12"), short, letter(b"  3ab", 3, id="  3", name="ab")], tmp_path)
    assert fed(feed) == [b" 12ab  1", b"  3ab"]
    [(code, message)] = codes(fixed, [edited(good, name="abc")], tmp_path)
    assert code == "E456" and message.endswith("'name' has 3 bytes, and there is room for 2")
    utf16 = plan(tmp_path, options="options: { encoding: utf-16 },")
    feed = replay_files(utf16, [letter("1,é".encode(), 1, "id,name", id="1", name="é")], tmp_path)
    assert fed(feed)[0].decode("utf-16") == "id,name\n1,é\n"
    parquet = plan(tmp_path, "parquet", schema="id: int, name: string, note: nullable(string), day: date")
    missing = letter(None, 1, id="1", name="", note="", day="2024-01-02")
    missing.engine.update(error_category="missing_required_field", triggering_field="name")
    blank = letter(None, 2, id="x", name="", note="", day="2024-01-02")
    feed = replay_files(parquet, [missing, blank], tmp_path)
    assert fed(feed) == [b'{"id":1,"day":"2024-01-02"}\n{"id":"x","name":"","day":"2024-01-02"}\n']
    assert replay_plan(parquet, feed.files)["s"].config.type == "json"
    xml = plan(tmp_path, "xml", schema="id: int, name: string, tags: array(int), ok: bool, cost: decimal(2)")
    twice = letter(None, 1, id="007", name="a; b", tags="1; 02; x", ok="TRUE", cost="1.50")
    twice.engine.update(error_category="structural_validation", triggering_field="name")
    wanted = b'{"id":7,"name":["a","b"],"tags":[1,2,"x"],"ok":true,"cost":1.50}\n'
    assert fed(replay_files(xml, [twice], tmp_path)) == [wanted]
    assert fed(replay_files(xml, [edited(twice, name="a")], tmp_path)) == [wanted.replace(b'["a","b"]', b'"a"')]


COMBINE = """
  - type: source
    name: b
    config: { type: csv, path: b.data, schema: { id: int, price: int } }
  - type: source
    name: c
    config: { type: csv, path: c.data, schema: { id: int, name: string } }
  - type: combine
    name: both
    input: { l: %s, r: %s }
    config: { where: "l.id == r.id", cxl: "emit id = l.id", propagate_ck: driver }
"""


def test_which_sources_are_read_from_their_own_files(tmp_path: Path) -> None:
    more = (OUTPUT % "c").replace("out,", "more,").replace("out.csv", "more.csv")
    of = plan(tmp_path, tail=COMBINE % ("s", "b") + OUTPUT % "both" + more)
    found = {name: (sides.probe, sides.build) for name, sides in of.facts.flow.sides.items()}
    assert found == {"s": (True, False), "b": (False, True), "c": (True, False)}
    mine, build = letter(b"1", 1, "id,name", id="1", name=""), letter(b"x,1", 1, "id,price", "b", id="x", price="1")
    feed = replay_files(of, [mine, build], tmp_path)
    assert (sorted(feed.files), feed.files["c"], feed.left) == (["c", "s"], (), 1)
    assert codes(of, [mine, edited(build, id="1")], tmp_path)[0][0] == "E458"
    itself = plan(tmp_path, tail=COMBINE % ("s", "s") + OUTPUT % "both")
    [(code, message)] = codes(itself, [mine], tmp_path)
    assert code == "E458" and "the records of 's' are also looked up by others" in message


def saved(folder: Path, letters: list[Letter], more: str = "") -> Path:
    """A file of letters as a run writes it."""
    path = folder / "letters.csv"
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*(PREFIX + name for name in letters[0].engine), *letters[0].record])
        writer.writerows([*one.engine.values(), *one.record.values()] for one in letters)
        file.write(more)
    return path


def test_what_editors_do_to_a_file_is_no_edit(tmp_path: Path) -> None:
    """A byte order mark, other line ends, blank lines: the letters are what they were, and their bytes are fed."""
    of = plan(tmp_path)
    path = saved(tmp_path, [letter(b"1,a,too much", 1, "id,name", id="1", name="a")], "\r\n\n")
    text = path.read_bytes()
    for changed in (text, b"\xef\xbb\xbf" + text, text.replace(b"\r\n", b"\n"), b"\xef\xbb\xbf" + text + b"\r\n"):
        path.write_bytes(changed)
        [found] = read_letters(path)
        assert found.edited == (False, False) and found.engine["id"] == "letter-1-source"
        assert fed(replay_files(of, [found], tmp_path)) == [b"id,name\n1,a,too much\n"]


def test_a_file_that_was_cut_off_is_not_replayed_in_part(tmp_path: Path) -> None:
    path = saved(tmp_path, [letter(b"1,a", i, "id,name", id="1", name="a") for i in (1, 2)])
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(InputError) as caught:
        list(read_letters(path))
    [found] = caught.value.diagnostics
    assert found.code == "E019" and "dead letter 2" in found.message and "9 values, and the header 11" in found.message


def test_only_letters_with_an_id_can_be_added(tmp_path: Path) -> None:
    """Without one, the same file could be added twice."""
    of = plan(tmp_path)
    whole = letter(b"1,a", 1, "id,name", id="1", name="a")
    for engine in ({**whole.engine, "id": ""}, {k: v for k, v in whole.engine.items() if k != "id"}):
        without = Letter(engine, whole.record, 1)
        assert replay_files(of, [without], tmp_path).fed == 1
        with pytest.raises(InputError) as caught:
            replay_files(of, [without], tmp_path, once=True)
        assert [d.code for d in caught.value.diagnostics] == ["E019"]
    assert replay_files(of, [whole], tmp_path, once=True).fed == 1
