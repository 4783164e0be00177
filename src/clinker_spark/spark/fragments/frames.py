"""Fragments as DataFrames: the scan of a source whose workers give lines, and the outputs that these belong to."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from clinker_spark.config.model.sources.formats import JsonRead
from clinker_spark.core.fast_paths import taken
from clinker_spark.core.types import STRING
from clinker_spark.cxl.lower.plan import quote
from clinker_spark.plan.facts import Fragment
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.nodes.combine import CombinePlan
from clinker_spark.plan.nodes.output import OutputPlan
from clinker_spark.plan.nodes.source import SourcePlan
from clinker_spark.spark.columns.undeclared import Widened
from clinker_spark.spark.fragments.books import write_down
from clinker_spark.spark.fragments.joins.fetch import tables_of
from clinker_spark.spark.fragments.part_files import fresh_folders
from clinker_spark.spark.fragments.part_names import UNFORESEEN
from clinker_spark.spark.fragments.steps import FragmentSteps, Places, undeclared_columns
from clinker_spark.spark.fragments.task import COUNTS, LINES, OUTPUT, PLACE, FragmentTask
from clinker_spark.spark.operators.source import source_flow, source_request
from clinker_spark.spark.render.contract import OutColumn, Rendering
from clinker_spark.spark.render.rendering import render
from clinker_spark.spark.scan.formats import read
from clinker_spark.spark.scan.request import ReadRequest

if TYPE_CHECKING:
    from clinker_spark.spark.build.builder import Builder


def fragment_of(builder: Builder, node: OutputPlan) -> Fragment | None:
    """The fragment that writes an output in this pass; None when Spark does. A pass that leaves records out, looks for
    rejects or shows records is Spark's: then columns are needed that no fragment has."""
    fragment = builder.plan.facts.flow.fragments.get(node.name)
    if fragment is not None and builder.run.small and (_combines(builder, fragment) or fragment.totals):
        return None  # one task joins and groups without jobs before it
    return fragment if builder.stays_in_workers else None


@dataclass(frozen=True)
class Lines:
    """The lines of all outputs of a fragment, counted, and the frames of their files."""

    frame: DataFrame
    renderings: dict[str, Rendering]
    parts: dict[str, str]
    """By output: where workers write its lines themselves. Then there are none in the frame."""
    written: bool = False
    """Have they done so already, in the job that made the groups of other ends of the fragment?"""


NAMES_ARE_LOOKED_UP = "names are looked up"
"""Among what passes of a run found out: to guess the undeclared names of this input was wrong."""
MOST_UNDECLARED = 200
"""Beyond so many undeclared columns, a line of CSV is put together from the few that a record has, which Spark does."""


class _Known(Exception):
    """The undeclared columns of a source are known now, and more is not asked for yet."""


def lines_of_fragment(builder: Builder, fragment: Fragment) -> Lines | None:
    """None when the files turn out to have undeclared columns that only Spark can write."""
    folder = folder_of(builder, fragment)
    found = scanned(builder, fragment, folder)
    if found is None:
        return None
    if folder is not None:
        return Lines(found.frame.select(OUTPUT), found.renderings, _parts(fragment, folder))
    lines = found.frame.where(F.col(LINES).isNotNull()).select(OUTPUT, PLACE, LINES)
    return Lines(lines, found.renderings, {})


def lines_in_parts(builder: Builder, fragment: Fragment, found: Scanned, folder: str) -> Lines:
    """The lines of a fragment whose workers are about to write them."""
    none = builder.spark.range(0).select(F.col("id").cast("int").alias(OUTPUT))
    return Lines(none, found.renderings, _parts(fragment, folder), written=True)


def _parts(fragment: Fragment, folder: str) -> dict[str, str]:
    return dict(zip(fragment.outputs, fresh_folders(folder, len(fragment.outputs)), strict=True))


@dataclass(frozen=True)
class Scanned:
    """What the workers of a fragment give, counted, and how the lines of its outputs become files."""

    frame: DataFrame
    renderings: dict[str, Rendering]


