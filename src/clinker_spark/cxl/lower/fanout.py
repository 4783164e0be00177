"""Lowering `emit each`: an array of leaf records per input record, each with its columns and its error.

All leaves of a record are computed before any is let out, because one leaf that fails takes the whole
record with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from clinker_spark.core.types import ANY, ARRAY, MAP, Kind, Type, array_of
from clinker_spark.cxl import ir
from clinker_spark.cxl.builtins import physical as ph
from clinker_spark.cxl.builtins.sqltext import sql_string
from clinker_spark.cxl.builtins.text import sql_text
from clinker_spark.cxl.check.infer.overloads import shown_as, traced
from clinker_spark.cxl.errors import NOT_AN_ARRAY, ErrorKind, expansion_message
from clinker_spark.cxl.hidden import LEAF_EMPTY_FIELD, LEAF_ERROR_FIELD, variable_column
from clinker_spark.cxl.ir import expressions_of
from clinker_spark.cxl.lower.errors import NO_ERROR, Named, failing, first_error, passed_on_whole
from clinker_spark.cxl.lower.expressions.python_calls import python_reason
from clinker_spark.cxl.lower.lowering import Lowering
from clinker_spark.cxl.lower.plan import Failing, Sql, combine, quote, variables_in


@dataclass
class BlockLowering:
    """Lowers one top-level block of a program."""

    program: ir.TypedProgram
    lowering: Lowering
    emitted: Mapping[str, Sql]
    """What the record has emitted before the block."""
    earlier: Sequence[Sql]
    """The leaves of the blocks before this one."""

    def __post_init__(self) -> None:
        self.builder = self.lowering.builder
        self.columns = leaf_columns(self.program)
        self.can_fail = _leaves_can_fail(self.program)

    def lower(self, block: ir.TEach) -> tuple[Sql, list[Named]]:
        """The leaves of the block as a column, and how the block can fail."""
        if any(python_reason(node) for e in expressions_of((block,)) for node in e.walk()):
            leaves, failures = self._in_python(block)
        else:
            leaves, failures = self._natively(block)
        return leaves, [*failures, (self._too_many(leaves), None)]

    def _natively(self, block: ir.TEach) -> tuple[Sql, list[Named]]:
        made, source_failures = self._block(block, {})
        leaves = self.builder.bind(made.bare())
        failures: list[Named] = [(f, None) for f in source_failures]
        if self.can_fail:  # leaves beyond the limit are never made, so they do not fail
            limit = self.program.max_expansion
            most = f"CAST(greatest({limit} - ({self._made_before()}), 0) AS INT)" if self.earlier else limit
            within = f"slice({leaves.text}, 1, {most})"
            error = quote(LEAF_ERROR_FIELD)
            found = f"get(filter({within}, cxl_l -> cxl_l.{error} IS NOT NULL), 0).{error}"
            first = self.builder.bind(Sql(found, self._level(leaves)))
            failures.append((passed_on_whole(first.text, first.level), None))
        return leaves, failures

    def _made_before(self) -> str:
        """How many leaves the blocks before this one made: the limit counts all of a record."""
        return " + ".join(f"size({leaves.text})" for leaves in self.earlier)

    def _level(self, leaves: Sql) -> int:
        return max([leaves.level, *(earlier.level for earlier in self.earlier)])

    def _too_many(self, leaves: Sql) -> Failing:
        limit = self.program.max_expansion
        made = f"{self._made_before()} + size({leaves.text})" if self.earlier else f"size({leaves.text})"
        when, kind = f"{made} > {limit}", ErrorKind.EXPANSION_LIMIT_EXCEEDED
        return failing(when, kind, expansion_message(limit), self._level(leaves))

    def _in_python(self, block: ir.TEach) -> tuple[Sql, list[Named]]:
        """A block with a call that has no Spark expression: the interpreter makes its leaves."""
        output = self.program.output
        node = ir.FanOut(block.span, array_of(MAP), True, block, self.program.max_expansion, output)
        made = self.lowering.lower(node)
        own = set(_block_columns((block,)))
        texts = []
        for name in self.columns:
            before = self.emitted.get(name)
            text = before.text if before is not None else _null(output[name])
            if name in own:
                given = f"map_contains_key(cxl_m, {sql_string(name)})"
                text = f"CASE WHEN {given} THEN {_from_map(name, output[name])} ELSE {text} END"
            texts.append(f"{sql_string(name)}, {text}")
        if self.can_fail:  # not these, but the leaves of all blocks have one shape
            texts.append(f"'{LEAF_ERROR_FIELD}', {NO_ERROR}")
        leaf = f"named_struct({', '.join(texts)})" if texts else f"named_struct('{LEAF_EMPTY_FIELD}', 1)"
        leaves = self.builder.bind(combine(f"transform({made.text}, cxl_m -> {leaf})", [made.bare()]))
        return leaves, [(f, None) for f in made.failures]

    def _block(self, block: ir.TEach, emitted: dict[str, Sql]) -> tuple[Sql, list[Failing]]:
        """The leaves of one block inside `emitted`, and the failures of its source."""
        source, failures = self._elements(block)
        variable = self.lowering.open_lambda(block.slot)
        inner, nested = self._body(block.body, dict(emitted))
        closed = self.builder.close_lambda(inner)
        mapped = f"transform({source.text}, {variable} -> {closed.text})"
        return combine(f"flatten({mapped})" if nested else mapped, [source.bare(), closed]), failures

    def _elements(self, block: ir.TEach) -> tuple[Sql, list[Failing]]:
        """What is looped over: never null, one null element for an empty source of an outer block."""
        sql = self.lowering.bound(block.source)
        failures = list(sql.failures)
        if block.source.type.is_dynamic:
            kind = ph.kind_sql(sql.text)
            wrong = f"NOT {ph.is_null_sql(sql.text, ANY)} AND NOT {ph.variant_is(kind, Kind.ARRAY)}"
            value = sql_text(sql.text, ANY)
            failures.append(failing(wrong, ErrorKind.TYPE_MISMATCH, NOT_AN_ARRAY, sql.level, value))
            sql = self.builder.bind(combine(ph.narrow_sql(sql.text, ARRAY), [sql.bare()]))
        empty = f"CAST(array() AS ARRAY<{ph.physical(block.element)}>)"
        if block.outer:
            one_null = f"array(CAST(NULL AS {ph.physical(block.element)}))"
            text = f"CASE WHEN size({sql.text}) > 0 THEN {sql.text} ELSE {one_null} END"
        else:
            text = f"coalesce({sql.text}, {empty})"
        return combine(text, [sql.bare()]), failures

    def _body(self, body: tuple[ir.TStatement, ...], emitted: dict[str, Sql]) -> tuple[Sql, bool]:
        failures: list[Named] = []
        inner: list[Sql] = []
        for s in body:
            match s:
                case ir.TLet():
                    self.lowering.slots[s.slot] = self._value(s.value, None, failures)
                case ir.TEmit(scope=None):
                    plain = self._value(s.value, s.name, failures)
                    self.lowering.slots[s.slot] = plain
                    to = self.program.output.get(s.name)
                    if to is not None:  # None: no record has it, because only blocks before it make records
                        emitted[s.name] = self._value(shown_as(s.value, s.slot, to), s.name, failures)
                case ir.TEmit(scope=str(scope)):
                    name = variable_column(scope, s.name)
                    self.lowering.slots[s.slot] = self._value(s.value, name, failures)
                case ir.TTrace():
                    if (message := traced(s)).fallible:
                        self._value(message, None, failures)
                case ir.TBare():
                    if s.value.fallible:
                        self._value(s.value, None, failures)
                case ir.TEach():
                    leaves, source_failures = self._block(s, emitted)
                    failures += [(f, None) for f in source_failures]
                    inner.append(leaves)
        if not inner:
            return self._leaf(emitted, failures), False
        text = inner[0].text if len(inner) == 1 else f"concat({', '.join(i.text for i in inner)})"
        result = combine(text, inner)
        if failures:  # the failure of a body without leaves of its own needs a leaf to stand in
            error = first_error(failures)
            level = max(f.level for f, _ in failures)
            bound = self.builder.bind(Sql(error, level, 2, variables=_mentioned(failures)))
            stand_in = self._leaf({}, [(passed_on_whole(bound.text, bound.level), None)])
            text = f"CASE WHEN {bound.text} IS NOT NULL THEN array({stand_in.text}) ELSE {text} END"
            result = combine(text, [*inner, bound, stand_in])
        return result, True

    def _value(self, e: ir.TExpr, field: str | None, failures: list[Named]) -> Sql:
        sql = self.lowering.lower(e)
        failures += [(f, field) for f in sql.failures]
        return self.builder.bind(sql.bare())

    def _leaf(self, emitted: dict[str, Sql], failures: list[Named]) -> Sql:
        parts: list[Sql] = []
        texts: list[str] = []
        for name in self.columns:
            before = self.emitted.get(name)
            sql = emitted.get(name) or before or Sql(_null(self.program.output[name]))
            parts.append(sql.bare())
            texts.append(f"{sql_string(name)}, {sql.text}")
        if self.can_fail:
            texts.append(f"'{LEAF_ERROR_FIELD}', {first_error(failures) if failures else NO_ERROR}")
        level = max((f.level for f, _ in failures), default=0)
        made = combine(
            f"named_struct({', '.join(texts)})" if texts else f"named_struct('{LEAF_EMPTY_FIELD}', 1)", parts
        )
        return Sql(made.text, max(made.level, level), made.depth + 1, (), made.variables | _mentioned(failures))


def _mentioned(failures: Sequence[Named]) -> frozenset[str]:
    return variables_in(" ".join(f.when for f, _ in failures))


def _null(t: Type) -> str:
    return f"CAST(NULL AS {ph.physical(t)})"


def _leaves_can_fail(program: ir.TypedProgram) -> bool:
    return any(_can_fail(s) for s in program.statements if isinstance(s, ir.TEach))


def _can_fail(block: ir.TEach) -> bool:
    return any(
        (isinstance(s, ir.TEach) and (_can_fail(s) or s.source.type.is_dynamic))
        or any(getattr(getattr(s, f, None), "fallible", False) for f in ("value", "condition", "message", "source"))
        for s in block.body
    )


def _from_map(name: str, to: Type) -> str:
    """A column of a leaf that the interpreter made."""
    value = f"try_element_at(cxl_m, {sql_string(name)})"
    if to.is_dynamic:
        return value
    if to.kind is Kind.DECIMAL:
        return f"try_cast(try_variant_get({value}, '$', 'string') AS {ph.physical(to)})"
    return ph.narrow_sql(value, to)


def leaf_columns(program: ir.TypedProgram) -> list[str]:
    """The columns in which the records of a fan-out differ: all leaves have one shape.

    They are emitted in some block, or between two blocks: then only the records of the later ones have them."""
    blocks = [i for i, s in enumerate(program.statements) if isinstance(s, ir.TEach)]
    between = program.statements[blocks[0] : blocks[-1]]
    names = [s.name for s in between if isinstance(s, ir.TEmit) and s.scope is None]
    return list(dict.fromkeys([*_block_columns(program.statements), *names]))


def _block_columns(blocks: tuple[ir.TStatement, ...]) -> list[str]:
    """The columns that some record of these blocks emits, in order of first emission."""
    names: dict[str, None] = {}
    for block in blocks:
        if isinstance(block, ir.TEach):
            for inner in block.body:
                if isinstance(inner, ir.TEmit) and inner.scope is None:
                    names.setdefault(inner.name)
            for name in _block_columns(block.body):
                names.setdefault(name)
    return list(names)
