"""What files say about all of their records (`$doc`): read once, before those who ask for it run.

A file is read only as far as its last section: a header costs nothing, a trailer as much as a pass over the file.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from clinker_spark.config.model.sources.envelope import SEVERAL, Section
from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.errors import InputError
from clinker_spark.core.types import Kind, Type
from clinker_spark.cxl.hidden import variable_column
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.nodes.source import SourcePlan
from clinker_spark.spark.build.source_columns import conventions_of
from clinker_spark.spark.build.stream import DOCUMENT_BITS
from clinker_spark.spark.scan.files import SourceFile
from clinker_spark.spark.scan.json.documents import Document
from clinker_spark.spark.scan.kinds.lines import first_line
from clinker_spark.spark.scan.kinds.source import kind_reader
from clinker_spark.spark.scan.record_plan import RecordFile
from clinker_spark.spark.scan.request import ReadRequest
from clinker_spark.spark.scan.text.streams import compression_of
from clinker_spark.spark.scan.text.values import TextColumn
from clinker_spark.spark.scan.xml.records import XmlShape, xml_records

LINES = ("csv", "fixed_width")
"""Formats of lines: sections are lines of a kind, and all values texts."""
DocumentValues = dict[str, dict[int, Any]]
"""By `section.field`, then by document."""


def envelope_values(plan: Plan, files: Mapping[str, tuple[SourceFile, ...]]) -> DocumentValues:
    """The values that programs read, of all files. Raises InputError for one that is not of its type."""
    read = {".".join(path) for node in plan.nodes for space, path in node.system_members() if space == "doc"}
    found: DocumentValues = {name: {} for name in read}
    for source in plan.sources:
        envelope = source.config.envelope
        for section, spec in envelope.sections.items() if envelope is not None else ():
            fields = [name for name in spec.fields if f"{section}.{name}" in read]
            for place, file in enumerate(files[source.name] if fields else ()):
                values = _section(source, spec, file)
                for name in fields:
                    t = envelope.types[f"{section}.{name}"]
                    value = _typed(values.get(name), t, variable_column("doc", section, name), file, source)
                    found[f"{section}.{name}"][(source.index << DOCUMENT_BITS) + place] = value
    return found


def _section(source: SourcePlan, spec: Section, file: SourceFile) -> Mapping[str, Any]:
    """The texts or values of a section; none where the file does not have it. What is wrong with the file its reader
    will say."""
    compression = compression_of(file.origin, source.config.compression)
    opened = RecordFile(file.path, file.name, compression, file.size)
    options, path = source.config.options, spec.extract.path
    try:
        if source.kinds is not None:
            request = ReadRequest(source.name, (file,), source.columns, options, conventions_of(source, "drop", ()))
            line = first_line(kind_reader(request), opened, path[0])
            # Columns know how dates are written.
            return {name: value if isinstance(value, dt.date) else text for name, (text, value) in line.items()}
        if source.config.type == "xml":
            shape = XmlShape(path, options.attribute_prefix, options.namespace_handling == "strip")
            return next(xml_records(opened, shape), {})
        document = Document(opened, exact=False)
        try:
            value = document.section(path) if document.peek() == "{" else None
        finally:
            document.close()
    except InputError:
        return {}
    return value if isinstance(value, dict) else {}


_UNFIT = object()
"""Instead of a value: it is none of the type."""


def _typed(value: Any, t: Type, name: str, file: SourceFile, source: SourcePlan) -> Any:
    if t.kind in SEVERAL and value is not None:
        return _several(value, t, name, file, source)
    if isinstance(value, list):
        value = value[0] if value and source.config.type == "xml" else value
    if value is None:
        return None
    if isinstance(value, dt.date):
        is_time = isinstance(value, dt.datetime)
        if t.kind is (Kind.DATETIME if is_time else Kind.DATE):
            return _plain(value)
        value = value.isoformat()
    if isinstance(value, str) and (
        t.kind in (Kind.STRING, Kind.DATE, Kind.DATETIME) or source.config.type in ("xml", *LINES)
    ):
        found = value if t.kind is Kind.STRING else _of_text(value, t, name)
    else:
        found = _of_number(value, t)
    if found is _UNFIT:
        raise _unfit(value, t, name, file)
    return found


def _several(value: Any, t: Type, name: str, file: SourceFile, source: SourcePlan) -> Any:
    """The values of an array or a map."""
    assert t.element is not None
    values = value if isinstance(value, list) or source.config.type != "xml" else [value]
    if t.kind is Kind.ARRAY and isinstance(values, list):
        found: Any = [_typed(each, t.element, name, file, source) for each in values]
        lacking = None in found
    elif t.kind is Kind.MAP and isinstance(values, dict):
        found = {key: _typed(each, t.element, name, file, source) for key, each in values.items()}
        lacking = None in found.values()
    else:
        raise _unfit(value, t, name, file)
    if lacking and not t.element.nullable:
        raise _unfit(value, t, name, file)
    return found


def _of_text(value: str, t: Type, name: str) -> Any:
    """What a text is as a value of a type."""
    typed = TextColumn(name, t).convert(pa.array([value], pa.string()))
    failed = typed.failed is not None and typed.failed[0].as_py()
    return _UNFIT if failed else _plain(typed.values[0].as_py())


def _of_number(value: Any, t: Type) -> Any:
    """What a truth value or a number is as a value of a type."""
    if isinstance(value, bool):
        return value if t.kind is Kind.BOOL else _UNFIT
    if isinstance(value, int | float) and t.kind is Kind.FLOAT:
        return float(value)
    if isinstance(value, int | float) and t.kind is Kind.INT and value == int(value) and abs(value) < 2**63:
        return int(value)
    return _UNFIT


def _unfit(value: Any, t: Type, name: str, file: SourceFile) -> InputError:
    message = f"{name} of '{file.name}' is not of type {t.unwrap()}: {value!r}"
    return InputError([Diagnostic("E463", message, help="correct the file, or the type in 'envelope'")])


def _plain(value: Any) -> Any:
    return value.replace(tzinfo=None) if isinstance(value, dt.datetime) else value
