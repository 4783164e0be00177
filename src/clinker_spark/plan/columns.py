"""Every hidden column: its name, what it holds, its type, who writes it and who reads it.

Hidden columns ride along with the columns of a record, so that projections, shuffles and joins carry them for free.
Their names begin with `$`, as those of no other column do. A name stands here, or in `cxl.hidden` if the language's own
lowering needs it, and nowhere else. `HIDDEN_COLUMNS` lists all of them; a test holds it against the source.
"""

from __future__ import annotations

from dataclasses import dataclass

from clinker_spark.cxl.hidden import (
    ARRIVAL_COLUMN,
    BOUND_PREFIX,
    ERROR_COLUMN,
    ERROR_TYPE,
    GROUP_KEY_PREFIX,
    LEAF_EMPTY_FIELD,
    LEAF_ERROR_FIELD,
    LEAF_PREFIX,
    LOOKUP_PREFIX,
    PARTIAL_PREFIX,
    PYTHON_PREFIX,
    RANK_COLUMN,
    VARIABLE_PREFIX,
)

# Between nodes.
DOCUMENT_COLUMN = "$document"
EVENT_COLUMN = "$event"
WIDENED_COLUMN = "$widened"
CELLS_PREFIX = "$cells."
ORIGIN_COLUMN = "$origin"
LETTER_COLUMN = "$letter"
STAGE_COLUMN = "$stage"
CK_PREFIX = "$ck."
CK_AGGREGATE_PREFIX = "$ck.aggregate."
GROUP_PREFIX = "$group."
FROM_COLUMN = "$from"
BUILT_COLUMN = "$built"
HELD_COLUMN = "$held"

# From readers to sources.
FILE_COLUMN = "$file"
ROW_COLUMN = "$row"
BLOCK_COLUMN = "$block"
FAILED_COLUMN = "$failed"
RECORD_COLUMN = "$record"
LINE_COLUMN = "$line"

# Inside nodes.
RANGE_COLUMN = "$range"
GONE_FILE_COLUMN = "$gone.file"
GONE_ROW_COLUMN = "$gone.row"
KEPT_COLUMN = "$kept"
OK_COLUMN = "$ok"
BEFORE_COLUMN = "$before"
LOG_COLUMN = "$log"
SIZE_COLUMN = "$size"
START_COLUMN = "$start"
NUMBER_COLUMN = "$number"
LOOKUP_KEY_PREFIX = "$key."
THERE_PREFIX = "$there."
FOUND_COLUMN = "$found"
LOST_COLUMN = "$lost"
PORT_COLUMN = "$port"
PORT_PREFIX = "$port."
FIRST_COLUMN = "$first"
WINDOW_COLUMN = "$window"
BEGINS_COLUMN = "$begins"
JOIN_PREFIX = "$join."
MATCHED_PREFIX = "$matched."
ARRAY_PREFIX = "$array."
FILE_KEY_COLUMN = "$key"
BYTES_COLUMN = "$bytes"
GOOD_COLUMN = "$good"
WITHHELD_COLUMN = "$withheld"
SORT_FILE_COLUMN = "$sort_file"
SORT_PREFIX = "$sort"
LEFT_OUT_COLUMN = "$left_out"
ID_COLUMN = "$id"
FAMILY_COLUMN = "$family"

# Inside queries.
HERE_COLUMN = "$here"
POSITION_COLUMN = "$pos"
ROWS_COLUMN = "$rows"
PREPARED_PREFIX = "$x"
ORDER_PREFIX = "$o"
SIDE_COLUMN = "$side"
UNITED_PREFIX = "$u"

ORIGIN_TYPE = "STRUCT<source: INT, file: INT, row: BIGINT>"
BUILT_TYPE = f"ARRAY<{ORIGIN_TYPE}>"
LETTER_TYPE = "MAP<STRING, STRING>"
_ARRIVAL_TYPE = "BIGINT, or ARRAY<BIGINT> where records were made of others"


@dataclass(frozen=True)
class HiddenColumn:
    """A column, or all columns whose names begin with `name` and end with a number or a name.

    `written_by` and `read_by` are modules that use the name, as they are called inside the package. Who makes the text
    or the program that writes a column writes it; who drops or shows it reads it.
    """

    name: str
    holds: str
    type: str
    written_by: tuple[str, ...]
    read_by: tuple[str, ...]


