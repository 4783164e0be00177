"""`on_bad_file: skip`: files that cannot be read are found before the first record is, and passed over."""

from __future__ import annotations

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.nodes.source import SourcePlan
from clinker_spark.runtime.run.state import BadFile, RunState
from clinker_spark.spark.build.source_columns import conventions_of
from clinker_spark.spark.scan.bad_files import bad_files
from clinker_spark.spark.scan.files import SourceFile
from clinker_spark.spark.scan.request import ReadRequest
from clinker_spark.spark.session.sessions import SparkSession


def bad_among(
    spark: SparkSession, plan: Plan, node: SourcePlan, files: tuple[SourceFile, ...]
) -> dict[int, Diagnostic]:
    """By place: what is wrong with the files that a source passes over."""
    config = node.config
    if config.files.on_bad_file == "stop" or not files:
        return {}
    formats = tuple(plan.file.settings.date_formats)
    conventions = conventions_of(node, config.on_unmapped.mode, formats)
    return bad_files(spark, node.reader, ReadRequest(node.name, files, node.columns, config.options, conventions))


def without_bad(state: RunState, node: SourcePlan, files: tuple[SourceFile, ...]) -> tuple[SourceFile, ...]:
    """The files that can be read; the others are noted, each with what is wrong with it."""
    found = bad_among(state.spark, state.plan, node, files)
    if found:
        state.inputs.bad[node.name] = [BadFile(files[i], problem) for i, problem in found.items()]
        state.tell("files_skipped", {node.name: {files[i].name: p.message for i, p in found.items()}})
    return tuple(file for i, file in enumerate(files) if i not in found)
