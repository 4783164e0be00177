"""Types of expressions, found before anything runs. What is wrong is noted; an unknown type stops nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.span import Source, Span
from clinker_spark.core.suggest import did_you_mean
from clinker_spark.core.types import Kind
from clinker_spark.cxl import ast as cxl
from clinker_spark.cxl.builtins import methods
from clinker_spark.cxl.overloads import params_for
from clinker_spark.query import ast
from clinker_spark.query.declared import TypeTable
from clinker_spark.query.functions import FUNCTIONS, STATEMENT_FUNCTIONS, Function
from clinker_spark.query.names import SCALAR_AGGREGATES
from clinker_spark.query.scopes import Scope
from clinker_spark.query.types import (
    ANY,
    BOOL,
    INT,
    NULL,
    STRING,
    FunctionType,
    GroupType,
    ListType,
    MapType,
    QType,
    RecordType,
    Scalar,
    element_of,
    fits,
    from_core,
    is_any,
    is_kind,
    is_null,
    is_number,
    type_of_value,
    unify,
)

Types = Scope[QType]
_CLOSURES = ("map", "filter", "find", "any", "flat_map")


class ExpressionChecker:
    """Infers types. Queries and statements are added by the classes below it."""

    def __init__(self, source: Source, types: TypeTable) -> None:
        self.source = source
        self.types = types
        self.problems: list[Diagnostic] = []
        self.functions = 0
        """Bodies of functions around the statement that is looked at."""
        self._handlers: dict[type, Callable[[Any, Types], QType]] = {
            cxl.Literal: lambda e, s: type_of_value(e.value),
            cxl.Name: self._name,
            cxl.Member: self._member,
            cxl.Unary: self._unary,
            cxl.Binary: self._binary,
            cxl.If: self._if,
            cxl.Match: self._match,
            cxl.Call: self._call,
            cxl.MethodCall: self._method,
            cxl.Index: self._index,
            cxl.ArrayLiteral: self._list,
            cxl.MapLiteral: self._map,
            cxl.Comprehension: self._comprehension,
            ast.Lambda: self.function,
            ast.Apply: self._apply,
            ast.Slice: self._slice,
            ast.Cast: self._cast,
            ast.RecordLiteral: self._record,
            ast.Query: self.query,
            ast.Load: self.load,
        }

    def infer(self, e: cxl.Expr, scope: Types) -> QType:
        return self._handlers[type(e)](e, scope)

    # ---------------------------------------------- what the other checkers add

    def query(self, q: ast.Query, scope: Types) -> QType:
        raise NotImplementedError

    def load(self, e: ast.Load, scope: Types) -> QType:
        raise NotImplementedError

    def block(self, statements: Sequence[ast.Statement], scope: Types) -> None:
        raise NotImplementedError

    # -------------------------------------------------------------- reporting

    def note(self, code: str, span: Span, message: str, help_text: str | None = None) -> QType:
        phase = "resolve" if code == "E701" else "typecheck"
        if not any(p.span == span and p.code == code for p in self.problems):
            self.problems.append(Diagnostic(code, message, self.source, span, help_text, phase=phase))
        return ANY

    def unknown(self, what: str, name: str, span: Span, known: Iterable[str], else_help: str = "") -> QType:
        help_text = did_you_mean(name, known) or else_help or None
        return self.note("E701", span, f"unknown {what} '{name}'", help_text)

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
                    return found.as_nullable() if target.null else found
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
        return self._call_method(target, name, (), span)

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
            return self.note(
                "E702",
                e.span,
                f"cannot negate {operand}",
                "only numbers have a sign; for descending order write 'desc'",
            )
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
                    self.note("E702", e.right.span, f"'in' needs a list, a map or a text, not {right}")
                return BOOL
            case "??":
                return unify(left.present(), right)
            case "union" | "union all" | "except" | "intersect":
                return self._set_operator(e, left, right)
        return self._arithmetic(e, left, right)

    def _mismatch(self, e: cxl.Binary, left: QType, right: QType) -> None:
        help_text = None
        if {Kind.DATE, Kind.STRING} <= {t.kind for t in (left, right) if isinstance(t, Scalar)}:
            help_text = "write a date as #2024-03-15#"
        elif isinstance(left, Scalar) and isinstance(right, Scalar):
            help_text = "convert one side: .to_int(), .to_float() or .to_string()"
        self.note("E702", e.span, f"cannot apply '{e.op}' to {left} and {right}", help_text)

    def _set_operator(self, e: cxl.Binary, left: QType, right: QType) -> QType:
        for side, t in ((e.left, left), (e.right, right)):
            if element_of(t) is None:
                self.note("E709", side.span, f"'{e.op}' needs a list, not {t}")
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
            made = unify(left.present(), right.present())
            if isinstance(made, Scalar) and made.kind is Kind.DECIMAL and e.op in "*/":
                made = Scalar(Kind.DECIMAL)
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
            self.note(code, e.span, f"{what} must be true or false, not {t}", "compare it with something: == != < > in")
        elif isinstance(t, FunctionType):
            self.note(code, e.span, f"{what} must be true or false, not a function")

    def _match(self, e: cxl.Match, scope: Types) -> QType:
        if e.subject is not None:
            self.infer(e.subject, scope)
        made: QType | None = None
        for arm in e.arms:
            inner: Types = Scope(scope)
            if arm.pattern is not None:
                self._pattern(arm.pattern, inner)
            value = self.infer(arm.value, inner)
            made = value if made is None else unify(made, value)
        return made if made is not None else ANY

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
        element: QType | None = None
        for item in e.items:
            found = self.infer(item, scope)
            element = found if element is None else unify(element, found)
        return ListType(element if element is not None else ANY)

    def _map(self, e: cxl.MapLiteral, scope: Types) -> QType:
        if any(entry.computed for entry in e.entries):
            key: QType = NULL
            value: QType = NULL
            for entry in e.entries:
                key = unify(key, self.infer(entry.key, scope))
                value = unify(value, self.infer(entry.value, scope))
            return MapType(key, value)
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
                self.note("E702", entry.value.span, f"field '{entry.key.value}' of {e.type_name} is {want}, not {have}")
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
                    self.note("E702", e.index.span, f"a list is indexed with a whole number, not {index}")
                return element
            case RecordType():
                if isinstance(e.index, cxl.Literal) and isinstance(e.index.value, str):
                    return target.field(e.index.value) or ANY
            case MapType(value=value):
                return value.as_nullable()
            case Scalar(kind=Kind.STRING):
                return STRING
            case Scalar(kind=Kind.INT | Kind.FLOAT | Kind.BOOL):
                return self.note("E702", e.span, f"{target} has no elements")
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

    # ------------------------------------------------------------------ calls

    def function(self, e: ast.Lambda, scope: Types) -> FunctionType:
        params = tuple(self.types.resolve(p.type) if p.type is not None else ANY for p in e.params)
        inner: Types = Scope(scope, {p.name: t for p, t in zip(e.params, params, strict=True)})
        declared = self.types.resolve(e.result) if e.result is not None else None
        if isinstance(e.body, cxl.Expr):
            found = self.infer(e.body, inner)
            if declared is not None and not fits(found, declared):
                self.note("E702", e.body.span, f"the function gives {declared}, but this is {found}")
            return FunctionType(params, declared if declared is not None else found)
        self.functions += 1
        self.block(e.body, inner)
        self.functions -= 1
        return FunctionType(params, declared if declared is not None else ANY)

    def _apply(self, e: ast.Apply, scope: Types) -> QType:
        args = [self.infer(a, scope) for a in e.args]
        return self._call_value(self.infer(e.function, scope), args, e.args, e.function.span)

    def _call_value(self, function: QType, args: Sequence[QType], written: Sequence[cxl.Expr], span: Span) -> QType:
        if not isinstance(function, FunctionType):
            return ANY if is_any(function) else self.note("E702", span, f"{function} is not a function")
        if function.params is None:
            return function.result
        if len(args) > len(function.params):
            return self.note("E702", span, f"too many arguments: {len(args)} for {len(function.params)}")
        for have, want, place in zip(args, function.params, written, strict=False):
            if not fits(have, want):
                self.note("E702", place.span, f"expected {want}, but this is {have}")
        rest = function.params[len(args) :]
        return FunctionType(rest, function.result) if rest else function.result

    def _call(self, e: cxl.Call, scope: Types) -> QType:
        args = [self.infer(a, scope) for a in e.args]
        if e.function in scope:
            return self._call_value(scope.get(e.function), args, e.args, e.name_span)
        if e.function in self.types.variants:
            return ANY
        if e.function in STATEMENT_FUNCTIONS:
            return NULL
        if e.function == "reduce":
            return args[2] if len(args) == 3 else ANY
        row = FUNCTIONS.get(e.function)
        if row is not None and not (row.name in ("min", "max") and len(args) == 2):
            return self._builtin(row, args, e)
        if e.function in methods() and args:
            return self._call_method(args[0], e.function, args[1:], e.name_span)
        return self.unknown("function", e.function, e.name_span, [*scope, *FUNCTIONS, *methods()])

    def _builtin(self, row: Function, args: Sequence[QType], e: cxl.Call) -> QType:
        if len(args) < row.least or (row.most is not None and len(args) > row.most):
            wanted = str(row.least) if row.most == row.least else f"{row.least} or more"
            return self.note(
                "E702", e.span, f"{row.name}() takes {wanted} argument{'s' * (row.least != 1)}, not {len(args)}"
            )
        problem = row.check(args) if row.check is not None and args else None
        if problem is not None:
            outside = row.name in SCALAR_AGGREGATES and not isinstance(args[0], ListType | GroupType)
            if outside:
                help_text = f"group the rows first: group by … into g, then {row.name}(from x in g select x.…)"
                return self.note("E704", e.span, f"{row.name}() outside a group: it {problem}", help_text)
            return self.note("E702", e.args[0].span, f"{row.name}() {problem}")
        return row.result_type(args)

    def _method(self, e: cxl.MethodCall, scope: Types) -> QType:
        target = self.infer(e.receiver, scope)
        if e.method in _CLOSURES and e.args and isinstance(e.args[0], ast.Lambda):
            return self._higher_order(e, target, e.args[0], scope)
        args = [self.infer(a, scope) for a in e.args]
        if isinstance(target, RecordType) and isinstance(found := target.field(e.method), FunctionType):
            return self._call_value(found, args, e.args, e.name_span)
        return self._call_method(target, e.method, args, e.name_span)

    def _higher_order(self, e: cxl.MethodCall, target: QType, closure: ast.Lambda, scope: Types) -> QType:
        element = element_of(target)
        if element is None:
            return self.note("E702", e.name_span, f".{e.method}() needs a list, not {target}")
        inner: Types = Scope(scope, {p.name: element for p in closure.params})
        body = self.infer(closure.body, inner) if isinstance(closure.body, cxl.Expr) else ANY
        match e.method:
            case "map":
                return ListType(body)
            case "filter":
                return ListType(element)
            case "find":
                return element.as_nullable()
            case "any":
                return BOOL
        return ListType(element_of(body) or ANY)

    def _call_method(self, target: QType, name: str, args: Sequence[QType], span: Span) -> QType:
        builtin = methods().get(name)
        row = FUNCTIONS.get(name)
        if row is not None and (builtin is None or isinstance(target, ListType | GroupType | MapType | RecordType)):
            return row.result_type([target, *args])
        if builtin is None:
            return self.unknown("method", name, span, [*methods(), *FUNCTIONS])
        from clinker_spark.query.methods import choose

        found = choose(builtin, [target, *args])
        if found is not None:
            return from_core(found[1])
        if not any(params_for(o, len(args) + 1) for o in builtin.overloads):
            return self.note("E702", span, f"{name}() does not take {len(args)} arguments")
        shown = " and ".join(str(t) for t in (target, *args))
        return self.note("E702", span, f"{name}() does not take {shown}")


def _comparable(a: QType, b: QType) -> bool:
    """Can the two ever be equal, or in order? Unknown types may turn out to be anything."""
    if is_any(a) or is_any(b) or is_null(a) or is_null(b):
        return True
    if isinstance(a, Scalar) and isinstance(b, Scalar):
        return a.kind is b.kind or (is_number(a) and is_number(b))
    lists, records = (ListType, GroupType), (RecordType, MapType)
    return (isinstance(a, lists) and isinstance(b, lists)) or (isinstance(a, records) and isinstance(b, records))
