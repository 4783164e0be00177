"""Names that elements and attributes can have, checked before a run and, for the keys of maps, in each record.

Colons are left out: a prefix would need a namespace, and nothing here declares one.
"""

from __future__ import annotations

import re

from clinker_spark.cxl.builtins.sqltext import sql_string
from clinker_spark.spark.render.contract import refuse

_START_RANGES = (
    (0xC0, 0xD6),
    (0xD8, 0xF6),
    (0xF8, 0x2FF),
    (0x370, 0x37D),
    (0x37F, 0x1FFF),
    (0x200C, 0x200D),
    (0x2070, 0x218F),
    (0x2C00, 0x2FEF),
    (0x3001, 0xD7FF),
    (0xF900, 0xFDCF),
    (0xFDF0, 0xFFFD),
    (0x10000, 0xEFFFF),
)
_LATER_RANGES = ((0xB7, 0xB7), (0x300, 0x36F), (0x203F, 0x2040))


def _ranges(form: str, ranges: tuple[tuple[int, int], ...]) -> str:
    return "".join(f"{form.format(low)}-{form.format(high)}" for low, high in ranges)


def _pattern(form: str) -> str:
    start = "A-Za-z_" + _ranges(form, _START_RANGES)
    return f"[{start}][{start}0-9.{_ranges(form, _LATER_RANGES)}-]*"


_NAME = re.compile(_pattern("\\U{:08x}"))
# Java spells a code point \x{...}; the end is \z, because $ also matches before a last line end.
NAME_SQL = sql_string("^" + _pattern("\\x{{{:x}}}") + r"\z")
"""A pattern that all of a name matches, as SQL."""

FORBIDDEN_SQL = sql_string(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x{fffe}\x{ffff}]")
"""A pattern that finds a character which XML cannot hold in any form, as SQL."""

ESCAPED_FORBIDDEN_SQL = sql_string(r"(?<!\\)(?:\\\\)*\\(?:u00[01]|[bf])|[\x{fffe}\x{ffff}]")
"""The same in the text of `to_json`, which writes them with a backslash."""


def check_name(name: str, what: str) -> None:
    """Refuse an output that would not be XML."""
    if _NAME.fullmatch(name) is None:
        raise refuse(
            "E238",
            f"{what} cannot be written: '{name}' is not a name that XML knows",
            "begin with a letter or '_', then letters, digits, '_', '-' and '.'; rename columns with 'mapping'",
        )
