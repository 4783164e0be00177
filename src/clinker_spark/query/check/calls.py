"""Types of calls: functions of the program, free functions, CXL's methods, closures."""

from __future__ import annotations

from collections.abc import Sequence

from clinker_spark.core.span import Span
from clinker_spark.core.types import BOOL
from clinker_spark.cxl.builtins import methods
from clinker_spark.cxl.builtins.table import FORMAT_HELP, NOT_LITERAL, PATTERN_HELP
from clinker_spark.cxl.check.infer.overloads import params_for
from clinker_spark.cxl.syntax import ast as cxl
from clinker_spark.query.check.base import CheckerBase, Types
from clinker_spark.query.functions import FUNCTIONS, STATEMENT_FUNCTIONS, Function, function
from clinker_spark.query.methods import choose, method
from clinker_spark.query.names import SCALAR_AGGREGATES
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
    from_core,
    is_any,
)

_CLOSURES = ("map", "filter", "find", "any", "flat_map")


class CallChecker(CheckerBase):
    def function(self, e: ast.Lambda, scope: Types) -> FunctionType:
        params = tuple(self.types.resolve(p.type) if p.type is not None else ANY for p in e.params)
        inner: Types = Scope(scope, {p.name: t for p, t in zip(e.params, params, strict=True)})
        declared = self.types.resolve(e.result) if e.result is not None else None
        if isinstance(e.body, cxl.Expr):
            found = self.infer(e.body, inner)
            if declared is not None and not fits(found, declared):
                self.note("E702", e.body.span, f"the function gives {declared:?}, but this is {found:?}")
            return FunctionType(params, declared if declared is not None else found)
        self.functions += 1
        self.block(e.body, inner)
        self.functions -= 1
        return FunctionType(params, declared if declared is not None else ANY)

    def apply(self, e: ast.Apply, scope: Types) -> QType:
        args = [self.infer(a, scope) for a in e.args]
        return self._call_value(self.infer(e.function, scope), args, e.args, e.function.span)

    def _call_value(self, function: QType, args: Sequence[QType], written: Sequence[cxl.Expr], span: Span) -> QType:
        if not isinstance(function, FunctionType):
            return ANY if is_any(function) else self.note("E702", span, f"{function:?} is not a function")
        if function.params is None:
            return function.result
        if len(args) > len(function.params):
            return self.note("E702", span, f"too many arguments: {len(args)} for {len(function.params)}")
        for have, want, place in zip(args, function.params, written, strict=False):
            if not fits(have, want):
                self.note("E702", place.span, f"expected {want:?}, but this is {have:?}")
        rest = function.params[len(args) :]
        return FunctionType(rest, function.result) if rest else function.result

    def call(self, e: cxl.Call, scope: Types) -> QType:
        args = [self.infer(a, scope) for a in e.args]
        if e.function in scope:
            return self._call_value(scope.get(e.function), args, e.args, e.name_span)
        if e.function in self.types.variants:
            return ANY
        if e.function in STATEMENT_FUNCTIONS:
            return NULL
        if e.function == "reduce":
            return args[2] if len(args) == 3 else ANY
        row = function(e.function, len(args))
        if row is not None:
            return self._builtin(row, args, e)
        if args and method(e.function) is not None:
            return self.call_method(args[0], e.function, args[1:], e.name_span)
        return self.unknown("function", e.function, e.name_span, [*scope, *FUNCTIONS, *methods()])

    def _wrong_number(self, row: Function, count: int, before: int = 0) -> str | None:
        """Why a function does not take so many arguments. `before` of them stand before the dot of a method."""
        if row.least <= count and (row.most is None or count <= row.most):
            return None
        least = max(0, row.least - before)
        wanted = str(least) if row.most == row.least else f"{least} or more"
        return f"{row.name}() takes {wanted} argument{'s' * (least != 1)}, not {count - before}"

    def _builtin(self, row: Function, args: Sequence[QType], e: cxl.Call) -> QType:
        wrong = self._wrong_number(row, len(args))
        if wrong is not None:
            return self.note("E702", e.span, wrong)
        problem = row.check(args) if row.check is not None and args else None
        if problem is not None:
            outside = row.name in SCALAR_AGGREGATES and not isinstance(args[0], ListType | GroupType)
            if outside:
                help_text = f"group the rows first: group by … into g, then {row.name}(from x in g select x.…)"
                return self.note("E704", e.span, f"{row.name}() outside a group: it {problem}", help_text)
            return self.note("E702", e.args[0].span, f"{row.name}() {problem}")
        return self.total(e, row, row.result_type(args))

    def total(self, e: cxl.Expr, row: Function, t: QType) -> QType:
        """The type of a call, kept when running needs it: what a total of nothing is depends on it."""
        if row.name in ("sum", "min", "max"):
            self.totals[id(e)] = t
        return t

    def method(self, e: cxl.MethodCall, scope: Types) -> QType:
        target = self.infer(e.receiver, scope)
        if e.method in _CLOSURES and e.args and isinstance(e.args[0], ast.Lambda):
            return self._higher_order(e, target, e.args[0], scope)
        args = [self.infer(a, scope) for a in e.args]
        if isinstance(target, RecordType) and isinstance(found := target.field(e.method), FunctionType):
            return self._call_value(found, args, e.args, e.name_span)
        result = self.call_method(target, e.method, args, e.name_span)
        self._check_literals(e, [target, *args])
        row = FUNCTIONS.get(e.method)
        return result if row is None or not isinstance(target, ListType | GroupType) else self.total(e, row, result)

    def _check_literals(self, e: cxl.MethodCall, args: Sequence[QType]) -> None:
        """Patterns and formats that are written in the program are checked before it runs."""
        builtin = method(e.method)
        literals = [a.value if isinstance(a, cxl.Literal) else NOT_LITERAL for a in (e.receiver, *e.args)]
        if builtin is None or all(value is NOT_LITERAL for value in literals[1:]):
            return
        found = choose(builtin, args)
        problem = found[0].check(literals) if found is not None and found[0].check is not None else None
        if found is not None and problem is not None:
            help_text = PATTERN_HELP if found[0].literal else FORMAT_HELP
            self.note("E702", (e.receiver, *e.args)[problem[0]].span, problem[1], help_text)

    def _higher_order(self, e: cxl.MethodCall, target: QType, closure: ast.Lambda, scope: Types) -> QType:
        element = element_of(target)
        if element is None:
            return self.note("E702", e.name_span, f".{e.method}() needs a list, not {target:?}")
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

    def call_method(self, target: QType, name: str, args: Sequence[QType], span: Span) -> QType:
        builtin = method(name)
        row = FUNCTIONS.get(name)
        if row is not None and (builtin is None or isinstance(target, ListType | GroupType | MapType | RecordType)):
            wrong = self._wrong_number(row, len(args) + 1, before=1)
            return row.result_type([target, *args]) if wrong is None else self.note("E702", span, wrong)
        if builtin is None:
            return self.unknown("method", name, span, [*methods(), *FUNCTIONS])
        found = choose(builtin, [target, *args])
        if found is not None:
            return from_core(found[1])
        if not any(params_for(o, len(args) + 1) for o in builtin.overloads):
            return self.note("E702", span, f"{name}() does not take {len(args)} arguments")
        shown = " and ".join(f"{t:?}" for t in (target, *args))
        return self.note("E702", span, f"{name}() does not take {shown}")
