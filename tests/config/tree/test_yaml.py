"""YAML with places: exact spans, plain values, and the parts of YAML that are refused."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from clinker_spark.config.errors import ConfigError
from clinker_spark.config.tree import yaml as yaml_tree
from clinker_spark.config.tree.scalars import Plain
from clinker_spark.config.tree.yaml import Document, parse_yaml
from clinker_spark.core.span import Source


def parse(text: str) -> Document:
    return parse_yaml(Source("t.yaml", text))


def at(text: str, *path: str | int) -> str:
    span = parse(text).span_of(path)
    return text[span.start : span.end]


def key_at(text: str, *path: str | int) -> str:
    span = parse(text).key_span(path)
    return text[span.start : span.end]


def problems(text: str) -> list[tuple[str, str]]:
    with pytest.raises(ConfigError) as caught:
        parse(text)
    assert caught.value.exit_code == 1
    return [(d.code, d.message) for d in caught.value.diagnostics]


# ---------------------------------------------------------------- spans

BLOCK = """\
# a comment
pipeline:
  name: demo   # why

nodes:
  - type: source
    name: 'ord''ers'
    list: [a, "b, c" , {d: e}]

  # between
  - type: "x\\ty"
    cxl: |
      emit a = 1

      emit b = 2

    other:
last: plain over
  two lines
