"""What all lowerings share: names that are free, values as SQL, and the way to say that there is no Spark form."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from clinker_spark.core.span import Span
from clinker_spark.cxl.syntax import ast as cxl
from clinker_spark.query.check.declared import TypeTable
from clinker_spark.query.evaluate.expressions import FunctionValue
from clinker_spark.query.failures import Failed
from clinker_spark.query.lower.guards import Guarding
from clinker_spark.query.lower.spelling import literal
from clinker_spark.query.lower.values import Column, GroupRef, Local, Relation, Rows, SparkDataset, Value, list_type
from clinker_spark.query.scopes import Scope
from clinker_spark.query.syntax import ast
from clinker_spark.query.types import ANY, QType, RecordType, type_of_value
from clinker_spark.query.values import Dataset
from clinker_spark.sql.build import struct, when

Env = Scope[Value]


class LoweringBase(Guarding):
    """Lowers expressions by a table of handlers, one for each kind of node."""

    def __init__(self, types: TypeTable) -> None:
        super().__init__()
        self.types = types
        self._count = 0
        self.handlers: dict[type, Callable[[Any, Env], Value]] = {}

    def fresh(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}{self._count}"

    def lower(self, e: cxl.Expr, scope: Env) -> Value:
        handler = self.handlers.get(type(e))
        if handler is None:
            self.no_form(e.span, f"this {type(e).__name__.lower()} cannot run on Spark")
        with failing_at(e.span):
            return handler(e, scope)

    def no_form(self, span: Span, message: str, help_text: str | None = None) -> NoReturn:
        raise Failed(message, help_text, span=span, code="E708")

    # ------------------------------------------- what the other lowerings add

    def query(self, q: ast.Query, scope: Env) -> Value:
        raise NotImplementedError

    def set_operator(self, e: cxl.Binary, scope: Env) -> Value:
        raise NotImplementedError

    def aggregate(self, e: cxl.Call, scope: Env) -> Value | None:
        """An aggregate over rows, a group or an array; None when the argument is none of them."""
        raise NotImplementedError

    def rows_as_array(self, relation: Relation) -> Column:
        raise NotImplementedError

    def contains_row(self, relation: Relation, value: Value, *, exact: bool) -> Column:
        raise NotImplementedError

    # ---------------------------------------------------------- values as SQL

    def column(self, e: cxl.Expr, scope: Env) -> Column:
        value = self.lower(e, scope)
        with failing_at(e.span):
            return self.to_column(value)

    def to_column(self, value: Value) -> Column:
        """A value as one SQL expression."""
        match value:
            case Column():
                return value
            case Local(value=FunctionValue()):
                raise Failed("a function is no value on Spark", code="E708")
            case Local(value=SparkDataset(relation=relation)):
                return self.rows_as_array(relation)
            case Local(value=constant):
                return Column(*literal(constant))
            case Rows(relation=relation):
                return self.rows_as_array(relation)
            case GroupRef(context=context):
                made: Column = context.array()
                return made
        parts = {name: self.to_column(field) for name, field in value.fields.items()}
        t = RecordType(tuple((name, c.type) for name, c in parts.items()), row_of=value.row_of)
        record = struct((name, c.sql) for name, c in parts.items())
        if value.presence is None:
            return Column(record, t)
        return Column(when(value.presence.sql(), record), t.as_nullable())

    def type_of(self, value: Value) -> QType:
        match value:
            case Column(type=t):
                return t
            case Local(value=constant):
                return ANY if isinstance(constant, FunctionValue | Dataset) else type_of_value(constant)
            case Rows(relation=relation):
                return list_type(relation)
            case GroupRef(type=t):
                return t
        made = RecordType(tuple((n, self.type_of(f)) for n, f in value.fields.items()), row_of=value.row_of)
        return made.as_nullable() if value.presence is not None else made


@contextmanager
def failing_at(span: Span) -> Iterator[None]:
    """What fails here and does not know its place has this one."""
    try:
        yield
    except Failed as failed:
        failed.span = failed.span or span
        raise


def local_scope(scope: Scope[Any]) -> Env:
    """The program's values as values of the lowering, looked up when they are needed."""
    return _LocalScope(scope)


class _LocalScope(Scope[Value]):
    def __init__(self, values: Scope[Any]) -> None:
        super().__init__()
        self._values = values

    def get(self, name: str) -> Value:
        return Local(self._values.get(name))

    def __contains__(self, name: str) -> bool:
        return name in self._values
