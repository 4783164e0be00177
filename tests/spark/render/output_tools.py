"""Records written in memory: one Spark job for many values, then the file as the engine would put it together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from clinker_spark.config.model.output import AnyOutput
from clinker_spark.config.model.schema import Column
from clinker_spark.core.types import Type, parse_type
from clinker_spark.cxl.builtins.physical import physical
from clinker_spark.cxl.lower.plan import quote
from clinker_spark.spark.render.rendering import OutColumn, Rendering, render

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Written:
    lines: list[str | None]
    errors: list[dict[str, str] | None]
    rendering: Rendering

    @property
    def file(self) -> bytes:
        """The whole file, of the records that can be written."""
        good = [str(line).encode() for line, error in zip(self.lines, self.errors, strict=True) if error is None]
        return framed(self.rendering, good)


def framed(rendering: Rendering, lines: list[bytes]) -> bytes:
    if not lines:
        return rendering.empty
    return rendering.prefix + rendering.separator.join(lines) + rendering.suffix


def output(kind: str, **keys: Any) -> AnyOutput:
    return TypeAdapter(AnyOutput).validate_python({"type": kind, "path": "out", **keys})


def typed(text: str) -> Type:
    found = parse_type(text)
    assert found is not None
    return found


def out_columns(types: dict[str, str]) -> tuple[OutColumn, ...]:
    return tuple(OutColumn(name, typed(t), quote(name)) for name, t in types.items())


def write(
    spark: SparkSession,
    config: AnyOutput,
    types: dict[str, str],
    rows: Sequence[Sequence[str]],
) -> Written:
    """`rows` are SQL literals, cast to the physical type of their column; 'NULL' is null."""
    schema = config.schema_ if not isinstance(config.schema_, str) else None
    columns: tuple[Column, ...] | None = schema
    rendering = render(config, out_columns(types), columns)
    selects = []
    for i, row in enumerate(rows):
        cells = [_typed(cell, t) + f" AS {quote(n)}" for cell, (n, t) in zip(row, types.items(), strict=True)]
        selects.append(f"SELECT {', '.join([f'{i} AS `$i`', *cells])}")
    frame = spark.sql(" UNION ALL ".join(selects)).repartition(1)  # not folded on the driver: the code of a real run
    error = rendering.error or "NULL"
    found = frame.selectExpr("`$i`", f"{rendering.line} AS line", f"{error} AS error").orderBy("`$i`").collect()
    errors = [None if r["error"] is None else r["error"].asDict() for r in found]
    return Written([r["line"] for r in found], errors, rendering)


def _typed(cell: str, type_text: str) -> str:
    want = physical(typed(type_text))
    if want == "VARIANT" and cell != "NULL":
        return cell  # already one: CAST(... AS VARIANT), parse_json(...)
    return f"CAST({cell} AS {want})"