def scanned(builder: Builder, fragment: Fragment, folder: str | None, pieces: int = 1) -> Scanned | None:
    """The scans of all sources of a fragment, written down in the ledger; `pieces`: for so many tasks are the groups of
    an aggregate. None when the files turn out to have undeclared columns that only Spark can write, or when what is
    looked up is too large."""
    sources = [builder.plan.source(name) for name in fragment.sources]
    outputs = [builder.plan.output(name) for name in fragment.outputs]
    tables = tables_of(builder, _combines(builder, fragment))
    if tables is None:
        return None
    places, scans = Places(), {}
    several = len(sources) > 1 and outputs
    widened = {source.name: _undeclared(builder, source) for source in sources} if several else {}
    for source in sources:

        def task(names: tuple[str, ...], source: SourcePlan = source) -> FragmentTask:
            typed = source.config.type == "json"
            if not _writes_all(outputs, names):
                raise _Known
            widened[source.name] = names
            made = FragmentSteps(builder, fragment, places, widened, tables, typed=typed, pieces=pieces)
            return replace(made.task(source), parts=folder)

        guess = folder is not None and _may_begin_again(builder, fragment)
        request = replace(source_request(builder, source), fragment=task, arrival=False, guess=guess)
        request = _as_needed(request, outputs)
        try:
            scans[source.name] = read(builder.spark, source.reader, request)
        except _Known:
            return None
    builder.memo.scans.update(scans)
    frame = counted(builder, fragment, places, reduce(DataFrame.unionAll, [scan.frame for scan in scans.values()]))
    write_down(
        builder,
        fragment,
        {source.name: source_flow(builder, source, removed=False, filtered=False) for source in sources},
    )
    return Scanned(frame, {output.name: _rendering(builder.plan, output, widened) for output in outputs})


def _writes_all(outputs: Sequence[OutputPlan], names: Sequence[str]) -> bool:
    """Can workers write so many undeclared columns, of these names?"""
    kinds = {output.config.type for output in outputs}
    nested = "json" in kinds and any("." in name or not name.isprintable() for name in names)
    return not nested and (len(names) <= MOST_UNDECLARED or kinds <= {"json"})


def folder_of(builder: Builder, fragment: Fragment) -> str | None:
    """Where workers can write parts, if they can. Small inputs are read by the run itself."""
    if builder.run.parts is None or builder.run.small or not builder.run.local:
        return None
    return builder.run.parts(fragment.outputs[0])


def _as_needed(request: ReadRequest, outputs: Sequence[OutputPlan]) -> ReadRequest:
    """The same request where nobody reads undeclared columns. Their names need not be looked for then, which only for
    JSON takes time."""
    wanted = any(output.config.include_unmapped or output.undeclared for output in outputs)
    if wanted or not isinstance(request.options, JsonRead) or request.conventions.on_unmapped != "auto_widen":
        return request
    return replace(request, conventions=replace(request.conventions, on_unmapped="drop"))


def _may_begin_again(builder: Builder, fragment: Fragment) -> bool:
    """May workers find that a guess about the input was wrong? Then this is all that is written, and nobody found it
    before."""
    lines = len(fragment.outputs) == len(builder.plan.outputs) and not fragment.totals
    alone = len(fragment.sources) == 1 and lines
    return alone and not builder.run.measured.get(NAMES_ARE_LOOKED_UP) and taken("guessed_names")


def was_wrong(builder: Builder, parts: Sequence[str]) -> bool:
    """Have the workers that wrote these parts seen that a guess about the input was wrong? Then it is known, and a pass
    that is built now makes none."""
    wrong = any(os.path.exists(os.path.join(os.path.dirname(each), UNFORESEEN)) for each in parts)
    if wrong:
        builder.run.measured[NAMES_ARE_LOOKED_UP] = True
    return wrong


def _combines(builder: Builder, fragment: Fragment) -> list[CombinePlan]:
    return [node for node in builder.plan.combines if node.name in fragment.nodes]


def _undeclared(builder: Builder, source: SourcePlan) -> tuple[str, ...]:
    """The undeclared columns of a source whose records come together with those of others: all of them must be known
    before any file is read."""
    found: list[str] = []

    def stop(names: tuple[str, ...]) -> FragmentTask | None:
        found.extend(names)
        raise _Known

    with suppress(_Known):
        read(builder.spark, source.config.type, replace(source_request(builder, source), fragment=stop))
    return tuple(found)


def counted(builder: Builder, fragment: Fragment, places: Places, frame: DataFrame) -> DataFrame:
    """The frame that workers give, with the sums of their counts."""
    if builder.run.small:
        frame = frame.coalesce(1)
    for place, metrics in places.metrics.items():
        if builder.run.local and place in {f"{name}.source" for name in fragment.sources}:
            continue  # the readers say it themselves
        frame = builder.metrics.count(place, frame, **{name: _sum(i) for name, i in metrics.items()})
    return frame


def _sum(index: int) -> Column:
    """The sum of a count. Tasks of sources know only those counts that were there when they were made."""
    return F.coalesce(F.sum(F.get(F.col(COUNTS), F.lit(index))), F.lit(0).cast("long"))


def _rendering(plan: Plan, node: OutputPlan, widened: Widened) -> Rendering:
    """What stands around the lines. Of the columns only names and types matter here."""
    columns = [OutColumn(name, node.schema[source], quote(source)) for name, source in node.columns]
    columns += [OutColumn(name, STRING.as_nullable(), quote(name)) for name in undeclared_columns(plan, node, widened)]
    return render(node.config, tuple(columns), node.declared)