é: { ü: 1 , ö:  }
"""


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (("pipeline",), "name: demo"),
        (("pipeline", "name"), "demo"),
        (("nodes", 0, "name"), "'ord''ers'"),
        (("nodes", 0, "list"), '[a, "b, c" , {d: e}]'),
        (("nodes", 0, "list", 1), '"b, c"'),
        (("nodes", 0, "list", 2), "{d: e}"),
        (("nodes", 0, "list", 2, "d"), "e"),
        (("nodes", 1, "type"), '"x\\ty"'),
        (("nodes", 1, "cxl"), "|\n      emit a = 1\n\n      emit b = 2"),
        (("nodes", 1, "other"), ""),
        (("last",), "plain over\n  two lines"),
        (("é",), "{ ü: 1 , ö:  }"),
        (("é", "ü"), "1"),
        (("é", "ö"), ""),
        (("nodes", 0, "list", 7, "further"), '[a, "b, c" , {d: e}]'),  # the nearest there is
    ],
)
def test_spans_of_values(path: tuple[str | int, ...], text: str) -> None:
    assert at(BLOCK, *path) == text


def test_spans_of_keys() -> None:
    assert key_at(BLOCK, "pipeline") == "pipeline"
    assert key_at(BLOCK, "nodes", 0, "list") == "list"
    assert key_at(BLOCK, "nodes", 0, "list", 2, "d") == "d"
    assert key_at(BLOCK, "nodes", 0, "list", 1) == '"b, c"'
    assert key_at(BLOCK, "é", "ö") == "ö"


def test_a_block_ends_where_its_last_part_does() -> None:
    assert at(BLOCK, "nodes", 0) == BLOCK[BLOCK.index("type: source") : BLOCK.index("\n\n  # between")]


def test_head_is_one_line() -> None:
    doc = parse(BLOCK)
    heads = [doc.head_span(path) for path in [("nodes", 0), ("nodes",), ("nodes", 0, "list", 2)]]
    assert [BLOCK[s.start : s.end] for s in heads] == ["type: source", "nodes", "d: e"]


@pytest.mark.parametrize("text", ["a: &x 5\nb: *x\n", "a: &x !!str 5\nb: *x\n", "a: !!str &x 5\nb: *x\n"])
def test_anchors_and_tags_are_not_part_of_a_value(text: str) -> None:
    assert at(text, "a") == "5"
    assert at(text, "b") == "5"  # an alias is where its value is written
    assert parse(text).data()["b"] == "5"


def test_spans_with_carriage_returns_and_a_byte_order_mark() -> None:
    text = "a: |\r\n  x\r\n  y\r\nb: [1,\r\n  2]\r\n"
    assert at(text, "b", 1) == "2"
    assert at(text, "a") == "|\r\n  x\r\n  y"


def test_an_int_steps_into_the_entries_of_a_mapping() -> None:
    assert at("schema: { id: int, name: string }", "schema", 1) == "string"
    assert key_at("schema: { id: int, name: string }", "schema", 1) == "name"


# ---------------------------------------------------------------- values


def test_values_keep_their_text() -> None:
    data = parse("a: 012\nb: 1_000\nc: 12:30\nd: yes\ne: '5'\nf: 5\ng:\nh: ~\ni: 'null'\nj: 2026-01-31\n").data()
    texts = {"a": "012", "b": "1_000", "c": "12:30", "d": "yes", "e": "5", "f": "5"}
    assert data == {**texts, "g": None, "h": None, "i": "null", "j": "2026-01-31"}
    assert isinstance(data["f"], Plain) and not isinstance(data["e"], Plain)


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n", "~\n"])
def test_an_empty_file(text: str) -> None:
    assert parse(text).data() is None


def test_aliases_and_merges() -> None:
    text = "base: &b { x: 1, y: 2 }\nother: &o { y: 3, z: 4 }\nm: { <<: [*b, *o], x: 9 }\nn:\n  <<: *b\n  w: 5\n"
    data = parse(text).data()
    assert data["m"] == {"x": "9", "y": "2", "z": "4"}
    assert data["n"] == {"x": "1", "y": "2", "w": "5"}
    assert at(text, "n") == "<<: *b\n  w: 5"
    assert at(text, "n", "y") == "2"


def test_a_quoted_merge_key_is_a_key() -> None:
    assert parse("'<<': 1").data() == {"<<": "1"}


def test_the_same_as_pyyaml_on_ordinary_files() -> None:
    text = "a: [x, 'y']\nb:\n  - c: |\n      t\n    d: >-\n      folded\n      text\n  - \"q\\u00e9\"\n"
    assert parse(text).data() == yaml.safe_load(text)


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("a:\n\tb: 1\n", "a tab cannot indent YAML"),
        ("a: b\n\tc: 1\n", "tab"),
        ("a: b: c\n", "': ' is not expected"),
        ("a: 'x\n", "not closed"),
        ("a: [1, 2\n", "not closed"),
        ("a: {b: 1\n", "not closed"),
        ("a:\n  b: 1\n c: 2\n", "does not fit"),
        ("a: @b\n", "cannot start with '@'"),
        ("a: `b\n", "cannot start with '`'"),
        ('a: "\\q"\n', "escape"),
        ("a: *b\n", "no anchor is named 'b'"),
        ("a: &b [*b]\n", "contains itself"),
        ("a: !tag b\n", "tags"),
        ("a: !!python/object:os.system b\n", "tags"),
        ("a: 1\n---\nb: 2\n", "more than one"),
        ("? [a]\n: b\n", "a key must be a text"),
        ("? {a: b}\n: {c: d}\n", "a key must be a text"),
        ("&x [a]: b\n", "a key must be a text"),
        ("a: &x [b]\n*x : c\n", "a key must be a text"),
        ("?\n: b\n", "no key"),
        ("a: \x00\n", "U+0000"),
        ("a: \x1b[31m\n", "U+001B"),
        ("<<: 5\n", "merged"),
        ("[" * 65, "nested too deeply"),
        ("".join(f"{' ' * i}a:\n" for i in range(70)), "nested too deeply"),
    ],
)
def test_what_is_not_read(text: str, part: str) -> None:
    found = problems(text)
    assert found[-1][0] == "E000"
    assert part in found[-1][1]


def test_all_double_keys_are_found() -> None:
    assert problems("a: 1\na: 2\nb: {c: 1, c: 2, c: 3}\n") == [
        ("E012", "key 'a' is given twice"),
        ("E012", "key 'c' is given twice"),
        ("E012", "key 'c' is given twice"),
    ]


def test_a_bomb_of_aliases_is_small_here() -> None:
    lines = ["a0: &a0 [x, x]"] + [f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]" for i in range(1, 60)]
    assert problems("\n".join(lines)) == [("E000", "the file is too large when its aliases are written out")]


def test_a_very_large_file_is_not_read_to_its_end() -> None:
    assert problems("- x\n" * 300_000) == [("E000", "the file has too many values")]


def test_the_parser_in_python_does_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = parse(BLOCK).data()
    monkeypatch.setattr(yaml_tree, "_LOADER", yaml.SafeLoader)
    assert parse(BLOCK).data() == expected
    assert at(BLOCK, "nodes", 1, "cxl").endswith("emit b = 2")
    samples: list[Any] = ["a:\n\tb: 1\n", "a: b: c\n", "a: 'x\n", "a: [1, 2\n", "a:\n  b: 1\n c: 2\n", 'a: "\\q"\n']
    for text in samples:
        assert "this is not YAML" not in problems(text)[0][1]
