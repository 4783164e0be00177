"""Documents in an output: the first record of each brings the header along, the last one the footer.

So the lines of a file stay lines in an order, and are written as any others. The records of a document are put
together for it, in their order, in one task.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from clinker_spark.core.errors import InputError
from clinker_spark.core.types import Kind
from clinker_spark.cxl.builtins.sqltext import sql_string
from clinker_spark.cxl.lower.plan import quote
from clinker_spark.plan.columns import (
    DOCUMENT_COLUMN,
    DOCUMENT_ENDS_COLUMN,
    DOCUMENT_STARTS_COLUMN,
    ENVELOPE_PREFIX,
    FOOTER_PREFIX,
    FRAMING_PREFIX,
)
from clinker_spark.plan.nodes.framing import Framing, Total
from clinker_spark.plan.nodes.output import OutputPlan
from clinker_spark.spark.build.stream import DOCUMENT_BITS
from clinker_spark.spark.render.rendering import OutColumn, Rendering, render

if TYPE_CHECKING:
    from clinker_spark.spark.build.builder import Builder

LINE = "value"
_XML_DOCUMENT = "Document"


def carried(framing: Framing) -> dict[str, Column]:
    """What must go along with a line, beside its place."""
    found = {DOCUMENT_COLUMN: F.col(quote(DOCUMENT_COLUMN)) if framing.by_file else F.lit(0)}
    for name in sorted(framing.columns):
        found[FRAMING_PREFIX + name] = F.col(quote(name))
    for _, what, _ in (*(framing.header or ()), *(framing.footer or ())):
        if isinstance(what, str):
            found[FRAMING_PREFIX + what] = F.col(quote(what))
    return found


def document_of() -> Column:
    """By what records of one document are put together."""
    return F.col(quote(DOCUMENT_COLUMN))


def framed(node: OutputPlan, frame: DataFrame, order: list[Column], names: bytes) -> DataFrame:
    """The lines with headers and footers; `order` is that of the records inside of a document, `names` the header line
    of a CSV file, which each document has."""
    framing = node.framing
    assert framing is not None
    window = Window.partitionBy(quote(DOCUMENT_COLUMN)).orderBy(*order)
    whole = window.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    made = frame.withColumns(
        {
            DOCUMENT_STARTS_COLUMN: F.row_number().over(window) == 1,
            DOCUMENT_ENDS_COLUMN: F.row_number().over(window) == F.count(F.lit(1)).over(whole),
            **{
                _total_column(i): _total(what).over(whole)
                for i, (_, what, _) in enumerate(framing.footer or ())
                if isinstance(what, Total)
            },
        }
    )
    header = [OutColumn(name, t, quote(FRAMING_PREFIX + column)) for name, column, t in framing.header or ()]
    footer = [
        OutColumn(name, t, quote(_total_column(i) if isinstance(what, Total) else FRAMING_PREFIX + what))
        for i, (name, what, t) in enumerate(framing.footer or ())
    ]
    before, behind = _around(
        node,
        names.decode(),
        None if framing.header is None else _section(node, "header", header),
        None if framing.footer is None else _section(node, "footer", footer),
    )
    first, last = quote(DOCUMENT_STARTS_COLUMN), quote(DOCUMENT_ENDS_COLUMN)
    line = f"concat(IF({first}, {before}, ''), {quote(LINE)}, IF({last}, {behind}, ''))"
    if node.config.type == "xml":  # nothing stands between elements: what Spark writes there is the `<` of the next one
        line = f"substring({line}, 2)"
    return made.withColumn(LINE, F.expr(line))


def framed_rendering(node: OutputPlan, rendering: Rendering) -> Rendering:
    """What stands around all documents."""
    if node.config.type == "xml":
        return replace(rendering, prefix=rendering.prefix + b"<", separator=b"<")
    return replace(rendering, prefix=b"") if node.config.type == "csv" else rendering


def check_headers(builder: Builder, node: OutputPlan) -> None:
    """One document has one header. Raises InputError where files say different things."""
    framing = node.framing
    if framing is None or framing.by_file:
        return
    for fields in filter(None, (framing.header, framing.footer)):
        names = [what for _, what, _ in fields if isinstance(what, str) and what in framing.echoed]
        headers = _said(builder, node, names)
        if len(headers) > 1:
            message = (
                f"one document is made of files with {len(headers)} different sections: {headers[0]}, {headers[1]}"
            )
            help_text = "write strategy: preserve, or make the section of expressions in config.header"
            raise InputError([node.diagnostic("E350", message, "config", "options", "envelope", help=help_text)])


def _said(builder: Builder, node: OutputPlan, names: Sequence[str]) -> list[tuple[Any, ...]]:
    """The different things that the files of an output say in some fields, without files that say nothing."""
    sources = {source.index for source in builder.plan.sources_of(node.name)}
    known = [builder.run.found.values.get(name.removeprefix(ENVELOPE_PREFIX), {}) for name in names]
    documents = dict.fromkeys(d for values in known for d in values if d >> DOCUMENT_BITS in sources)
    said = dict.fromkeys(tuple(values.get(document) for values in known) for document in documents)
    return [header for header in said if any(value is not None for value in header)]


def _total_column(i: int) -> str:
    return f"{FOOTER_PREFIX}{i}"


def _total(total: Total) -> Column:
    if total.column is None:
        return F.count(F.lit(1))
    column = F.col(quote(FRAMING_PREFIX + total.column))
    match total.function:
        case "count":
            return F.count(column)
        case "avg" if total.type.kind is Kind.FLOAT:
            return F.avg(column.cast("double"))
        case "sum" if total.type.kind is Kind.INT:
            return F.try_sum(column)
    functions = {"sum": F.sum, "avg": F.avg, "min": F.min, "max": F.max}
    return functions[total.function](column)


def _section(node: OutputPlan, name: str, columns: list[OutColumn]) -> str:
    """SQL for a section as text: a line of CSV, an object, an element."""
    update: dict[str, Any] = {
        "join_values": (),
        "schema_": None,
        "mapping": None,
        "split": None,
        "preserve_nulls": True,
    }
    if node.config.type == "xml":
        update |= {"options": node.config.options.model_copy(update={"record_element": name}), "preserve_nulls": False}
    if node.config.type == "json":
        update["options"] = node.config.options.model_copy(update={"pretty": False})
    return f"coalesce({render(node.config.model_copy(update=update), tuple(columns), None).line}, '')"


def _around(node: OutputPlan, names: str, header: str | None, footer: str | None) -> tuple[str, str]:
    """SQL for what stands before the first record of a document, and behind its last one."""
    if node.config.type == "csv":
        before = sql_string(names) if header is None else f"concat({header}, {sql_string(chr(10) + names)})"
        return before, "''" if footer is None else f"concat({sql_string(chr(10))}, {footer})"
    if node.config.type == "xml":
        before = f"concat({sql_string(f'<{_XML_DOCUMENT}>')}, {header or sql_string('')})"
        return before, f"concat({footer or sql_string('')}, {sql_string(f'</{_XML_DOCUMENT}>')})"
    start = "'{'" if header is None else f"concat('{{\"header\":', {header}, ',')"
    end = "''" if footer is None else f"concat(',\"footer\":', {footer})"
    return f"concat({start}, {sql_string(chr(34) + 'records' + chr(34) + ':[' + chr(10))})", (
        f"concat({sql_string(chr(10) + ']')}, {end}, '}}')"
    )


__all__ = ["carried", "check_headers", "document_of", "framed", "framed_rendering"]
