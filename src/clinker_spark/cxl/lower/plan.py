"""What a program becomes on Spark, as data: a list of steps over a DataFrame. No pyspark here.

Lowering produces Spark SQL text. A costly text that is needed twice is bound to a column of its own in an
earlier projection, so that texts stay short however deep the program nests; inside the lambda of an array
function, where no column can be added, it is bound to a lambda variable instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from clinker_spark.core.types import Type
from clinker_spark.cxl.hidden import BOUND_PREFIX
from clinker_spark.cxl.ir import TExpr

EMPTY = "emit each of nothing"
"""Why a record is left out that a fan-out makes no record of."""

_MAX_DEPTH = 20  # Spark's SQL parser recurses per level, so deeper texts are cut by a column
_VARIABLE = re.compile(r"\bcxl_[a-z]+[0-9_]+\b")
_BIND_LENGTH = 12  # shorter texts are as cheap as a column
_MANY_STEPS = 24  # from here on, what nobody reads any more is left out
_MANY_DEAD = 16  # at once
_TEMPORARY = re.compile(r"`(\$[^`]*)`")


@dataclass(frozen=True)
class Failing:
    """One way an expression fails: a condition, and SQL texts for kind, offending value and message."""

    when: str
    kind: str
    value: str
    message: str
    level: int = 0
    field: str | None = None
    """SQL for the column being computed, where the failure itself knows it."""
    size: str | None = None
    """SQL for the bytes that were built, where too many of them are the failure: statements share the bound."""

    def guarded(self, guard: str, level: int) -> Failing:
        """The same failure, only where `guard` holds."""
        size = None if self.size is None else f"CASE WHEN {guard} THEN {self.size} ELSE 0 END"
        return replace(self, when=f"({guard}) AND ({self.when})", size=size, level=max(level, self.level))


@dataclass(frozen=True)
class Sql:
    """An SQL text and what must be known to place it.

    `level` is the first projection that can hold it, `variables` the lambda variables it mentions, and
    `failures` how it can fail, in order of evaluation.
    """

    text: str
    level: int = 0
    depth: int = 1
    failures: tuple[Failing, ...] = ()
    variables: frozenset[str] = frozenset()
    simple: bool = False

    def bare(self) -> Sql:
        return replace(self, failures=())


# ---------------------------------------------------------------------- steps


@dataclass(frozen=True)
class Project:
    """Add columns, all computed from columns that exist already, and leave out those that nobody reads any more."""

    columns: tuple[tuple[str, str], ...]
    dead: tuple[str, ...] = ()


@dataclass(frozen=True)
class Where:
    """Only the rows for which the condition is true. `reason` is what the others are said to be left out by."""

    condition: str
    reason: str = "filter"


@dataclass(frozen=True)
class FanOut:
    """Nothing happens to the rows here, but in the next step each becomes `size` of them; a failed one stays one."""

    size: str
    error: str | None


@dataclass(frozen=True)
class PythonColumn:
    """Add a column computed by the interpreter in Arrow batches: a struct of `value` and the error fields.

    `inputs` pair a slot of `expression` with an SQL text and its type.
    """

    name: str
    expression: TExpr
    inputs: tuple[tuple[str, str, Type], ...]
    reason: str


Step = Project | Where | FanOut | PythonColumn


@dataclass(frozen=True)
class LoweredProgram:
    """Steps to run in order, then the columns to read: emitted ones, scoped variables and the error."""

    steps: tuple[Step, ...]
    outputs: tuple[tuple[str, str], ...]
    scoped: tuple[tuple[str, str], ...]
    error: str | None
    needs_arrival: bool
    temporaries: tuple[str, ...]
    ordinal: str | None = None
    """The place of a record among those of one fan-out, when it was asked for."""

    @property
    def python_reasons(self) -> tuple[str, ...]:
        """Why parts of the program run in Python; empty when all of it is native."""
        return tuple(s.reason for s in self.steps if isinstance(s, PythonColumn))


def quote(name: str) -> str:
    """A column name as an SQL identifier."""
    return "`" + name.replace("`", "``") + "`"


@dataclass
class _Lambda:
    """An open lambda. Its bound values are kept in one struct per level of dependency: level 0 needs only the
    lambda's own variable, level 1 the struct of level 0, and so on."""

    name: str
    variables: set[str]
    levels: list[list[str]] = field(default_factory=list)

    def struct(self, level: int) -> str:
        return f"{self.name}_{level}"


