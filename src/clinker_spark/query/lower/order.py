"""The order of rows as hidden columns, and what happens to it when rows are put together.

An order is a list of terms, compared one after the other. Nothing is numbered: where one value has to say where a row
stands (the first row of a group, the elements of an array), every term becomes a value that ascends with it.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from clinker_spark.core.types import INT, Kind
from clinker_spark.cxl.hidden import RANK_COLUMN
from clinker_spark.query.hidden import FIRST_COLUMN, SIDE_COLUMN, UNITED_PREFIX
from clinker_spark.query.lower.values import OrderTerm, sorted_by
from clinker_spark.query.types import ANY, ListType, QType, is_any, is_kind
from clinker_spark.sql import tree as sql
from clinker_spark.sql.build import NULL, call, negated, struct

ARRIVAL = ListType(INT)
"""The type of the place of a record in a pipeline: an array, or a number that becomes one."""
ASCENDING_ID = call("monotonically_increasing_id")


def ascending(terms: Sequence[OrderTerm]) -> tuple[tuple[sql.Step, ...], tuple[sql.Expr, ...]]:
    """Pipe steps (mostly none), and values that then ascend in the order of the terms and are never null.

    >>> from clinker_spark.sql.render import render
    >>> terms = [OrderTerm(sql.Column("$o1")), OrderTerm(sql.Column("age"), descending=True, plain=False, type=INT)]
    >>> [str(render(value)) for value in ascending(terms)[1]]
    ['`$o1`', 'struct((`age` IS NULL), (~ `age`))']
    """
    made = [_ascending(t) for t in terms]
    if all(value is not None for value in made):
        return (), tuple(value for value in made if value is not None)
    # Only lists and records that descend: sorted rows get ascending numbers, partition by partition.
    return (sorted_by(list(terms)), sql.Extend((sql.As(ASCENDING_ID, RANK_COLUMN),))), (sql.Column(RANK_COLUMN),)


def _ascending(term: OrderTerm) -> sql.Expr | None:
    if term.plain:
        return term.sql
    value = _reversed(term.sql, term.type) if term.descending else term.sql
    return None if value is None else call("struct", sql.IsNull(term.sql), value)


def _reversed(value: sql.Expr, t: QType) -> sql.Expr | None:
    """A value that descends where the other ascends; None when there is none."""
    if is_kind(t, Kind.INT):
        return sql.Unary("~", value)  # unlike -x, it has a value for the smallest number
    if is_kind(t, Kind.FLOAT):  # NaN is the greatest, and its opposite is NaN
        return call("struct", negated(call("isnan", value)), sql.Unary("-", value))
    if is_kind(t, Kind.DECIMAL):
        return sql.Unary("-", value)
    if is_kind(t, Kind.BOOL):
        return negated(value)
    if is_kind(t, Kind.DATE):
        return sql.Unary("~", call("unix_date", value))
    if is_kind(t, Kind.DATETIME):
        return sql.Unary("-", sql.Binary("-", value, sql.Literal(dt.datetime(1970, 1, 1))))
    if is_kind(t, Kind.STRING):
        # Each half byte by its complement. A text that ends earlier comes later, so '~' stands at its end.
        digits = (call("hex", value), sql.Literal("0123456789ABCDEF"), sql.Literal("FEDCBA9876543210"))
        return sql.Binary("||", call("translate", *digits), sql.Literal("~"))
    return None


def in_places(places: Sequence[sql.Expr], value: sql.Expr) -> sql.Expr:
    """The values of rows as an array, in the order of their places."""
    placed = [(f"p{i}", place) for i, place in enumerate(places)]
    listed = call("collect_list", struct([*placed, ("v", value)]))
    kept = call("array_sort", listed) if placed else listed
    return call("transform", kept, sql.Lambda(("cq_s",), sql.Field(sql.Variable("cq_s"), "v")))


def first_places(
    terms: Sequence[OrderTerm], keys: Mapping[sql.Expr, str]
) -> tuple[tuple[sql.Step, ...], tuple[sql.As, ...], tuple[OrderTerm, ...]]:
    """The order of groups by their first rows: pipe steps before they are made, their aggregates, the terms after it.

    `keys` are the expressions that rows are grouped by, with their names afterwards. They are the same in all rows of a
    group, so a term that is one of them stays as it is.

    >>> from clinker_spark.sql.render import render
    >>> made = first_places([OrderTerm(sql.Column("$o1")), OrderTerm(sql.Column("a"))], {sql.Column("a"): "$k"})
    >>> [str(render(c.value)) for c in made[1]], [str(render(t.sql)) for t in made[2]]
    (['min(`$o1`)'], ['`$first`', '`$k`'])
    """
    rest = [t for t in terms if t.sql not in keys]
    if not rest:
        return (), (), tuple(replace(t, sql=sql.Column(keys[t.sql])) for t in terms)
    first = sql.Column(FIRST_COLUMN)
    step, values = ascending(rest)
    if step:  # the number of a row stands for all terms
        step, values = ascending(terms)
        return step, (sql.As(call("min", values[0]), FIRST_COLUMN),), (OrderTerm(first, type=INT),)
    names: list[sql.Expr]
    if len(values) == 1:
        least, names = call("min", values[0]), [first]
    else:
        listed = struct((f"p{i}", value) for i, value in enumerate(values))
        least, names = call("min", listed), [sql.Field(first, f"p{i}") for i in range(len(values))]
    after = {t.sql: OrderTerm(name, type=t.type if t.plain else ANY) for t, name in zip(rest, names, strict=True)}
    placed = tuple(after.get(t.sql) or replace(t, sql=sql.Column(keys[t.sql])) for t in terms)
    return (), (sql.As(least, FIRST_COLUMN),), placed


def united(
    left: Sequence[OrderTerm], right: Sequence[OrderTerm]
) -> tuple[tuple[OrderTerm, ...], list[sql.As], list[sql.As]]:
    """The order of a union, and the hidden columns that each side adds for it: which side, then the side's own terms.

    Terms of both sides share a column where they have one type and one direction. Where they do not, the other side has
    a null, which no row of the first is compared with.
    """
    order = [OrderTerm(sql.Column(SIDE_COLUMN), type=INT)]
    columns = [[sql.As(sql.Literal(side), SIDE_COLUMN)] for side in (0, 1)]
    for i, (a, b) in enumerate(_paired(left, right)):
        name = f"{UNITED_PREFIX}{i}"
        some = a or b
        assert some is not None
        plain = a is not None and b is not None and a.plain and b.plain
        order.append(replace(some, sql=sql.Column(name), plain=plain))
        for side, term in zip(columns, (a, b), strict=True):
            side.append(sql.As(term.sql if term is not None else NULL, name))
    return tuple(order), columns[0], columns[1]


def _paired(
    left: Sequence[OrderTerm], right: Sequence[OrderTerm]
) -> Iterator[tuple[OrderTerm | None, OrderTerm | None]]:
    shared = 0
    for a, b in zip(left, right, strict=False):
        if a.descending != b.descending or a.type.unwrap() != b.type.unwrap() or is_any(a.type):
            break
        yield a, b
        shared += 1
    yield from ((a, None) for a in left[shared:])
    yield from ((None, b) for b in right[shared:])
