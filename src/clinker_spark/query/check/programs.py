"""Checking a whole program: names, types and statements, before anything runs.

>>> from clinker_spark.query.syntax.parser import parse
>>> source = Source("q", 'let people = [{name: "Ada", age: 36}]\\nfrom p in people select p.nmae')
>>> checked = check(source, parse(source)[0])
>>> [(p.code, p.message, p.help) for p in checked.problems]
[('E701', "unknown field 'nmae'", "did you mean 'name'?")]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.span import Source
from clinker_spark.core.types import INT
from clinker_spark.cxl.syntax import ast as cxl
from clinker_spark.query.check.base import Types
from clinker_spark.query.check.declared import TypeTable
from clinker_spark.query.check.queries import QueryChecker
from clinker_spark.query.facts import Facts
from clinker_spark.query.scopes import Scope
from clinker_spark.query.syntax import ast
from clinker_spark.query.types import ANY, FunctionType, ListType, QType, RecordType, element_of, fits, is_number, unify

LoadType = Callable[[ast.Load, TypeTable], QType]
"""The type of the rows of a file, or ANY when only reading it would tell."""


@dataclass(frozen=True)
class Checked:
    """What is known of a program before it runs."""

    source: Source
    statements: tuple[ast.Statement, ...]
    types: TypeTable
    names: Mapping[str, QType]
    facts: Facts
    result: QType | None
    problems: tuple[Diagnostic, ...]


class Checker(QueryChecker):
    def __init__(self, source: Source, types: TypeTable, load_type: LoadType | None) -> None:
        super().__init__(source, types)
        self._load_type = load_type
        self._fixed: set[tuple[int, str]] = set()
        self._loops = 0

    def load(self, e: ast.Load, scope: Types) -> QType:
        for part in (e.path, e.options):
            if part is not None:
                self.infer(part, scope)
        if self._load_type is not None:
            return self._load_type(e, self.types)
        return ListType(self.types.resolve(e.type) if e.type is not None else ANY, dataset=True)

    def program(self, statements: Sequence[ast.Statement], scope: Types) -> QType | None:
        """The type of the last expression that stands on its own."""
        self._declare_functions(statements, scope)
        last: QType | None = None
        for s in statements:
            last = None
            if isinstance(s, ast.Evaluate):
                last = self.infer(s.value, scope)
            else:
                self.statement(s, scope)
        return last

    def _declare_functions(self, statements: Sequence[ast.Statement], scope: Types) -> None:
        for s in statements:
            if isinstance(s, ast.FunctionDef):
                f = s.function
                params = tuple(self.types.resolve(p.type) if p.type is not None else ANY for p in f.params)
                scope.define(
                    s.name, FunctionType(params, self.types.resolve(f.result) if f.result is not None else ANY)
                )

    def block(self, statements: Sequence[ast.Statement], scope: Types) -> None:
        inner: Types = Scope(scope)
        self._declare_functions(statements, inner)
        for s in statements:
            self.statement(s, inner)

    def statement(self, s: ast.Statement, scope: Types) -> None:
        match s:
            case ast.Let():
                self._let(s, scope)
            case ast.Assign():
                self._assign(s, scope)
            case ast.FunctionDef():
                found = self.function(s.function, scope)
                if s.function.result is not None or isinstance(s.function.body, cxl.Expr):
                    scope.define(s.name, found)
            case ast.If():
                self.condition(s.condition, scope, "the condition of an if")
                self.block(s.then, scope)
                self.block(s.otherwise, scope)
            case ast.For():
                self._for(s, scope)
            case ast.While():
                self.condition(s.condition, scope, "the condition of a while")
                self._loop(s.body, scope)
            case ast.Break() | ast.Continue():
                if not self._loops:
                    word = "break" if isinstance(s, ast.Break) else "continue"
                    self.note("E702", s.span, f"'{word}' stands outside a loop")
            case ast.Return():
                if not self.functions:
                    self.note("E702", s.span, "'return' stands outside a function")
                if s.value is not None:
                    self.infer(s.value, scope)
            case ast.Expect():
                self.condition(s.value, scope, "what is expected")
            case ast.Test():
                self.block(s.body, scope)
            case ast.Update():
                self._update(s, scope)
            case ast.Save():
                t = self.infer(s.value, scope)
                if element_of(t) is None:
                    self.note("E709", s.value.span, f"only a list of records can be saved, not {t:?}")
                for part in (s.path, s.options):
                    if part is not None:
                        self.infer(part, scope)
            case ast.Evaluate():
                self.infer(s.value, scope)

    def _let(self, s: ast.Let, scope: Types) -> None:
        found = self.infer(s.value, scope) if s.value is not None else ANY
        if s.type is not None:
            declared = self.types.resolve(s.type)
            if s.value is not None and not fits(found, declared):
                self.note("E702", s.value.span, f"'{s.name}' is {declared:?}, but this is {found:?}")
            found = declared
        if s.mutable and isinstance(found, RecordType):
            found = replace(found, open=True)
        elif s.mutable and s.type is None and s.value is not None:
            found = _loose(found)
        if not s.mutable:
            self._fixed.add((id(scope), s.name))
        scope.define(s.name, found)

    def _assign(self, s: ast.Assign, scope: Types) -> None:
        have = self.infer(s.value, scope)
        if isinstance(s.target, cxl.Name):
            name = s.target.name
            want = self.infer(s.target, scope)
            owner: Types | None = scope
            while owner is not None and name not in owner.names:
                owner = owner.parent
            if owner is not None and (id(owner), name) in self._fixed:
                self.note(
                    "E702", s.target.span, f"'{name}' was defined with let and cannot change", "define it with var"
                )
            elif is_number(have) and is_number(want) and owner is not None:
                owner.define(name, unify(want, have))
            elif not fits(have, want):
                self.note("E702", s.value.span, f"'{name}' is {want:?}, but this is {have:?}")
            return
        assert isinstance(s.target, cxl.Index | cxl.Member)
        self.infer(s.target.target, scope)

    def _for(self, s: ast.For, scope: Types) -> None:
        t = self.infer(s.source, scope)
        element: QType | None = INT
        if s.end is not None:
            for bound, found in ((s.source, t), (s.end, self.infer(s.end, scope))):
                if not fits(found, INT):
                    self.note("E702", bound.span, f"a range goes over whole numbers, not {found:?}")
        else:
            element = element_of(t)
            if element is None:
                self.note("E709", s.source.span, f"cannot go through {t:?}", "a for needs a list, a map or a text")
            elif isinstance(t, RecordType) or not isinstance(t, ListType):
                element = ANY  # keys of a map, rows of a group, characters of a text
        self._loop(s.body, Scope(scope, {s.name: element if element is not None else ANY}))

    def _loop(self, body: Sequence[ast.Statement], scope: Types) -> None:
        self._loops += 1
        self.block(body, scope)
        self._loops -= 1

    def _update(self, s: ast.Update, scope: Types) -> None:
        target = self.infer(cxl.Name(s.target_span, s.target), scope)
        row = element_of(target)
        names = dict(row.fields) if isinstance(row, RecordType) else {}
        inner: Types = Scope(scope, names) if names else _AnyName(scope)
        for entry in s.entries:
            if names and isinstance(entry.key, cxl.Literal) and entry.key.value not in names:
                self.unknown("field", entry.key.value, entry.key.span, names)
            self.infer(entry.value, inner)
        if s.condition is not None:
            self.condition(s.condition, inner, "the condition of an update")


def _loose(t: QType) -> QType:
    """A variable that starts as a list or as null may become anything of that shape."""
    if isinstance(t, ListType):
        return t if t.dataset else ListType(ANY)
    return ANY if t.nullable else t


class _AnyName(Scope[QType]):
    """The fields of a record whose type is not known: every name may be one."""

    def get(self, name: str) -> QType:
        return super().get(name) if name in self else ANY


def check(
    source: Source,
    statements: Sequence[ast.Statement],
    names: Mapping[str, QType] | None = None,
    load_type: LoadType | None = None,
) -> Checked:
    """All that is wrong with a program. `names` are what comes from outside: DataFrames, lists, variables."""
    types = TypeTable(source)
    types.declare(_all_statements(statements))
    checker = Checker(source, types, load_type)
    scope: Types = Scope(None, dict(names or {}))
    result = checker.program(statements, scope)
    problems = sorted([*types.problems, *checker.problems], key=lambda p: p.span.start if p.span else 0)
    facts = Facts(frozenset(checker.per_row), checker.totals)
    return Checked(source, tuple(statements), types, scope.names, facts, result, tuple(problems))


def _all_statements(statements: Sequence[ast.Statement]) -> list[ast.Statement]:
    found: list[ast.Statement] = []
    for s in statements:
        found.append(s)
        if isinstance(s, ast.Test):
            found += _all_statements(s.body)
        elif isinstance(s, ast.FunctionDef) and isinstance(s.function.body, tuple):
            found += _all_statements(s.function.body)
    return found
