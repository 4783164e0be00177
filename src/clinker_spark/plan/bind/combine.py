"""Combines: the condition is classified, inputs are put in an order, and each step gets a way to be joined."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from clinker_spark.config.model.combine import CombineNode
from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.diagnostics.suggest import did_you_mean
from clinker_spark.core.span import Source
from clinker_spark.core.tree import field_names
from clinker_spark.core.types import ANY, Kind, Type, array_of, map_of
from clinker_spark.cxl import ir
from clinker_spark.cxl.conditions import Condition
from clinker_spark.cxl.program import Program
from clinker_spark.cxl.syntax import ast
from clinker_spark.cxl.syntax.parser import parse
from clinker_spark.plan.bind.node import Bound, NodeBinder, Streams
from clinker_spark.plan.facts import Estimate
from clinker_spark.plan.joins.conjuncts import (
    Comparison,
    Conjunct,
    Equality,
    Range,
    Residual,
    all_of,
    inputs_of,
    range_pair,
    shown_type,
    split,
)
from clinker_spark.plan.memory import held_whole
from clinker_spark.plan.nodes.base import Schema
from clinker_spark.plan.nodes.combine import CombinePlan, CombineStep

ORDERINGS = ("<", "<=", ">", ">=")


def bind_combine(binder: NodeBinder, node: CombineNode) -> Streams | None:
    """The plan of a combine; None when something is wrong, which is noted then."""
    return _CombineBinder(binder, node).bind()


class _CombineBinder:
    def __init__(self, binder: NodeBinder, node: CombineNode) -> None:
        self.binder = binder
        self.node = node
        self.config = node.config
        self.probe_name = node.probe_name
        self.bound: dict[str, Bound] = dict(zip(node.input, binder.inputs, strict=True))
        self.schemas: dict[str, Schema] = {name: bound.schema for name, bound in self.bound.items()}

    def bind(self) -> Streams | None:
        conjuncts = self._condition()
        if conjuncts is None or not self._types_fit(conjuncts) or not self._connected(conjuncts):
            return None
        steps = self._steps(conjuncts)
        if steps is None:
            return None
        program, schema = None, self._collected()
        if self.config.match != "collect":
            program = self._program()
            if program is None:
                return None
            schema = dict(program.output)
        self._warn(steps)
        plan = CombinePlan(
            **self.binder.common(schema, tuple(schema)),
            qualifiers=tuple(self.node.input),
            schemas=self.schemas,
            probe_name=self.probe_name,
            steps=steps,
            match=self.config.match,
            on_miss=self.config.on_miss,
            program=program,
            config=self.config,
            probe_estimate=self._estimate(self.probe_name),
            lifted=self._lifted() if program is not None else {},
        )
        return self.binder.made(plan)

    # ------------------------------------------------------------ the condition

    def _condition(self) -> list[Conjunct] | None:
        schema = {f"{q}.{name}": t for q, columns in self.schemas.items() for name, t in columns.items()}
        found: Condition | None = self.binder.compile(
            "config", "where", schema=schema, condition=True, code="E303", codes={"E203": "E304"}
        )
        return None if found is None else split(found.value, self.probe_name)

    def _connected(self, conjuncts: list[Conjunct]) -> bool:
        compared = [c for c in conjuncts if not isinstance(c, Residual)]
        if not compared:
            across = [c for c in conjuncts if isinstance(c, Residual) and len(c.inputs) > 1]
            code = "E313" if across else "E305"
            message = (
                "the condition has neither an equality nor a range between two inputs"
                if across
                else "the condition does not compare the inputs with each other"
            )
            self._at_where(code, message, f"write for example {self._sample()}")
            return False
        reached = {self.probe_name}
        while grown := {name for c in compared if c.inputs & reached for name in c.inputs} - reached:
            reached |= grown
        apart = [name for name in self.node.input if name not in reached]
        if apart:
            message = f"nothing connects input '{apart[0]}' with '{self.probe_name}'"
            self._at_where("E305", message, "compare a column of it with one of an input that is connected")
        return not apart

    def _types_fit(self, conjuncts: list[Conjunct]) -> bool:
        fine = True
        searched = any(not isinstance(c, Residual) for c in conjuncts)
        for c in conjuncts:
            if isinstance(c, Equality):
                left, right = shown_type(c.left), shown_type(c.right)
                if left.kind is not right.kind and not (left.is_dynamic or right.is_dynamic):
                    message = f"a key of type {left} never equals one of type {right}"
                    help_text = f"convert one of them, for example with .to_{_word(right)}()"
                    self._at(c.left, "E328", message, help_text)
                    fine = False
            elif (
                isinstance(c, Residual) and not searched and isinstance(c.value, ir.Compare) and c.value.op in ORDERINGS
            ):
                sides = [inputs_of(e, self.probe_name) for e in (c.value.left, c.value.right)]
                if all(len(side) == 1 for side in sides) and sides[0] != sides[1]:
                    message = f"cannot search a range of {shown_type(c.value.left)} values"
                    self._at(c.value, "E327", message, "ranges work on numbers, dates and times; or add an equality")
                    fine = False
        return fine

    # ------------------------------------------------------------ the steps

    def _steps(self, conjuncts: list[Conjunct]) -> tuple[CombineStep, ...] | None:
        compared = [c for c in conjuncts if not isinstance(c, Residual)]
        rest = [c for c in conjuncts if isinstance(c, Residual)]
        joined = {self.probe_name}
        steps: list[CombineStep] = []
        while len(joined) < len(self.node.input):
            build = self._next(compared, joined)
            mine = [c.towards(build) for c in compared if _joins(c, build, joined)]
            compared = [c for c in compared if not _joins(c, build, joined)]
            joined.add(build)
            alone = [r for r in rest if r.inputs == {build} and not r.value.fallible]
            pairs = [r for r in rest if r not in alone and r.inputs <= joined]
            rest = [r for r in rest if r not in alone and r not in pairs]
            step = self._step(build, mine, pairs, alone)
            if not self._is_possible(step, mine):
                return None
            steps.append(step)
        return tuple(steps)

    def _step(
        self, build: str, mine: Sequence[Comparison], pairs: Sequence[Residual], alone: Sequence[Residual]
    ) -> CombineStep:
        """How an input is joined: by what compares it, what is asked of `pairs`, and what of its records `alone`."""
        step = CombineStep(
            build=build,
            equalities=tuple(c for c in mine if isinstance(c, Equality)),
            ranges=tuple(c for c in mine if isinstance(c, Range)),
            residual=all_of([r.value for r in pairs]),
            only=all_of([r.value for r in alone]),
            strategy="",
            estimate=self._estimate(build),
        )
        known = step.estimate is not None and step.estimate.bytes <= self._broadcastable()
        return replace(step, strategy=self._strategy(step), held=known)

    def _is_possible(self, step: CombineStep, mine: Sequence[Comparison]) -> bool:
        """Does the step suit what the combine is to find? What is wrong is noted."""
        if self.config.match == "latest":
            return self._is_latest(step)
        if self.config.match == "collect" and any(c.left_input != self.probe_name for c in mine):
            message = f"'match: collect' looks up '{step.build}' by another input that is itself collected"
            help_text = f"compare '{step.build}' with '{self.probe_name}', or collect in two combines"
            self._at_where("E305", message, help_text)
            return False
        return True

    def _next(self, compared: list[Equality | Range], joined: set[str]) -> str:
        """The smallest input that is connected with what is joined; among unknown ones, the first."""
        ready = [q for q in self.node.input if q not in joined and any(_joins(c, q, joined) for c in compared)]
        known = {q: found for q in ready if (found := self._estimate(q)) is not None}
        return min(ready, key=lambda q: (q not in known, known[q].rows if q in known else 0))

    def _strategy(self, step: CombineStep) -> str:
        if self.config.match == "latest":
            return "latest"
        if range_pair(step.ranges) is not None or (step.ranges and not step.equalities):
            return "range"
        if not step.equalities:
            return "nested_loop"
        if self.config.strategy == "grace_hash":
            return "grace_hash"
        if step.estimate is None:
            return "adaptive"
        return "broadcast" if step.estimate.bytes <= self._broadcastable() else "sort_merge"

    def _broadcastable(self) -> int:
        return held_whole(self.binder.binder.memory_limit)

    def _is_latest(self, step: CombineStep) -> bool:
        fine = len(step.ranges) == 1 and step.ranges[0].op in (">=", ">") and step.residual is None
        if not fine:
            message = f"'match: latest' needs one comparison that says which records of '{step.build}' are not too late"
            build, probe = (self._time_column(q) for q in (step.build, self.probe_name))
            help_text = f"write {build} <= {probe}, and else only equalities"
            self._at_where("E329", message, help_text)
        return fine

    def _time_column(self, qualifier: str) -> str:
        times = [n for n, t in self.schemas[qualifier].items() if t.kind in (Kind.DATETIME, Kind.DATE)]
        return f"{qualifier}.{times[0] if times else 'time'}"

    def _estimate(self, name: str) -> Estimate | None:
        return self.binder.binder.known.estimates[self.bound[name].ref.node]

    # ------------------------------------------------------------ what comes out

    def _program(self) -> Program | None:
        missing = self.config.on_miss == "null_fields"
        schema: dict[str, Type] = {}
        for q, columns in self.schemas.items():
            for name, t in columns.items():
                schema[f"{q}.{name}"] = t.as_nullable() if missing and q != self.probe_name else t
        schema |= {f"{q}.{name}": ANY.as_nullable() for q, names in self._lifted().items() for name in names}
        program: Program | None = self.binder.compile("config", "cxl", schema=schema, codes={"E203": "E308"})
        if program is not None and not program.output:
            self.binder.problem("E309", "the program emits no column", "config", "cxl", help=self._emit())
            return None
        return program

    def _lifted(self) -> dict[str, tuple[str, ...]]:
        """The columns of builds that the program names and no schema declares. A name that is nearly a declared one is
        taken for a slip, which the compiler tells; whether files have the others is known when they are read."""
        text = self.binder.file.text_of((*self.binder.path, "config", "cxl")).text
        syntax, problems = parse(Source(self.binder.name, text))
        found: dict[str, dict[str, None]] = {}
        for q, name in member_names(syntax.statements) if not problems else ():
            if q in self.schemas and q != self.probe_name and self.binder.carries_undeclared(self.bound[q].ref.node):
                declared = self.schemas[q]
                inside = any(known.startswith(f"{name}.") for known in declared)
                if name not in declared and not inside and did_you_mean(name, declared) is None:
                    found.setdefault(q, {})[name] = None
        return {q: tuple(names) for q, names in found.items()}

    def _collected(self) -> Mapping[str, Type]:
        arrays = {q: array_of(map_of(ANY)) for q in self.node.input if q != self.probe_name}
        return {**self.schemas[self.probe_name], **arrays}

    # ------------------------------------------------------------ findings

    def _warn(self, steps: tuple[CombineStep, ...]) -> None:
        if self.config.strategy == "grace_hash":
            small = [s for s in steps if s.estimate is not None and s.estimate.bytes <= self._broadcastable()]
            if small and all(s.strategy == "grace_hash" for s in small):
                message = f"'{small[0].build}' has only {small[0].estimate}: it would fit every task"
                self.binder.problem("W302", message, "config", "strategy", help="leave 'strategy' out")
        if not any(step.equalities for step in steps):
            message = "the condition has no equality: records are found by range alone"
            self.binder.problem("W305", message, "config", "where", help="add an equality if the inputs share a key")
        if len(self.node.input) > 2 and self.config.drive is None:
            message = f"'{self.probe_name}' drives the join because it comes first"
            self.binder.problem("W306", message, "input", help=f"write drive: {self.probe_name} to say so", key=True)

    def _at_where(self, code: str, message: str, help_text: str) -> None:
        self.binder.problem(code, message, "config", "where", help=help_text)

    def _at(self, e: ir.TExpr, code: str, message: str, help_text: str) -> None:
        text = self.binder.file.text_of((*self.binder.path, "config", "where"))
        self.binder.binder.found.append(text.relocate(Diagnostic(code, message, None, e.span, help_text)))

    def _sample(self) -> str:
        first, second = list(self.node.input)[:2]
        shared = [name for name in self.schemas[first] if name in self.schemas[second]]
        return f"{first}.{shared[0] if shared else 'id'} == {second}.{shared[0] if shared else 'id'}"

    def _emit(self) -> str:
        column = next(iter(self.schemas[self.probe_name]), "id")
        return f"write for example emit {column} = {self.probe_name}.{column}"


def member_names(node: Any) -> Iterator[tuple[str, str]]:
    """All `input.name` of a syntax tree."""
    if isinstance(node, tuple):
        for part in node:
            yield from member_names(part)
    elif isinstance(node, ast.Node):
        if isinstance(node, ast.Member) and isinstance(node.target, ast.Name):
            yield node.target.name, node.name
        for name in field_names(type(node)):
            yield from member_names(getattr(node, name))


def _joins(c: Equality | Range, build: str, joined: set[str]) -> bool:
    return build in c.inputs and c.inputs - {build} <= joined


def _word(t: Type) -> str:
    return {Kind.INT: "int", Kind.FLOAT: "float", Kind.DECIMAL: "decimal", Kind.DATE: "date"}.get(t.kind, "string")
