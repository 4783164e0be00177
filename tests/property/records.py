"""The columns the generated programs read, and the values they meet there: everyday ones and the edges of each type."""

from __future__ import annotations

import datetime as dt
import math
import random
from collections.abc import Mapping
from typing import Any

from clinker_spark.core.types import Type
from clinker_spark.cxl.interpret.coerce import coerce_record
from clinker_spark.cxl.program import read_schema

COLUMNS: Mapping[str, str] = {
    "b": "bool",
    "c": "nullable(bool)",
    "i": "int",
    "j": "int",
    "k": "nullable(int)",
    "f": "float",
    "g": "nullable(float)",
    "d": "decimal(2)",
    "e": "decimal(4)",
    "s": "string",
    "t": "nullable(string)",
    "u": "string",
    "day": "date",
    "day2": "nullable(date)",
    "at": "date_time",
    "at2": "date_time",
    "ai": "array(int)",
    "af": "array(float)",
    "texts": "array(string)",
    "rows": "array(array(int))",
    "aa": "array",
    "m": "map",
    "mi": "map(int)",
    "x": "any",
    "y": "any",
    "z": "any",
    "w": "any",
}

I64_MAX, I64_MIN = 2**63 - 1, -(2**63)

# (everyday values, values at the edges), per type.
BOOLS: tuple[list[Any], list[Any]] = ([True, False], [None])
INTS: tuple[list[Any], list[Any]] = (
    [0, 1, 2, 3, 5, 7, 10, 12, 100, 2024],
    [
        None,
        -1,
        -7,
        I64_MAX,
        I64_MIN,
        I64_MAX - 1,
        I64_MIN + 1,
        2**53,
        2**53 + 1,
        -(2**53) - 1,
        2**31,
        -(2**31) - 1,
        10**18,
    ],
)
FLOATS: tuple[list[Any], list[Any]] = (
    [0.0, 1.0, 1.5, 2.0, 0.25, 2.5, 10.0, 99.99, 3.14159],
    [
        None,
        math.nan,
        -0.0,
        math.inf,
        -math.inf,
        0.1,
        -2.5,
        -0.5,
        0.5,
        1e22,
        1.7976931348623157e308,
        2.0**53,
        2.0**63,
        -(2.0**63),
        1e-7,
        1e16,
        123456789.125,
        9007199254740993.0,
    ],
)
# Java before 19 writes these with other digits than the shortest, and Spark leaves the JSON of arrays and maps to it
# (single floats get digits of our own). So generated programs, which wrap anything in arrays, do without them.
UNUSUAL_FLOATS = [1e23, 5e-324, -1e-300, 2.2250738585072014e-308, 2e-44]
DECIMALS_2: tuple[list[Any], list[Any]] = (
    ["0.00", "1.00", "1.50", "19.99", "100.00", "2.25"],
    [None, "-0.01", "-7.25", "0.05", "123456789012345678901234567.89", "-999999999999999999999999999.99", "0.10"],
)
DECIMALS_4: tuple[list[Any], list[Any]] = (
    ["0.0000", "1.2345", "2.5000", "0.1000", "3.0000"],
    [None, "-0.0001", "-12.3456", "0.0050", "9999999999999999999999999.9999", "1.0005", "2.6750"],
)
STRINGS: tuple[list[Any], list[Any]] = (
    ["a", "abc", "Hello World", "foo,bar,,baz", "x y", "ada", "42", "true"],
    [
        None,
        "",
        " ",
        "  padded\t\n",
        "Straße",
        "ÉCOLE İI ıſ",
        "日本語テキスト",
        "😀a👩‍👧b",
        "e\u0301\u200d",
        "\u00a0nb\u2003sp\u3000",
        "ﬁ ǅ ß",
        "a\u0000b",
        "line\r\nbreak",
        "'\"\\`${x}%_",
        "aaa",
        "ΑΣ ΟΔΟΣ",
        "\u1e9e\U00010400",
    ],
)
# Text that conversions and paths make something of.
CODES: tuple[list[Any], list[Any]] = (
    ["1", "42", "3.5", "2024-02-29", "true", "no", "/data/in/report.tar.gz", "2024-03-15T14:30:00", "1e5", "k1"],
    [
        None,
        "",
        "-0",
        "+5",
        " 7",
        "7 ",
        "5.0",
        "9223372036854775807",
        "9223372036854775808",
        "-9223372036854775808",
        "NaN",
        "inf",
        "-Infinity",
        "1_000",
        "0x1F",
        "YES",
        "2024-02-30",
        "0001-01-01",
        "9999-12-31",
        "2024-3-5",
        "١٢",
        "/",
        "a/",
        ".hidden",
        "dir/.x.y",
        "C:\\a\\b.txt",
        "../up",
        "1e400",
        ".5",
        "5.",
        "1.23456789012345678901234567890123",
        "2024-03-15 14:30:00.123456",
        "2024-03-15T24:00:00",
        "15/03/2024",
        "-1e-5",
        "0.1",
        "a.b[0]",
        "k1.k2",
    ],
)
DATES: tuple[list[Any], list[Any]] = (
    ["2024-03-15", "2023-01-31", "2024-12-31", "2000-06-01"],
    [
        None,
        "2024-02-29",
        "1900-02-28",
        "0001-01-01",
        "9999-12-31",
        "1969-12-31",
        "1582-10-10",
        "2100-02-28",
        "0004-02-29",
    ],
)
TIMES: tuple[list[Any], list[Any]] = (
    ["2024-03-15T14:30:00", "2023-01-31T00:00:00", "2000-06-01T08:05:09"],
    [
        None,
        "2024-02-29T23:59:59.999999",
        "0001-01-01T00:00:00",
        "9999-12-31T23:59:59.999999",
        "1969-12-31T23:59:59.500000",
        "1582-10-10T12:00:00",
        "2024-03-31T02:30:00",
        "2024-03-15T12:00:00.120000",
    ],
)
INT_ARRAYS: tuple[list[Any], list[Any]] = (
    [[1, 2, 3], [5], [3, 1, 2, 1], [10, 20]],
    [None, [], [None], [1, None, 3], [I64_MAX, 1], [I64_MIN, -1], [0, 0], [-1, 2**53 + 1]],
)
FLOAT_ARRAYS: tuple[list[Any], list[Any]] = (
    [[1.0, 2.5], [0.25], [3.0, 1.0, 2.0]],
    [None, [], [None, 1.5], [math.nan, 1.0], [-0.0, 0.0], [math.inf, -math.inf], [1e308, 1e308]],
)
STRING_ARRAYS: tuple[list[Any], list[Any]] = (
    [["a", "b"], ["x"], ["k1", "k2", "abc"], ["1", "2"]],
    [None, [], [None], ["", None, "é"], ["😀", "a"], ["a", "a"], ["12", "zz"]],
)
NESTED_ARRAYS: tuple[list[Any], list[Any]] = (
    [[[1, 2], [3]], [[4]]],
    [None, [], [[]], [None, [1]], [[None], [I64_MAX, 2]], [[0], [], [7, 7]]],
)
ANY_ARRAYS: tuple[list[Any], list[Any]] = (
    [[1, "a", 2.5], [{"k1": 1, "k2": "v"}, {"k1": 2}], ["x", "y"], [1, 2, 3]],
    [
        None,
        [],
        [None, 1],
        [[1], [2, None]],
        [True, None, "é"],
        [math.nan, -0.0],
        [{"b": 1, "a": None}],
        [dt.date(2024, 2, 29), I64_MIN],
    ],
)
MAPS: tuple[list[Any], list[Any]] = (
    [{"k1": 1, "k2": "two"}, {"k2": 2.5, "k1": {"k1": 1, "k3": [1, 2]}}, {"k1": "a", "k3": True}],
    [
        None,
        {},
        {"k1": None},
        {"b": 1, "a": 2},
        {"k1": {"z": 1, "a": {"q": None}}},
        {"é": "ü", "": 0},
        {"k1": [{"k1": 5}], "k.2": 9},
        {"a'b": 1, 'q"': 2, "back\\slash": 3},
    ],
)
INT_MAPS: tuple[list[Any], list[Any]] = (
    [{"k1": 1, "k2": 2}, {"k2": 5}, {"z": 1, "k1": 7}],
    [None, {}, {"k1": None}, {"k1": I64_MAX, "k3": I64_MIN}, {"": 0}, {"😀": 3, "a": 1}],
)
ANYTHING: tuple[list[Any], list[Any]] = (
    [
        1,
        2.5,
        "abc",
        True,
        {"k1": 1, "k2": "v"},
        [1, 2],
        7,
        "42",
        dt.date(2024, 2, 29),
        dt.datetime(2024, 3, 15, 14, 30),
        3,
    ],
    [
        None,
        0,
        -1,
        I64_MAX,
        I64_MIN,
        math.nan,
        -0.0,
        math.inf,
        1e22,
        "",
        "é😀",
        False,
        [],
        {},
        [None, "a"],
        {"k1": None},
        {"b": {"y": 1, "x": [2]}, "a": 1},
        dt.date(1, 1, 1),
        dt.datetime(9999, 12, 31, 23, 59, 59, 999999),
        [[1], {"k1": 2}],
        0.1,
        " 5",
        "2024-02-29",
        "long " * 20,
        {"q'": 1, "a.b": 2, 'a"b': 3, "[x]": 4},
        2**53 + 1,
        2.0**53,
        1.0,
        -0.5,
    ],
)

