"""A pipeline that reads some files, guessed from them, with what speaks for each choice as a comment."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.errors import InputError
from clinker_spark.runtime.profile.samples import Sample, sample_of
from clinker_spark.runtime.profile.shapes import Shape, record_file, shape_of_file
from clinker_spark.runtime.profile.types import Guess, cleaning_for, guess_texts, guess_values
from clinker_spark.spark.scan.json.values import ABSENT
from clinker_spark.spark.scan.text.cleaning import NO_CLEANING, Cleaning

_PLAIN = re.compile(r"[A-Za-z_./][A-Za-z0-9_./()-]*")
_WORDS_OF_YAML = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}
_NOTES_FROM = 66


@dataclass(frozen=True)
class Proposal:
    """A source: the files, how they are written, and their columns."""

    name: str
    paths: tuple[Path, ...]
    shape: Shape
    columns: dict[str, Guess]
    cleaning: Cleaning = NO_CLEANING
    words: dict[str, int] = field(default_factory=dict)
    records: int = 0
    broken: int = 0


def propose(paths: Sequence[Path]) -> list[Proposal]:
    """A source for all files of the same format and columns. Raises `InputError`."""
    groups: dict[tuple[Any, ...], list[tuple[Path, Shape, Sample]]] = {}
    tables: list[Proposal] = []
    for path in paths:
        if path.is_dir():
            message = f"'{path}' is a folder"
            raise InputError([Diagnostic("E444", message, help=f"name files, as in {path}/*.csv")])
        if path.exists() and not path.is_file():  # nobody may ever write to a pipe
            message = f"'{path}' is a pipe or a device: it cannot be read more than once"
            raise InputError([Diagnostic("E435", message, help="write what comes from it to a file, and name that")])
        try:
            file = record_file(path)
        except OSError as error:
            message = f"cannot read '{path}': {(error.strerror or str(error)).lower()}"
            raise InputError([Diagnostic("E229", message, help="check the path")]) from None
        shape = shape_of_file(file)
        if shape.format == "parquet":
            tables.append(_table(path))
            continue
        sample = sample_of(file, shape)
        names = () if sample.typed else tuple(sample.columns)
        key = (shape.format, json.dumps(shape.options, sort_keys=True), shape.places, names)
        groups.setdefault(key, []).append((path, shape, sample))
    made = [*(_guessed(group) for group in groups.values()), *_together(tables)]
    return _with_own_names(made)


def _guessed(group: list[tuple[Path, Shape, Sample]]) -> Proposal:
    paths, shapes, samples = zip(*group, strict=True)
    shape: Shape = shapes[0]
    names = dict.fromkeys(name for sample in samples for name in sample.columns if name.strip())
    if not names:
        message = f"'{paths[0]}' has no field that could be a column"
        raise InputError([Diagnostic("E444", message, help="name a file with some records in it")])
    columns = {n: [v for s in samples for v in s.columns.get(n, [ABSENT] * s.records)] for n in names}
    cleaning, words = NO_CLEANING, dict[str, int]()
    if shape.format in ("csv", "fixed_width"):
        cleaning, words = cleaning_for(list(columns.values()))
    if shape.format == "fixed_width":  # the blanks between the columns belong to them
        cleaning = Cleaning(True, cleaning.null_words)
    guesses = {name: _guess(shape, values, cleaning) for name, values in columns.items()}
    records, broken = sum(s.records for s in samples), sum(s.broken for s in samples)
    return Proposal(_name(paths[0]), tuple(paths), shape, guesses, cleaning, words, records, broken)


def _guess(shape: Shape, values: list[Any], cleaning: Cleaning) -> Guess:
    if shape.format == "json":
        return guess_values(values)
    if any(isinstance(value, list) for value in values):  # an XML element that repeats
        texts = [
            text for value in values if value is not ABSENT for text in ([value] if isinstance(value, str) else value)
        ]
        inner = guess_texts(texts, cleaning).type.removeprefix("nullable(").removesuffix(")")
        missing = sum(value is ABSENT for value in values)
        found = f"array({inner})" if "(" not in inner else "array(string)"
        return Guess(f"nullable({found})" if missing else found, note="it repeats")
    return guess_texts([None if value is ABSENT else value for value in values], cleaning)


def _table(path: Path) -> Proposal:
    try:
        parquet = pq.ParquetFile(path)
    except (pa.ArrowException, OSError) as error:
        message = f"'{path}' is no Parquet file: {str(error).splitlines()[0]}"
        raise InputError([Diagnostic("E444", message, help="name a file that is whole")]) from None
    columns = {name: Guess(type_, note=note) for name, type_, note in _fields(parquet)}
    return Proposal(_name(path), (path,), Shape("parquet"), columns, records=parquet.metadata.num_rows)


def _fields(parquet: pq.ParquetFile) -> Iterator[tuple[str, str, str]]:
    for column in parquet.schema_arrow:
        found = arrow_word(column.type)
        yield column.name, f"nullable({found})" if column.nullable and found != "any" else found, str(column.type)


def arrow_word(t: pa.DataType) -> str:
    """The column type for a type of Arrow.

    >>> arrow_word(pa.int32()), arrow_word(pa.list_(pa.string())), arrow_word(pa.decimal128(10, 2))
    ('int', 'array(string)', 'decimal(2)')
    """
    words = (
        (pa.types.is_boolean, "bool"),
        (pa.types.is_integer, "int"),
        (pa.types.is_floating, "float"),
        (pa.types.is_date, "date"),
        (pa.types.is_timestamp, "date_time"),
        (pa.types.is_string, "string"),
        (pa.types.is_large_string, "string"),
    )
    if pa.types.is_decimal(t):
        return f"decimal({t.scale})"
    if pa.types.is_list(t) or pa.types.is_large_list(t):
        return f"array({arrow_word(t.value_type)})"
    return next((word for test, word in words if test(t)), "any")


def _together(tables: list[Proposal]) -> list[Proposal]:
    """Tables with the same columns are one source."""
    found: dict[tuple[Any, ...], Proposal] = {}
    for table in tables:
        key = tuple((name, guess.type) for name, guess in table.columns.items())
        before = found.get(key)
        if before is None:
            found[key] = table
        else:
            paths, records = (*before.paths, *table.paths), before.records + table.records
            found[key] = Proposal(before.name, paths, before.shape, before.columns, records=records)
    return list(found.values())


def _name(path: Path) -> str:
    return re.sub(r"\W+", "_", path.name.split(".")[0]).strip("_").lower() or "records"


def _with_own_names(made: list[Proposal]) -> list[Proposal]:
    seen: dict[str, int] = {}
    found = []
    for item in made:
        seen[item.name] = seen.get(item.name, 0) + 1
        name = item.name if seen[item.name] == 1 else f"{item.name}_{seen[item.name]}"
        found.append(Proposal(name, *(getattr(item, f) for f in list(Proposal.__dataclass_fields__)[1:])))
    return found


# ---------------------------------------------------------------- YAML


def pipeline_text(proposals: Sequence[Proposal]) -> str:
    """A pipeline that reads all sources and writes each to a file."""
    lines = [f"pipeline: {{ name: {_scalar(proposals[0].name)} }}", "", "nodes:"]
    for item in proposals:
        lines += [f"  {line}".rstrip() for line in node_lines(item)]
        kind = "csv" if item.shape.format in ("csv", "fixed_width") else "json"
        target = _scalar(f"out/{item.name}.{kind}")
        lines += [
            "",
            "  - type: output",
            f"    name: {_scalar(item.name + '_out')}",
            f"    input: {_scalar(item.name)}",
        ]
        lines += [f"    config: {{ type: {kind}, path: {target} }}", ""]
    if any(item.broken for item in proposals):  # or the first of these lines would stop the run
        lines.append("error_handling: { strategy: continue, dlq: { path: out/dead-letters.csv } }")
    return "\n".join(lines).rstrip() + "\n"


def node_lines(item: Proposal) -> list[str]:
    """The source as an item of `nodes:`."""
    shape = item.shape
    what = "its footer" if shape.format == "parquet" else f"{item.records:,} record(s)"
    broken = f"; {item.broken:,} line(s) are no records, and would be dead letters" if item.broken else ""
    lines = [
        _noted("- type: source", f"guessed from {what}{broken}"),
        f"  name: {_scalar(item.name)}",
        "  config:",
        f"    type: {shape.format}",
    ]
    if len(item.paths) == 1:
        lines.append(f"    path: {_scalar(str(item.paths[0]))}")
    else:
        lines.append(f"    paths: [{', '.join(_scalar(str(path)) for path in item.paths)}]")
    if shape.notes.get(""):
        lines[-1] = _noted(lines[-1], shape.notes[""])
    if shape.options:
        lines.append("    options:")
        lines += [
            _noted(f"      {key}: {_scalar(value)}", shape.notes.get(key)) for key, value in shape.options.items()
        ]
    if not shape.options.get("delimiter") and "delimiter" in shape.notes:
        lines.append(_noted("    # delimiter: ','", shape.notes["delimiter"]))
    if item.cleaning.trim:
        lines.append(_noted("    trim: true", "blanks stand around values"))
    if item.words:
        words = ", ".join(json.dumps(word) for word in item.words)
        seen = ", ".join(f"{word} {count:,} times" for word, count in item.words.items())
        lines.append(_noted(f"    null_values: [{words}]", seen))
    lines.append("    schema:")
    lines += list(_columns(item))
    return lines


def _columns(item: Proposal) -> Iterator[str]:
    taken: set[str] = set()
    for i, (name, guess) in enumerate(item.columns.items()):
        own = _identifier(name, i, taken)
        taken.add(own)
        parts = [f"name: {_scalar(own)}", f"type: {_scalar(guess.type)}"]
        if own != name and item.shape.options.get("has_header", True) and item.shape.format != "fixed_width":
            parts.append(f"source_name: {_scalar(name)}")
        if guess.format is not None:
            parts.append(f"format: {json.dumps(guess.format)}")
        if item.shape.places:
            start, end = item.shape.places[i]
            parts.append(f"start: {start}, width: {end - start}")
        yield _noted(f"      - {{ {', '.join(parts)} }}", guess.note)


def _identifier(name: str, i: int, taken: set[str]) -> str:
    """A name that programs can use; dots lead into objects, and stay."""
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*", name) and name not in taken:
        return name
    made = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_").lower() or f"column_{i + 1}"
    made = f"_{made}" if made[0].isdigit() else made
    number = 2
    found = made
    while found in taken:
        found, number = f"{made}_{number}", number + 1
    return found


def _noted(line: str, note: str | None) -> str:
    shown = "".join(char if char.isprintable() else "?" for char in " ".join((note or "").split()))
    return f"{line.ljust(_NOTES_FROM)}  # {shown}" if shown else line


def _scalar(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    text = str(value)
    plain = _PLAIN.fullmatch(text) and text.lower() not in _WORDS_OF_YAML
    return text if plain else json.dumps(text, ensure_ascii=not text.isprintable())
