"""`--dry-run -n N`: what the first records of each source become, without touching any output."""

from __future__ import annotations

from typing import Any

from clinker_spark.plan.columns import BYTES_COLUMN, FILE_KEY_COLUMN
from clinker_spark.plan.graph import Plan
from clinker_spark.runtime.discover.bad_files import bad_among
from clinker_spark.runtime.discover.new_files import earlier_runs
from clinker_spark.runtime.discover.remote_copies import found_files
from clinker_spark.runtime.discover.source_order import with_known_order
from clinker_spark.runtime.run.engine_failures import explained
from clinker_spark.runtime.run.options import Options, contexts
from clinker_spark.runtime.run.variables import with_found_values
from clinker_spark.spark.build.builder import Builder
from clinker_spark.spark.build.passes import Find, Pass, RunContext
from clinker_spark.spark.operators.output import prepare_output
from clinker_spark.spark.rejects.letters import first_letters, letters
from clinker_spark.spark.session.sessions import SparkSession, working_session

MOST_LINES = 10_000
"""Even a preview has an end: a join or an `emit each` can make many records of few."""


def preview(plan: Plan, spark: SparkSession, options: Options, records: int) -> str:
    """Every output as text, made of at most so many records of each source, and the records that fail."""
    base = options.base or plan.file.folder
    spark = working_session(spark)
    with explained(plan):
        left = earlier_runs(plan, options, base).left
        files = found_files(spark, plan, base, options.now, left)
        skipped: list[str] = []
        for node in plan.sources:
            bad = bad_among(spark, plan, node, files[node.name])
            skipped += [f"{files[node.name][i].name}: {what.code}: {what.message}\n" for i, what in bad.items()]
            files[node.name] = tuple(file for i, file in enumerate(files[node.name]) if i not in bad)
        context = with_known_order(RunContext(spark, plan, contexts(plan, options), files), records)
        context = with_found_values(context, records)
        builder = Builder(context, Pass(limit=records))
        parts: list[str] = []
        for output in plan.outputs:
            prepared = prepare_output(builder, output)
            parts.append(f"--- {output.name} -> {output.config.path}\n")
            if prepared.rendering is None:
                rows = prepared.frame.limit(MOST_LINES).collect()
                parts += [f"{_columns(row.asDict())}\n" for row in rows]
                continue
            lines = [row[0] for row in prepared.frame.limit(MOST_LINES).collect()]
            frame = prepared.rendering
            text = frame.prefix.decode() + frame.separator.decode().join(lines) + frame.suffix.decode()
            parts.append(text if lines else frame.empty.decode())
        parts += _failures(Builder(context, Pass(Find(), records)))
        parts += [f"--- {len(skipped)} file(s) skipped\n", *skipped] if skipped else []
    return "".join(parts)


def _columns(row: dict[str, Any]) -> dict[str, Any]:
    """Without what only decides about files."""
    return {name: value for name, value in row.items() if name not in (FILE_KEY_COLUMN, BYTES_COLUMN)}


def _failures(builder: Builder) -> list[str]:
    plan = builder.plan
    for node in plan.outputs:
        prepare_output(builder, node)
    frame = letters(builder)
    rows = [] if frame is None else first_letters(frame, MOST_LINES)
    if not rows:
        return []
    lines = [f"--- {len(rows)} record(s) fail\n"]
    for row in rows:
        node = plan.nodes[row["stage"]]
        where = f"row {row['row']}" if row["row"] is not None else "a group"
        lines.append(f"{where} at {node.stage}: {row['message']}\n")
    return lines
