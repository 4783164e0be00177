"""Guessing the types of texts. A column is a number only if nothing is lost by reading it as one.

Each text must be the number's own spelling, so that it comes back as it was: `007`, `+49`, ` 5`, `1e5`, `1_000`,
`0x10`, `NaN` and a number of more digits than a column can hold are texts. After the point zeros at the end are fine if
all numbers of the column with a point have as many digits there (`10.50`, `3.25`); `1.1` beside `1.10` are two versions
of something, not one number.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from clinker_spark.core.types import FLOAT, INT, STRING
from clinker_spark.query.types import QType

INTEGER = "^(?:0|-?[1-9][0-9]{0,18})$"
NUMBER = r"^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?$"
SAFE_DIGITS = 15
"""As many digits of a decimal number survive a float, whatever they are."""


def guessed(texts: Any) -> QType:
    """The type of a column of texts (an Arrow array). An empty text is a missing number, but also a text.

    >>> import pyarrow as pa
    >>> columns = (["1", "-20"], ["1", ""], ["10.50", "3.25"], ["007"], ["1.1", "1.10"])
    >>> [f"{guessed(pa.array(texts)):?}" for texts in columns]
    ['Int', 'Int?', 'Float', 'String', 'String']
    """
    import pyarrow as pa  # Arrow is loaded by queries that read such files
    import pyarrow.compute as pc

    present = texts.filter(pc.not_equal(texts, ""))
    if not len(present):
        return STRING
    made: QType = STRING
    if _all(pc.match_substring_regex(present, INTEGER)):
        try:
            pc.cast(present, pa.int64())
            made = INT
        except pa.ArrowInvalid:
            return STRING  # more than 64 bits: a float would not hold all its digits
    elif _all(pc.match_substring_regex(present, NUMBER)) and _floats(present, pc):
        made = FLOAT
    return made.as_nullable() if len(present) < len(texts) and made is not STRING else made


def pattern(texts: Any, t: QType) -> str:
    """A Java pattern for the texts that can follow these in a column of numbers, and lose nothing by it."""
    import pyarrow.compute as pc  # Arrow is loaded by queries that read such files

    if t.unwrap() == INT:
        return r"^(?:0|-?[1-9][0-9]{0,17})\z"
    lengths = pc.utf8_length(_fractions(texts, pc))
    pointed = lengths.filter(pc.greater(lengths, 0))
    least, most = pc.min(pointed).as_py(), pc.max(pointed).as_py()
    fraction = f"[0-9]{{{most}}}" if least == most else "[0-9]*[1-9]"
    return rf"^(?=(?:[^0-9]*[0-9]){{0,{SAFE_DIGITS}}}[^0-9]*\z)-?(?:0|[1-9][0-9]*)(?:[.]{fraction})?\z"


def _fractions(texts: Any, pc: Any) -> Any:
    return pc.replace_substring_regex(texts, r"^[^.]*\.?", "")


def _all(found: Any) -> bool:
    import pyarrow.compute as pc  # Arrow is loaded by queries that read such files

    return bool(pc.all(found, min_count=0).as_py())


def _floats(texts: Any, pc: Any) -> bool:
    """Does a float keep all that these numbers say?"""
    fractions = _fractions(texts, pc)
    lengths = pc.utf8_length(fractions)
    pointed = lengths.filter(pc.greater(lengths, 0))
    if not len(pointed):
        return False  # whole numbers that are no Int: too long, or -0
    uniform = pc.min(pointed).as_py() == pc.max(pointed).as_py()
    if not uniform and pc.any(pc.ends_with(fractions, "0")).as_py():
        return False
    digits = pc.replace_substring_regex(pc.replace_substring_regex(texts, "[-.]", ""), "^0+", "")
    long = texts.filter(pc.greater(pc.utf8_length(digits), SAFE_DIGITS))
    return all(_survives(text) for text in pc.unique(long).to_pylist())


def _survives(text: str) -> bool:
    return Decimal(repr(float(text))) == Decimal(text)
