"""Envelopes: what the headers of a document say becomes columns of its records.

A header that is a record finds its document by the file that it was read from. Whether each document has one, and each
header a document, is counted while they are brought together; the run asks for it when the job is done.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from clinker_spark.core.errors import InputError
from clinker_spark.cxl.lower.plan import quote
from clinker_spark.plan.columns import DOCUMENT_COLUMN, WIRED_COLUMN, WIRED_PREFIX
from clinker_spark.plan.nodes.envelope import EnvelopePlan
from clinker_spark.plan.nodes.framing import WIRED, envelope_column
from clinker_spark.plan.nodes.output import OutputPlan
from clinker_spark.spark.build.stream import DOCUMENT_BITS, Stream
from clinker_spark.spark.operators.transform import transformed

if TYPE_CHECKING:
    from clinker_spark.plan.graph import Plan
    from clinker_spark.spark.build.builder import Builder
    from clinker_spark.spark.build.metrics import Metrics
    from clinker_spark.spark.scan.request import SourceFile

COUNTED = "headers"
_NUMBER, _FILE, _OTHER = f"{WIRED_PREFIX}number", f"{WIRED_PREFIX}file", f"{WIRED_PREFIX}other"


def build_envelope(builder: Builder, node: EnvelopePlan) -> Stream:
    """The records, each with the values of the headers of its document."""
    body, *others = builder.inputs(node)
    if others:
        body = body.over(_with_headers(builder, node, body.frame, others[0]))
    return transformed(builder, node, body)


def _with_headers(builder: Builder, node: EnvelopePlan, body: DataFrame, other: Stream) -> DataFrame:
    headers = builder.absorb(node, builder.divert(node, other, "header"), "header").frame
    record = F.struct(*[F.col(quote(name)).alias(name) for name in node.wired]).alias(WIRED_COLUMN)
    by_file = node.made_sections.strategy == "preserve"
    if by_file:
        found = headers.groupBy(F.col(quote(DOCUMENT_COLUMN)).alias(_FILE)).agg(
            F.any_value(record).alias(WIRED_COLUMN), F.count(F.lit(1)).alias(_NUMBER)
        )
        same = F.col(quote(DOCUMENT_COLUMN)) == F.col(quote(_FILE))
        here = body.withColumn(_OTHER, F.lit(True))
        joined = here.join(found, same, "full_outer" if builder.writes else "left")
        mine, theirs = F.col(quote(DOCUMENT_COLUMN)), F.col(quote(_FILE))
        without = F.when(theirs.isNull(), mine)
        several = F.when(F.col(quote(_NUMBER)) > 1, theirs)
        homeless = F.when(F.col(quote(_OTHER)).isNull(), theirs)
    else:
        text = F.to_json(F.struct(record), {"ignoreNullFields": "false"})
        found = headers.agg(
            F.any_value(record).alias(WIRED_COLUMN), F.min(text).alias(_FILE), F.max(text).alias(_OTHER)
        )
        joined = body.crossJoin(F.broadcast(found))
        without = F.when(F.col(quote(_FILE)).isNull(), F.lit(0))
        several = F.when(F.col(quote(_FILE)) != F.col(quote(_OTHER)), F.lit(0))
        homeless = F.lit(None)
    if builder.writes:
        counts = {"without": without, "several": several, "homeless": homeless}
        found_out: dict[str, Column] = {key: F.min(column.cast("long")) for key, column in counts.items()}
        joined = builder.metrics.count(f"{node.name}.{COUNTED}", joined, **found_out)
    if by_file:
        joined = joined.where(F.col(quote(_OTHER)).isNotNull())
    values = [F.col(quote(WIRED_COLUMN)).getField(name).alias(envelope_column(WIRED, name)) for name in node.wired]
    return joined.select(*[F.col(quote(name)) for name in body.columns], *values)


def check_wired(
    plan: Plan, output: OutputPlan, metrics: Metrics, files: Mapping[str, Sequence[SourceFile]], *, again: bool
) -> None:
    """Has each document of an output one header, and each header a document? Raises InputError if not. What is written
    `again` lacks documents whose records were retracted."""
    for node in plan.upstream(output.name):
        sections, name = node.envelope, f"{node.name}.{COUNTED}"
        if sections is None or sections.wired is None or name not in metrics.counts:
            continue
        if not metrics.told(name):
            metrics.recount((name,))
        found = metrics.counted(name)
        wrong = {
            key: number for key, number in found.items() if number is not None and not (again and key == "homeless")
        }
        by_file = sections.strategy == "preserve"
        files_of = {key: _file(plan, files, number) for key, number in wrong.items() if by_file}
        for key in _WRONG:
            if key in wrong:
                code, message, help_text = _wrong_header(key, node.name, sections.wired, files_of.get(key))
                raise InputError([node.diagnostic(code, message, "header", help=help_text)])


_WRONG = ("several", "without", "homeless")
"""What can be wrong with the headers of documents, as it is counted."""


def _wrong_header(key: str, node: str, header: str, file: str | None) -> tuple[str, str, str]:
    """Code, message and help; with the `file` that it is about, where headers are told apart by files."""
    if key == "several" and file is not None:
        message = f"'{header}' has several records for {file}: a document has one header"
        return "E352", message, "make one record of them: an aggregate, or a filter"
    if key == "several":
        message = f"'{header}' has records that say different things, and one document has one header"
        return "E350", message, "write strategy: preserve, or make one record of them"
    if key == "without":
        message = f"'{header}' has no record{'' if file is None else f' for {file}'}, and a document has a header"
        return "E351", message, "add the header, or leave 'header' out"
    message = f"'{header}' has a record for {file}, but '{node}' gets no others of that file"
    return "E351", message, "leave headers without a document out before"


def _file(plan: Plan, files: Mapping[str, Sequence[SourceFile]], document: int) -> str:
    source = plan.sources[document >> DOCUMENT_BITS]
    return f"'{files[source.name][document & ((1 << DOCUMENT_BITS) - 1)].name}'"