POOLS: Mapping[str, tuple[list[Any], list[Any]]] = {
    "b": BOOLS, "c": BOOLS,
    "i": INTS, "j": INTS, "k": INTS,
    "f": FLOATS, "g": FLOATS,
    "d": DECIMALS_2, "e": DECIMALS_4,
    "s": STRINGS, "t": STRINGS, "u": CODES,
    "day": DATES, "day2": DATES, "at": TIMES, "at2": TIMES,
    "ai": INT_ARRAYS, "af": FLOAT_ARRAYS, "texts": STRING_ARRAYS, "rows": NESTED_ARRAYS, "aa": ANY_ARRAYS,
    "m": MAPS, "mi": INT_MAPS,
    "x": ANYTHING, "y": ANYTHING, "z": ANYTHING, "w": ANYTHING,
}  # fmt: skip


def schema() -> dict[str, Type]:
    found = read_schema(COLUMNS)
    assert found is not None
    return found


def generate(rng: random.Random, count: int) -> list[dict[str, Any]]:
    """`count` records, as the interpreter has them. The later a record, the more of its values are edges."""
    types = schema()
    records = []
    for n in range(count):
        edge = 0.15 if n < count // 2 else 0.6
        raw = {name: rng.choice(pool[rng.random() < edge]) for name, pool in POOLS.items()}
        records.append(coerce_record(raw, types))
    return records
