"""The type words of schemas, read with help for those who know them from elsewhere.

>>> str(read_type("nullable(decimal(2))")), str(read_type("array(integer)"))
('Nullable(Decimal)', 'Array(Int)')
>>> read_type("varchar").help
"did you mean 'string'?"
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from clinker_spark.core.diagnostics.suggest import nearest
from clinker_spark.core.types import MAX_SCALE, TYPE_NAMES, Kind, Type, parse_type

ALSO = {"integer": "int", "boolean": "bool", "datetime": "date_time", "number": "float", "object": "map"}
"""The type words of other versions, which mean the same wherever a type is written."""
_ALSO = re.compile(rf"\b({'|'.join(ALSO)})\b", re.ASCII)
# What other systems call our types. Edit distance would not find these.
_FOREIGN = {
    **dict.fromkeys(("long", "bigint", "smallint", "int64", "int32", "i64"), "int"),
    **dict.fromkeys(("double", "real", "float64", "f64"), "float"),
    **dict.fromkeys(("money", "dec"), "decimal(2)"),
    **dict.fromkeys(("str", "text", "varchar", "char", "utf8"), "string"),
    **dict.fromkeys(("timestamp", "timestamp_ntz", "time"), "date_time"),
    **dict.fromkeys(("list", "sequence"), "array"),
    **dict.fromkeys(("struct", "record", "dict", "json"), "map"),
    **dict.fromkeys(("logical",), "bool"),
    "variant": "any",
}
_WORDS = tuple(name for name in TYPE_NAMES if name != "numeric")
TYPES_HELP = f"the types are {', '.join(_WORDS)} and nullable(T)"
_MAX_LENGTH = 200
_DECIMAL = re.compile(r"\bdecimal\(\s*[0-9]+\s*(?:,\s*[0-9]+\s*)?\)", re.ASCII)


@dataclass(frozen=True, slots=True)
class NotAType:
    """Why a text is no column type: a diagnostic code, what is wrong (`{shown}` is the text) and what to do."""

    code: str
    reason: str
    help: str


def read_type(text: str) -> Type | NotAType:
    """A column type from its spelling."""
    # The length bounds the nesting, and digits that are not ASCII would pass for a scale.
    usual = _ALSO.sub(lambda word: ALSO[word[0]], text) if len(text) <= _MAX_LENGTH and text.isascii() else None
    found = parse_type(usual) if usual is not None else None
    if found is None:
        if _DECIMAL.search(text):
            help_text = f"the largest scale is {MAX_SCALE}: decimal(2), or decimal(12, 2)"
            return NotAType("E226", "{shown} has more digits than a decimal can keep", help_text)
        return NotAType("E226", "{shown} is not a type", _help(text))
    return _decided(found)


def _help(spelled: str) -> str:
    """The nearest type word to the first one that is none."""
    known = {*TYPE_NAMES, *ALSO, "null", "nullable"}
    for word in re.findall(r"\w+", spelled[:_MAX_LENGTH]):
        if word not in known and not word.isdigit():
            close = _FOREIGN.get(word.lower()) or nearest(word, [*_WORDS, "nullable"])
            return f"did you mean '{close}'?" if close else TYPES_HELP
    return f"{TYPES_HELP}; for example decimal(2), array(string)"


def _decided(t: Type) -> Type:
    """`numeric` is int or float in programs; the values of a column are read as floats, which hold both."""
    element = None if t.element is None else _decided(t.element)
    kind = Kind.FLOAT if t.kind is Kind.NUMERIC else t.kind
    return t if (kind, element) == (t.kind, t.element) else replace(t, kind=kind, element=element)
