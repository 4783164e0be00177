"""Lowering expressions: a typed tree becomes Spark SQL text with its error channel.

`lower(expr)` gives a value text and the ways it can fail. Nothing a text does throws; what cannot be
computed is null, and the failure's condition says why. Lazy constructs guard the failures of the branch
they may not take.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from clinker_spark.core.types import ANY, Kind, Type
from clinker_spark.cxl import ir
from clinker_spark.cxl.builtins import physical as ph
from clinker_spark.cxl.builtins.sqltext import sql_string
from clinker_spark.cxl.builtins.table import NOT_LITERAL, Builtin, Failure, Nulls, Overload, SqlCall
from clinker_spark.cxl.builtins.text import sql_text
from clinker_spark.cxl.check.overloads import is_safe, may_overflow
from clinker_spark.cxl.errors import ErrorKind
from clinker_spark.cxl.hidden import ARRIVAL_COLUMN, variable_column
from clinker_spark.cxl.interpret.construction import ENTRY_BYTES, TOO_LARGE, is_limited, size_sql
from clinker_spark.cxl.interpret.expressions import DECIMAL_OVERFLOW, DUPLICATE_KEY, NULL_KEY
from clinker_spark.cxl.limits import MAX_CONSTRUCTED_BYTES
from clinker_spark.cxl.lower.chains import long_chain, lower_chain
from clinker_spark.cxl.lower.comparisons import lower_compare
from clinker_spark.cxl.lower.literals import literal_sql
from clinker_spark.cxl.lower.plan import Failing, PlanBuilder, Sql, combine, quote
from clinker_spark.cxl.system import Context

_HOLE = re.compile(r"\{([0-9]|r)\}")
_MARK = re.compile("\x01([0-9]+)\x01")
_FILLED = re.compile("\x01([0-9]+)\x01|\\{r\\}")
_ONCE = re.compile("⟦([^⟧]*)⟧")
_ONCES = re.compile("(⟦[^⟧]*⟧)")
_PLAIN_KEY = re.compile("[A-Za-z_][A-Za-z0-9_]*")
NO_VALUE = "CAST(NULL AS STRING)"
CONCAT = "concat({0}, {1})"


@dataclass(frozen=True)
class WindowSpec:
    """The analytic window of a node: SQL texts to partition and order by; ties keep the order of arrival."""

    partition_by: tuple[str, ...] = ()
    sort_by: tuple[str, ...] = ()
    arrival: str = quote(ARRIVAL_COLUMN)

    def clauses(self) -> dict[str, str]:
        partition = f"PARTITION BY {', '.join(self.partition_by)} " if self.partition_by else ""
        order = f"ORDER BY {', '.join((*self.sort_by, self.arrival))}"
        tied = f"ORDER BY {', '.join(self.sort_by) or '1'}"
        rows = "ROWS BETWEEN UNBOUNDED PRECEDING AND"
        return {
            "whole": f"({partition}{order} {rows} UNBOUNDED FOLLOWING)",
            "running": f"({partition}{order} {rows} CURRENT ROW)",
            "ranked": f"({partition}{order})",
            "tied": f"({partition}{tied})",
        }


@dataclass
class Lowering:
    """Lowers the expressions of one program into one plan."""

    builder: PlanBuilder
    context: Context
    fields: Mapping[str, str] = field(default_factory=dict)
    """How to read a column, where it is not simply its name."""
    system_columns: frozenset[str] = frozenset()
    """Names like `$source.row` that exist as columns."""
    window: WindowSpec | None = None
    slots: dict[str, Sql] = field(default_factory=dict)
    emitted: Mapping[str, Sql] = field(default_factory=dict)
    """Columns that earlier programs of the same plan have emitted."""
    aggregates: Callable[[ir.AggregateCall], Sql] | None = None

    def lower(self, e: ir.TExpr) -> Sql:
        from clinker_spark.cxl.lower.python_calls import lower_in_python, python_reason

        reason = python_reason(e)
        if reason is not None:
            return lower_in_python(self, e, reason)
        handler: Callable[[ir.TExpr], Sql] = getattr(self, "_" + type(e).__name__)
        return self.builder.shallow(handler(e))

    def bound(self, e: ir.TExpr) -> Sql:
        return self.builder.bind(self.lower(e))

    # --------------------------------------------------------------- leaves

    def _Const(self, e: ir.Const) -> Sql:
        return Sql(literal_sql(e.value, e.type), simple=True)

    def _Field(self, e: ir.Field) -> Sql:
        if e.name in self.emitted:
            return self.emitted[e.name]
        text = self.fields.get(e.name)
        if text is None:
            return Sql(quote(e.name), simple=True)
        return self.builder.bind(Sql(text))

    def _Slot(self, e: ir.Slot) -> Sql:
        return self.slots[e.slot].bare()

    def _SystemRef(self, e: ir.SystemRef) -> Sql:
        column = variable_column(e.namespace, *e.path)
        if column in self.system_columns:
            return Sql(quote(column), simple=True)
        value = self.context.get(e.namespace, e.path)
        return Sql(literal_sql(value, e.type), simple=True)

    # ---------------------------------------------------------------- calls

    def _Call(self, e: ir.Call) -> Sql:
        if e.builtin.name == "[]" and isinstance(e.args[0], ir.Narrow) and isinstance(e.args[1], ir.Const):
            return self._variant_index(e.args[0].arg, e.args[1].value)
        if e.overload.sql == CONCAT and isinstance(e.args[0], ir.Call) and e.args[0].overload is e.overload:
            parts = [self.lower(part) for part in _texts(e)]
            return combine(f"concat({', '.join(part.text for part in parts)})", parts)
        if links := long_chain(e):
            return lower_chain(self, links)
        literals = [a.value if isinstance(a, ir.Const) else NOT_LITERAL for a in e.args]
        args = [self.lower(a) for a in e.args]
        safe = is_safe(e.builtin, e.overload, e.args)
        return self.call(e.builtin, e.overload, args, [a.type for a in e.args], literals, safe=safe)

    def _variant_index(self, target: ir.TExpr, key: Any) -> Sql:
        """A step into a dynamic value: no need to unpack all of it."""
        sql = self.lower(target)
        if isinstance(key, int):
            path = f"$[{key}]" if 0 <= key < 2**31 - 1 else None
        elif isinstance(key, str) and _PLAIN_KEY.fullmatch(key):
            path = f"$.{key}"
        elif isinstance(key, str) and not set(key) & set("'\"\\[]"):
            path = f"$['{key}']"
        else:
            path = None
        if path is None:
            step = ph.narrow_sql(self.builder.bind(sql).text, Type(Kind.MAP))
            text = (
                f"try_element_at({step}, {sql_string(str(key))})" if isinstance(key, str) else "CAST(NULL AS VARIANT)"
            )
            return combine(text, [self.builder.bind(sql)])
        return combine(f"try_variant_get({sql.text}, {sql_string(path)}, 'variant')", [sql])

    def call(
        self,
        builtin: Builtin,
        overload: Overload,
        args: Sequence[Sql],
        types: Sequence[Type],
        literals: Sequence[Any],
        *,
        safe: bool = False,
    ) -> Sql:
        """One overload with its arguments filled in and, unless it is `safe`, its failures attached."""
        template = sql_template(overload, types, literals)
        assert template is not None, f"{builtin.name} has no SQL for these arguments"
        safe = safe or (overload.safe is not None and overload.safe(literals))
        if builtin.nulls is Nulls.PROPAGATE and any(value is None for value in literals):
            safe = True  # a written null makes the result null before anything can fail
        failures = () if safe else overload.failures
        texts = [template, *(_when(f, builtin, literals) for f in failures)]
        uses = [0] * len(args)
        for text in texts:
            for index in _MARK.findall(text):
                if int(index) < len(args):
                    uses[int(index)] += 1
        for f in failures:
            if f.value is not None and f.value < len(args):
                uses[f.value] += 1
        shared = [self.builder.bind(a) if n > 1 else a for a, n in zip(args, uses, strict=True)]
        result = self._filled(template, shared)
        if not failures:
            return result
        result = self.builder.bind(result)
        own = tuple(self._failing(f, _when(f, builtin, literals), shared, types, result) for f in failures)
        return Sql(result.text, result.level, 1, result.failures + own, result.variables, simple=True)

    def _filled(self, template: str, args: Sequence[Sql]) -> Sql:
        """The template with its arguments in place, and its marked parts bound to columns of their own.

        Only the template is looked at: the arguments are text of the program, in which anything may stand."""
        parts = list(args)

        def once(match: re.Match[str]) -> str:
            whole = combine("", args)
            made = Sql(_fill(match.group(1), args), whole.level, variables=whole.variables)
            parts.append(self.builder.bind(made))
            return parts[-1].text

        pieces = [once(m) if (m := _ONCE.fullmatch(piece)) else _fill(piece, args) for piece in _ONCES.split(template)]
        return combine("".join(pieces), parts)

    def _failing(self, f: Failure, when: str, args: Sequence[Sql], types: Sequence[Type], result: Sql) -> Failing:
        condition = _fill(when, args, result.text)
        value = NO_VALUE
        if f.value is not None and f.value < len(args):
            value = sql_text(args[f.value].text, types[f.value])
        return Failing(condition, _text(f.kind.value), value, _text(f.message), result.level)

    def _DynamicCall(self, e: ir.DynamicCall) -> Sql:
        from clinker_spark.cxl.lower.dynamic import lower_dynamic_call

        if links := long_chain(e):
            return lower_chain(self, links)
        return lower_dynamic_call(self, e)

    # ---------------------------------------------------- representation

    def _Widen(self, e: ir.Widen) -> Sql:
        sql = self.lower(e.arg)
        a, b = e.arg.type, e.type
        if a.kind is Kind.DECIMAL or may_overflow(a, b):
            sql = self.builder.bind(sql)
        wide = combine(ph.widen_sql(sql.text, a, b), [sql])
        if not may_overflow(a, b):
            return wide
        kind, value = _text(ErrorKind.INTEGER_OVERFLOW.value), sql_text(sql.text, a)
        own = Failing(_overflowed(sql.text, a, b), kind, value, _text(DECIMAL_OVERFLOW), wide.level)
        return combine(wide.text, [wide], [own])

    def _Narrow(self, e: ir.Narrow) -> Sql:
        sql = self.bound(e.arg)
        return combine(ph.narrow_sql(sql.text, e.type), [sql])

    # ----------------------------------------------------------- operators

    def _Compare(self, e: ir.Compare) -> Sql:
        return lower_compare(self, e)

    def _Logic(self, e: ir.Logic) -> Sql:
        first, *others = _operands(e, e.op)
        if len(others) > 1 and not any(part.fallible for part in others):
            # Spark's parser reads a flat list in a loop, and takes very long for brackets in brackets.
            parts = [self.lower(part) for part in (first, *others)]
            return combine("(" + f" {e.op.upper()} ".join(part.text for part in parts) + ")", parts)
        left, right = self.lower(e.left), self.lower(e.right)
        if right.failures:
            left = self.builder.bind(left)
            taken = f"{left.text} IS NOT {'FALSE' if e.op == 'and' else 'TRUE'}"
            right = _guard(right, taken, left.level)
        return combine(f"({left.text} {e.op.upper()} {right.text})", [left, right])

    def _Not(self, e: ir.Not) -> Sql:
        sql = self.lower(e.arg)
        return combine(f"(NOT {sql.text})", [sql])

    def _Coalesce(self, e: ir.Coalesce) -> Sql:
        first, *others = _operands(e)
        if len(others) > 1 and not any(part.fallible for part in others) and not e.type.is_dynamic:
            parts = [self.lower(part) for part in (first, *others)]
            return combine(f"coalesce({', '.join(part.text for part in parts)})", parts)
        left, right = self.lower(e.left), self.lower(e.right)
        if right.failures or e.left.type.is_dynamic:
            left = self.builder.bind(left)
        missing = ph.is_null_sql(left.text, e.left.type)
        if right.failures:
            right = _guard(right, missing, left.level)
        if e.left.type.is_dynamic:
            return combine(f"CASE WHEN {missing} THEN {right.text} ELSE {left.text} END", [left, right])
        return combine(f"coalesce({left.text}, {right.text})", [left, right])

    def _If(self, e: ir.If) -> Sql:
        conditions = [self.lower(condition) for condition in e.conditions]
        values = [self.lower(value) for value in (*e.values, e.otherwise)]
        if len(conditions) == 1 and any(value.failures for value in values):
            condition = self.builder.bind(conditions[0])
            conditions = [condition]
            values = [
                _guard(values[0], f"{condition.text} IS TRUE", condition.level),
                _guard(values[1], f"{condition.text} IS NOT TRUE", condition.level),
            ]
        elif any(part.failures for part in (*conditions[1:], *values)):
            return self._numbered(conditions, values)
        arms = " ".join(f"WHEN {c.text} THEN {v.text}" for c, v in zip(conditions, values, strict=False))
        return combine(f"CASE {arms} ELSE {values[-1].text} END", [*conditions, *values])

    def _numbered(self, conditions: Sequence[Sql], values: Sequence[Sql]) -> Sql:
        """Branches that can fail, by the number of the one that is taken: so each guard is short."""
        arms = " ".join(f"WHEN {c.text} THEN {i}" for i, c in enumerate(conditions))
        number = combine(f"CASE {arms} ELSE {len(conditions)} END", [c.bare() for c in conditions])
        taken = self.builder.bind(number)
        failures: list[Failing] = []
        for i, value in enumerate(values):
            if i < len(conditions):
                reached = _guard(conditions[i], f"{taken.text} >= {i}", taken.level) if i else conditions[i]
                failures += reached.failures
            failures += _guard(value, f"{taken.text} = {i}", taken.level).failures
        arms = " ".join(f"WHEN {i} THEN {v.text}" for i, v in enumerate(values[:-1]))
        text = f"CASE {taken.text} {arms} ELSE {values[-1].text} END"
        return combine(text, [taken, *(v.bare() for v in values)], failures)

    def _LetIn(self, e: ir.LetIn) -> Sql:
        value = self.bound(e.value)
        self.slots[e.slot] = value
        body = self.lower(e.body)
        return Sql(body.text, body.level, body.depth, value.failures + body.failures, body.variables, body.simple)

    # ----------------------------------------------------------- containers

    def _MakeArray(self, e: ir.MakeArray) -> Sql:
        items = [self.lower(item) for item in e.items]
        if is_limited(e):
            items = [self.builder.bind(item) for item in items]
        made = combine(f"array({', '.join(i.text for i in items)})", items)
        return self._limited(made, e, zip(items, e.items, strict=True))

    def _limited(self, made: Sql, e: ir.TExpr, parts: Iterable[tuple[Sql, ir.TExpr]]) -> Sql:
        """A literal with its bound: the sizes of its parts, which are bound to columns, and its entries."""
        if not is_limited(e):
            return made
        sizes = [size for sql, part in parts if (size := size_sql(sql.text, part.type)) is not None]
        entries = len(e.items) if isinstance(e, ir.MakeArray) else len(e.values) if isinstance(e, ir.MakeMap) else 0
        return combine(made.text, [made], [too_large(" + ".join([str(ENTRY_BYTES * entries), *sizes]), made.level)])

    def _MakeMap(self, e: ir.MakeMap) -> Sql:
        keys = [self.bound(k) for k in e.keys]
        limited = is_limited(e)
        values = [self.bound(v) if limited else self.lower(v) for v in e.values]
        computed = [k for k, typed in zip(keys, e.keys, strict=True) if not isinstance(typed, ir.Const)]
        parts = [part for pair in zip(keys, values, strict=True) for part in pair]
        made = f"map({', '.join(p.text for p in parts)})"
        typed = zip((*keys, *values), (*e.keys, *e.values), strict=True)
        if not computed:
            return self._limited(combine(made, parts), e, typed)
        array = self.builder.bind(combine(f"array({', '.join(k.text for k in keys)})", [k.bare() for k in keys]))
        null_key = " OR ".join(f"{k.text} IS NULL" for k in computed)
        duplicate = f"size(array_distinct({array.text})) < {len(keys)}"
        failures = (
            Failing(null_key, _text(ErrorKind.TYPE_MISMATCH.value), NO_VALUE, _text(NULL_KEY), array.level),
            Failing(
                duplicate,
                _text(ErrorKind.DUPLICATE_MAP_KEY.value),
                first_repeated(array.text),
                _text(DUPLICATE_KEY),
                array.level,
            ),
        )
        # A null or repeated key would throw in map(), so it is not built then.
        guarded = f"CASE WHEN {null_key} OR {duplicate} THEN NULL ELSE {made} END"
        return self._limited(combine(guarded, [array, *parts], failures), e, typed)

    def _HigherOrder(self, e: ir.HigherOrder) -> Sql:
        from clinker_spark.cxl.lower.closures import lower_higher_order

        return lower_higher_order(self, e)

    def _Comprehend(self, e: ir.Comprehend) -> Sql:
        from clinker_spark.cxl.lower.closures import lower_comprehension

        return lower_comprehension(self, e)

    # ------------------------------------------------------------ many rows

    def _AggregateCall(self, e: ir.AggregateCall) -> Sql:
        assert self.aggregates is not None
        return self.aggregates(e)

    def _WindowRef(self, e: ir.WindowRef) -> Sql:
        from clinker_spark.cxl.lower.windows import lower_window

        return lower_window(self, e)


def _operands(e: ir.TExpr, op: str | None = None) -> list[ir.TExpr]:
    """What a tree of one lazy operator joins, in order."""
    found: list[ir.TExpr] = []
    waiting = [e]
    while waiting:
        node = waiting.pop()
        alike = isinstance(node, ir.Logic) and node.op == op if op else isinstance(node, ir.Coalesce)
        if alike and isinstance(node, ir.Logic | ir.Coalesce) and node.type.is_dynamic == e.type.is_dynamic:
            waiting += (node.right, node.left)
        else:
            found.append(node)
    return found


def _texts(e: ir.Call) -> list[ir.TExpr]:
    """The texts that are joined by a tree of `+`, in order."""
    found: list[ir.TExpr] = []
    waiting: list[ir.TExpr] = [e]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ir.Call) and node.overload is e.overload:
            waiting += reversed(node.args)
        else:
            found.append(node)
    return found


def sql_template(overload: Overload, types: Sequence[Type], literals: Sequence[Any]) -> str | None:
    """The overload's SQL with a mark for each argument; constants are filled in. None: it has no SQL."""
    if overload.sql is None:
        return None
    if isinstance(overload.sql, str):
        return _HOLE.sub(lambda m: "{r}" if m.group(1) == "r" else f"\x01{m.group(1)}\x01", overload.sql)
    marks = [f"\x01{i}\x01" for i in range(len(types))]
    return overload.sql(SqlCall(marks, literals, [t.unwrap() for t in types]))


