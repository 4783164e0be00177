"""Unification: the seven rules in their order, and the whole table of pairs."""

from __future__ import annotations

from itertools import product

import pytest

from clinker_spark.core.types import (
    ANY,
    ARRAY,
    BOOL,
    DATE,
    DATETIME,
    DECIMAL,
    FLOAT,
    INT,
    MAP,
    NULL,
    NUMERIC,
    STRING,
    TYPE_NAMES,
    Kind,
    Type,
    array_of,
    decimal,
    map_of,
    parse_type,
    unify,
)
from tests.support.type_keywords import type_keyword

BARE = [NULL, BOOL, INT, FLOAT, DECIMAL, STRING, DATE, DATETIME, ARRAY, MAP, NUMERIC, ANY]
CONCRETE = [BOOL, INT, FLOAT, DECIMAL, STRING, DATE, DATETIME, ARRAY, MAP]
ALL = [*BARE, *(t.as_nullable() for t in BARE if t is not NULL)]


def shown(t: Type | None) -> str | None:
    return None if t is None else str(t)


# ------------------------------------------------------------ the rules, one by one


@pytest.mark.parametrize("t", ALL, ids=str)
def test_rule_1_identity(t: Type) -> None:
    assert shown(unify(t, t)) == str(t)


@pytest.mark.parametrize("t", [*CONCRETE, NUMERIC], ids=str)
def test_rule_2_any_absorbs(t: Type) -> None:
    for merged in (unify(ANY, t), unify(t, ANY)):
        assert shown(merged) == str(t)
        assert merged is not None and merged.is_dynamic  # the value may still be of another type


@pytest.mark.parametrize("t", [INT, FLOAT], ids=str)
def test_rule_3_numeric_resolves(t: Type) -> None:
    assert shown(unify(NUMERIC, t)) == shown(unify(t, NUMERIC)) == str(t)


@pytest.mark.parametrize("t", [DECIMAL, STRING, BOOL, DATE], ids=str)
def test_rule_3_numeric_is_int_or_float_only(t: Type) -> None:
    assert unify(NUMERIC, t) is None


def test_rule_4_int_promotes() -> None:
    assert unify(INT, FLOAT) == unify(FLOAT, INT) == FLOAT
    assert unify(INT, decimal(2)) == unify(decimal(2), INT) == decimal(2)


def test_rule_4_decimal_never_meets_float() -> None:
    assert unify(DECIMAL, FLOAT) is None
    assert unify(FLOAT, DECIMAL) is None


@pytest.mark.parametrize("t", [*CONCRETE, NUMERIC], ids=str)
def test_rule_5_null_wraps(t: Type) -> None:
    assert shown(unify(NULL, t)) == shown(unify(t, NULL)) == f"Nullable({t})"


@pytest.mark.parametrize(("a", "b"), list(product(BARE, BARE)), ids=str)
def test_rule_6_nullable_recurses_and_rewraps(a: Type, b: Type) -> None:
    inner = unify(a, b)
    expected = None if inner is None else str(inner.as_nullable())
    assert shown(unify(a.as_nullable(), b)) == expected or a is NULL
    assert shown(unify(a, b.as_nullable())) == expected or b is NULL


@pytest.mark.parametrize(
    ("a", "b"),
    [(STRING, INT), (BOOL, INT), (DATE, DATETIME), (ARRAY, MAP), (STRING, DATE), (ARRAY, STRING), (BOOL, STRING)],
    ids=str,
)
def test_rule_7_the_rest_is_incompatible(a: Type, b: Type) -> None:
    assert unify(a, b) is None
    assert unify(b, a) is None


# ------------------------------------------------------------ their order


def test_any_comes_before_null() -> None:
    # Rule 2 sees the pair before rule 5 does.
    assert shown(unify(ANY, NULL)) == shown(unify(NULL, ANY))
    assert unify(ANY, NULL) is not None


def test_any_comes_before_numeric() -> None:
    assert shown(unify(ANY, NUMERIC)) == "Numeric"


# ------------------------------------------------------------ the whole table