def _within(name: str, holds: str, type: str, *modules: str) -> HiddenColumn:
    """A column that each of the modules makes for itself."""
    return HiddenColumn(name, holds, type, modules, modules)


_READERS = ("spark.scan.csv.records", "spark.scan.parquet.columns", "spark.scan.record_batches")

_OF_PROGRAMS = (
    HiddenColumn(
        ERROR_COLUMN,
        "why the record failed, null while it has not; absent where no record can have failed",
        ERROR_TYPE,
        (
            *_READERS,
            "spark.scan.csv.source",
            "spark.columns.programs",
            "spark.joins.sides",
            "spark.operators.combine",
            "spark.operators.output",
            "spark.operators.query",
            "spark.operators.transform",
            "spark.operators.window_lookup",
        ),
        (
            "spark.columns.programs",
            "spark.joins.sides",
            "spark.operators.build",
            "spark.operators.combine",
            "spark.operators.output",
            "spark.operators.query",
            "spark.operators.record_log",
            "spark.operators.source",
            "spark.operators.source_order",
            "spark.operators.stream",
            "spark.operators.transform",
            "spark.operators.values",
            "spark.operators.window_lookup",
            "spark.query.csv_frames",
            "spark.rejects.correlated",
            "spark.rejects.letters",
        ),
    ),
    HiddenColumn(
        ARRIVAL_COLUMN,
        "grows from record to record in the order of the sources",
        _ARRIVAL_TYPE,
        (
            "plan.query.node",
            "spark.columns.programs",
            "spark.operators.combine",
            "spark.operators.merge",
            "spark.operators.query",
            "spark.operators.source_order",
            "spark.operators.time_windows",
            "spark.scan.csv.source",
            "spark.scan.parquet.columns",
            "spark.scan.record_source",
        ),
        (
            "cxl.builtins.aggregates",
            "cxl.lower.aggregates",
            "cxl.lower.expressions",
            "cxl.lower.statements",
            "plan.query.node",
            "report.explain",
            "spark.columns.programs",
            "spark.joins.sides",
            "spark.operators.aggregate",
            "spark.operators.combine",
            "spark.operators.merge",
            "spark.operators.output",
            "spark.operators.query",
            "spark.operators.record_log",
            "spark.operators.source",
            "spark.operators.stream",
            "spark.operators.time_windows",
            "spark.operators.values",
            "spark.operators.window_lookup",
            "spark.rejects.letters",
        ),
    ),
    HiddenColumn(
        VARIABLE_PREFIX,
        "a system variable that differs from record to record, by its name in the language: `$source.row`, `$record.x`",
        "that of the variable",
        ("cxl.lower.statements", "spark.operators.build", "spark.operators.source"),
        (
            "cxl.lower.expressions",
            "cxl.lower.fanout",
            "plan.bind.scopes",
            "plan.passes.stages",
            "report.explain",
            "spark.operators.transform",
            "spark.operators.values",
        ),
    ),
    HiddenColumn(
        LOOKUP_PREFIX,
        "the value of a `$window` function over the records of another node",
        "that of the function",
        ("plan.bind.windows", "spark.operators.window_lookup"),
        ("cxl.check.groups", "plan.nodes.transform", "spark.operators.transform", "spark.operators.window_lookup"),
    ),
    _within(BOUND_PREFIX, "a value that a program needs more than once", "that of the value", "cxl.lower.plan"),
    _within(PYTHON_PREFIX, "what Python computes for a program", "STRUCT<value, error>", "cxl.lower.python_calls"),
    _within(LEAF_PREFIX, "the columns that a record of a fan-out has of its own", "STRUCT", "cxl.lower.statements"),
    _within(LEAF_ERROR_FIELD, "in a leaf: why its record failed", ERROR_TYPE, "cxl.lower.fanout"),
    _within(LEAF_EMPTY_FIELD, "in a leaf without columns: nothing, for a struct has fields", "INT", "cxl.lower.fanout"),
    _within(
        GROUP_KEY_PREFIX,
        "what records are grouped by",
        "that of the key",
        "cxl.lower.aggregates",
        "cxl.lower.statements",
        "plan.query.blocks",
    ),
    _within(
        PARTIAL_PREFIX, "an aggregate of a group", "that of the aggregate", "cxl.lower.aggregates", "plan.query.groups"
    ),
    _within(
        RANK_COLUMN,
        "which record it is, of those with the same key or of all in their order",
        "INT or BIGINT",
        "cxl.lower.statements",
        "plan.query.order",
        "spark.rejects.correlated",
    ),
)