class PlanBuilder:
    """Collects columns by level and turns them into steps."""

    def __init__(self, tag: str = "") -> None:
        self.tag = tag
        self.steps: list[Step] = []
        self.temporaries: list[str] = []
        self._levels: list[list[tuple[str, str] | PythonColumn]] = []
        self._flushed = 0
        self._bound: dict[str, Sql] = {}
        self._lambdas: list[_Lambda] = []
        self._count = 0

    def fresh(self, prefix: str = BOUND_PREFIX) -> str:
        """A new name. The tag keeps the names of programs apart that share a DataFrame."""
        self._count += 1
        return f"{prefix}{self.tag}{self._count}"

    # ------------------------------------------------------------ binding

    def bind(self, sql: Sql) -> Sql:
        """The same value as a text that is cheap to repeat."""
        if sql.simple or len(sql.text) < _BIND_LENGTH:
            return sql
        known = self._bound.get(sql.text)
        if known is not None:
            return replace(known, failures=sql.failures)
        if any(s.variables & sql.variables for s in self._lambdas):
            return self._bind_in_lambda(sql)
        name = self.fresh()
        level = max(sql.level, self._flushed)
        self._add(level, (name, sql.text))
        result = Sql(quote(name), level + 1, 1, sql.failures, simple=True)
        self._bound[sql.text] = result
        return result

    def _bind_in_lambda(self, sql: Sql) -> Sql:
        scope = next(s for s in reversed(self._lambdas) if s.variables & sql.variables)
        level = 1 + max((k for k in range(len(scope.levels)) if scope.struct(k) in sql.variables), default=-1)
        if level == len(scope.levels):
            scope.levels.append([])
            scope.variables.add(scope.struct(level))
        texts = scope.levels[level]
        if sql.text not in texts:
            texts.append(sql.text)
        name = f"{scope.struct(level)}.f{texts.index(sql.text)}"
        return Sql(name, sql.level, 1, sql.failures, frozenset((scope.struct(level),)), simple=True)

    def shallow(self, sql: Sql) -> Sql:
        """Cut a text that nests too deep for Spark's parser."""
        return self.bind(sql) if sql.depth > _MAX_DEPTH else sql

    def python(self, column: PythonColumn, level: int) -> Sql:
        level = max(level, self._flushed)
        self._add(level, column)
        return Sql(quote(column.name), level + 1, 1, simple=True)

    def _add(self, level: int, column: tuple[str, str] | PythonColumn) -> None:
        while len(self._levels) <= level:
            self._levels.append([])
        self._levels[level].append(column)
        self.temporaries.append(column.name if isinstance(column, PythonColumn) else column[0])

    # ------------------------------------------------------------- lambdas

    def open_lambda(self, *variables: str) -> None:
        self._lambdas.append(_Lambda(self.fresh("cxl_v"), set(variables)))

    def close_lambda(self, body: Sql) -> Sql:
        """The lambda's body with its bound variables around it, free of the lambda's own variables."""
        scope = self._lambdas.pop()
        text = body.text
        for level in reversed(range(len(scope.levels))):
            fields = ", ".join(f"'f{i}', {value}" for i, value in enumerate(scope.levels[level]))
            text = f"get(transform(array(named_struct({fields})), {scope.struct(level)} -> {text}), 0)"
        outer: set[str] = set().union(*(s.variables for s in self._lambdas))
        mentioned = frozenset(outer) & variables_in(text)
        return Sql(text, body.level, body.depth + 4 * len(scope.levels) + 1, body.failures, mentioned)

    # ---------------------------------------------------------------- steps

    def flush(self) -> None:
        """Turn the columns collected so far into steps."""
        for level in range(self._flushed, len(self._levels)):
            plain = tuple(c for c in self._levels[level] if isinstance(c, tuple))
            if plain:
                self.steps.append(Project(plain))
            self.steps.extend(c for c in self._levels[level] if isinstance(c, PythonColumn))
        self._flushed = len(self._levels)

    def where(self, condition: str, reason: str = "filter") -> None:
        self.flush()
        self.steps.append(Where(condition, reason))

    def fan_out(self, size: str, error: str | None) -> None:
        self.flush()
        self.steps.append(FanOut(size, error))

    def project(self, columns: Sequence[tuple[str, str]]) -> None:
        self.flush()
        self.steps.append(Project(tuple(columns)))
        self.temporaries.extend(name for name, _ in columns)


def without_dead(steps: Sequence[Step], texts: Iterable[str], temporaries: Iterable[str]) -> tuple[Step, ...]:
    """The steps of a long program, without the temporary columns that neither they nor the `texts` after them read.

    Spark's work for a step grows with the columns that are there, so a program of n steps would cost n times n."""
    if len(steps) < _MANY_STEPS:
        return tuple(steps)
    last = dict.fromkeys(temporaries, -1)
    for i, step in enumerate(steps):
        for name in _mentioned(step):
            if name in last:
                last[name] = i
    for name in (n for text in texts for n in _TEMPORARY.findall(text)):
        last[name] = len(steps)
    ends: dict[int, list[str]] = {}
    for name, end in last.items():
        ends.setdefault(end, []).append(name)
    made: set[str] = set()
    dead: list[str] = []
    result: list[Step] = []
    for i, step in enumerate(steps):
        dead += [name for name in ends.get(i, ()) if name in made]
        if isinstance(step, Project):
            if len(dead) >= _MANY_DEAD:
                step = replace(step, dead=tuple(dead))
                dead = []
            made.update(name for name, _ in step.columns)
        elif isinstance(step, PythonColumn):
            made.add(step.name)
        result.append(step)
    return tuple(result)


def _mentioned(step: Step) -> Iterable[str]:
    match step:
        case Project(columns=columns):
            texts = [text for _, text in columns]
        case Where(condition=condition):
            texts = [condition]
        case PythonColumn(inputs=inputs):
            texts = [text for _, text, _ in inputs]
    return (name for text in texts for name in _TEMPORARY.findall(text))


def variables_in(text: str) -> frozenset[str]:
    """The lambda variables a text mentions."""
    return frozenset(_VARIABLE.findall(text))


def combine(text: str, parts: Iterable[Sql], extra: Sequence[Failing] = ()) -> Sql:
    """A text made of parts: as deep, late and fallible as they are together."""
    parts = tuple(parts)
    failures = tuple(f for p in parts for f in p.failures) + tuple(extra)
    return Sql(
        text,
        max((p.level for p in parts), default=0),
        1 + max((p.depth for p in parts), default=0),
        failures,
        frozenset(v for p in parts for v in p.variables),
    )
