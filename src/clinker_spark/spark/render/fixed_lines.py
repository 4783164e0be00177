"""Fixed width: every column at its bytes of the line. Widths count bytes of UTF-8, and no character is cut in half.

A column without a value is blank, whatever its padding: a null amount must not become 000000.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from clinker_spark.config.model.output import FixedWidthOutput
from clinker_spark.config.model.schema import Column, layout
from clinker_spark.core.types import Kind, Type
from clinker_spark.cxl.builtins.sqltext import sql_string
from clinker_spark.cxl.lower.errors import first_error
from clinker_spark.cxl.lower.plan import Failing
from clinker_spark.spark.render.cell_text import CellStyle, bound, check_style, is_plain
from clinker_spark.spark.render.contract import OutColumn, Rendering, unwritable
from clinker_spark.spark.render.flat_cells import flat_failures, flat_text

_STYLE = CellStyle(date="%Y%m%d", datetime="%Y%m%d%H%M%S")
_ENDS = {"lf": b"\n", "crlf": b"\r\n", "none": b""}
_FILE = "a fixed-width file"


def fixed_rendering(config: FixedWidthOutput, columns: tuple[OutColumn, ...], schema: tuple[Column, ...]) -> Rendering:
    """The schema's columns in the order of their bytes. One that no column of the records fills is blank."""
    given = {column.name: column for column in columns}
    end = _ENDS[config.options.line_separator]
    pieces: list[str] = []
    errors: list[str] = []
    at = 0
    for (start, stop), declared in sorted(zip(layout(schema), schema, strict=True), key=lambda pair: pair[0]):
        if start > at:
            pieces.append(f"space({start - at})")
        column = given.get(declared.name) or given.get(declared.source_name or declared.name)
        at = stop
        if column is None:
            pieces.append(f"space({stop - start})")
            continue
        check_style(column.name, column.type, declared)
        field = _Field(column, declared, stop - start)
        pieces.append(field.padded())
        errors += field.errors(line_ends=bool(end))
    error = f"coalesce({', '.join(errors)})" if errors else None
    return Rendering(f"concat({', '.join(pieces)})", error, b"", end, end, b"", repeat_prefix=True)


def _case(failures: Iterable[tuple[Failing, str | None]]) -> list[str]:
    found = list(failures)
    return [first_error(found)] if found else []


class _Field:
    """One column of the line. Numbers stand on the right and must fit; texts may be cut where the schema says so."""

    def __init__(self, column: OutColumn, declared: Column, width: int) -> None:
        self.column = column
        self.width = width
        self.pad = declared.pad or " "
        style = CellStyle.of(_STYLE, declared)
        self.text = flat_text(column.sql, column.type, style)
        self.is_number = _is_number(column.type)
        self.right = declared.justify == "right" if declared.justify else self.is_number
        self.cut = declared.truncation == "silent" and not self.is_number
        # One byte per character, and no line end: letters of numbers and dates.
        self.ascii = is_plain(column.type, style, "\n\r")

    def padded(self) -> str:
        return f"coalesce({bound(self.text, 'out_p', self._pad)}, space({self.width}))"

    def _pad(self, text: str) -> str:
        if self.cut:
            cut = self._cut(text)
            return bound(cut, "out_c", self._fill) if not self.ascii else self._fill(cut)
        return self._fill(text)

    def _fill(self, text: str) -> str:
        pad = sql_string(self.pad)
        if self.ascii and not (self.pad == "0" and self.right and self.is_number):
            return f"{'lpad' if self.right else 'rpad'}({text}, {self.width}, {pad})"
        fill = f"repeat({pad}, {self.width} - octet_length({text}))"
        if not self.right:
            return f"concat({text}, {fill})"
        if self.pad == "0" and self.is_number:  # the sign stands before the zeros, or nobody could read the number
            signed = f"concat('-', {fill}, substring({text}, 2))"
            return f"IF(startswith({text}, '-'), {signed}, concat({fill}, {text}))"
        return f"concat({fill}, {text})"

    def _cut(self, text: str) -> str:
        """At most `width` bytes: back from there to where a character begins, which is three bytes at most."""
        if self.ascii:
            return f"left({text}, {self.width})"
        data = f"CAST({text} AS BINARY)"

        def inside(place: int) -> str:
            return f"substring({data}, {place + 1}, 1) BETWEEN X'80' AND X'BF'"

        arms = " ".join(f"WHEN NOT {inside(self.width - k)} THEN {self.width - k}" for k in range(min(3, self.width)))
        length = f"CASE {arms} ELSE {max(self.width - 3, 0)} END"
        return (
            f"CASE WHEN octet_length({text}) > {self.width} "
            f"THEN CAST(substring({data}, 1, {length}) AS STRING) ELSE {text} END"
        )

    def errors(self, *, line_ends: bool) -> Iterator[str]:
        """Why the cell cannot be written, as SQL. The text of a value of any type is long: it stands there once."""
        yield from _case(flat_failures(self.column, _FILE))
        breaks = line_ends and not self.ascii
        if breaks or not self.cut:
            yield bound(self.text, "out_t", lambda text: first_error(list(self._failures(text, breaks))))

    def _failures(self, text: str, breaks: bool) -> Iterator[tuple[Failing, str | None]]:
        name = self.column.name
        if not self.cut:
            kind = "number" if self.is_number else "text"
            message = f"the {kind} is longer than the {self.width} bytes of its column"
            yield unwritable(f"octet_length({text}) > {self.width}", text, message), name
        if breaks:
            broken = f"(contains({text}, '\n') OR contains({text}, '\r'))"
            yield unwritable(broken, text, "a line break in a text would end the line early"), name


def _is_number(t: Type) -> bool:
    return t.kind in (Kind.INT, Kind.FLOAT, Kind.DECIMAL, Kind.NUMERIC)