_BETWEEN_NODES = (
    HiddenColumn(
        DOCUMENT_COLUMN,
        "the file a record belongs to: a number that no other file of the run has",
        "BIGINT",
        ("spark.operators.source",),
        (
            "report.explain",
            "spark.operators.aggregate",
            "spark.operators.build",
            "spark.operators.output",
            "spark.operators.values",
        ),
    ),
    HiddenColumn(
        EVENT_COLUMN,
        "when a record happened, in microseconds since 1970; only when windows are made of it",
        "BIGINT",
        ("spark.operators.source",),
        ("spark.operators.time_windows",),
    ),
    HiddenColumn(
        WIDENED_COLUMN,
        "the cells that no declared column reads, when the source carries them along",
        "MAP<STRING, STRING>, or a map that keeps the types of the values",
        (*_READERS, "spark.operators.merge"),
        ("spark.columns.undeclared", "spark.operators.combine", "spark.operators.merge", "spark.operators.output"),
    ),
    HiddenColumn(
        CELLS_PREFIX,
        "neighbouring cells of a CSV output, finished by the reader",
        "STRING",
        ("spark.scan.csv.records",),
        ("spark.operators.output",),
    ),
    HiddenColumn(
        ORIGIN_COLUMN,
        "where a record was read, null if it was made of others; only when dead letters are collected",
        ORIGIN_TYPE,
        ("spark.operators.aggregate", "spark.operators.query", "spark.operators.source"),
        (
            "spark.joins.sides",
            "spark.operators.combine",
            "spark.rejects.correlated",
            "spark.rejects.letters",
            "spark.rejects.traced",
        ),
    ),
    HiddenColumn(
        LETTER_COLUMN,
        "the record as it was read; only when dead letters are collected",
        LETTER_TYPE,
        ("spark.operators.aggregate", "spark.operators.query", "spark.operators.source"),
        ("spark.rejects.correlated", "spark.rejects.letters", "spark.rejects.traced"),
    ),
    HiddenColumn(
        STAGE_COLUMN,
        "the position in the plan of the node at which the record failed; only when dead letters are collected",
        "INT",
        ("spark.operators.build",),
        ("spark.operators.build", "spark.rejects.letters"),
    ),
    HiddenColumn(
        CK_PREFIX,
        "a field of the correlation key that the record was read with",
        "that of the field",
        ("spark.operators.combine", "spark.operators.source"),
        (
            "plan.nodes.aggregate",
            "plan.nodes.combine",
            "plan.nodes.source",
            "plan.passes.correlation",
            "report.explain_correlation",
            "runtime.rollback.evidence",
            "runtime.rollback.groups",
            "runtime.rollback.row_groups",
            "spark.joins.sides",
            "spark.operators.combine",
            "spark.rejects.correlated",
            "spark.rejects.letters",
            "spark.rejects.traced",
            "spark.rejects.withheld",
        ),
    ),
    HiddenColumn(
        CK_AGGREGATE_PREFIX,
        "the number of the group that a relaxed aggregate made the record of",
        "BIGINT",
        ("spark.operators.aggregate",),
        (
            "plan.bind.aggregate",
            "plan.facts",
            "plan.nodes.aggregate",
            "plan.passes.correlation",
            "runtime.rollback.groups",
        ),
    ),
    HiddenColumn(
        GROUP_PREFIX,
        "the group of an aggregate that a record was made of, when records may have to be retracted",
        "STRING",
        ("spark.operators.aggregate",),
        (
            "runtime.rollback.groups",
            "spark.operators.aggregate",
            "spark.rejects.correlated",
            "spark.rejects.letters",
            "spark.rejects.traced",
        ),
    ),
    HiddenColumn(
        FROM_COLUMN,
        "the position of the source that a record was read from, when groups of records are withheld",
        "INT",
        ("spark.operators.source",),
        ("spark.rejects.withheld",),
    ),
    HiddenColumn(
        BUILT_COLUMN,
        "where the records were read that a combine matched; only when groups are withheld",
        BUILT_TYPE,
        ("spark.operators.combine",),
        ("spark.operators.combine", "spark.rejects.letters"),
    ),
    HiddenColumn(
        HELD_COLUMN,
        "whether an output withholds the record, because of a failure in its group",
        "BOOLEAN",
        ("spark.rejects.withheld",),
        ("spark.operators.output", "spark.rejects.correlated"),
    ),
)

