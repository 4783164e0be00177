"""Running expressions on plain values. Failures are `Failed`, with the place of the innermost expression."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Any

from clinker_spark.core.span import Span
from clinker_spark.cxl.builtins.calls import run_dynamic
from clinker_spark.cxl.builtins.table import PATTERN_HELP
from clinker_spark.cxl.check.infer.overloads import params_for
from clinker_spark.cxl.errors import Fail
from clinker_spark.cxl.regex.patterns import RegexError
from clinker_spark.cxl.syntax import ast as cxl
from clinker_spark.query import values
from clinker_spark.query.check.declared import TypeTable
from clinker_spark.query.evaluate.casts import cast
from clinker_spark.query.evaluate.functions import items
from clinker_spark.query.evaluate.operators import operate
from clinker_spark.query.facts import Facts
from clinker_spark.query.failures import Failed
from clinker_spark.query.functions import FUNCTIONS, Function, function
from clinker_spark.query.methods import method
from clinker_spark.query.scopes import Scope
from clinker_spark.query.syntax import ast
from clinker_spark.query.types import RecordType
from clinker_spark.query.values import Dataset, Group, JoinedRow, NamedRow, equal, truthy

Env = Scope[Any]


@dataclass(eq=False)
class FunctionValue:
    """A function with the scope it was made in."""

    node: ast.Lambda
    scope: Env
    name: str = "function"


class ExpressionEvaluator:
    """Evaluates expressions. Statements and queries are added by the classes below it."""

    types: TypeTable

    def __init__(self, types: TypeTable, facts: Facts) -> None:
        self.types = types
        self.facts = facts
        self._handlers: dict[type, Callable[[Any, Env], Any]] = {
            cxl.Literal: lambda e, s: e.value,
            cxl.Name: self._name,
            cxl.Member: self._member,
            cxl.Unary: self._unary,
            cxl.Binary: self._binary,
            cxl.If: self._if,
            cxl.Match: self._match,
            cxl.Call: self._call,
            cxl.MethodCall: self._method,
            cxl.Index: self._index,
            cxl.ArrayLiteral: lambda e, s: [self.eval(item, s) for item in e.items],
            cxl.MapLiteral: self._map,
            cxl.Comprehension: self._comprehension,
            ast.Lambda: lambda e, s: FunctionValue(e, s),
            ast.Apply: lambda e, s: self.apply(self.eval(e.function, s), [self.eval(a, s) for a in e.args]),
            ast.Slice: self._slice,
            ast.Cast: lambda e, s: cast(self.local(self.eval(e.value, s)), self.types.resolve(e.type)),
            ast.RecordLiteral: self._record,
            ast.Query: self.query,
            ast.Load: self.load,
        }

    def eval(self, e: cxl.Expr, scope: Env) -> Any:
        try:
            return self._handlers[type(e)](e, scope)
        except Failed as failed:
            if failed.span is None:
                failed.span = e.span
            raise
        except Fail as fail:
            raise Failed(fail.kind.value.replace("_", " "), span=e.span) from None
        except MemoryError:
            raise Failed("the value does not fit the memory", "make a smaller one", span=e.span) from None
        except RegexError as error:  # of a pattern that is computed; others are checked before
            raise Failed(f"invalid regex pattern: {error}", PATTERN_HELP, span=e.span) from None

    # -------------------------------------------- what the other evaluators add

    def query(self, q: ast.Query, scope: Env) -> Any:
        raise NotImplementedError

    def load(self, e: ast.Load, scope: Env) -> Any:
        raise NotImplementedError

    def call_function(self, function: FunctionValue, args: Sequence[Any]) -> Any:
        raise NotImplementedError

    def statement_function(self, name: str, args: Sequence[Any]) -> Any:
        raise NotImplementedError

    def local(self, value: Any) -> Any:
        """The value itself; rows on Spark as a list. Only for consumers that need all of them, in order."""
        return value

    def held(self, value: Any, what: str, help_text: str) -> Any:
        """The value, which must be in the program already: rows on Spark are not fetched behind the user's back."""
        if isinstance(value, Dataset):
            raise Failed(f"{what} would fetch all rows from Spark", help_text, code="E708")
        return value

    def on_spark(self, e: cxl.Expr, scope: Env) -> Any:
        """The value of an expression over rows on Spark, or NotImplemented when it is not one."""
        return NotImplemented

    # ----------------------------------------------------------------- names

    def _name(self, e: cxl.Name, scope: Env) -> Any:
        try:
            return scope.get(e.name)
        except KeyError:
            if e.name in self.types.variants:
                return {"__name": e.name}
            raise Failed(f"unknown name '{e.name}'", code="E701") from None

    def _member(self, e: cxl.Member, scope: Env) -> Any:
        target = self.eval(e.target, scope)
        if isinstance(target, JoinedRow | NamedRow):
            return target.field(e.name)
        if isinstance(target, dict):
            return target.get(e.name)
        if target is None:
            return None
        if isinstance(target, Group):
            return _group_member(target, e.name)
        return self._call_method(target, e.name, [])

    def _map(self, e: cxl.MapLiteral, scope: Env) -> Any:
        made: dict[Any, Any] = {}
        for entry in e.entries:
            key = self.eval(entry.key, scope)
            made[key] = self.local(self.eval(entry.value, scope))
        return made

    def _record(self, e: ast.RecordLiteral, scope: Env) -> Any:
        made = {
            entry.key.value: self.eval(entry.value, scope) for entry in e.entries if isinstance(entry.key, cxl.Literal)
        }
        if e.type_name in self.types.variants:
            return {"__name": e.type_name, **made}
        declared = self.types.records.get(e.type_name)
        if isinstance(declared, RecordType):
            return {name: cast(made.get(name), t) for name, t in declared.fields if name in made}
        return made

    # ------------------------------------------------------------- operators

    def _unary(self, e: cxl.Unary, scope: Env) -> Any:
        value = self.local(self.eval(e.operand, scope))
        if e.op == "not":
            return not truthy(value)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
            raise Failed(f"cannot negate {values.show(value, False)}")
        return -value

    def _binary(self, e: cxl.Binary, scope: Env) -> Any:
        if e.op in ("union", "union all", "except", "intersect"):
            found = self.on_spark(e, scope)
            if found is not NotImplemented:
                return found
        left = self.eval(e.left, scope)
        if e.op == "+" and isinstance(left, Dataset):  # one list after the other, as rows
            return self.on_spark(cxl.Binary(e.span, "union all", e.left, e.right, e.op_span), scope)
        left = self.local(left)
        if e.op == "and":
            return truthy(left) and truthy(self.local(self.eval(e.right, scope)))
        if e.op == "or":
            return truthy(left) or truthy(self.local(self.eval(e.right, scope)))
        if e.op == "??":
            return left if left is not None else self.eval(e.right, scope)
        return operate(e.op, left, self.local(self.eval(e.right, scope)))

    def _if(self, e: cxl.If, scope: Env) -> Any:
        if truthy(self.local(self.eval(e.condition, scope))):
            return self.eval(e.then, scope)
        return self.eval(e.otherwise, scope) if e.otherwise is not None else None

    def _match(self, e: cxl.Match, scope: Env) -> Any:
        subject = self.local(self.eval(e.subject, scope)) if e.subject is not None else None
        for arm in e.arms:
            inner: Env = Scope(scope)
            if arm.pattern is None:
                return self.eval(arm.value, scope)
            if e.subject is None:
                matched = truthy(self.eval(arm.pattern, scope))
            else:
                matched = self._matches(arm.pattern, subject, inner)
            if matched:
                return self.eval(arm.value, inner)
        return None

    def _matches(self, pattern: cxl.Expr, value: Any, scope: Env) -> bool:
        """Compares with a value, or with a case of a union, whose fields are then bound."""
        name = pattern.name if isinstance(pattern, cxl.Name) else getattr(pattern, "function", None)
        if isinstance(name, str) and name in self.types.variants:
            if not (isinstance(value, dict) and value.get("__name") == name):
                return False
            fields = self.types.variants[name].fields
            for (field_name, _), arg in zip(fields, getattr(pattern, "args", ()), strict=False):
                if isinstance(arg, cxl.Name) and arg.name != "_":
                    scope.define(arg.name, value.get(field_name))
            return True
        return equal(self.eval(pattern, scope), value)

    # ----------------------------------------------------------------- lists

    def _index(self, e: cxl.Index, scope: Env) -> Any:
        target = self.held(self.eval(e.target, scope), "an index", "use first(…), or skip and take")
        index = self.eval(e.index, scope)
        if target is None:
            return None
        if isinstance(target, dict):
            return target.get(index) if not isinstance(index, list | dict) else None
        found = target if isinstance(target, str) else items(target)
        if not isinstance(index, int) or isinstance(index, bool):
            raise Failed(f"cannot index with {values.show(index, False)}", "use a whole number")
        if not -len(found) <= index < len(found):
            raise Failed(f"index {index} is out of range: there are {len(found)} elements")
        return found[index]

    def _slice(self, e: ast.Slice, scope: Env) -> Any:
        target = self.held(self.eval(e.target, scope), "a slice", "use skip and take")
        start = self.eval(e.start, scope) if e.start is not None else None
        end = self.eval(e.end, scope) if e.end is not None else None
        if target is None:
            return None
        for bound in (start, end):
            if bound is not None and (isinstance(bound, bool) or not isinstance(bound, int)):
                raise Failed(f"a slice goes from one whole number to another, not to {values.show(bound, False)}")
        return target[start:end] if isinstance(target, str) else items(target)[start:end]

    def _comprehension(self, e: cxl.Comprehension, scope: Env) -> Any:
        made = []
        source = self.held(self.eval(e.source, scope), "a comprehension", "write a query: from x in …")
        for item in items(source):
            inner: Env = Scope(scope, {e.binding: item})
            if e.condition is None or truthy(self.eval(e.condition, inner)):
                made.append(self.eval(e.value, inner))
        return made

    # ----------------------------------------------------------------- calls

    def _call(self, e: cxl.Call, scope: Env) -> Any:
        if e.function in scope:
            return self.apply(scope.get(e.function), [self.eval(a, scope) for a in e.args])
        if e.function in self.types.variants:
            fields = self.types.variants[e.function].fields
            given = [self.eval(a, scope) for a in e.args]
            return {"__name": e.function, **{n: v for (n, _), v in zip(fields, given, strict=False)}}
        if e.function in ("print", "json"):
            return self.statement_function(e.function, [self.eval(a, scope) for a in e.args])
        row = function(e.function, len(e.args))
        if row is not None and (row.aggregate or row.name == "len"):
            found = self.on_spark(e, scope)
            if found is not NotImplemented:
                return found
        help_text = "use an aggregate, or write it as a query"
        args = [self.held(self.eval(a, scope), f"{e.function}()", help_text) for a in e.args]
        if e.function == "reduce" and len(args) == 3:
            return self._reduce(args)
        if row is not None:
            if len(args) < row.least or (row.most is not None and len(args) > row.most):
                raise Failed(f"{row.name}() takes {row.least} argument{'s' * (row.least != 1)}, not {len(args)}")
            return self.facts.total(e, run_row(row, args))
        if args and method(e.function) is not None:
            return self._call_method(args[0], e.function, args[1:])
        raise Failed(f"unknown function '{e.function}'", code="E701")

    def _reduce(self, args: Sequence[Any]) -> Any:
        total = args[2]
        for item in items(args[0]):
            total = self.apply(args[1], [total, item])
        return total

    def apply(self, function: Any, args: Sequence[Any]) -> Any:
        if isinstance(function, FunctionValue):
            params = function.node.params
            if len(args) > len(params):
                raise Failed(f"too many arguments: {len(args)} for {len(params)}")
            if len(args) < len(params):
                return partial(lambda *more: self.call_function(function, [*args, *more]))
            return self.call_function(function, args)
        if callable(function):
            return function(*args)
        raise Failed(f"{values.show(function, False)} is not a function")

    def _method(self, e: cxl.MethodCall, scope: Env) -> Any:
        target = self.held(self.eval(e.receiver, scope), f".{e.method}()", "write a query: from x in …")
        args = [self.local(self.eval(a, scope)) for a in e.args]
        if isinstance(target, dict) and isinstance(target.get(e.method), FunctionValue):
            return self.apply(target[e.method], args)
        return self.facts.total(e, self._call_method(target, e.method, args, e.name_span))

    def _call_method(self, target: Any, name: str, args: list[Any], span: Span | None = None) -> Any:
        if isinstance(target, Group):
            target = target.items
        if args and isinstance(args[0], FunctionValue):
            return self._higher_order(target, name, args[0])
        if isinstance(target, dict | list) and name in FUNCTIONS:
            return run_row(FUNCTIONS[name], [target, *args])
        builtin = method(name)
        if builtin is not None:
            taken = [o for o in builtin.overloads if params_for(o, len(args) + 1) is not None]
            return run_dynamic(builtin, taken, [target, *args])
        if name in FUNCTIONS:
            return run_row(FUNCTIONS[name], [target, *args])
        raise Failed(f"unknown field or method '{name}'", span=span, code="E701")

    def _higher_order(self, target: Any, name: str, function: FunctionValue) -> Any:
        if target is None:
            return None
        found = items(target)
        results = (self.apply(function, [item]) for item in found)
        match name:
            case "map":
                return list(results)
            case "filter":
                return [item for item, keep in zip(found, results, strict=True) if truthy(keep)]
            case "find":
                return next((item for item, keep in zip(found, results, strict=True) if truthy(keep)), None)
            case "any":
                return any(truthy(r) for r in results)
            case "flat_map":
                return [x for r in results for x in items(r)]
        raise Failed(f"unknown method '{name}'", code="E701")


def run_row(row: Function, args: Sequence[Any]) -> Any:
    """A function of the table. Arguments that only turn out to be wrong at run time are a failure of the program."""
    try:
        return row.run(*args)
    except (TypeError, AttributeError, ValueError, OverflowError):
        shown = ", ".join(values.show(a, False)[:60] for a in args)
        raise Failed(f"{row.name}() does not take ({shown})") from None


def _group_member(group: Group, name: str) -> Any:
    if name == "key":
        return group.key
    if name == "items":
        return group.items
    if isinstance(group.key, dict) and name in group.key:
        return group.key[name]
    if name == "count":
        return len(group.items)
    return None
