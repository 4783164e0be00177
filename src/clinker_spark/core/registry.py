"""Every diagnostic code, as data: one row each, and one page of Markdown each in `pages/`.

`E` codes are errors found before or around a run, `W` codes are warnings, and `X` codes stand for the kinds of
errors a single record can have. An `X` row also answers to the name that dead letters carry.

>>> lookup("e200").title, lookup("division_by_zero").code, lookup("E999")
('type error', 'X002', None)
>>> suggest("divide_by_zero"), suggest("E20")
('division_by_zero', 'E200')
"""

from __future__ import annotations

from dataclasses import dataclass

from clinker_spark.core.diagnostics import Severity
from clinker_spark.core.suggest import nearest


@dataclass(frozen=True, slots=True)
class Entry:
    """One code: what it is called, what it means and what to do about it, each in one sentence.

    `kind` is the name of a record error in the error channel and in dead letters; other codes have none.
    """

    code: str
    title: str
    meaning: str
    action: str
    kind: str | None = None

    @property
    def severity(self) -> Severity:
        return Severity.WARNING if self.code.startswith("W") else Severity.ERROR


ENTRIES: tuple[Entry, ...] = (
    # ------------------------------------------------------------ schemas
    Entry(
        "E158",
        "numeric is not a column type",
        "A schema declares a column as `numeric`, which only means 'Int or Float, not decided yet' while types are "
        "inferred.",
        "Declare the column as `int`, `float` or `decimal(scale)`.",
    ),
    # ------------------------------------------------------------ programs
    Entry(
        "E200",
        "type error",
        "An expression uses a value in a way its type does not allow.",
        "Convert one side (`.to_int()`, `.to_string()`, ...) or correct the type in the schema.",
    ),
    Entry(
        "E202",
        "syntax error",
        "The text of the program does not follow the grammar of CXL.",
        "Mend the marked place; the parser goes on after it, so one run shows every syntax error.",
    ),
    Entry(
        "E203",
        "unknown name",
        "A name is not a field, a `let`, an earlier emit, a method, a function or a system variable.",
        "Take the suggested spelling, or add the field to the schema.",
    ),
    Entry(
        "E204",
        "running total",
        "A program reads a count of the records so far, which has no fixed value in a parallel run.",
        "Take the total from the run report, or count with an aggregate.",
    ),
    # ------------------------------------------------------------ what is given to a command
    Entry(
        "E224",
        "file cannot be read",
        "A file named on the command line does not exist, may not be read, or is not UTF-8 text.",
        "Check the path and its permissions, and save the file as UTF-8.",
    ),
    Entry(
        "E225",
        "unusable record",
        "A record given to a command is not a JSON object, or a `--field` is not of the form `name=value`.",
        'Write `--record \'{"name": "value"}\'` or `--field name=value`.',
    ),
    Entry(
        "E226",
        "unusable schema",
        "A schema file cannot be read, is not a mapping of column names to types, or names a type that does not exist.",
        "Write one `column: type` per line; the message lists the types.",
    ),
    # ------------------------------------------------------------ modules and limits
    Entry(
        "E227",
        "module cannot be used",
        "A module named by `use` was not found, imports itself through others, or is too large.",
        "Check the path under the rules folder and the imports between the modules.",
    ),
    Entry(
        "E290",
        "limit exceeded",
        "The program is larger, or nested more deeply, than the compiler accepts.",
        "Split the program, or give parts of a deep expression a name with `let`.",
    ),
    # ------------------------------------------------------------ warnings
    Entry(
        "W200",
        "nothing is emitted",
        "The program has no `emit`, so it adds no column to its records.",
        "Add an `emit`; ignore the warning if the program is only meant to filter.",
    ),
    # ------------------------------------------------------------ record errors
    Entry(
        "X001",
        "value of the wrong type",
        "A value whose type is only known at run time is of a type that the operation does not take.",
        "Test it with `type_of()`, convert it first, or declare the column's type in the schema.",
        "type_mismatch",
    ),
    Entry(
        "X002",
        "division by zero",
        "The divisor of `/`, or of `%` on exact numbers, is zero.",
        "Guard it: `if n == 0 then null else total / n`.",
        "division_by_zero",
    ),
    Entry(
        "X003",
        "conversion failed",
        "A value cannot be read as the type that a `to_...` method asks for.",
        "Clean the text first, pass the date's format, or use the `try_...` form, which gives null instead.",
        "conversion_failed",
    ),
    Entry(
        "X004",
        "number out of range",
        "The result of integer arithmetic does not fit 64 bits, or that of decimal arithmetic does not fit a decimal.",
        "Compute in floats (`.to_float()`) where the last digit does not matter.",
        "integer_overflow",
    ),
    Entry(
        "X005",
        "string too large",
        "A string operation would build a text larger than 10 MiB.",
        "Bound the length with `clamp` before it is used.",
        "string_too_large",
    ),
    Entry(
        "X006",
        "too many records from one",
        "An `emit each` makes more output records from one input record than `max_expansion` allows.",
        "Filter the array first, or raise `max_expansion`.",
        "expansion_limit_exceeded",
    ),
    Entry(
        "X007",
        "duplicate map key",
        "Two computed keys of one map literal turned out to be the same.",
        "Make the keys differ, or use `merge` or `set`, where the later value wins.",
        "duplicate_map_key",
    ),
    Entry(
        "X008",
        "invalid map key",
        "A computed key of a map literal is not a text that can name a field.",
        "Convert the key with `.to_string()` and give null a name with `??`.",
        "invalid_nested_key",
    ),
    Entry(
        "X009",
        "too much data constructed",
        "The arrays and maps built for one record are larger than 10 MiB together.",
        "Build less per record: filter before mapping, and keep only the fields that are needed.",
        "construction_limit_exceeded",
    ),
    Entry(
        "X010",
        "data nested too deeply",
        "An array or map built for a record has more than 64 levels.",
        "Flatten the value.",
        "construction_depth_exceeded",
    ),
    Entry(
        "X011",
        "invalid format",
        "A date format asks for something that the value does not have, or is not a format at all.",
        "Use time fields (`%H`, `%M`, `%S`) on a DateTime only, and check the letters after each `%`.",
        "invalid_format",
    ),
)

_BY_NAME = {name.lower(): entry for entry in ENTRIES for name in (entry.code, entry.kind) if name}


def lookup(name: str) -> Entry | None:
    """The row of a code (in any case) or of a record error's kind."""
    return _BY_NAME.get(name.strip().lower())


def suggest(name: str) -> str | None:
    """The registered code or kind that looks most like `name`."""
    return nearest(name.strip(), [known for entry in ENTRIES for known in (entry.code, entry.kind) if known], limit=5)


def page(entry: Entry) -> str:
    """The Markdown page of a code."""
    from importlib.resources import files  # not needed to check a program

    return files("clinker_spark.core").joinpath("pages", f"{entry.code}.md").read_text(encoding="utf-8")
