"""Texts that hold several values: the source reads them as they are, and a transform behind it takes them apart.

So a part that is no number makes its record a dead letter like any other, and a replay reads the text that stood there.
"""

from __future__ import annotations

import json

from clinker_spark.config.model.schema import Column
from clinker_spark.config.model.sources.split_values import SplitValues
from clinker_spark.core.types import STRING, Kind
from clinker_spark.cxl.program import compile
from clinker_spark.plan.bind.node import Bound, NodeBinder, Streams
from clinker_spark.plan.nodes.base import StreamRef
from clinker_spark.plan.nodes.source import SourcePlan
from clinker_spark.plan.nodes.transform import TransformPlan

_CONVERSIONS = {Kind.INT: "to_int", Kind.FLOAT: "to_float", Kind.BOOL: "to_bool"}
_CONVERSIONS |= {Kind.DATE: "to_date", Kind.DATETIME: "to_datetime"}
_ESCAPED_DELIMITER, _ESCAPED_ESCAPE = "\ue0f1", "\ue0f2"
"""Stand for what is part of a value while the text is split."""


def as_texts(columns: tuple[Column, ...], splits: tuple[SplitValues, ...]) -> tuple[Column, ...]:
    """The columns as the reader gives them; it reads JSON arrays itself."""
    fields = {split.field for split in splits if not split.json_}
    return tuple(
        column.model_copy(update={"type": "string", "nullable": True, "multiple": False})
        if (column.source_name or column.name) in fields
        else column
        for column in columns
    )


def bind_splits(binder: NodeBinder, source: SourcePlan, columns: tuple[Column, ...]) -> Streams:
    """The streams of the source, and of the transform behind it that other nodes read in its place."""
    [(_, read)] = binder.made(source).items()
    by_field = {column.source_name or column.name: column for column in columns}
    lines = [_line(by_field[split.field], split) for split in source.config.split_values if not split.json_]
    program = compile("\n".join(lines), source.schema, name=f"split_values of {source.name}")
    after = {column.name: column.data_type for column in columns}
    name = f"{source.name}/values"
    node = TransformPlan(
        name=name,
        inputs=(StreamRef(source.name),),
        schema=after,
        emitted=tuple(after),
        file=source.file,
        path=source.path,
        program=program,
    )
    binder.binder.add(node)
    return {None: Bound(StreamRef(name), after, tuple(after), read.documents)}


def _line(column: Column, split: SplitValues) -> str:
    """The statement that makes an array of a text. Of an empty text there is no value, and not an empty one."""
    name, text = column.name, f'({column.name} ?? "")'
    parts = text
    if split.escape is not None:
        for written, mark in (
            (split.escape * 2, _ESCAPED_ESCAPE),
            (split.escape + split.delimiter, _ESCAPED_DELIMITER),
        ):
            parts += f".replace({_quoted(written)}, {_quoted(mark)})"
    parts += f'.split({_quoted(split.delimiter)}).filter(it => {text} != "")'
    if split.escape is not None:
        for mark, meant in ((_ESCAPED_DELIMITER, split.delimiter), (_ESCAPED_ESCAPE, split.escape)):
            parts += f".map(it => it.replace({_quoted(mark)}, {_quoted(meant)}))"
    element = column.data_type.element or STRING
    if element.kind in _CONVERSIONS:
        parts += f".map(it => it.{_CONVERSIONS[element.kind]}())"
    if column.data_type.nullable:
        parts = f"if {name} == null then null else {parts}"
    return f"emit {name} = {parts}"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
