"""Lowering the array methods with closures, and comprehensions, to Spark's higher-order functions.

A body that cannot fail becomes a plain lambda. One that can gives a struct of value and error per element,
so that the first element that fails can be told.
"""

from __future__ import annotations

from clinker_spark.core.types import ANY, Kind, Type, array_of
from clinker_spark.cxl import ir
from clinker_spark.cxl.builtins import physical as ph
from clinker_spark.cxl.construction import size_sql
from clinker_spark.cxl.errors import NULL_CONDITION, NULL_SOURCE, ErrorKind
from clinker_spark.cxl.lower.errors import failing, first_error, passed_on
from clinker_spark.cxl.lower.expressions.containers import too_large
from clinker_spark.cxl.lower.lowering import Lowering
from clinker_spark.cxl.lower.plan import Sql, combine


def lower_higher_order(lowering: Lowering, e: ir.HigherOrder) -> Sql:
    source = lowering.lower(e.source)
    variable = lowering.open_lambda(e.slot)
    body = lowering.lower(e.body)
    if not body.failures:
        closed = lowering.builder.close_lambda(body)
        return combine(_plain(e, source.text, variable, closed.text), [source, closed])
    error = first_error([(f, None) for f in body.failures])
    pair = combine(f"named_struct('v', {body.text}, 'e', {error})", [body.bare()])
    closed = lowering.builder.close_lambda(
        Sql(pair.text, max([pair.level, *(f.level for f in body.failures)]), pair.depth)
    )
    source = lowering.builder.bind(source)
    pairs = lowering.builder.bind(combine(f"transform({source.text}, {variable} -> {closed.text})", [source, closed]))
    return _with_errors(lowering, e, source, pairs)


def _plain(e: ir.HigherOrder, source: str, variable: str, body: str) -> str:
    match e.method:
        case "map":
            return f"transform({source}, {variable} -> {body})"
        case "filter":
            return f"filter({source}, {variable} -> ({body}) IS TRUE)"
        case "find":
            return f"get(filter({source}, {variable} -> ({body}) IS TRUE), 0)"
        case "any":
            return f"exists({source}, {variable} -> ({body}) IS TRUE)"
    return flattened(f"transform({source}, {variable} -> {body})", e.body.type)


def _with_errors(lowering: Lowering, e: ir.HigherOrder, source: Sql, pairs: Sql) -> Sql:
    bind = lowering.builder.bind
    values = f"transform({pairs.text}, cxl_p -> cxl_p.v)"
    errors = f"transform({pairs.text}, cxl_p -> cxl_p.e)"
    if e.method in ("find", "any"):
        # The loop ends at the first true, so errors after it do not exist.
        hit = bind(combine(f"array_position(transform({pairs.text}, cxl_p -> cxl_p.v IS TRUE), TRUE)", [pairs.bare()]))
        reached = f"CAST(CASE WHEN {hit.text} > 0 THEN {hit.text} ELSE size({errors}) END AS INT)"
        errors = f"slice({errors}, 1, {reached})"
        parts = [pairs, hit.bare()]
        at_hit = f"get({source.text}, CAST({hit.text} - 1 AS INT))"
        text = at_hit if e.method == "find" else f"({hit.text} > 0)"
    elif e.method == "filter":
        parts = [source.bare(), pairs]
        text = f"filter({source.text}, (cxl_e, cxl_i) -> get({pairs.text}, cxl_i).v IS TRUE)"
    else:
        parts = [pairs]
        text = values if e.method == "map" else flattened(values, e.body.type)
    first = bind(combine(f"get(filter({errors}, cxl_e -> cxl_e IS NOT NULL), 0)", [p.bare() for p in parts]))
    return combine(text, parts, [passed_on(first.text, first.level)])


def flattened(arrays: str, body: Type) -> str:
    """The results of flat_map's closure as one array: null adds nothing, a single value adds itself."""
    if body.is_dynamic:
        one = ph.get_sql("cxl_e", array_of(ANY))
        is_array = ph.variant_is(ph.kind_sql("cxl_e"), Kind.ARRAY)
        missing = ph.is_null_sql("cxl_e", ANY)
        none = "CAST(array() AS ARRAY<VARIANT>)"
        each = f"CASE WHEN {missing} THEN {none} WHEN {is_array} THEN {one} ELSE array(cxl_e) END"
        return f"flatten(transform({arrays}, cxl_e -> {each}))"
    kept = f"filter({arrays}, cxl_e -> cxl_e IS NOT NULL)"
    return f"flatten({kept})" if body.kind is Kind.ARRAY else kept


def lower_comprehension(lowering: Lowering, e: ir.Comprehend) -> Sql:
    source = lowering.bound(e.source)
    variable = lowering.open_lambda(e.slot)
    value = lowering.lower(e.value)
    null_source = failing(f"{source.text} IS NULL", ErrorKind.TYPE_MISMATCH, NULL_SOURCE, source.level)
    condition = None if e.condition is None else lowering.builder.bind(lowering.lower(e.condition))
    if condition is None and not value.failures:
        closed = lowering.builder.close_lambda(value)
        made = combine(f"transform({source.text}, {variable} -> {closed.text})", [source, closed], [null_source])
        return _limited(lowering, made, e)
    failures = list(condition.failures) if condition is not None else []
    if condition is not None:
        null = f"{condition.text} IS NULL"
        failures.append(failing(null, ErrorKind.TYPE_MISMATCH, NULL_CONDITION, condition.level))
        failures += [f.guarded(f"{condition.text} IS TRUE", condition.level) for f in value.failures]
    else:
        failures += value.failures
    keep = "TRUE" if condition is None else condition.text
    error = first_error([(f, None) for f in failures])
    parts = [value.bare()] if condition is None else [value.bare(), condition.bare()]
    triple = combine(f"named_struct('v', {value.text}, 'k', {keep}, 'e', {error})", parts)
    level = max([triple.level, *(f.level for f in failures)])
    closed = lowering.builder.close_lambda(Sql(triple.text, level, triple.depth))
    triples = lowering.builder.bind(combine(f"transform({source.text}, {variable} -> {closed.text})", [source, closed]))
    first = lowering.builder.bind(
        combine(
            f"get(filter(transform({triples.text}, cxl_p -> cxl_p.e), cxl_e -> cxl_e IS NOT NULL), 0)", [triples.bare()]
        )
    )
    text = f"transform(filter({triples.text}, cxl_p -> cxl_p.k IS TRUE), cxl_p -> cxl_p.v)"
    own = passed_on(first.text, first.level)
    made = Sql(text, triples.level, 3, (*source.failures, null_source, own), triples.variables)
    return _limited(lowering, made, e)


def _limited(lowering: Lowering, made: Sql, e: ir.Comprehend) -> Sql:
    """The array of a comprehension with its bound."""
    made = lowering.builder.bind(made)
    size = size_sql(made.text, e.type)
    assert size is not None
    return Sql(made.text, made.level, 1, (*made.failures, too_large(size, made.level)), made.variables, simple=True)
