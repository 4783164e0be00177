"""Combines: the records of the probe side, each with what is found for it on the build sides."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.diagnostics.suggest import did_you_mean
from clinker_spark.core.types import Kind
from clinker_spark.cxl import ir
from clinker_spark.cxl.program import Program
from clinker_spark.cxl.vector.reasons import expression_reason, program_reason
from clinker_spark.plan.columns import CK_PREFIX
from clinker_spark.plan.facts import Estimate, Keys, Required
from clinker_spark.plan.joins.conjuncts import Comparison, Equality, Range, parts
from clinker_spark.plan.memory import GRACE_HASH, INLINE_HASH, MAPPED, RANGE, SORT, SORT_MERGE, Holder
from clinker_spark.plan.nodes.base import PlanNode, Schema, StreamRef
from clinker_spark.plan.nodes.fields import fields_of

ADAPTIVE = "adaptive"
"""The strategy of a step whose build has an unknown size."""
_SEEN_LATE = (ADAPTIVE, "range")
"""Strategies with which only the run finds out whether an input is small."""
COLLECT_LIMIT = 10_000
"""The most matches that `match: collect` puts in one array."""
SAYS = {
    "broadcast": "in-memory hash (broadcast: every task holds the input)",
    "grace_hash": "grace hash (both sides are sent to tasks by key)",
    "sort_merge": "sort-merge (both sides are sent to tasks and sorted by key; spills)",
    "adaptive": "adaptive (size unknown: sort-merge, or broadcast if it turns out to be small)",
    "range": "range (bins of the axis; their widths come from a look at the data)",
    "latest": "as of (both sides sorted by key and time; the last one seen)",
    "nested_loop": "nested loop (every record with every other)",
}
_MAPPED = "what is looked up is one Arrow file, which all workers map; nothing is sent to tasks by key"
IN_WORKERS = {
    "broadcast": f"in-memory hash, in workers ({_MAPPED})",
    "range": f"range, in workers (found by halving; {_MAPPED})",
}
"""The same where the records of the probe side stay in workers."""
_HOLDERS = {
    "broadcast": INLINE_HASH,
    "grace_hash": GRACE_HASH,
    "sort_merge": SORT_MERGE,
    "adaptive": SORT_MERGE,
    "range": RANGE,
    "latest": SORT,
    "nested_loop": INLINE_HASH,
}


@dataclass(frozen=True, eq=False, kw_only=True)
class CombineStep:
    """One input joined to what the probe side has become so far. `build` is the input that is looked up."""

    build: str
    equalities: tuple[Equality, ...]
    ranges: tuple[Range, ...]
    residual: ir.TExpr | None
    """What must also be true of a pair."""
    only: ir.TExpr | None
    """What must be true of a record of the input to be looked at at all. It cannot fail."""
    strategy: str
    """How Spark joins: `broadcast`, `grace_hash`, `sort_merge`, `adaptive`, `range`, `latest` or `nested_loop`."""
    estimate: Estimate | None
    held: bool = False
    """Is the input known to be small enough to be held whole by every task?"""


@dataclass(frozen=True, eq=False, kw_only=True)
class CombinePlan(PlanNode):
    """Looks up the records of one input, the probe side, in the others. Columns are named `input.column` inside."""

    kind = "combine"
    mark = "◈"
    category = "combine_output_row"
    made_category = "combine_output_row"
    stops_early = True
    uses_statistics = True

    qualifiers: tuple[str, ...]
    """The names of the inputs, in the order of `inputs`."""
    schemas: Mapping[str, Schema]
    probe_name: str
    steps: tuple[CombineStep, ...]
    match: str
    on_miss: str
    program: Program | None
    """What each pair becomes; None when matches are collected."""
    config: Any
    probe_estimate: Estimate | None = None
    lifted: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By build: the undeclared columns of it that the program names."""

    mixes_files = False

    @property
    def programs(self) -> tuple[Program, ...]:
        return () if self.program is None else (self.program,)

    def expressions(self) -> Iterator[ir.TExpr]:
        yield from super().expressions()
        yield from self.conditions

    @property
    def conditions(self) -> Iterator[ir.TExpr]:
        """Every expression of the condition."""
        for step in self.steps:
            for comparison in (*step.equalities, *step.ranges):
                yield comparison.left
                yield comparison.right
            yield from (e for e in (step.residual, step.only) if e is not None)

    @property
    def probe(self) -> int:
        """The position of the probe side among the inputs."""
        return self.qualifiers.index(self.probe_name)

    @property
    def carried_from(self) -> tuple[StreamRef, ...]:
        return (self.inputs[self.probe],)

    @property
    def input_names(self) -> tuple[str, ...]:
        return self.qualifiers

    def is_probe_side(self, i: int) -> bool:
        return i == self.probe

    def is_build_side(self, i: int) -> bool:
        return i != self.probe

    @property
    def order_preserving(self) -> bool:
        """Do records leave where they came in? Only if each becomes one, and none is sent to another task."""
        return self.match in ("first", "collect") and all(
            step.strategy == "broadcast" and not self.picks_after(step) for step in self.steps
        )

    def picks_after(self, step: CombineStep) -> bool:
        """Are the matches of a record of the probe side sorted out after the join? Else a key has one match at most."""
        return step.strategy != "latest" and self.match != "all" and bool(step.ranges or step.residual is not None)

    @property
    def exchanges(self) -> bool:
        return not self.order_preserving

    @property
    def holder(self) -> Holder:
        """Of several steps the one that gives way first."""
        found = [_HOLDERS[step.strategy] for step in self.steps]
        return min(found, key=lambda holder: holder.spill_priority or 0)

    @property
    def worker_holder(self) -> Holder:
        return MAPPED

    def moved(self, i: int) -> str | None:
        if i == self.probe:
            moving = [step for step in self.steps if self._moves_probe(step)]
            perhaps = all(step.strategy in _SEEN_LATE and not self.picks_after(step) for step in moving)
            return ("shuffle or none" if perhaps else "shuffle") if moving else None
        step = next(step for step in self.steps if step.build == self.qualifiers[i])
        if step.strategy in _SEEN_LATE:
            return "shuffle or broadcast"
        if step.strategy == "broadcast" and self.match != "all" and not self.picks_after(step):
            return "shuffle, then broadcast"  # of each key the first record, or all of them as one
        return "broadcast" if _HOLDERS[step.strategy] is INLINE_HASH else "shuffle"

    def _moves_probe(self, step: CombineStep) -> bool:
        return self.picks_after(step) or _HOLDERS[step.strategy] is not INLINE_HASH

    @property
    def convergences(self) -> tuple[tuple[tuple[int, ...], int], ...]:
        """Spark finishes the left side of a sort-merge join before it begins the right one. To change them is possible
        where misses are dropped: else the probe side has to be the left one."""
        if self.on_miss != "skip" or self.match == "collect":
            return ()
        found: list[tuple[tuple[int, ...], int]] = []
        met: tuple[int, ...] = (self.probe,)
        for step in self.steps:
            build = self.qualifiers.index(step.build)
            if _HOLDERS[step.strategy] is SORT_MERGE:
                found.append((met, build))
            met = (*met, build)
        return tuple(found)

    def held(self, before: Sequence[int]) -> int:
        """Records of a probe side that stays where it is go through one by one."""
        return sum(size for i, size in enumerate(before) if self.moved(i))

    @property
    def multiplies(self) -> bool:
        fans_out = self.program is not None and ir.has_statement(self.program.typed.statements, (ir.TEach,))
        return self.match == "all" or fans_out

    @property
    def conserves(self) -> bool:
        return not self.multiplies

    @property
    def adds_up(self) -> bool:
        return True  # as far as its build sides are whole

    @property
    def can_fail(self) -> bool:
        return self.on_miss == "error" or any(e.fallible for e in self.conditions) or super().can_fail

    @property
    def max_output_rows(self) -> int | None:
        found: int | None = self.config.max_output_rows
        return found

    @property
    def vector_reason(self) -> str | None:
        if self.program is None:
            return "'match: collect' makes arrays"
        if self.match == "latest":
            return "'match: latest' has no vector form"
        for step in self.steps:
            if step.strategy not in ("broadcast", "range") or not step.held:
                return f"'{step.build}' is not known to be small enough for every task"
        for step in self.steps:
            if any(_of_other_scales(c) for c in (*step.equalities, *step.ranges)):
                return f"decimals of different scales are compared with those of '{step.build}'"
        text = str(self.config.where)
        looked = [e for step in self.steps for c in (*step.equalities, *step.ranges) for e in (c.left, c.right)]
        looked += [step.residual for step in self.steps if step.residual is not None]
        reasons = [expression_reason(e, text) for e in looked] + [program_reason(self.program.typed)]
        return next((why for why in reasons if why), None)

    def in_order(self, before: Sequence[bool]) -> bool:
        return before[self.probe] and self.order_preserving

    def keys(self, before: Sequence[Keys]) -> Keys:
        wanted = self.config.propagate_ck
        columns = dict(before[self.probe].columns)
        if wanted.keys != "driver":
            for keys in before:
                columns |= {n: t for n, t in keys.columns.items() if n not in columns}
        if wanted.keys == "named":
            columns = {n: t for n, t in columns.items() if {n, n.removeprefix(CK_PREFIX)} & set(wanted.named)}
        carried = [keys for keys in before if any(name in columns for name in keys.own)]
        sources = tuple(dict.fromkeys(source for keys in carried for source in keys.sources))
        return Keys(columns, sources, False, (*self.schema, *columns))

    def several_documents(self, before: Sequence[bool]) -> bool:
        return before[self.probe]

    def required(self, i: int, need: Required, *, in_order: bool) -> Required:
        """Only the records of the probe side have an identity afterwards."""
        qualifier = self.qualifiers[i]
        prefix = qualifier + "."
        fields = {name for e in self.expressions() for name in fields_of(e)}
        columns = frozenset(name.removeprefix(prefix) for name in fields if name.startswith(prefix))
        if qualifier != self.probe_name:
            if self.match == "collect" and qualifier in need.columns:
                columns = frozenset(self.schemas[qualifier])
            return Required(columns, arrival=True)
        if self.match == "collect":
            columns |= need.columns & set(self.schemas[qualifier])
        document = need.document or self.reads_file_values
        arrival = need.arrival or not self.order_preserving
        return Required(columns, arrival, document, need.event, self.source_members | need.members)

    def idle_keys(self, before: Sequence[Keys]) -> Iterator[Diagnostic]:
        known = {name.removeprefix(CK_PREFIX) for keys in before for name in keys.columns}
        for i, name in enumerate(self.config.propagate_ck.named):
            if name.removeprefix(CK_PREFIX) not in known:
                message = f"'{name}' has no effect here: no input has a correlation key of that name"
                help_text = did_you_mean(name, known) or f"the keys are {', '.join(sorted(known)) or 'none'}"
                yield self.diagnostic("W027", message, "config", "propagate_ck", "named", i, help=help_text)

    def sketch_name(self, step: CombineStep) -> str:
        """Under which name the keys of an input are counted."""
        return f"{self.name}.sketch of {step.build}"

    def sketched_keys(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        for step in self.steps:
            columns = [
                e.right.name if isinstance(e.right, ir.Field) else f"{step.build}.key{i + 1}"
                for i, e in enumerate(step.equalities)
            ]
            yield self.sketch_name(step), tuple(f"{self.name}/{name.replace('.', '/', 1)}" for name in columns)

    # ------------------------------------------------------------ explain

    @property
    def tag(self) -> str:
        return f"combine:{'+'.join(dict.fromkeys(step.strategy for step in self.steps))}"

    @property
    def shown_program(self) -> Program | None:
        return self.program

    def sections(self, readers: Mapping[str | None, Sequence[str]]) -> Iterator[tuple[str, list[str]]]:
        yield "Combines", list(self._lines())

    def worker_sections(self, readers: Mapping[str | None, Sequence[str]]) -> Iterator[tuple[str, list[str]]]:
        yield "Combines", list(self._lines(in_workers=True))

    def _lines(self, *, in_workers: bool = False) -> Iterator[str]:
        many = f" ({len(self.qualifiers)} inputs, joined in steps)" if len(self.steps) > 1 else ""
        yield f"Combine '{self.name}'{many}:"
        refs = dict(zip(self.qualifiers, self.inputs, strict=True))
        yield f"  Driving input: {self.probe_name} <- {refs[self.probe_name]} ({_rows(self.probe_estimate)})"
        for number, step in enumerate(self.steps, 1):
            indent = "  "
            if len(self.steps) > 1:
                yield f"  Step {number}: join {step.build}"
                indent = "    "
            yield f"{indent}Strategy: {IN_WORKERS[step.strategy] if in_workers else SAYS[step.strategy]}"
            yield f"{indent}Build input: {step.build} <- {refs[step.build]} ({_rows(step.estimate)})"
            kinds = f"equalities={len(step.equalities)}, ranges={len(step.ranges)}"
            yield f"{indent}Predicate: {kinds}, residual={'yes' if step.residual is not None else 'no'}"
            for comparison in (*step.equalities, *step.ranges):
                yield f"{indent}  {self._shown(comparison)}"
            if step.only is not None:
                yield f"{indent}  {step.build} alone: {self._text(step.only)}"
            if step.residual is not None:
                yield f"{indent}  each pair: {self._text(step.residual)}"
        yield f"  Match: {self.match}"
        yield f"  On miss: {self.on_miss}"
        order = (
            "kept in place" if in_workers or self.order_preserving else "driver, then build; sorted where it is needed"
        )
        yield f"  Order: {order}"

    def _shown(self, c: Comparison) -> str:
        return f"{self._text(c.left)} {c.op} {self._text(c.right)}"

    def _text(self, e: ir.TExpr) -> str:
        text = str(self.config.where)
        return " and ".join(" ".join(text[part.span.start : part.span.end].split()) for part in parts(e))

    def details(self) -> dict[str, Any]:
        return {
            "driver": self.probe_name,
            "match": self.match,
            "on_miss": self.on_miss,
            "keeps_places": self.order_preserving,
            "inputs": {name: self._input(name) for name in self.qualifiers},
            "steps": [self._step(step) for step in self.steps],
        }

    def _input(self, name: str) -> dict[str, Any]:
        """What an input is for, and how many records it probably has."""
        step = next((step for step in self.steps if step.build == name), None)
        found = self.probe_estimate if step is None else step.estimate
        return {
            "role": "probe" if step is None else "build",
            "estimated_rows": None if found is None else found.rows,
            "estimated_rows_source": None if found is None else found.provenance,
        }

    def _step(self, step: CombineStep) -> dict[str, Any]:
        found = step.estimate
        return {
            "build": step.build,
            "strategy": step.strategy,
            "estimate": None if found is None else {"rows": found.rows, "provenance": found.provenance},
            "equalities": [self._shown(c) for c in step.equalities],
            "ranges": [self._shown(c) for c in step.ranges],
            "residual": None if step.residual is None else self._text(step.residual),
            "only": None if step.only is None else self._text(step.only),
        }


def _of_other_scales(c: Comparison) -> bool:
    """Are decimals compared that are kept in different ways?"""
    sides = (c.left.type, c.right.type)
    return Kind.DECIMAL in (t.kind for t in sides) and (sides[0].scale is None or sides[0].scale != sides[1].scale)


def _rows(found: Estimate | None) -> str:
    return "rows unknown" if found is None else f"est. {found.rows:,} [{found.provenance}] rows"