_OF_READERS = (
    HiddenColumn(
        FILE_COLUMN,
        "the file of a record: its position among those of the source, its path in a query",
        "INT, or STRING in a query",
        (*_READERS, "plan.query.files"),
        ("spark.operators.source", "spark.operators.source_order", "spark.query.csv_frames"),
    ),
    HiddenColumn(
        ROW_COLUMN,
        "which record of its file it is, from 1; in a query a number that grows from record to record",
        "BIGINT",
        (*_READERS, "plan.query.files", "spark.query.csv_frames", "spark.query.frames"),
        ("plan.query.engine", "spark.operators.source", "spark.operators.source_order", "spark.query.csv_frames"),
    ),
    _within(
        BLOCK_COLUMN,
        "a stretch of a file or of the order of arrival that the record is in",
        "BIGINT",
        "plan.query.files",
        "spark.operators.record_log",
    ),
    HiddenColumn(
        FAILED_COLUMN,
        "true for a record that failed, where nobody asks why",
        "BOOLEAN",
        ("spark.operators.output", "spark.scan.csv.records"),
        ("spark.operators.output", "spark.scan.csv.source"),
    ),
    HiddenColumn(
        RECORD_COLUMN,
        "the text of every declared column as it stood in the file",
        "STRUCT of STRING",
        _READERS,
        ("spark.operators.source",),
    ),
    HiddenColumn(
        LINE_COLUMN,
        "the bytes of the record without their line end, in the form of `source_lines`; also a key in `$letter`",
        "STRING",
        ("spark.operators.source", "spark.scan.csv.records", "spark.scan.record_batches"),
        ("runtime.reject.saved_letters", "spark.operators.source", "spark.rejects.letters"),
    ),
)

