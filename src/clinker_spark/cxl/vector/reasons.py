"""Which programs have a vector form, found out before anything runs. No Polars here: the planner asks.

A form is only taken where it gives the value and the error of the other two engines. What has none ends a fragment,
and explain says which expression it was.
"""

from __future__ import annotations

from clinker_spark.core.types import Kind, Type
from clinker_spark.cxl import ir
from clinker_spark.cxl.builtins.families.aggregates import AGGREGATES
from clinker_spark.cxl.builtins.table import SqlCall
from clinker_spark.cxl.check.infer.overloads import literals_of, shown_as
from clinker_spark.cxl.system import PIPELINE_MEMBERS

KINDS = frozenset((Kind.NULL, Kind.BOOL, Kind.INT, Kind.FLOAT, Kind.DECIMAL, Kind.STRING, Kind.DATE, Kind.DATETIME))
"""The kinds of values that fragments compute with."""
_NODES = (
    ir.Const,
    ir.Field,
    ir.Slot,
    ir.SystemRef,
    ir.Call,
    ir.Widen,
    ir.Compare,
    ir.Logic,
    ir.Not,
    ir.Coalesce,
    ir.If,
    ir.LetIn,
)
_CONSTANT_SPACES = ("now", "vars", "config")
_STATEMENTS: dict[type[ir.TStatement], str] = {ir.TEach: "emit each", ir.TDistinct: "distinct"}
_WIDENED = {(Kind.INT, Kind.FLOAT), (Kind.FLOAT, Kind.INT), (Kind.INT, Kind.DECIMAL)}


def is_vector_type(t: Type) -> bool:
    """Are values of this type columns of a fragment?

    >>> from clinker_spark.core.types import ANY, INT
    >>> is_vector_type(INT), is_vector_type(ANY)
    (True, False)
    """
    return not t.is_dynamic and t.kind in KINDS


def is_vector_name(name: str) -> bool:
    """Is this the name of one column to Polars? Some are patterns.

    >>> is_vector_name("a b"), is_vector_name("*"), is_vector_name("^a.*$")
    (True, False, False)
    """
    return name != "*" and not (name.startswith("^") and name.endswith("$"))


def form_of(e: ir.Call) -> str | None:
    """The name of the function that computes a call over whole columns, below `cxl.vector.forms`."""
    form = e.overload.vector
    if form is None or isinstance(form, str):
        return form
    return form(SqlCall(["" for _ in e.args], literals_of(e.args), [a.type.unwrap() for a in e.args]))


def program_reason(program: ir.TypedProgram) -> str | None:
    """Why a program has no vector form, with the text that stands in the way; None when it has one."""
    text = program.source.text
    for statement in program.statements:
        if (word := _STATEMENTS.get(type(statement))) is not None:
            return f"'{word}' works on more than one record"
        if isinstance(statement, ir.TEmit) and statement.scope is not None:
            return f"'emit ${statement.scope}.{statement.name}' is read elsewhere"
        if isinstance(statement, ir.TEmit):
            shown = shown_as(statement.value, statement.slot, program.output[statement.name])
            if not is_vector_type(shown.type):
                return f"'{statement.name}' is of type {shown.type}"
    return next((why for e in program.expressions() if (why := expression_reason(e, text))), None)


def totals_reason(program: ir.TypedProgram) -> str | None:
    """Why workers cannot add up what an aggregate program asks for, with the text that stands in the way."""
    text = program.source.text
    for name in program.group_by:
        if not is_vector_type(t := program.schema[name]) or t.kind is Kind.NULL:
            return f"'{name}' is of type {t}"
        if t.kind is Kind.DECIMAL and t.scale is None:
            return f"'{name}' is a decimal whose scale is not known"
    for call in ir.aggregate_calls(program):
        kinds = AGGREGATES[call.function].vector
        if not kinds:
            return f"'{call.function}' has no vector form"
        for arg in call.args:
            if (why := expression_reason(arg, text)) is not None:
                return why
            if arg.type.kind not in kinds:
                return f"'{call.function}' takes values of type {arg.type}"
    filters = (s.predicate for s in program.statements if isinstance(s, ir.TFilter))
    return next((why for e in filters if (why := expression_reason(e, text))), None)


def expression_reason(e: ir.TExpr, text: str) -> str | None:
    """Why an expression has no vector form, with the part of its `text` that stands in the way."""
    for part in e.walk():
        if (why := _reason(part)) is not None:
            shown = " ".join(text[part.span.start : part.span.end].split()) or part.__class__.__name__
            return f"'{shown}' {why}"
    return None


def _reason(e: ir.TExpr) -> str | None:
    """Why a node by itself has no vector form."""
    if not isinstance(e, _NODES):
        return "has no vector form"
    if not is_vector_type(e.type):
        return f"is of type {e.type}"
    if isinstance(e, ir.SystemRef):
        constant = e.namespace in _CONSTANT_SPACES or (e.namespace == "pipeline" and e.path[0] in PIPELINE_MEMBERS)
        return None if constant else "is not the same for all records"
    if isinstance(e, ir.Call):
        if not all(is_vector_type(a.type) for a in e.args):
            return "takes values of other types"
        return None if form_of(e) is not None else "has no vector form"
    if isinstance(e, ir.Widen):
        kinds = (e.arg.type.kind, e.type.kind)
        plain = kinds[0] in (Kind.NULL, kinds[1]) or kinds in _WIDENED
        if kinds == (Kind.DECIMAL, Kind.DECIMAL) and e.arg.type.scale is None:
            plain = e.type.scale is None
        return None if plain and not e.arg.type.is_dynamic else "changes its type"
    if isinstance(e, ir.Compare):
        return None if is_vector_type(e.left.type) and is_vector_type(e.right.type) else "compares other types"
    return None
