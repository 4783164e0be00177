"""A run of the generator against both engines: programs, coverage, disagreements cut down to small ones.

By hand, with seeds of your own: `python -m tests.property SEED [COUNT]`.
"""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from clinker_spark.cxl import ir
from clinker_spark.cxl.errors import CxlError
from clinker_spark.cxl.program import Program, compile
from clinker_spark.cxl.system import Context, default_context
from tests.property import records
from tests.property.agreement import Disagreement, disagreements
from tests.property.batches import alike, frame
from tests.property.programs import Generator
from tests.property.trees import Candidate
from tests.support.batch import Result

BATCH = 150
"""Programs in one Spark job. Spark's planning grows a little faster than the number of columns; far smaller jobs
pay for their start."""

CONTEXT = default_context("property", dt.datetime(2026, 1, 15, 12))


@dataclass
class Coverage:
    """What the programs of a run consist of, and what came of them."""

    builtins: Counter[str] = field(default_factory=Counter)
    overloads: Counter[tuple[str, int]] = field(default_factory=Counter)
    nodes: Counter[str] = field(default_factory=Counter)
    operators: Counter[str] = field(default_factory=Counter)
    rejected: int = 0
    values: int = 0
    nulls: int = 0
    skips: int = 0
    errors: Counter[str] = field(default_factory=Counter)

    def see(self, program: Program) -> None:
        for statement in program.typed.statements:
            self.nodes[type(statement).__name__] += 1
        for expression in program.typed.expressions():
            for node in expression.walk():
                self.nodes[type(node).__name__] += 1
                self._see(node)

    def _see(self, node: ir.TExpr) -> None:
        match node:
            case ir.Call(builtin=builtin, overload=overload):
                self.builtins[builtin.name] += 1
                self.overloads[builtin.name, builtin.overloads.index(overload)] += 1
            case ir.DynamicCall(builtin=builtin, overloads=overloads):
                self.builtins[builtin.name] += 1
                for overload in overloads:
                    self.overloads[builtin.name, builtin.overloads.index(overload)] += 1
            case ir.Compare(op=op) | ir.Logic(op=op):
                self.operators[op] += 1
            case ir.HigherOrder(method=method):
                self.operators[method] += 1
            case ir.Coalesce():
                self.operators["??"] += 1

    def count(self, results: Sequence[Result]) -> None:
        for result in results:
            if result.error is not None:
                self.errors[result.error["kind"]] += 1
            elif result.skipped:
                self.skips += 1
            else:
                value = (result.row or {}).get("v")
                self.values += value is not None
                self.nulls += value is None

    def __str__(self) -> str:
        errors = ", ".join(f"{kind} {n}" for kind, n in self.errors.most_common())
        return (
            f"{len(self.builtins)} builtins, {len(self.overloads)} overloads, {len(self.nodes)} kinds of nodes; "
            f"{self.rejected} programs did not compile; results: {self.values} values, {self.nulls} nulls, "
            f"{self.skips} filtered, {sum(self.errors.values())} errors ({errors})"
        )


def compiled(rng: random.Random, coverage: Coverage) -> Iterator[tuple[Candidate, Program]]:
    """Programs without end; those that do not compile are counted and made anew."""
    generator = Generator(rng)
    while True:
        candidate = generator.program()
        program = try_compile(candidate)
        if program is None:
            coverage.rejected += 1
        else:
            coverage.see(program)
            yield candidate, program


def try_compile(candidate: Candidate) -> Program | None:
    try:
        return compile(candidate.text, records.COLUMNS)
    except CxlError:
        return None


@dataclass(frozen=True)
class Finding:
    candidate: Candidate
    record: Mapping[str, Any]
    difference: Disagreement

    def __str__(self) -> str:
        program = try_compile(self.candidate)
        read = (
            {n.name for e in program.typed.expressions() for n in e.walk() if isinstance(n, ir.Field)}
            if program
            else set()
        )
        record = {name: self.record[name] for name in records.COLUMNS if name in read}
        return f"{self.candidate.text}\n  record:      {record!r}\n{self.difference}"


def run(
    spark: SparkSession, seed: int, count: int, rows: int = 20, batch: int = BATCH
) -> tuple[list[Finding], Coverage]:
    """`count` programs over `rows` records each; one finding for each program on which the engines differ.

    Two jobs at a time: planning them is what takes long, and that is a single thread's work.
    """
    rng, coverage = random.Random(seed), Coverage()
    data = records.generate(random.Random(seed), rows)
    df = frame(spark, records.schema(), data)
    made = list(islice(compiled(rng, coverage), count))
    batches = alike(made, lambda pair: pair[1], batch, CONTEXT)
    findings: list[Finding] = []
    with ThreadPoolExecutor(2) as pool:
        for part, (found, results) in zip(
            batches, pool.map(lambda b: _check(b, data, df, CONTEXT), batches), strict=True
        ):
            for mine in results:
                coverage.count(mine)
            first = {d.program: d for d in reversed(found)}
            findings += [Finding(part[i][0], data[d.record], d) for i, d in sorted(first.items())]
    return findings, coverage


def _check(
    batch: Sequence[tuple[Candidate, Program]], data: Sequence[Mapping[str, Any]], df: DataFrame, context: Context
) -> tuple[list[Disagreement], list[list[Result]]]:
    return disagreements([program for _, program in batch], data, df, context)


def shrink(spark: SparkSession, finding: Finding, rounds: int = 12) -> Finding:
    """The smallest program found by cutting pieces away on which the engines still differ, on the same record."""
    df = frame(spark, records.schema(), [finding.record])
    for _ in range(rounds):
        tried: dict[str, tuple[Candidate, Program]] = {}
        for candidate in sorted(islice(finding.candidate.smaller(), 400), key=Candidate.size):
            program = try_compile(candidate) if candidate.size() < finding.candidate.size() else None
            if program is not None:
                tried.setdefault(candidate.text, (candidate, program))
        batch = list(tried.values())[:60]
        found, _ = _check(batch, [finding.record], df, CONTEXT)
        if not found:
            return finding
        finding = Finding(batch[found[0].program][0], finding.record, found[0])
    return finding


def report(spark: SparkSession, seed: int, findings: Sequence[Finding], most: int = 5) -> str:
    """What to read when engines disagree: small programs first."""
    findings = sorted(findings, key=lambda f: f.candidate.size())
    lines = [f"{len(findings)} programs differ (seed {seed})"]
    for finding in findings[:most]:
        small = shrink(spark, finding)
        lines += ["", str(small)]
        if small.candidate.text != finding.candidate.text:
            lines += ["  made smaller from:", *(f"    {line}" for line in finding.candidate.text.splitlines())]
    return "\n".join(lines)
