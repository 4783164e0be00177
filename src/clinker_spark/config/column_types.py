"""The type words of schemas, read with help for those who know them from elsewhere.

>>> str(read_type("nullable(decimal(2))"))
'Nullable(Decimal)'
>>> type_help("varchar")
"did you mean 'string'?"
"""

from __future__ import annotations

import re
from collections.abc import Callable

from clinker_spark.config.values import problem, shown
from clinker_spark.core.suggest import nearest
from clinker_spark.core.types import MAX_SCALE, TYPE_NAMES, Kind, Type, parse_type

# What other systems call our types. Edit distance would not find these.
_FOREIGN = {
    **dict.fromkeys(("integer", "long", "bigint", "smallint", "int64", "int32", "i64", "number"), "int"),
    **dict.fromkeys(("double", "real", "float64", "f64"), "float"),
    **dict.fromkeys(("money", "dec"), "decimal(2)"),
    **dict.fromkeys(("str", "text", "varchar", "char", "utf8"), "string"),
    **dict.fromkeys(("timestamp", "timestamp_ntz", "time"), "date_time"),
    **dict.fromkeys(("list", "sequence"), "array"),
    **dict.fromkeys(("object", "struct", "record", "dict", "json"), "map"),
    **dict.fromkeys(("boolean", "logical"), "bool"),
    "variant": "any",
}
WORDS = tuple(name for name in TYPE_NAMES if name != "numeric")
TYPES_HELP = f"the types are {', '.join(WORDS)} and nullable(T)"
_MAX_LENGTH = 200
_DECIMAL = re.compile(r"\bdecimal\(\s*[0-9]+\s*(?:,\s*[0-9]+\s*)?\)", re.ASCII)


def read_type(text: str) -> Type:
    """A type from its spelling. Raises a pydantic error with code E158 (numeric) or E226."""
    # The length bounds the nesting, and digits that are not ASCII would pass for a scale.
    found = parse_type(text) if len(text) <= _MAX_LENGTH and text.isascii() else None
    if found is None:
        if _DECIMAL.search(text):
            help_text = f"at most {MAX_SCALE} digits after the point: decimal(2), or decimal(12, 2)"
            raise problem("E226", f"{shown(text)} has more digits than a decimal can keep", help_text)
        raise problem("E226", f"{shown(text)} is not a type", type_help(text))
    if _holds(found, lambda part: part.kind is Kind.NUMERIC):
        raise problem("E158", "numeric is not a column type", "write int, float or decimal(scale)")
    return found


def type_help(spelled: str) -> str:
    """The nearest type word to the first one that is none."""
    if spelled.count("(") > spelled.count(")"):
        return "put the type in quotes: a comma ends a value between { and }"
    known = {*TYPE_NAMES, "datetime", "null", "nullable"}
    for word in re.findall(r"\w+", spelled[:_MAX_LENGTH]):
        if word not in known and not word.isdigit():
            close = _FOREIGN.get(word.lower()) or nearest(word, [*WORDS, "nullable"])
            return f"did you mean '{close}'?" if close else TYPES_HELP
    return f"{TYPES_HELP}; for example decimal(2), array(string)"


def _holds(t: Type, test: Callable[[Type], bool]) -> bool:
    return test(t) or (t.element is not None and _holds(t.element, test))
