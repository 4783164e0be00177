"""Fragments as DataFrames: the scan of a source whose workers give lines, and the outputs that these belong to."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from clinker_spark.core.types import STRING
from clinker_spark.cxl.lower.plan import quote
from clinker_spark.plan.facts import Fragment
from clinker_spark.plan.nodes.output import OutputPlan
from clinker_spark.spark.fragments.books import write_down
from clinker_spark.spark.fragments.part_files import fresh_folders
from clinker_spark.spark.fragments.steps import FragmentSteps, undeclared_columns
from clinker_spark.spark.fragments.task import COUNTS, LINES, OUTPUT, PLACE, FragmentTask
from clinker_spark.spark.operators.source import source_flow, source_request
from clinker_spark.spark.render.contract import OutColumn, Rendering
from clinker_spark.spark.render.rendering import render
from clinker_spark.spark.scan.formats import read
from clinker_spark.spark.scan.request import Scan

if TYPE_CHECKING:
    from clinker_spark.spark.build.builder import Builder


def fragment_of(builder: Builder, node: OutputPlan) -> Fragment | None:
    """The fragment that writes an output in this pass; None when Spark does. A pass that leaves records out, looks for
    rejects or shows records is Spark's: then columns are needed that no fragment has."""
    asked, run = builder.asked, builder.run
    fragment = builder.plan.facts.flow.fragments.get(node.name)
    if fragment is None or not asked.writes or asked.limit is not None or asked.chosen:
        return None
    untouched = asked.retraction.withheld is None and asked.retraction.left_out is None and not asked.retraction.removed
    if not untouched or builder.stamps or run.opened or run.unsorted or any(run.file_values.values()):
        return None
    return fragment


@dataclass(frozen=True)
class Lines:
    """The lines of all outputs of a fragment, counted, and the frames of their files."""

    frame: DataFrame
    renderings: dict[str, Rendering]
    parts: dict[str, str]
    """By output: where workers write its lines themselves. Then there are none in the frame."""


def lines_of_fragment(builder: Builder, fragment: Fragment) -> Lines | None:
    """None when the files turn out to have undeclared columns that only Spark can write."""
    folder = _folder(builder, fragment)
    source = builder.plan.source(fragment.source)
    steps: list[FragmentSteps] = []

    def task(widened: tuple[str, ...]) -> FragmentTask | None:
        typed = source.config.type == "json"
        kinds = {builder.plan.output(name).config.type for name in fragment.outputs}
        nested = "json" in kinds and any("." in name or not name.isprintable() for name in widened)
        if nested or (widened and typed and kinds != {"json"}):
            return None
        steps.append(FragmentSteps(builder, fragment, widened, typed=typed))
        return replace(steps[0].task(), parts=folder)

    request = replace(source_request(builder, source), fragment=task)
    scan = read(builder.spark, source.config.type, request)
    if not steps:
        return None
    builder.memo.scans[source.name] = scan
    [made] = steps
    frame = _counted(builder, made, scan)
    flow = source_flow(builder, source, removed=False, chosen=False)
    write_down(builder, fragment, flow, fallible=scan.fallible)
    renderings = {name: _rendering(builder.plan.output(name), scan.widened) for name in fragment.outputs}
    if folder is not None:
        parts = dict(zip(fragment.outputs, fresh_folders(folder, len(fragment.outputs)), strict=True))
        return Lines(frame.select(OUTPUT), renderings, parts)
    return Lines(frame.where(F.col(LINES).isNotNull()).select(OUTPUT, PLACE, LINES), renderings, {})


def _folder(builder: Builder, fragment: Fragment) -> str | None:
    """Where workers can write parts, if they can. Small inputs are read by the run itself."""
    if builder.run.parts is None or builder.run.small or not builder.run.local:
        return None
    return builder.run.parts(fragment.outputs[0])


def _counted(builder: Builder, steps: FragmentSteps, scan: Scan) -> DataFrame:
    frame = scan.frame
    if builder.run.small:
        frame = frame.coalesce(1)
    for place, metrics in steps.places.metrics.items():
        if place == f"{steps.fragment.source}.source" and builder.run.local:
            continue  # the readers say it themselves
        frame = builder.metrics.count(place, frame, **{name: _sum(i) for name, i in metrics.items()})
    return frame


def _sum(index: int) -> Column:
    return F.coalesce(F.sum(F.col(COUNTS)[index]), F.lit(0).cast("long"))


def _rendering(node: OutputPlan, widened: tuple[str, ...]) -> Rendering:
    """What stands around the lines. Of the columns only names and types matter here."""
    columns = [OutColumn(name, node.schema[source], quote(source)) for name, source in node.columns]
    columns += [OutColumn(name, STRING.as_nullable(), quote(name)) for name in undeclared_columns(node, widened)]
    return render(node.config, tuple(columns), node.declared)