# Row and column in the order of BARE; "." is incompatible, a name the result, "?" a nullable of the named one.
TABLE = """
          Null      Bool   Int     Float   Decimal  String  Date   DateTime  Array   Map   Numeric   Any
Null      Null      Bool?  Int?    Float?  Decimal? String? Date?  DateTime? Array?  Map?  Numeric?  Any?
Bool      Bool?     Bool   .       .       .        .       .      .         .       .     .         Bool
Int       Int?      .      Int     Float   Decimal  .       .      .         .       .     Int       Int
Float     Float?    .      Float   Float   .        .       .      .         .       .     Float     Float
Decimal   Decimal?  .      Decimal .       Decimal  .       .      .         .       .     .         Decimal
String    String?   .      .       .       .        String  .      .         .       .     .         String
Date      Date?     .      .       .       .        .       Date   .         .       .     .         Date
DateTime  DateTime? .      .       .       .        .       .      DateTime  .       .     .         DateTime
Array     Array?    .      .       .       .        .       .      .         Array   .     .         Array
Map       Map?      .      .       .       .        .       .      .         .       Map   .         Map
Numeric   Numeric?  .      Int     Float   .        .       .      .         .       .     Numeric   Numeric
Any       Any?      Bool   Int     Float   Decimal  String  Date   DateTime  Array   Map   Numeric   Any
"""


def table() -> dict[tuple[str, str], str]:
    head, *rows = (line.split() for line in TABLE.strip().splitlines())
    return {(row[0], column): cell for row in rows for column, cell in zip(head, row[1:], strict=True)}


@pytest.mark.parametrize(("a", "b"), list(product(BARE, BARE)), ids=str)
def test_table_of_all_pairs(a: Type, b: Type) -> None:
    cell = table()[str(a), str(b)]
    expected = None if cell == "." else f"Nullable({cell[:-1]})" if cell.endswith("?") else cell
    assert shown(unify(a, b)) == expected


@pytest.mark.parametrize(("a", "b"), list(product(ALL, ALL)), ids=str)
def test_unification_is_symmetric(a: Type, b: Type) -> None:
    assert unify(a, b) == unify(b, a)


# ------------------------------------------------------------ what the table does not show


def test_arrays_and_maps_unify_their_elements() -> None:
    assert shown(unify(array_of(INT), array_of(FLOAT))) == "Array(Float)"
    assert shown(unify(map_of(NULL), map_of(STRING))) == "Map(Nullable(String))"
    assert shown(unify(array_of(INT), array_of(STRING))) == "Array"  # elements that clash: any


def test_decimals_keep_the_larger_scale() -> None:
    assert unify(decimal(2), decimal(4)) == decimal(4)
    assert unify(decimal(2), DECIMAL) == DECIMAL  # one scale is not known before the run


def test_dynamic_is_sticky() -> None:
    merged = unify(ANY, INT)
    assert merged is not None
    assert unify(merged, FLOAT) == FLOAT.as_dynamic()
    assert not INT.is_dynamic
    assert merged.as_static() == INT


def test_nullable_never_nests() -> None:
    assert INT.as_nullable().as_nullable() == INT.as_nullable()
    assert NULL.as_nullable() is NULL
    assert INT.as_nullable().unwrap() == INT


@pytest.mark.parametrize(
    "text", [*TYPE_NAMES, "decimal(2)", "array(int)", "map(array(string))", "nullable(date)", "nullable(date_time)"]
)
def test_type_names_round_trip(text: str) -> None:
    parsed = parse_type(text)
    assert parsed is not None
    assert type_keyword(parsed) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("datetime", DATETIME),
        (" int ", INT),
        ("decimal( 10 , 2 )", decimal(2)),
        ("nullable(array(nullable(int)))", array_of(INT.as_nullable()).as_nullable()),
    ],
)
def test_other_spellings(text: str, expected: Type) -> None:
    assert parse_type(text) == expected


@pytest.mark.parametrize("text", ["", "integer", "int)", "array(", "decimal(x)", "decimal(1,2,3)", "set(int)", "Int"])
def test_what_is_not_a_type(text: str) -> None:
    assert parse_type(text) is None


def test_numeric_kinds() -> None:
    assert {t.kind for t in BARE if t.is_numeric} == {Kind.INT, Kind.FLOAT, Kind.DECIMAL, Kind.NUMERIC}
