"""What the string methods do: in Python, and as Spark SQL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import regex

from clinker_spark.core.types import ANY, STRING, Type
from clinker_spark.cxl.builtins.sqltext import MAX_INT, NULL_STRING, clamped, regex_quote, sql_string
from clinker_spark.cxl.builtins.table import NOT_LITERAL, SqlCall
from clinker_spark.cxl.builtins.text import sql_text, to_text
from clinker_spark.cxl.errors import ErrorKind, Fail
from clinker_spark.cxl.limits import MAX_STRING_BYTES
from clinker_spark.cxl.regex.charclasses import later_case_pairs
from clinker_spark.cxl.regex.patterns import Regex, RegexError, compile_regex

# Unicode's White_Space. Python's own strip() also takes the separators U+001C to U+001F.
BLANKS = "\t\n\v\f\r \x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"

# At the end of a word: after a letter, with nothing but marks and points between, and not before one.
_FINAL_SIGMA = regex.compile(r"(?<=\p{Cased}\p{Case_Ignorable}*)Σ(?!\p{Case_Ignorable}*\p{Cased})")
_UPPER_LATER = {lower: upper for upper, lower in later_case_pairs()}
_LOWER_LATER = dict(later_case_pairs())


# Catalyst takes lower(upper(x)) for lower(x), which is not the same for ß, İ and many others: it must not see it. The
# casts hand the same bytes on; a `concat` with nothing would copy them.
UPPER, LOWER = "CAST(CAST(upper({0}) AS BINARY) AS STRING)", "CAST(CAST(lower({0}) AS BINARY) AS STRING)"


def upper(s: str) -> str:
    return s.upper() if s.isascii() else s.upper().translate(_UPPER_LATER)


def lower(s: str) -> str:
    if s.isascii():
        return s.lower()
    if "Σ" in s:  # which letters are around it is not for this Python's edition of Unicode to say
        s = _FINAL_SIGMA.sub("ς", s).replace("Σ", "σ")
    return s.lower().translate(_LOWER_LATER)


def trim_sql(function: str, ends: str) -> str:
    """Trimming a set of characters is slow in Spark (measured: seven times a plain trim). After the fast removal of
    spaces it is only needed where another white space, or anything beyond ASCII, is left at an end."""
    rest = f"⟦{function}({{0}})⟧"
    first, last = f"{rest} >= '!' AND {rest} < chr(127)", f"right({rest}, 1) BETWEEN '!' AND '~'"
    done = {"LEADING": first, "TRAILING": last, "BOTH": f"{first} AND {last}"}[ends]
    return f"CASE WHEN {done} THEN {rest} ELSE trim({ends} {sql_string(BLANKS)} FROM {{0}}) END"


# ----------------------------------------------------------------- replace, split


def _characters(text: str) -> str:
    """An array of the characters of a string that is not empty."""
    return f"split({text}, '', -1)"


def replace_sql(call: SqlCall) -> str:
    text, find, replacement = call.args
    # Spark leaves the text alone when there is nothing to find; Rust finds nothing between all characters.
    between = (
        f"CASE WHEN {text} = '' THEN {replacement} "
        f"ELSE concat({replacement}, array_join({_characters(text)}, {replacement}), {replacement}) END"
    )
    plain = f"replace({text}, {find}, {replacement})"
    literal = call.literal(1)
    if literal is not NOT_LITERAL:
        return between if literal == "" else plain
    return f"CASE WHEN {find} = '' THEN {between} ELSE {plain} END"


def split(s: str, delimiter: str) -> list[str]:
    return s.split(delimiter) if delimiter else ["", *s, ""]


def split_sql(call: SqlCall) -> str:
    text, delimiter = call.args
    literal = call.literal(1)
    apart = f"CASE WHEN {text} = '' THEN array('', '') ELSE concat(array(''), {_characters(text)}, array('')) END"
    if isinstance(literal, str):
        return f"split({text}, {sql_string(regex_quote(literal))}, -1)" if literal else apart
    # Java's quoting: \Q...\E, and a \E inside ends it, stands for itself and begins anew.
    begin, end, anew = sql_string(r"\Q"), sql_string(r"\E"), sql_string(r"\E\\E\Q")
    quoted = f"concat({begin}, replace({delimiter}, {end}, {anew}), {end})"
    return f"CASE WHEN {delimiter} = '' THEN {apart} ELSE split({text}, {quoted}, -1) END"


# ---------------------------------------------------------- substring, left, right


def substring(s: str, start: int | None, length: int | None = None) -> str:
    first = max(start or 0, 0)
    return s[first:] if length is None or length < 0 else s[first : first + length]


def substring_sql(call: SqlCall) -> str:
    start, length = call.literal(1), call.literal(2)
    if start is NOT_LITERAL:
        first = f"{clamped(call.args[1], MAX_INT - 1)} + 1"
    else:
        first = str(min(max(start or 0, 0), MAX_INT - 1) + 1)
    if length is not NOT_LITERAL:
        count = "" if length is None or length < 0 else f", {min(length, MAX_INT)}"
    elif len(call.args) > 2:
        count = f", CASE WHEN {call.args[2]} >= 0L THEN {clamped(call.args[2])} ELSE {MAX_INT} END"
    else:
        count = ""
    return f"substring({call.args[0]}, {first}{count})"


class NullIfNegative:
    """The result type of methods that count: a String, which is null for a negative count."""

    def __call__(self, types: Sequence[Type]) -> Type:
        return STRING.as_nullable()

    def with_literals(self, types: Sequence[Type], literals: Sequence[Any]) -> Type:
        return STRING if isinstance(literals[1], int) and literals[1] >= 0 else STRING.as_nullable()


COUNTED = NullIfNegative()


def end_sql(function: str) -> Callable[[SqlCall], str]:
    def sql(call: SqlCall) -> str:
        text, count = call.args
        literal = call.literal(1)
        if isinstance(literal, int):
            return f"{function}({text}, {min(literal, MAX_INT)})" if literal >= 0 else NULL_STRING
        return f"CASE WHEN {count} >= 0L THEN {function}({text}, {clamped(count)}) END"

    return sql


# ------------------------------------------------------------------ pad and repeat

TOO_LARGE = "the string would be larger than 10 MiB"
SAFE_WIDTH = MAX_STRING_BYTES // 4  # no character takes more than four bytes


def pad(*, left: bool) -> Callable[..., str | None]:
    def run(s: str, width: int | None, fill: str | None = None) -> str | None:
        if width is None or width < 0:
            return None
        missing, char = width - len(s), (fill or " ")[0]
        if missing <= 0:
            return s
        if len(s.encode()) + missing * len(char.encode()) > MAX_STRING_BYTES:
            raise Fail(ErrorKind.STRING_TOO_LARGE, width)
        return char * missing + s if left else s + char * missing

    return run


def pad_too_large(char_bytes: str) -> str:
    # No sum here can overflow, whatever the width is.
    missing = "greatest({1}, 0L) - char_length({0})"
    bytes_ = f"octet_length({{0}}) + least({missing}, {MAX_STRING_BYTES + 1}L) * {char_bytes}"
    return f"{missing} > 0L AND {bytes_} > {MAX_STRING_BYTES}L"


def pad_sql(function: str, too_large: str) -> Callable[[SqlCall], str]:
    def sql(call: SqlCall) -> str:
        text, width = call.args[:2]
        fill = _fill_sql(call)
        literal = call.literal(1)
        if isinstance(literal, int) and literal <= SAFE_WIDTH:
            if literal < 0:
                return NULL_STRING
            # lpad and rpad cut what is longer than the width.
            return f"{function}({text}, greatest({literal}, char_length({text})), {fill})"
        padded = f"{function}({text}, greatest({clamped(width, MAX_STRING_BYTES)}, char_length({text})), {fill})"
        return f"CASE WHEN {width} >= 0L AND NOT ({too_large.format(*call.args)}) THEN {padded} END"

    return sql


def _fill_sql(call: SqlCall) -> str:
    fill = call.literal(2)
    if fill is NOT_LITERAL and len(call.args) > 2:
        return f"coalesce(nullif(left({call.args[2]}, 1), ''), ' ')"
    return sql_string(fill[0] if isinstance(fill, str) and fill else " ")


def repeat(s: str, count: int) -> str | None:
    if count < 0:
        return None
    if len(s.encode()) * count > MAX_STRING_BYTES:
        raise Fail(ErrorKind.STRING_TOO_LARGE, count)
    return s * count if s else ""


# Clamped on both sides: Spark may compute the product before it has looked at the count.
REPEAT_TOO_LARGE = f"octet_length({{0}}) * least(greatest({{1}}, 0L), {MAX_STRING_BYTES + 1}L) > {MAX_STRING_BYTES}L"


def repeat_sql(call: SqlCall) -> str:
    text, count = call.args
    literal = call.literal(1)
    if isinstance(literal, int):
        if literal <= 0:
            return f"repeat({text}, 0)" if literal == 0 else NULL_STRING
        fits = f"octet_length({text}) <= {MAX_STRING_BYTES // literal}"
        return f"CASE WHEN {fits} THEN repeat({text}, {min(literal, MAX_STRING_BYTES)}) END"
    fits = f"NOT ({REPEAT_TOO_LARGE.format(*call.args)})"
    return f"CASE WHEN {count} >= 0L AND {fits} THEN repeat({text}, {clamped(count, MAX_STRING_BYTES)}) END"


# ------------------------------------------------------------------- join and concat


def join(items: list[Any], delimiter: str) -> str:
    return delimiter.join(map(to_text, items))


def join_sql(call: SqlCall) -> str:
    element = call.types[0].element or ANY
    text = sql_text("cxl_e", element)
    items = call.args[0] if text == "cxl_e" else f"transform({call.args[0]}, cxl_e -> {text})"
    return f"array_join({items}, {call.args[1]}, '')"


def concat(s: str, *values: Any) -> str:
    return s + "".join(map(to_text, values))


def concat_sql(call: SqlCall) -> str:
    parts = [call.args[0]]
    for i in range(1, len(call.args)):
        literal = call.literal(i)
        if literal is NOT_LITERAL:
            parts.append(f"coalesce({sql_text(call.args[i], call.types[i])}, '')")
        elif text := to_text(literal):
            parts.append(sql_string(text))
    return f"concat({', '.join(parts)})" if len(parts) > 1 else parts[0]


# ---------------------------------------------------------------- regular expressions

PYTHON_ONLY = "the pattern can be read in several ways, which takes Java too long on some texts: RE2 runs it"


def check_pattern(literals: Sequence[Any]) -> tuple[int, str] | None:
    try:
        if isinstance(literals[1], str):
            compile_regex(literals[1])
    except RegexError as e:
        return 1, f"invalid regex pattern: {e}"
    return None


def _pattern(call: SqlCall) -> Regex | None:
    literal = call.literal(1)
    return compile_regex(literal) if isinstance(literal, str) else None


def matches_sql(call: SqlCall) -> str | None:
    pattern = _pattern(call)
    if pattern is None or pattern.java_full is None:
        return None
    if pattern.literal is not None:
        return f"({call.args[0]} = {sql_string(pattern.literal)})"
    return f"rlike({call.args[0]}, {sql_string(pattern.java_full)})"


def find_sql(call: SqlCall) -> str | None:
    pattern = _pattern(call)
    if pattern is None or pattern.java is None:
        return None
    if pattern.literal is not None:
        return f"contains({call.args[0]}, {sql_string(pattern.literal)})"
    return f"rlike({call.args[0]}, {sql_string(pattern.java)})"


def capture_sql(call: SqlCall) -> str | None:
    pattern = _pattern(call)
    if pattern is None:
        return None
    group = call.literal(2) if len(call.args) > 2 else 0
    if group is not NOT_LITERAL:
        return _group_sql(call.args[0], pattern, group)
    arms = [_group_sql(call.args[0], pattern, g) for g in range(pattern.groups + 1)]
    if None in arms:
        return None
    return f"CASE {call.args[2]} {' '.join(f'WHEN {g}L THEN {arm}' for g, arm in enumerate(arms))} END"


def _group_sql(text: str, pattern: Regex, group: int | None) -> str | None:
    """`regexp_extract`, which gives '' both for an empty group and for none: told apart where there can be both."""
    if group is None or not 0 <= group <= pattern.groups:
        return NULL_STRING
    if pattern.java is None or group not in pattern.extractable:
        return None
    found = f"regexp_extract({text}, {sql_string(pattern.java)}, {group})"
    if not pattern.can_be_empty(group):
        return f"nullif({found}, '')"
    test = pattern.java if pattern.is_certain(group) else pattern.java_if_set(group)
    return f"CASE WHEN rlike({text}, {sql_string(test)}) THEN {found} END"