_INSIDE_NODES = (
    _within(RANGE_COLUMN, "the range of sort keys that a record is in", "INT", "spark.operators.source_order"),
    _within(GONE_FILE_COLUMN, "`$file` of a retracted record", "INT", "spark.operators.source"),
    _within(GONE_ROW_COLUMN, "`$row` of a retracted record", "BIGINT", "spark.operators.source"),
    _within(KEPT_COLUMN, "true for a record that a filter keeps, else null", "BOOLEAN", "spark.operators.counting"),
    HiddenColumn(
        OK_COLUMN,
        "whether a record meets the condition of a validation",
        "BOOLEAN",
        ("plan.bind.validations",),
        ("spark.operators.transform",),
    ),
    _within(
        BEFORE_COLUMN, "`$error`, while a condition that may fail is asked", ERROR_TYPE, "spark.operators.transform"
    ),
    HiddenColumn(
        LOG_COLUMN,
        "whether a log rule speaks of the record",
        "BOOLEAN",
        ("plan.bind.record_logs",),
        ("spark.operators.record_log",),
    ),
    _within(
        SIZE_COLUMN,
        "how many records a block or a group has",
        "BIGINT",
        "spark.operators.record_log",
        "spark.rejects.correlated",
    ),
    _within(START_COLUMN, "how many records stand before a block", "BIGINT", "spark.operators.record_log"),
    _within(
        NUMBER_COLUMN,
        "which record of its block or group it is",
        "INT",
        "spark.operators.record_log",
        "spark.rejects.correlated",
    ),
    _within(LOOKUP_KEY_PREFIX, "what finds the partition of a lookup", "that of the key", "plan.bind.windows"),
    _within(THERE_PREFIX, "the key of a partition that is found", "that of the key", "spark.operators.window_lookup"),
    _within(FOUND_COLUMN, "true if a partition was found, else null", "BOOLEAN", "spark.operators.window_lookup"),
    _within(LOST_COLUMN, "why a partition has no values", ERROR_TYPE, "spark.operators.window_lookup"),
    HiddenColumn(
        PORT_COLUMN,
        "the position of the one branch that a record takes",
        "BIGINT",
        ("plan.bind.route",),
        ("spark.operators.route",),
    ),
    HiddenColumn(
        PORT_PREFIX,
        "whether a record takes a branch, where it can take several",
        "BOOLEAN",
        ("plan.bind.route",),
        ("spark.operators.route",),
    ),
    _within(
        FIRST_COLUMN,
        "where the first record of a group stands",
        _ARRIVAL_TYPE + ", or a struct in a query",
        "plan.query.order",
        "spark.columns.programs",
    ),
    HiddenColumn(
        WINDOW_COLUMN,
        "when the window begins that a record is in, in microseconds since 1970",
        "BIGINT",
        ("spark.operators.time_windows",),
        ("spark.operators.aggregate", "spark.operators.time_windows"),
    ),
    _within(BEGINS_COLUMN, "`$event` of the first record of a session", "BIGINT", "spark.operators.time_windows"),
    _within(
        JOIN_PREFIX,
        "keys, places and marks of the two sides of a join, until it is done",
        "any",
        "spark.joins.as_of",
        "spark.joins.one_range",
        "spark.joins.range",
        "spark.joins.sides",
        "spark.operators.combine",
    ),
    HiddenColumn(
        MATCHED_PREFIX,
        "a correlation column or `$origin` of the matched record: `$matched.<input>.$ck.<field>`",
        "that of the other column",
        ("spark.joins.sides",),
        ("spark.joins.sides", "spark.operators.combine"),
    ),
    HiddenColumn(
        ARRAY_PREFIX,
        "all matches of a record in an input, where they are collected",
        "ARRAY<MAP<STRING, VARIANT>>",
        ("spark.joins.sides",),
        ("spark.operators.combine",),
    ),
    HiddenColumn(
        FILE_KEY_COLUMN,
        "in the parts of a Parquet output that becomes several files: what decides about the file of a record",
        "STRING",
        ("spark.operators.output",),
        ("runtime.run.parquet_files", "runtime.run.preview"),
    ),
    HiddenColumn(
        BYTES_COLUMN,
        "in the parts of a Parquet output that becomes several files: the size of a record",
        "BIGINT",
        ("spark.operators.output",),
        ("runtime.run.parquet_files", "runtime.run.preview"),
    ),
    _within(GOOD_COLUMN, "true for a record that is written, else null", "BOOLEAN", "spark.operators.output"),
    _within(WITHHELD_COLUMN, "true for a record that is withheld, else null", "BOOLEAN", "spark.operators.output"),
    _within(SORT_FILE_COLUMN, "`$document` of a line, to sort it by", "BIGINT", "spark.operators.output"),
    _within(SORT_PREFIX, "a value of the record of a line, to sort it by", "any", "spark.operators.output"),
    _within(LEFT_OUT_COLUMN, "true for a record that a total leaves out", "BOOLEAN", "spark.rejects.withheld"),
    _within(ID_COLUMN, "a group of an aggregate, as in `$group.`", "STRING", "spark.rejects.correlated"),
    _within(FAMILY_COLUMN, "the first of the sources that share a key", "INT", "spark.rejects.correlated"),
)

_INSIDE_QUERIES = (
    HiddenColumn(
        HERE_COLUMN,
        "true for a row of an outer join that is there, else null",
        "BOOLEAN",
        ("plan.query.bindings",),
        ("plan.query.values",),
    ),
    HiddenColumn(
        POSITION_COLUMN,
        "the position of an element in its list",
        "INT",
        ("plan.query.bindings",),
        ("plan.query.blocks",),
    ),
    _within(ROWS_COLUMN, "how many rows the only group has", "BIGINT", "plan.query.blocks"),
    _within(PREPARED_PREFIX, "what an aggregate needs more than once", "that of the value", "plan.query.groups"),
    _within(ORDER_PREFIX, "what the rows are sorted by, where they do not have it", "any", "plan.query.blocks"),
    _within(SIDE_COLUMN, "which side of a union a row is from", "INT", "plan.query.order"),
    _within(UNITED_PREFIX, "what the rows of a union are sorted by", "any", "plan.query.order"),
)

HIDDEN_COLUMNS = (*_OF_PROGRAMS, *_BETWEEN_NODES, *_OF_READERS, *_INSIDE_NODES, *_INSIDE_QUERIES)
