"""`partition_by`: values as names of folders, the way that Hive, Spark and most readers of Parquet know them."""

from __future__ import annotations

from collections.abc import Iterator

from clinker_spark.core.types import Kind
from clinker_spark.cxl.builtins.sqltext import sql_string
from clinker_spark.cxl.builtins.text import sql_text
from clinker_spark.cxl.lower.plan import Failing
from clinker_spark.spark.render.contract import OutColumn, unwritable

NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
"""The folder of the records without a value."""
_LONGEST = 255
_ESCAPED = r"""[\x01-\x1f\x7f"#%'*/:=?\\{\[\]^]"""
"""What Spark writes as a `%` and two digits."""


def folder_text(column: OutColumn) -> str:
    """SQL for the value in the name of a folder. It is never null, so that Spark does not sort once more to make it
    so."""
    return f"coalesce({sql_text(column.sql, column.type)}, {sql_string(NO_VALUE)})"


def folder_failures(column: OutColumn) -> Iterator[tuple[Failing, str | None]]:
    """Texts that would be read back as something else, or that no folder can be called."""
    if column.type.kind is not Kind.STRING:
        return
    text = column.sql
    message = "an empty text cannot be the name of a folder: it would be read as no value"
    yield unwritable(f"{text} = ''", text, message), column.name
    message = f"the text {NO_VALUE} cannot be the name of a folder: it stands for no value"
    yield unwritable(f"{text} = {sql_string(NO_VALUE)}", text, message), column.name
    room = _LONGEST - 3 * len(column.name.encode()) - 1
    size = f"octet_length(regexp_replace({text}, {sql_string(_ESCAPED)}, '%00'))"
    yield unwritable(f"{size} > {room}", text, "the text is too long for the name of a folder"), column.name