def _when(f: Failure, builtin: Builtin, literals: Sequence[Any]) -> str:
    """The failure's condition as a template with marks."""
    if f.when:
        return _HOLE.sub(lambda m: "{r}" if m.group(1) == "r" else f"\x01{m.group(1)}\x01", f.when)
    seen = range(len(literals)) if builtin.nulls is Nulls.PROPAGATE else range(1)
    present = [f"\x01{i}\x01 IS NOT NULL" for i in seen if literals[i] is NOT_LITERAL]
    return " AND ".join(["{r} IS NULL", *present])


def _fill(template: str, args: Sequence[Sql], result: str = "") -> str:
    """The template with its arguments in place, and `{r}`, where it stands, as the result."""
    return _FILLED.sub(lambda m: args[int(m.group(1))].text if m.group(1) else result, template)


def _guard(sql: Sql, guard: str, level: int) -> Sql:
    """Failures only count where the branch is taken."""
    failures = tuple(f.guarded(guard, level) for f in sql.failures)
    return Sql(sql.text, sql.level, sql.depth, failures, sql.variables, sql.simple)


def _text(text: str) -> str:
    return sql_string(text)


def _overflowed(sql: str, a: Type, b: Type) -> str:
    """Is there a decimal in the value that widening would lose?"""
    if a.kind in (Kind.ARRAY, Kind.MAP):
        elements = sql if a.kind is Kind.ARRAY else f"map_values({sql})"
        inner = _overflowed("cxl_e", a.element or ANY, b.element or ANY)
        return f"coalesce(exists({elements}, cxl_e -> {inner}), FALSE)"
    return f"({sql} IS NOT NULL AND {ph.widen_sql(sql, a, b)} IS NULL)"


def too_large(size: str, level: int) -> Failing:
    """The failure of building more than a record may."""
    kind = _text(ErrorKind.CONSTRUCTION_LIMIT_EXCEEDED.value)
    return Failing(f"{size} > {MAX_CONSTRUCTED_BYTES}", kind, NO_VALUE, _text(TOO_LARGE), level, size=size)


def first_repeated(array: str) -> str:
    """The first element of an array of strings that stands in it twice."""
    return f"get(filter({array}, cxl_e -> size(filter({array}, cxl_f -> cxl_f = cxl_e)) > 1), 0)"
