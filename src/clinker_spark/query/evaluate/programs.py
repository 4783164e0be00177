"""Running a program: statements one after the other, output to a text stream.

Rows that live on Spark come in through an `Engine`; a program over literals needs none, and starts no Java.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol, TextIO

from clinker_spark.cxl.syntax import ast as cxl
from clinker_spark.query.check.declared import TypeTable
from clinker_spark.query.evaluate.casts import cast, zero
from clinker_spark.query.evaluate.expressions import Env, FunctionValue
from clinker_spark.query.evaluate.functions import items
from clinker_spark.query.evaluate.queries import QueryEvaluator
from clinker_spark.query.facts import Facts
from clinker_spark.query.failures import Failed
from clinker_spark.query.scopes import Scope
from clinker_spark.query.syntax import ast
from clinker_spark.query.values import Dataset, json_text, show, truthy

NOTHING: Any = object()
"""The value of a statement that has none."""


class Engine(Protocol):
    """What a program needs for rows that are not in it."""

    def load(self, e: ast.Load, path: str | None, options: dict[str, Any], types: TypeTable) -> Any: ...

    def save(self, e: ast.Save, value: Any, path: str | None, options: dict[str, Any]) -> None: ...

    def evaluate(self, e: cxl.Expr, scope: Env, types: TypeTable) -> Any:
        """The value of an expression over rows on Spark; NotImplemented when none of its rows are there."""

    def rows(self, value: Dataset) -> list[Any]: ...


class _Break(Exception):
    pass


class _Continue(Exception):
    pass


class _Return(Exception):
    def __init__(self, value: Any) -> None:
        self.value = value


class Evaluator(QueryEvaluator):
    """Runs the statements of a checked program."""

    def __init__(
        self, types: TypeTable, engine: Engine | None = None, out: TextIO | None = None, facts: Facts | None = None
    ) -> None:
        super().__init__(types, facts or Facts())
        self.engine = engine
        self.out = out if out is not None else sys.stdout

    def run(self, statements: Sequence[ast.Statement], scope: Env) -> Any:
        """The value of the last expression that stands on its own, or NOTHING."""
        last: Any = NOTHING
        for statement in statements:
            if isinstance(statement, ast.FunctionDef):
                self.execute(statement, scope)
        for statement in statements:
            if isinstance(statement, ast.FunctionDef):
                continue
            if isinstance(statement, ast.Evaluate):
                value = self.eval(statement.value, scope)
                last = NOTHING if value is NOTHING else value
            else:
                last = NOTHING
                self.execute(statement, scope)
        return last

    # ------------------------------------------------------------ statements

    def execute(self, s: ast.Statement, scope: Env) -> None:
        match s:
            case ast.Let():
                scope.define(s.name, self._initial(s, scope))
            case ast.Assign():
                self._assign(s, scope)
            case ast.FunctionDef():
                scope.define(s.name, FunctionValue(s.function, scope, s.name))
            case ast.If():
                taken = s.then if truthy(self.local(self.eval(s.condition, scope))) else s.otherwise
                self.block(taken, scope)
            case ast.For():
                self._for(s, scope)
            case ast.While():
                self._loop(s.body, self._while(s, scope))
            case ast.Break():
                raise _Break
            case ast.Continue():
                raise _Continue
            case ast.Return():
                raise _Return(self.eval(s.value, scope) if s.value is not None else None)
            case ast.Expect():
                self._expect(s, scope)
            case ast.Test():
                self._test(s, scope)
            case ast.Update():
                self.update(s, scope)
            case ast.Save():
                self._save(s, scope)
            case ast.Evaluate():
                self.eval(s.value, scope)

    def block(self, statements: Sequence[ast.Statement], scope: Env) -> None:
        inner: Env = Scope(scope)
        for statement in statements:
            self.execute(statement, inner)

    def _initial(self, s: ast.Let, scope: Env) -> Any:
        declared = self.types.resolve(s.type) if s.type is not None else None
        if s.value is None:
            return zero(declared) if declared is not None else None
        value = self.eval(s.value, scope)
        return cast(value, declared) if declared is not None else value

    def _assign(self, s: ast.Assign, scope: Env) -> None:
        value = self.eval(s.value, scope)
        match s.target:
            case cxl.Name(name=name):
                scope.assign(name, value)
            case cxl.Index():
                target = self.eval(s.target.target, scope)
                index = self.eval(s.target.index, scope)
                if isinstance(target, list) and not (isinstance(index, int) and -len(target) <= index < len(target)):
                    raise Failed(f"index {show(index)} is out of range", span=s.target.span)
                self.put(target, index, value, s.target)
            case cxl.Member():
                self.put(self.eval(s.target.target, scope), s.target.name, value, s.target)

    def put(self, target: Any, key: Any, value: Any, e: cxl.Expr) -> None:
        if not isinstance(target, list | dict) or isinstance(key, list | dict):
            raise Failed(f"there is nothing to assign to in {show(target, False)}", span=e.span)
        target[key] = value

    def _for(self, s: ast.For, scope: Env) -> None:
        start = self.local(self.eval(s.source, scope))
        if s.end is not None:
            found: Any = range(start, self.eval(s.end, scope))
        elif isinstance(start, dict):
            found = sorted(start, key=str)
        else:
            found = items(start)
        self._loop(s.body, (Scope(scope, {s.name: item}) for item in found))

    def _while(self, s: ast.While, scope: Env) -> Iterator[Env]:
        while truthy(self.local(self.eval(s.condition, scope))):
            yield scope

    def _loop(self, body: Sequence[ast.Statement], scopes: Iterable[Env]) -> None:
        for scope in scopes:
            try:
                self.block(body, scope)
            except _Continue:
                continue
            except _Break:
                return

    def _expect(self, s: ast.Expect, scope: Env) -> None:
        if truthy(self.local(self.eval(s.value, scope))):
            return
        e = s.value
        found = None
        if isinstance(e, cxl.Binary) and e.op == "==":
            left = show(self.local(self.eval(e.left, scope)), False)
            right = show(self.local(self.eval(e.right, scope)), False)
            found = f"it is {left[:300]}\nnot   {right[:300]}"
        raise Failed("this does not hold", found, span=s.value.span, code="E706")

    def _test(self, s: ast.Test, scope: Env) -> None:
        try:
            self.block(s.body, scope)
        except Failed as failed:
            failed.message = f"test '{s.name}': {failed.message}"
            raise

    def update(self, s: ast.Update, scope: Env) -> None:
        for record in items(scope.get(s.target)):
            inner: Env = Scope(scope, dict(record))
            if s.condition is None or truthy(self.eval(s.condition, inner)):
                changed = {entry.key.value: self.eval(entry.value, inner) for entry in s.entries}  # type: ignore[attr-defined]
                record.update(changed)

    # ------------------------------------------------------------- functions

    def call_function(self, function: FunctionValue, args: Sequence[Any]) -> Any:
        node = function.node
        scope: Env = Scope(function.scope, {p.name: a for p, a in zip(node.params, args, strict=True)})
        if isinstance(node.body, cxl.Expr):
            return self.eval(node.body, scope)
        try:
            for statement in node.body:
                if isinstance(statement, ast.FunctionDef):
                    self.execute(statement, scope)
            for statement in node.body:
                self.execute(statement, scope)
        except _Return as result:
            return result.value
        return None

    def statement_function(self, name: str, args: Sequence[Any]) -> Any:
        if name == "json":
            if len(args) != 1:
                raise Failed(f"json() takes 1 argument, not {len(args)}")
            print(json_text(self.local(args[0])), file=self.out)
        else:
            print(" ".join(show(self.local(a)) for a in args).rstrip(), file=self.out)
        return NOTHING

    # ---------------------------------------------------------- files and Spark

    def load(self, e: ast.Load, scope: Env) -> Any:
        if self.engine is None:
            raise Failed("files cannot be read here", code="E707")
        path = self.eval(e.path, scope) if e.path is not None else None
        options = self.eval(e.options, scope) if e.options is not None else {}
        return self.engine.load(e, path, options, self.types)

    def _save(self, s: ast.Save, scope: Env) -> None:
        value = self.eval(s.value, scope)
        path = self.eval(s.path, scope) if s.path is not None else None
        options = self.eval(s.options, scope) if s.options is not None else {}
        if path in (None, "-"):
            for row in items(self.local(value)):
                print(json_text(row, sort=False, indent=None), file=self.out)
            return
        if self.engine is None:
            raise Failed("files cannot be written here", code="E707", span=s.span)
        self.engine.save(s, value, path, options)

    def local(self, value: Any) -> Any:
        if isinstance(value, Dataset) and self.engine is not None:
            return self.engine.rows(value)
        return value

    def on_spark(self, e: cxl.Expr, scope: Env) -> Any:
        return NotImplemented if self.engine is None else self.engine.evaluate(e, scope, self.types)
