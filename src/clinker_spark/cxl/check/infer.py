"""Typecheck, the expressions: every node gets its type, its overload and its changes of representation."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import replace

from clinker_spark.core.diagnostics import Diagnostic, Label
from clinker_spark.core.span import Source, Span
from clinker_spark.core.types import (
    ANY,
    BOOL,
    DATE,
    DATETIME,
    FLOAT,
    INT,
    MAP,
    NULL,
    NUMERIC,
    STRING,
    Kind,
    Type,
    array_of,
    decimal,
    map_of,
    unify,
)
from clinker_spark.cxl import ir
from clinker_spark.cxl.builtins import methods, operators
from clinker_spark.cxl.builtins.collections import HIGHER_ORDER
from clinker_spark.cxl.builtins.physical import narrow_value
from clinker_spark.cxl.builtins.table import FORMAT_HELP, NOT_LITERAL, PATTERN_HELP, Builtin, Overload
from clinker_spark.cxl.check import overloads
from clinker_spark.cxl.check.environment import Environment
from clinker_spark.cxl.check.help import bool_help, coercion_help, conversion_help
from clinker_spark.cxl.check.module_members import bound_name, module_call, module_constant, sibling_call
from clinker_spark.cxl.check.overloads import make_call, narrow, promote, widen
from clinker_spark.cxl.construction import is_limited
from clinker_spark.cxl.syntax import ast
from clinker_spark.cxl.system import PIPELINE_MEMBERS, SOURCE_MEMBERS

COMPARISONS = ("==", "!=", ">", "<", ">=", "<=")
_UNORDERED = (Kind.BOOL, Kind.ARRAY, Kind.MAP)
CHAIN_CUT = 50
"""Links of a chain that become one tree."""
BALANCED = 8
"""Operands of `and`, `or` and `??` from which on they are grouped evenly."""


def constant_type(value: object) -> Type:
    """The type of a Python value given from outside (`vars`, `config`)."""
    match value:
        case None:
            return NULL
        case bool():
            return BOOL
        case int():
            return INT
        case float():
            return FLOAT
        case str():
            return STRING
        case dt.datetime():
            return DATETIME
        case dt.date():
            return DATE
        case list():
            return array_of(ANY)
        case dict():
            return MAP
    return decimal(None)


class Inference:
    """Infers expressions in one program. `names` maps what is visible to the expression it stands for."""

    def __init__(self, env: Environment) -> None:
        self.env = env
        self.source: Source = env.source
        self.found: list[Diagnostic] = []
        self.names: dict[str, ir.TExpr] = {}
        self.macros: dict[str, ast.Expr] = {}  # lets of an aggregate program: expanded where they are used
        self.modules = dict(env.modules)
        self.module_functions: dict[str, ast.FunctionDef] = {}
        self.scoped: dict[tuple[str, str], ir.TExpr] = {}
        self.uses: dict[str, tuple[Type, Span]] = {}
        self.seen_fields: dict[str, None] = {}
        self.in_aggregate = False
        self.group_values: set[str] = set()  # slots of what an aggregate program has emitted
        self.window_row = False
        self.lookups: list[ir.WindowRef] = []
        self._slots = 0

    # ------------------------------------------------------------ helpers

    def error(self, message: str, span: Span, help_text: str | None = None, labels: tuple[Label, ...] = ()) -> ir.TExpr:
        self.found.append(Diagnostic("E200", message, self.source, span, help_text, phase="typecheck", labels=labels))
        return self.poison(span)

    @staticmethod
    def poison(span: Span) -> ir.TExpr:
        """Stands for an expression already complained about; fits everywhere, so that nothing else is said."""
        return ir.Const(span, ANY, False, None)

    def new_slot(self, name: str) -> str:
        self._slots += 1
        return f"{name}#{self._slots}"

    def use_as(self, arg: ir.TExpr, t: Type, span: Span) -> None:
        """Remember how a column of unknown type is used; two uses that cannot both hold are an error."""
        if not isinstance(arg, ir.Field) or arg.type.kind is not Kind.ANY:
            return
        wanted = NUMERIC if t.is_numeric else t.unwrap().as_static()
        if wanted.kind in (Kind.ANY, Kind.NULL):
            return
        known = self.uses.setdefault(arg.name, (wanted, span))
        if known[0].kind is not wanted.kind:
            self.error(
                f"field '{arg.name}' is used as {wanted} here but as {known[0]} elsewhere",
                span,
                f"declare the type of '{arg.name}' in the schema, or convert one use (.to_string(), .to_int(), ...)",
                (Label(known[1], f"used as {known[0]} here"),),
            )

    # -------------------------------------------------------- expressions

    def infer(self, e: ast.Expr) -> ir.TExpr:
        """The typed form of an expression. Never raises; trouble goes to `found`."""
        handler: Callable[[ast.Expr], ir.TExpr] = getattr(self, "_" + type(e).__name__)
        return handler(e)

    def _Literal(self, e: ast.Literal) -> ir.TExpr:
        return ir.Const(e.span, constant_type(e.value), False, e.value)

    def _Now(self, e: ast.Now) -> ir.TExpr:
        return ir.SystemRef(e.span, DATETIME, False, "now", ())

    def _Name(self, e: ast.Name) -> ir.TExpr:
        if e.name in self.macros:
            return self._expand_macro(e)
        known = self.names.get(e.name)
        if known is not None and not (self.in_aggregate and getattr(known, "slot", None) in self.group_values):
            return replace(known, span=e.span)
        if known is not None and self.env.schema is not None and e.name not in self.env.schema:
            return self.error(
                f"'{e.name}' is a value of the whole group, which does not exist for a single record",
                e.span,
                "inside an aggregate function, name fields of the records",
            )
        return self._field(e.name, e.span)

    def _expand_macro(self, e: ast.Name) -> ir.TExpr:
        macro = self.macros.pop(e.name)  # a let may not see itself
        typed = self.infer(macro)
        self.macros[e.name] = macro
        return typed

    def _field(self, name: str, span: Span) -> ir.TExpr:
        t = ANY if self.env.schema is None else self.env.schema.get(name, ANY)
        self.seen_fields.setdefault(name)
        if self.env.mode == "aggregate" and not self.in_aggregate and name not in self.env.group_by:
            return self.error(
                f"field '{name}' must appear in the GROUP BY list or inside an aggregate function",
                span,
                f"add '{name}' to group_by, or write sum({name}), min({name}), collect({name}), ...",
            )
        return ir.Field(span, t, False, name)

    def _Member(self, e: ast.Member) -> ir.TExpr:
        return self._chain(e)

    def _is_special(self, e: ast.Member) -> bool:
        """Is this something else than a step into the value of its target?"""
        target = e.target
        if isinstance(target, ast.WindowCall):
            return True
        if not isinstance(target, ast.Name):
            return False
        if self.env.dotted_field(target.name, e.name) is not None:
            return True
        if target.name in self.names or target.name in self.macros:
            return False
        return target.name in self.modules or (target.name == "it" and self.window_row)

    def _special_member(self, e: ast.Member) -> ir.TExpr:
        target = e.target
        if isinstance(target, ast.WindowCall):
            from clinker_spark.cxl.check.groups import window_field

            return window_field(self, target, e)
        assert isinstance(target, ast.Name)
        # An input of a combine keeps its name, whatever the program emits under it.
        dotted = self.env.dotted_field(target.name, e.name)
        if dotted is not None:
            return self._field(dotted, e.span)
        if target.name in self.modules:
            return module_constant(self, self.modules[target.name], e)
        return self._field(e.name, e.span)

    def _step(self, e: ast.Member, typed: ir.TExpr) -> ir.TExpr:
        if typed.type.kind not in (Kind.MAP, Kind.ANY, Kind.NULL):
            if e.name in methods():
                return self.error(
                    f"'{e.name}' is a method of {typed.type.unwrap()}", e.name_span, f"call it: .{e.name}()"
                )
            return self.error(
                f"a {typed.type.unwrap()} has no field '{e.name}'", e.name_span, "only maps have fields to step into"
            )
        key = ir.Const(e.name_span, STRING, False, e.name)
        return self.operate("[]", (typed, key), e.span)

    def _SystemVar(self, e: ast.SystemVar) -> ir.TExpr:
        namespace, path = e.namespace, e.path
        if namespace in ("vars", "config"):
            values = self.env.vars if namespace == "vars" else self.env.config or {}
            value = values.get(path[0])
            typed: ir.TExpr = ir.Const(e.span, constant_type(value), False, value)
            for step in path[1:]:
                typed = self.operate("[]", (typed, ir.Const(e.span, STRING, False, step)), e.span)
            return typed
        written = self.scoped.get((namespace, path[-1]))
        if written is not None and len(path) == 1:
            return replace(written, span=e.span)
        members = {"pipeline": PIPELINE_MEMBERS, "source": SOURCE_MEMBERS}.get(namespace, {})
        declared = (self.env.declares or {}).get(namespace, {})
        t = members.get(path[-1]) or declared.get(path[-1]) or ANY
        if self.env.mode == "aggregate" and namespace == "source" and not self.in_aggregate:
            return self.error(
                f"'${namespace}.{'.'.join(path)}' differs from row to row and has no value for a group",
                e.span,
                "put it inside an aggregate function, for example min($source.file)",
            )
        return ir.SystemRef(e.span, t.as_nullable(), False, namespace, path)

    def _WindowCall(self, e: ast.WindowCall) -> ir.TExpr:
        from clinker_spark.cxl.check.groups import window_call

        return window_call(self, e, None)

    def _Call(self, e: ast.Call) -> ir.TExpr:
        if e.function in self.module_functions:
            return sibling_call(self, self.module_functions[e.function], e)
        from clinker_spark.cxl.check.groups import aggregate_call

        return aggregate_call(self, e)

    def _Unary(self, e: ast.Unary) -> ir.TExpr:
        operand = self.infer(e.operand)
        if e.op == "not":
            checked = self.boolean(operand, "not")
            if isinstance(checked, ir.Const):
                value = None if checked.value is None else not checked.value
                return ir.Const(e.span, checked.type, False, value)
            return ir.Not(e.span, checked.type, checked.fallible, checked)
        return self._call(operators()["negate"], (operand,), e.span, symbol="-")

    def _Binary(self, e: ast.Binary) -> ir.TExpr:
        if e.op == "??":
            return self._coalesced(e)
        return self._chain(e)

    def _chain(self, e: ast.Expr) -> ir.TExpr:
        """What grows to the left by operators, calls and steps (`a + b + c`, `x.f().g`), from its first operand on.

        A long chain becomes a sequence of lets, so that no tree is as deep as a chain is long: the first operand is
        always evaluated first, which is what a let does."""
        links: list[ast.Expr] = []
        inner = e
        while (first := self._first_operand(inner)) is not None:
            links.append(inner)
            inner = first
        typed = self._leaf(inner)
        if len(links) == 1:
            return self._link(links[0], typed)
        links.reverse()
        lets: list[tuple[str, ir.TExpr]] = []
        height = 0
        i = 0
        while i < len(links):
            link = links[i]
            operands = self._equal_links(links, i) if isinstance(link, ast.Binary) and link.op in ("and", "or") else 1
            if operands > 1:
                typed = self._long_logic(typed, links[i : i + operands])
                i += operands
                height += 1
                continue
            typed = self._link(link, typed)
            i += 1
            height += 1
            if height >= CHAIN_CUT and i < len(links) and not isinstance(typed, ir.Const | ir.Field | ir.Slot):
                slot = self.new_slot("chain")
                lets.append((slot, typed))
                typed = ir.Slot(typed.span, typed.type, False, slot)
                height = 0
        for slot, value in reversed(lets):
            if value.fallible or not isinstance(typed, ir.Const):
                typed = ir.LetIn(e.span, typed.type, value.fallible or typed.fallible, slot, value, typed)
        return typed

    def _first_operand(self, e: ast.Expr) -> ast.Expr | None:
        """What an operator, a call or a step is applied to; None where something else begins."""
        if isinstance(e, ast.Binary):
            return None if e.op == "??" else e.left
        if isinstance(e, ast.MethodCall):
            first = e.receiver
            module = isinstance(first, ast.Name) and first.name in self.modules and first.name not in self.names
            return None if module else first
        if isinstance(e, ast.Member):
            return None if self._is_special(e) else e.target
        return e.target if isinstance(e, ast.Index) else None

    def _leaf(self, e: ast.Expr) -> ir.TExpr:
        match e:
            case ast.Member():
                return self._special_member(e)
            case ast.MethodCall():
                return module_call(self, self.modules[e.receiver.name], e)  # type: ignore[attr-defined]
        return self.infer(e)

    def _link(self, e: ast.Expr, first: ir.TExpr) -> ir.TExpr:
        """One link of a chain over what comes before it."""
        match e:
            case ast.Binary():
                right = self.infer(e.right)
                if e.op in ("and", "or"):
                    return self._logic(e, first, right)
                if e.op in COMPARISONS:
                    return self.compare(e.op, first, right, e.span)
                return self.operate(e.op, (first, right), e.span)
            case ast.MethodCall():
                return self._method(e, first)
            case ast.Index():
                return self.operate("[]", (first, self.infer(e.index)), e.span)
            case ast.Member():
                return self._step(e, first)
        raise AssertionError(e)

    @staticmethod
    def _equal_links(links: Sequence[ast.Expr], start: int) -> int:
        """How many links from `start` on are the same operator."""
        op = getattr(links[start], "op", None)
        end = start
        while end < len(links) and isinstance(link := links[end], ast.Binary) and link.op == op:
            end += 1
        return end - start

    def _long_logic(self, first: ir.TExpr, links: Sequence[ast.Expr]) -> ir.TExpr:
        """`a and b and c ...` as a balanced tree: grouping changes neither the result nor what is evaluated."""
        operands = [first]
        for link in links:
            assert isinstance(link, ast.Binary)
            operands.append(self.infer(link.right))
        last = links[-1]
        assert isinstance(last, ast.Binary)
        if len(operands) <= BALANCED:
            typed = first
            for link, operand in zip(links, operands[1:], strict=True):
                typed = self._logic(link, typed, operand)  # type: ignore[arg-type]
            return typed
        return balanced(operands, lambda left, right: self._logic(last, left, right))

    def _coalesced(self, e: ast.Binary) -> ir.TExpr:
        """`a ?? b ?? c` groups to the right; operands of one type may be grouped in any way, so a long chain of them
        becomes a balanced tree."""
        links: list[ast.Binary] = [e]
        while isinstance(right := links[-1].right, ast.Binary) and right.op == "??":
            links.append(right)
        operands = [self.infer(link.left) for link in links] + [self.infer(links[-1].right)]
        if len(operands) > BALANCED and len({o.type.unwrap() for o in operands}) == 1:
            return balanced(operands, lambda left, right: self._coalesce(left, right, e.span))
        typed = operands[-1]
        for link, operand in zip(reversed(links), reversed(operands[:-1]), strict=True):
            typed = self._coalesce(operand, typed, link.span)
        return typed

    def _logic(self, e: ast.Binary, left: ir.TExpr, right: ir.TExpr) -> ir.TExpr:
        left, right = self.boolean(left, e.op), self.boolean(right, e.op)
        decides = e.op == "or"
        if isinstance(left, ir.Const) and left.value is decides:
            return left
        t = BOOL.as_nullable() if left.type.nullable or right.type.nullable else BOOL
        if isinstance(left, ir.Const) and left.value is (not decides):
            return right
        return ir.Logic(e.span, t, left.fallible or right.fallible, e.op, left, right)

    def boolean(self, operand: ir.TExpr, where: str) -> ir.TExpr:
        """An operand where only a truth value makes sense."""
        t = operand.type
        if t.kind is Kind.BOOL and not t.is_dynamic:
            return operand
        if t.kind is Kind.NULL:
            return widen(operand, BOOL)
        if t.kind is Kind.ANY or (t.is_dynamic and t.kind is Kind.BOOL):
            self.use_as(operand, BOOL, operand.span)
            return (
                widen(operand, BOOL)
                if isinstance(operand, ir.Const) and operand.value is None
                else narrow(operand, BOOL)
            )
        return self.error(f"'{where}' needs a Bool, but got {t}", operand.span, bool_help(t))

    def _coalesce(self, left: ir.TExpr, right: ir.TExpr, span: Span) -> ir.TExpr:
        if isinstance(left, ir.Const) and left.type.kind is not Kind.ANY:
            return right if left.value is None else left
        merged = unify(left.type.unwrap(), right.type) or ANY
        fallible = left.fallible or right.fallible
        return ir.Coalesce(span, merged, fallible, widen(left, merged), widen(right, merged))

    def compare(self, op: str, left: ir.TExpr, right: ir.TExpr, span: Span) -> ir.TExpr:
        """A comparison. Equality is never null; an ordering is null when a side is."""
        equality = op in ("==", "!=")
        if left.type.is_dynamic or right.type.is_dynamic:
            if unify(left.type, right.type) is None:
                return self._incomparable(op, left, right, span)
            self.use_as(left, right.type, span)
            self.use_as(right, left.type, span)
        else:
            pair = promote(left, right)
            kinds = {left.type.kind, right.type.kind} - {Kind.NULL}
            if pair is None or (not equality and kinds & set(_UNORDERED)):
                return self._incomparable(op, left, right, span)
            left, right = pair
        nullable = not equality and (
            left.type.nullable or right.type.nullable or Kind.NULL in (left.type.kind, right.type.kind)
        )
        t = BOOL.as_nullable() if nullable else BOOL
        node = ir.Compare(span, t, left.fallible or right.fallible, op, left, right)
        if isinstance(left, ir.Const) and isinstance(right, ir.Const):
            from clinker_spark.cxl.values import holds

            return ir.Const(span, t, False, holds(op, left.value, right.value))
        return node

    def _incomparable(self, op: str, left: ir.TExpr, right: ir.TExpr, span: Span) -> ir.TExpr:
        how = "for equality" if op in ("==", "!=") else "with an ordering operator"
        return self.error(
            f"cannot compare {left.type} and {right.type} {how}", span, coercion_help(left.type, right.type)
        )

    def _If(self, e: ast.If) -> ir.TExpr:
        branches: list[tuple[ir.TExpr, ir.TExpr, Span]] = []
        last: ast.Expr | None = e
        while isinstance(last, ast.If):
            condition = self.boolean(self.infer(last.condition), "if")
            branches.append((condition, self.infer(last.then), last.span))
            end, last = last.span, last.otherwise
        typed = ir.Const(end, NULL, False, None) if last is None else self.infer(last)
        for condition, then, span in reversed(branches):
            typed = self.choose(condition, then, typed, span)
        return typed

    def choose(self, condition: ir.TExpr, then: ir.TExpr, otherwise: ir.TExpr, span: Span) -> ir.TExpr:
        """`if`: the branches in one type, Any when theirs clash."""
        merged = unify(then.type, otherwise.type) or ANY
        then, otherwise = widen(then, merged), widen(otherwise, merged)
        if isinstance(condition, ir.Const) and condition.type.kind is not Kind.ANY:
            return then if condition.value is True else otherwise
        fallible = condition.fallible or then.fallible or otherwise.fallible
        if not isinstance(otherwise, ir.If):
            return ir.If(span, merged, fallible, (condition,), (then,), otherwise)
        conditions, values = (condition, *otherwise.conditions), (then, *otherwise.values)
        return ir.If(span, merged, fallible, conditions, values, otherwise.otherwise)

    def _Match(self, e: ast.Match) -> ir.TExpr:
        wildcard = next((i for i, arm in enumerate(e.arms) if arm.pattern is None), None)
        if wildcard is None:
            return self.error(
                "match must have a '_' arm, so that every value is answered", e.span, "add a last arm: _ => null"
            )
        subject = None if e.subject is None else self.infer(e.subject)
        slot = None
        if subject is not None and not isinstance(subject, ir.Const | ir.Field | ir.Slot):
            slot = self.new_slot("match")
            bound: ir.TExpr | None = ir.Slot(subject.span, subject.type, False, slot)
        else:
            bound = subject
        typed: list[tuple[ir.TExpr, ir.TExpr]] = []
        for arm in e.arms[:wildcard]:
            assert arm.pattern is not None
            pattern = self.infer(arm.pattern)
            if bound is None:
                condition = self.boolean(pattern, "match")
            else:
                condition = self.compare("==", bound, pattern, arm.pattern.span)
            typed.append((condition, self.infer(arm.value)))
        result = self.infer(e.arms[wildcard].value)
        for condition, value in reversed(typed):
            result = self.choose(condition, value, result, e.span)
        if slot is None or subject is None or isinstance(result, ir.Const):
            return result
        return ir.LetIn(e.span, result.type, subject.fallible or result.fallible, slot, subject, result)

    def _Index(self, e: ast.Index) -> ir.TExpr:
        return self._chain(e)

    def _ArrayLiteral(self, e: ast.ArrayLiteral) -> ir.TExpr:
        items = [self.infer(item) for item in e.items]
        element = _common(items)
        widened = tuple(widen(item, element) for item in items)
        t = array_of(element)
        made = ir.MakeArray(e.span, t, any(i.fallible for i in widened), widened)
        if is_limited(made):
            made.fallible = True
        elif all(isinstance(item, ir.Const) for item in widened):
            return ir.Const(e.span, t, False, [item.value for item in widened if isinstance(item, ir.Const)])
        return made

    def _MapLiteral(self, e: ast.MapLiteral) -> ir.TExpr:
        keys: list[ir.TExpr] = []
        for entry in e.entries:
            key = self.infer(entry.key)
            if key.type.kind is Kind.ANY and key.type.is_dynamic:
                key = narrow(key, STRING)
            elif key.type.kind is not Kind.STRING:
                key = self.error(f"a map key must be a String, but got {key.type}", entry.key.span, "use .to_string()")
            keys.append(key)
        values = [self.infer(entry.value) for entry in e.entries]
        element = _common(values)
        widened = tuple(widen(value, element) for value in values)
        t = map_of(element)
        computed = any(entry.computed for entry in e.entries)
        fallible = computed or any(x.fallible for x in (*keys, *widened))
        made = ir.MakeMap(e.span, t, fallible, tuple(keys), widened)
        if is_limited(made):
            made.fallible = True
        elif not computed and all(isinstance(v, ir.Const) for v in widened):
            pairs = zip(keys, widened, strict=True)
            return ir.Const(e.span, t, False, {k.value: v.value for k, v in pairs})  # type: ignore[attr-defined]
        return made

    def _Comprehension(self, e: ast.Comprehension) -> ir.TExpr:
        source, element = self.array(self.infer(e.source), "a comprehension")
        slot = self.new_slot(e.binding)
        with bound_name(self, e.binding, ir.Slot(e.binding_span, element, False, slot)):
            condition = None if e.condition is None else self.boolean(self.infer(e.condition), "if")
            value = self.infer(e.value)
        return ir.Comprehend(e.span, array_of(value.type), True, source, slot, element, condition, value)

    def array(self, source: ir.TExpr, what: str) -> tuple[ir.TExpr, Type]:
        """A source to loop over, as an array, and its element type."""
        t = source.type
        if t.kind is Kind.NULL:
            return widen(source, array_of(ANY)), ANY
        if t.is_dynamic and isinstance(source, ir.Const):
            value = narrow_value(source.value, array_of(ANY))
            return ir.Const(source.span, array_of(ANY).as_nullable(), False, value), ANY
        if t.is_dynamic and t.kind in (Kind.ANY, Kind.ARRAY):
            self.use_as(source, array_of(ANY), source.span)
            return narrow(source, array_of(ANY)), ANY
        if t.kind is Kind.ARRAY:
            return source, (t.element or ANY).as_nullable()
        return self.error(f"{what} needs an Array, but got {t}", source.span, "loop over an array"), ANY

    def _Closure(self, e: ast.Closure) -> ir.TExpr:
        return self.error(
            "a closure can only be an argument of filter, map, find, any or flat_map", e.span, "remove `it =>`"
        )

    # ------------------------------------------------------------ methods

    def _MethodCall(self, e: ast.MethodCall) -> ir.TExpr:
        return self._chain(e)

    def _method(self, e: ast.MethodCall, receiver: ir.TExpr) -> ir.TExpr:
        closure = any(isinstance(a, ast.Closure) for a in e.args)
        if e.method in HIGHER_ORDER and (closure or e.method not in methods()):
            return self._higher_order(e, receiver)
        args = [self.infer(a) for a in e.args]
        if e.method == "catch":
            if len(args) != 1:
                return self.wrong_arity(e, "1 argument")
            return self._coalesce(receiver, args[0], e.span)
        return self._call(methods()[e.method], (receiver, *args), e.span, call=e)

    def wrong_arity(self, e: ast.MethodCall, expected: str) -> ir.TExpr:
        return self.error(f"method '{e.method}' takes {expected}, but got {len(e.args)}", e.span, None)

    def _higher_order(self, e: ast.MethodCall, receiver: ir.TExpr) -> ir.TExpr:
        row = HIGHER_ORDER[e.method]
        if len(e.args) != 1 or not isinstance(e.args[0], ast.Closure):
            return self.error(f"method '{e.method}' takes one closure", e.span, f"write .{e.method}(it => ...)")
        t = receiver.type
        if t.kind not in (Kind.ARRAY, Kind.ANY, Kind.NULL):
            return self.error(f"method '{e.method}' expects an Array receiver, but got {t}", e.receiver.span, None)
        source, element = self.array(receiver, f"'{e.method}'")
        slot = self.new_slot("it")
        with bound_name(self, "it", ir.Slot(e.args[0].span, element, False, slot)):
            body = self.infer(e.args[0].body)
            if row.predicate:
                body = self.boolean(body, e.method)
        result = row.result_type(element, body.type)
        if source.type.nullable or source.type.kind is Kind.NULL:
            result = result.as_nullable()
        return ir.HigherOrder(e.span, result, source.fallible or body.fallible, e.method, source, slot, element, body)

    def operate(self, symbol: str, args: Sequence[ir.TExpr], span: Span) -> ir.TExpr:
        """An operator of the builtin table over typed operands."""
        return self._call(operators()[symbol], args, span)

    def _call(
        self,
        builtin: Builtin,
        args: Sequence[ir.TExpr],
        span: Span,
        call: ast.MethodCall | None = None,
        symbol: str | None = None,
    ) -> ir.TExpr:
        arity_fits = any(overloads.params_for(o, len(args)) is not None for o in builtin.overloads)
        if call is not None and not arity_fits:
            return self.wrong_arity(call, overloads.arity_text(builtin))
        found = overloads.candidates(builtin, args)
        if not found:
            return self._mismatch(builtin, args, span, call, symbol)
        for position, arg in enumerate(args):
            wanted = {NUMERIC if f[2][position].is_numeric else f[2][position] for f in found}
            if len(wanted) == 1:
                self.use_as(arg, wanted.pop(), arg.span)
        problem = self._check_literals(found[0][1], args, call)
        if problem is not None:
            return problem
        return make_call(builtin, args, span, found)

    def _check_literals(
        self, overload: Overload, args: Sequence[ir.TExpr], call: ast.MethodCall | None
    ) -> ir.TExpr | None:
        if call is None:
            return None
        for position in sorted(overload.literal):
            literal = overloads.literals_of(args)[position] if position < len(args) else ""
            if literal is NOT_LITERAL or literal is None:
                return self.error(
                    f"argument {position} of '{call.method}' must be a literal",
                    args[position].span,
                    "write the pattern as a string in quotes, so that it can be checked before the run",
                )
        if overload.check is not None:
            problem = overload.check(overloads.literals_of(args))
            if problem is not None:
                return self.error(problem[1], args[problem[0]].span, PATTERN_HELP if overload.literal else FORMAT_HELP)
        return None

    def _mismatch(
        self,
        builtin: Builtin,
        args: Sequence[ir.TExpr],
        span: Span,
        call: ast.MethodCall | None,
        symbol: str | None,
    ) -> ir.TExpr:
        if builtin.name == "[]":
            return self.error(
                f"cannot index {args[0].type} with {args[1].type}", span, "arrays take an Int, maps a String key"
            )
        if call is None:
            names = " and ".join(str(a.type) for a in args)
            help_text = coercion_help(args[0].type, args[-1].type) if len(args) == 2 else None
            return self.error(f"cannot apply '{symbol or builtin.name}' to {names}", span, help_text)
        position, expected = overloads.describe_mismatch(builtin, args) or (0, "another type")
        got = args[position].type
        if position == 0:
            return self.error(
                f"method '{builtin.name}' expects a {expected} receiver, but got {got}",
                call.receiver.span,
                conversion_help(expected),
            )
        return self.error(
            f"argument {position} of '{builtin.name}' expects {expected}, but got {got}",
            args[position].span,
            conversion_help(expected),
        )


def _common(items: Sequence[ir.TExpr]) -> Type:
    """One element type for the items of a literal: theirs when all are of one kind, else Any."""
    merged: Type | None = None
    for item in items:
        t = item.type
        if merged is None:
            merged = t
        elif merged.kind is t.kind or Kind.NULL in (merged.kind, t.kind):
            merged = unify(merged, t) or ANY
        else:
            return ANY
    return ANY if merged is None or merged.kind is Kind.NULL or merged.is_dynamic else merged


def balanced(operands: Sequence[ir.TExpr], join: Callable[[ir.TExpr, ir.TExpr], ir.TExpr]) -> ir.TExpr:
    """The operands in their order, joined in pairs, and those in pairs, until one is left."""
    while len(operands) > 1:
        pairs = zip(operands[::2], operands[1::2], strict=False)
        joined = [join(left, right) for left, right in pairs]
        operands = joined if len(operands) % 2 == 0 else [*joined, operands[-1]]
    return operands[0]
