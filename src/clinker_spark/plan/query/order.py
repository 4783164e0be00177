"""The order of rows as hidden columns, and what happens to it when rows are put together.

An order is a list of terms, compared one after the other. Nothing is numbered: where one value has to say where a row
stands (the first row of a group, the elements of an array), every term becomes a value that ascends with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from clinker_spark.core.types import Kind
from clinker_spark.cxl.hidden import RANK_COLUMN
from clinker_spark.cxl.lower.plan import quote
from clinker_spark.plan.columns import FIRST_COLUMN, SIDE_COLUMN, UNITED_PREFIX
from clinker_spark.plan.query.values import OrderTerm
from clinker_spark.query.types import ANY, INT, ListType, QType, is_any, is_kind

ARRIVAL = ListType(INT)
"""The type of the place of a record in a pipeline: an array, or a number that becomes one."""


def aggregate_step(aggregates: Sequence[str], keys: str) -> str:
    """The step that groups rows. Without aggregates it leaves one row of each key."""
    return " ".join(["AGGREGATE", *([", ".join(aggregates)] if aggregates else []), "GROUP BY", keys])


def ascending(terms: Sequence[OrderTerm]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Pipe steps (mostly none), and values that then ascend in the order of the terms and are never null.

    >>> ascending([OrderTerm("`$o1`"), OrderTerm("`age`", descending=True, plain=False, type=INT)])
    ((), ('`$o1`', 'struct((`age` IS NULL), (~ `age`))'))
    """
    made = [_ascending(t) for t in terms]
    if all(text is not None for text in made):
        return (), tuple(text for text in made if text is not None)
    # Only lists and records that descend: sorted rows get ascending numbers, partition by partition.
    order = f"ORDER BY {', '.join(t.sql() for t in terms)}"
    return (order, f"EXTEND monotonically_increasing_id() AS {quote(RANK_COLUMN)}"), (quote(RANK_COLUMN),)


def _ascending(term: OrderTerm) -> str | None:
    if term.plain:
        return term.text
    value = _reversed(term.text, term.type) if term.descending else term.text
    return None if value is None else f"struct(({term.text} IS NULL), {value})"


def _reversed(text: str, t: QType) -> str | None:
    """A value that descends where the other ascends; None when there is none."""
    if is_kind(t, Kind.INT):
        return f"(~ {text})"  # unlike -x, it has a value for the smallest number
    if is_kind(t, Kind.FLOAT):
        return f"struct((NOT isnan({text})), (- {text}))"  # NaN is the greatest, and its opposite is NaN
    if is_kind(t, Kind.DECIMAL):
        return f"(- {text})"
    if is_kind(t, Kind.BOOL):
        return f"(NOT {text})"
    if is_kind(t, Kind.DATE):
        return f"(~ unix_date({text}))"
    if is_kind(t, Kind.DATETIME):
        return f"(- ({text} - TIMESTAMP_NTZ '1970-01-01 00:00:00'))"
    if is_kind(t, Kind.STRING):
        # Each half byte by its complement. A text that ends earlier comes later, so '~' stands at its end.
        return f"(translate(hex({text}), '0123456789ABCDEF', 'FEDCBA9876543210') || '~')"
    return None


def first_places(
    terms: Sequence[OrderTerm], keys: Mapping[str, str]
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[OrderTerm, ...]]:
    """The order of groups by their first rows: pipe steps before they are made, their aggregates, the terms after it.

    `keys` are the expressions that rows are grouped by, with their names afterwards. They are the same in all rows of a
    group, so a term that is one of them stays as it is.

    >>> first_places([OrderTerm("`$o1`"), OrderTerm("`a`")], {"`a`": "`$k`"})[1:]
    (('min(`$o1`) AS `$first`',), (OrderTerm(text='`$first`', ...), OrderTerm(text='`$k`', ...)))
    """
    rest = [t for t in terms if t.text not in keys]
    if not rest:
        return (), (), tuple(replace(t, text=keys[t.text]) for t in terms)
    step, values = ascending(rest)
    if step:  # the number of a row stands for all terms
        step, values = ascending(terms)
        return step, (f"min({values[0]}) AS {quote(FIRST_COLUMN)}",), (OrderTerm(quote(FIRST_COLUMN), type=INT),)
    if len(values) == 1:
        first, names = f"min({values[0]})", [quote(FIRST_COLUMN)]
    else:
        listed = ", ".join(f"{value} AS p{i}" for i, value in enumerate(values))
        first, names = f"min(struct({listed}))", [f"{quote(FIRST_COLUMN)}.p{i}" for i in range(len(values))]
    after = {t.text: OrderTerm(name, type=t.type if t.plain else ANY) for t, name in zip(rest, names, strict=True)}
    placed = tuple(after.get(t.text) or replace(t, text=keys[t.text]) for t in terms)
    return (), (f"{first} AS {quote(FIRST_COLUMN)}",), placed


def united(left: Sequence[OrderTerm], right: Sequence[OrderTerm]) -> tuple[tuple[OrderTerm, ...], list[str], list[str]]:
    """The order of a union, and the hidden columns that each side adds for it: which side, then the side's own terms.

    Terms of both sides share a column where they have one type and one direction. Where they do not, the other side has
    a null, which no row of the first is compared with.
    """
    order = [OrderTerm(quote(SIDE_COLUMN), type=INT)]
    columns = [[f"0 AS {quote(SIDE_COLUMN)}"], [f"1 AS {quote(SIDE_COLUMN)}"]]
    for i, (a, b) in enumerate(_paired(left, right)):
        name = quote(f"{UNITED_PREFIX}{i}")
        some = a or b
        assert some is not None
        plain = a is not None and b is not None and a.plain and b.plain
        order.append(replace(some, text=name, plain=plain))
        for side, term in zip(columns, (a, b), strict=True):
            side.append(f"{term.text if term is not None else 'NULL'} AS {name}")
    return tuple(order), columns[0], columns[1]


def _paired(
    left: Sequence[OrderTerm], right: Sequence[OrderTerm]
) -> Iterator[tuple[OrderTerm | None, OrderTerm | None]]:
    shared = 0
    for a, b in zip(left, right, strict=False):
        if a.descending != b.descending or a.type.present() != b.type.present() or is_any(a.type):
            break
        yield a, b
        shared += 1
    yield from ((a, None) for a in left[shared:])
    yield from ((None, b) for b in right[shared:])
