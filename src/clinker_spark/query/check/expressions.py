"""Types of expressions, found before anything runs. What is wrong is noted; an unknown type stops nothing."""

from __future__ import annotations

from dataclasses import replace

from clinker_spark.core.diagnostics.suggest import did_you_mean
from clinker_spark.core.span import Source, Span
from clinker_spark.core.types import BOOL, INT, STRING, Kind, Type
from clinker_spark.cxl.syntax import ast as cxl
from clinker_spark.query.check.base import Types
from clinker_spark.query.check.calls import CallChecker
from clinker_spark.query.check.declared import TypeTable
from clinker_spark.query.scopes import Scope
from clinker_spark.query.syntax import ast
from clinker_spark.query.types import (
    ANY,
    NULL,
    FunctionType,
    GroupType,
    ListType,
    MapType,
    QType,
    RecordType,
    element_of,
    fits,
    is_any,
    is_kind,
    is_null,
    is_number,
    type_of_value,
    unified,
    unify,
)


class ExpressionChecker(CallChecker):
    """Infers types of expressions. Queries and statements are added by the classes below it."""

    def __init__(self, source: Source, types: TypeTable) -> None:
        super().__init__(source, types)
        self.handlers |= {
            cxl.Literal: lambda e, s: type_of_value(e.value),
            cxl.Name: self._name,
            cxl.Member: self._member,
            cxl.Unary: self._unary,
            cxl.Binary: self._binary,
            cxl.If: self._if,
            cxl.Match: self._match,
            cxl.Call: self.call,
            cxl.MethodCall: self.method,
            cxl.Index: self._index,
            cxl.ArrayLiteral: self._list,
            cxl.MapLiteral: self._map,
            cxl.Comprehension: self._comprehension,
            ast.Lambda: self.function,
            ast.Apply: self.apply,
            ast.Slice: self._slice,
            ast.Cast: self._cast,
            ast.RecordLiteral: self._record,
            ast.Query: self.query,
            ast.Load: self.load,
        }

    # ------------------------------------------------------------------ names

    def _name(self, e: cxl.Name, scope: Types) -> QType:
        try:
            return scope.get(e.name)
        except KeyError:
            if e.name in self.types.variants:
                return ANY
            return self.unknown("name", e.name, e.span, scope)

    def _member(self, e: cxl.Member, scope: Types) -> QType:
        return self.member(self.infer(e.target, scope), e.name, e.name_span)

    def member(self, target: QType, name: str, span: Span) -> QType:
        match target:
            case RecordType():
                found = target.field(name)
                if found is not None:
                    return found.as_nullable() if target.nullable else found
                if target.open:
                    return ANY
                shown = f"the fields are {', '.join(target.names)}" if target.names else "the record has no fields"
                return self.unknown("field", name, span, target.names, shown)
            case GroupType(key=key, item=item):
                return self._group_member(target, key, item, name, span)
            case MapType(value=value):
                return value.as_nullable()
        if is_any(target) or is_null(target):
            return ANY
        return self.call_method(target, name, (), span)

    def _group_member(self, group: GroupType, key: QType, item: QType, name: str, span: Span) -> QType:
        if name == "key":
            return key
        if name == "items":
            return ListType(item)
        found = key.field(name) if isinstance(key, RecordType) else None
        if found is not None:
            return found
        if name == "count":
            return INT
        known = ["key", "items", "count", *(key.names if isinstance(key, RecordType) else ())]
        help_text = did_you_mean(name, known)
        if help_text is None:
            help_text = f"a group has key, items and count; for a field of its rows write from x in g select x.{name}"
        return self.note("E701", span, f"unknown field '{name}' of a group", help_text)

    # -------------------------------------------------------------- operators

    def _unary(self, e: cxl.Unary, scope: Types) -> QType:
        operand = self.infer(e.operand, scope)
        if e.op == "not":
            return BOOL
        if not (is_number(operand) or is_any(operand) or is_null(operand)):
            help_text = "only numbers have a sign; for descending order write 'desc'"
            return self.note("E702", e.span, f"cannot negate {operand:?}", help_text)
        return operand

    def _binary(self, e: cxl.Binary, scope: Types) -> QType:
        left, right = self.infer(e.left, scope), self.infer(e.right, scope)
        match e.op:
            case "and" | "or":
                return BOOL
            case "==" | "!=":
                if not _comparable(left, right):
                    self._mismatch(e, left, right)
                return BOOL
            case "<" | "<=" | ">" | ">=":
                if not _comparable(left, right) or isinstance(left, RecordType) or is_kind(left, Kind.BOOL):
                    self._mismatch(e, left, right)
                return BOOL
            case "in":
                if element_of(right) is None:
                    self.note("E702", e.right.span, f"'in' needs a list, a map or a text, not {right:?}")
                return BOOL
            case "??":
                return unify(left.unwrap(), right)
            case "union" | "union all" | "except" | "intersect":
                return self._set_operator(e, left, right)
        return self._arithmetic(e, left, right)

    def _mismatch(self, e: cxl.Binary, left: QType, right: QType) -> None:
        help_text = None
        if {Kind.DATE, Kind.STRING} <= {t.kind for t in (left, right) if isinstance(t, Type)}:
            help_text = "write a date as #2024-03-15#"
        elif isinstance(left, Type) and isinstance(right, Type):
            help_text = "convert one side: .to_int(), .to_float() or .to_string()"
        self.note("E702", e.span, f"cannot apply '{e.op}' to {left:?} and {right:?}", help_text)

    def _set_operator(self, e: cxl.Binary, left: QType, right: QType) -> QType:
        for side, t in ((e.left, left), (e.right, right)):
            if element_of(t) is None:
                self.note("E709", side.span, f"'{e.op}' needs a list, not {t:?}")
                return ANY
        dataset = any(isinstance(t, ListType) and t.dataset for t in (left, right))
        return ListType(unify(element_of(left) or ANY, element_of(right) or ANY), dataset)

    def _arithmetic(self, e: cxl.Binary, left: QType, right: QType) -> QType:
        if is_any(left) or is_any(right) or is_null(left) or is_null(right):
            return ANY
        nullable = left.nullable or right.nullable
        if e.op == "+" and isinstance(left, ListType | GroupType) and isinstance(right, ListType | GroupType):
            return ListType(unify(element_of(left) or ANY, element_of(right) or ANY))
        if e.op == "+" and is_kind(left, Kind.STRING) and is_kind(right, Kind.STRING):
            return STRING.as_nullable() if nullable else STRING
        if is_number(left) and is_number(right):
            made = unify(left.unwrap(), right.unwrap())
            if isinstance(made, Type) and made.kind is Kind.DECIMAL and e.op in "*/":
                made = Type(Kind.DECIMAL)
            return made.as_nullable() if nullable else made
        self._mismatch(e, left, right)
        return ANY

    def _if(self, e: cxl.If, scope: Types) -> QType:
        self.condition(e.condition, scope, "the condition of an if")
        then = self.infer(e.then, scope)
        return unify(then, self.infer(e.otherwise, scope) if e.otherwise is not None else NULL)

    def condition(self, e: cxl.Expr, scope: Types, what: str, code: str = "E702") -> None:
        """Notes a condition that can never be one: numbers, texts and dates. A row is true when it is there."""
        t = self.infer(e, scope)
        if is_kind(t, Kind.INT, Kind.FLOAT, Kind.DECIMAL, Kind.STRING, Kind.DATE, Kind.DATETIME):
            self.note(
                code, e.span, f"{what} must be true or false, not {t:?}", "compare it with something: == != < > in"
            )
        elif isinstance(t, FunctionType):
            self.note(code, e.span, f"{what} must be true or false, not a function")

    def _match(self, e: cxl.Match, scope: Types) -> QType:
        if e.subject is not None:
            self.infer(e.subject, scope)
        made: list[QType] = []
        for arm in e.arms:
            inner: Types = Scope(scope)
            if arm.pattern is not None:
                self._pattern(arm.pattern, inner)
            made.append(self.infer(arm.value, inner))
        return unified(made)

    def _pattern(self, pattern: cxl.Expr, scope: Types) -> None:
        if isinstance(pattern, cxl.Call) and pattern.function in self.types.variants:
            fields = self.types.variants[pattern.function].fields
            for (_, t), arg in zip(fields, pattern.args, strict=False):
                if isinstance(arg, cxl.Name):
                    scope.define(arg.name, self.types.resolve(t))
            return
        self.infer(pattern, scope)

    # ------------------------------------------------------ lists and records

    def _list(self, e: cxl.ArrayLiteral, scope: Types) -> QType:
        return ListType(unified([self.infer(item, scope) for item in e.items]))

    def _map(self, e: cxl.MapLiteral, scope: Types) -> QType:
        if any(entry.computed for entry in e.entries):
            pairs = [(self.infer(entry.key, scope), self.infer(entry.value, scope)) for entry in e.entries]
            return MapType(*(unified(types).as_nullable() for types in zip(*pairs, strict=True)))
        fields = {
            entry.key.value: self.infer(entry.value, scope) for entry in e.entries if isinstance(entry.key, cxl.Literal)
        }
        return RecordType(tuple(fields.items()), open=not fields)

    def _record(self, e: ast.RecordLiteral, scope: Types) -> QType:
        declared = self.types.records.get(e.type_name, ANY)
        for entry in e.entries:
            have = self.infer(entry.value, scope)
            if not (isinstance(entry.key, cxl.Literal) and isinstance(entry.key.value, str)):
                self.note("E702", entry.key.span, "the fields of a record are names")
                continue
            if not isinstance(declared, RecordType):
                continue
            want = declared.field(entry.key.value)
            if want is None:
                self.unknown(f"field of {e.type_name}", entry.key.value, entry.key.span, declared.names)
            elif not fits(have, want):
                message = f"field '{entry.key.value}' of {e.type_name} is {want:?}, not {have:?}"
                self.note("E702", entry.value.span, message)
        if isinstance(declared, RecordType):
            given = {entry.key.value for entry in e.entries if isinstance(entry.key, cxl.Literal)}
            missing = [n for n in declared.names if n not in given]
            if missing:
                self.note("E711", e.name_span, f"{e.type_name} needs the field {', '.join(missing)}")
            return replace(declared, fields=tuple((n, t.as_nullable()) for n, t in declared.fields))
        return ANY

    def _index(self, e: cxl.Index, scope: Types) -> QType:
        target, index = self.infer(e.target, scope), self.infer(e.index, scope)
        match target:
            case ListType(element=element):
                if is_kind(index, Kind.STRING, Kind.FLOAT, Kind.BOOL):
                    self.note("E702", e.index.span, f"a list is indexed with a whole number, not {index:?}")
                return element
            case RecordType():
                if isinstance(e.index, cxl.Literal) and isinstance(e.index.value, str):
                    return target.field(e.index.value) or ANY
            case MapType(value=value):
                return value.as_nullable()
            case Type(kind=Kind.STRING):
                return STRING
            case Type(kind=Kind.INT | Kind.FLOAT | Kind.BOOL):
                return self.note("E702", e.span, f"{target:?} has no elements")
        return ANY

    def _slice(self, e: ast.Slice, scope: Types) -> QType:
        for bound in (e.start, e.end):
            if bound is not None:
                self.infer(bound, scope)
        target = self.infer(e.target, scope)
        return ListType(target.item) if isinstance(target, GroupType) else target

    def _comprehension(self, e: cxl.Comprehension, scope: Types) -> QType:
        element = element_of(self.infer(e.source, scope))
        inner: Types = Scope(scope, {e.binding: element if element is not None else ANY})
        if e.condition is not None:
            self.condition(e.condition, inner, "the condition")
        return ListType(self.infer(e.value, inner))

    def _cast(self, e: ast.Cast, scope: Types) -> QType:
        self.infer(e.value, scope)
        return self.types.resolve(e.type)


def _comparable(a: QType, b: QType) -> bool:
    """Can the two ever be equal, or in order? Unknown types may turn out to be anything."""
    if is_any(a) or is_any(b) or is_null(a) or is_null(b):
        return True
    if isinstance(a, Type) and isinstance(b, Type):
        return a.kind is b.kind or (is_number(a) and is_number(b))
    lists, records = (ListType, GroupType), (RecordType, MapType)
    return (isinstance(a, lists) and isinstance(b, lists)) or (isinstance(a, records) and isinstance(b, records))
