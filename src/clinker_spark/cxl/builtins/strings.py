"""Text. Positions and lengths count characters (code points), never bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from clinker_spark.core.types import ANY, ARRAY, BOOL, INT, STRING, Kind, Type, array_of
from clinker_spark.cxl.builtins.sqltext import MAX_INT, clamped, regex_quote, sql_string
from clinker_spark.cxl.builtins.table import NOT_LITERAL, Builtin, Failure, Nulls, Overload, SqlCall
from clinker_spark.cxl.builtins.text import sql_text, to_text
from clinker_spark.cxl.errors import ErrorKind, Fail
from clinker_spark.cxl.limits import MAX_STRING_BYTES
from clinker_spark.cxl.regexes import RegexError, compile_regex

# Unicode's White_Space, which is what trim removes; Python's own idea of it differs.
_SPACES = "".join(map(chr, [*range(9, 14), 32, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000]))
_SPACES_SQL = f"decode(X'{_SPACES.encode().hex()}', 'UTF-8')"

_TOO_LARGE = "the text would be longer than 10 MiB"


def _size(call_size: Callable[..., int]) -> Callable[..., None]:
    def check(*args: Any) -> None:
        if call_size(*args) > MAX_STRING_BYTES:
            raise Fail(ErrorKind.STRING_TOO_LARGE)

    return check


def _count_sql(call: SqlCall, index: int) -> str:
    """A count or position as an INT between 0 and the largest one; negative ones are 0."""
    literal = call.literal(index)
    if isinstance(literal, int):
        return str(max(0, min(literal, MAX_INT)))
    return clamped(call.args[index])


# ------------------------------------------------------------------- parts


def _substring(text: str, start: int | None, length: int | None = None) -> str:
    start = max(0, start or 0)
    return text[start:] if length is None or length < 0 else text[start : start + length]


def _substring_sql(call: SqlCall) -> str:
    # Beyond the end is the empty string; the largest INT must not overflow by the shift to 1-based.
    start = _count_sql(call, 1)
    first = str(min(int(start) + 1, MAX_INT)) if start.isdigit() else f"(least({start}, {MAX_INT - 1}) + 1)"
    if len(call.args) < 3 or call.literal(2) is None:
        return f"substring({call.args[0]}, {first})"
    length = call.literal(2)
    if isinstance(length, int):
        taken = f", {min(length, MAX_INT)}" if length >= 0 else ""
        return f"substring({call.args[0]}, {first}{taken})"
    rest = f"CASE WHEN {call.args[2]} >= 0L THEN {clamped(call.args[2])} ELSE {MAX_INT} END"
    return f"substring({call.args[0]}, {first}, {rest})"


def _left_sql(call: SqlCall) -> str:
    n = call.literal(1)
    if isinstance(n, int):
        return f"left({call.args[0]}, {min(n, MAX_INT)})" if n >= 0 else "CAST(NULL AS STRING)"
    return f"CASE WHEN {call.args[1]} >= 0L THEN left({call.args[0]}, {clamped(call.args[1])}) END"


def _right_sql(call: SqlCall) -> str:
    n = call.literal(1)
    if isinstance(n, int):
        return f"right({call.args[0]}, {min(n, MAX_INT)})" if n >= 0 else "CAST(NULL AS STRING)"
    return f"CASE WHEN {call.args[1]} >= 0L THEN right({call.args[0]}, {clamped(call.args[1])}) END"


def _replace_sql(call: SqlCall) -> str:
    text, find, with_ = call.args
    if isinstance(call.literal(1), str) and call.literal(1):
        return f"replace({text}, {find}, {with_})"
    # An empty search text stands before every character and at the end.
    everywhere = f"concat({with_}, array_join(transform(split({text}, ''), cxl_c -> concat(cxl_c, {with_})), ''))"
    plain = f"replace({text}, {find}, {with_})"
    empty = f"CASE WHEN {text} = '' THEN {with_} ELSE {everywhere} END"
    return f"CASE WHEN {find} = '' THEN {empty} ELSE {plain} END"


def _split(text: str, delimiter: str) -> list[str]:
    return text.split(delimiter) if delimiter else ["", *text, ""]


def _split_sql(call: SqlCall) -> str:
    text, delimiter = call.args
    literal = call.literal(1)
    if isinstance(literal, str) and literal:
        return f"split({text}, {sql_string(regex_quote(literal))}, -1)"
    letters = f"CASE WHEN {text} = '' THEN array('', '') ELSE concat(array(''), split({text}, '', -1), array('')) END"
    if literal == "":
        return letters
    # \\Q...\\E takes the delimiter literally; the end mark inside it is written as two quotations.
    quoted = (
        f"concat(chr(92), 'Q', replace({delimiter}, concat(chr(92), 'E'), "
        f"concat(chr(92), 'E', chr(92), chr(92), 'E', chr(92), 'Q')), chr(92), 'E')"
    )
    return f"CASE WHEN {delimiter} = '' THEN {letters} ELSE split({text}, {quoted}, -1) END"


def _join_sql(call: SqlCall) -> str:
    element = call.types[0].element or ANY
    if element.kind is Kind.STRING and not element.is_dynamic:
        texts = f"transform({call.args[0]}, cxl_e -> coalesce(cxl_e, ''))"
    else:
        texts = f"transform({call.args[0]}, cxl_e -> coalesce({sql_text('cxl_e', element)}, ''))"
    return f"array_join({texts}, {call.args[1]})"


def _concat_sql(call: SqlCall) -> str:
    parts = [call.args[0]]
    for sql, t, literal in zip(call.args[1:], call.types[1:], call.literals[1:], strict=True):
        text = sql if t.kind is Kind.STRING and not t.is_dynamic else sql_text(sql, t)
        parts.append(text if literal is not NOT_LITERAL and literal is not None else f"coalesce({text}, '')")
    return f"concat({', '.join(parts)})"


# ----------------------------------------------------------------- padding


def _pad_char(char: str | None) -> str:
    return char[0] if char else " "


def _padding(text: str, width: int | None, char: str | None) -> str | None:
    if width is None or width < 0:
        return None
    missing = max(0, width - len(text))
    # Counted in characters first: a huge width must not be built to be measured.
    if missing + len(text.encode()) > MAX_STRING_BYTES or missing * len(_pad_char(char).encode()) > MAX_STRING_BYTES:
        raise Fail(ErrorKind.STRING_TOO_LARGE, text)
    return _pad_char(char) * missing


def _pad_left(text: str, width: int | None, char: str | None = None) -> str | None:
    padding = _padding(text, width, char)
    return None if padding is None else padding + text


def _pad_right(text: str, width: int | None, char: str | None = None) -> str | None:
    padding = _padding(text, width, char)
    return None if padding is None else text + padding


def _pad_parts(call: SqlCall) -> tuple[str, str]:
    char = "' '"
    if len(call.args) > 2:
        literal = call.literal(2)
        if literal is NOT_LITERAL:
            char = f"CASE WHEN coalesce({call.args[2]}, '') = '' THEN ' ' ELSE left({call.args[2]}, 1) END"
        else:
            char = sql_string(_pad_char(literal))
    return call.args[1], char


def _too_large(text: str, width: str, char: str) -> str:
    missing = f"greatest({width} - CAST(length({text}) AS BIGINT), 0L)"
    bytes_ = f"({missing} + octet_length({text}) > {MAX_STRING_BYTES}L OR {missing} > {MAX_STRING_BYTES}L)"
    if len(char) == 3:  # one quoted ASCII character
        return bytes_
    return f"({bytes_} OR {missing} * octet_length({char}) > {MAX_STRING_BYTES}L)"


def _pad_sql(function: str) -> Callable[[SqlCall], str]:
    def sql(call: SqlCall) -> str:
        text = call.args[0]
        width, char = _pad_parts(call)
        bad = f"{width} IS NULL OR {width} < 0L OR {_too_large(text, width, char)}"
        whole = f"CAST(greatest({width}, CAST(length({text}) AS BIGINT)) AS INT)"
        return f"CASE WHEN {bad} THEN NULL ELSE {function}({text}, {whole}, {char}) END"

    return sql


_PAD_FAILURE = Failure(
    ErrorKind.STRING_TOO_LARGE, _TOO_LARGE, f"{{r}} IS NULL AND {{0}} IS NOT NULL AND {{1}} > {MAX_STRING_BYTES // 4}L", 0
)


def _repeat(text: str, n: int) -> str | None:
    if n < 0:
        return None
    if len(text.encode()) * n > MAX_STRING_BYTES:
        raise Fail(ErrorKind.STRING_TOO_LARGE, text)
    return text * n


_REPEAT_BYTES = f"try_multiply(CAST(octet_length({{0}}) AS BIGINT), {{1}})"
_REPEAT_FITS = f"coalesce({_REPEAT_BYTES} <= {MAX_STRING_BYTES}L, FALSE)"


# ------------------------------------------------------------------- regex


def _check_pattern(literals: Sequence[Any]) -> tuple[int, str] | None:
    try:
        compile_regex(literals[1])
    except RegexError as error:
        return 1, f"invalid regex pattern: {error}"
    return None


def _matches_sql(call: SqlCall) -> str | None:
    java = compile_regex(call.literal(1)).java_full
    return None if java is None else f"rlike({call.args[0]}, {sql_string(java)})"


def _find_sql(call: SqlCall) -> str | None:
    pattern = compile_regex(call.literal(1))
    if pattern.literal is not None:
        return f"contains({call.args[0]}, {sql_string(pattern.literal)})"
    return None if pattern.java is None else f"rlike({call.args[0]}, {sql_string(pattern.java)})"


def _capture_sql(call: SqlCall) -> str | None:
    pattern = compile_regex(call.literal(1))
    group = call.literal(2) if len(call.args) > 2 else 0
    if group is None or (isinstance(group, int) and not 0 <= group <= pattern.groups):
        return "CAST(NULL AS STRING)"
    if not isinstance(group, int) or pattern.java is None or group not in pattern.extractable:
        return None
    java = sql_string(pattern.java)
    found = f"regexp_extract({call.args[0]}, {java}, {group})"
    if not pattern.can_be_empty(group):
        return f"nullif({found}, '')"  # an empty result can only mean that there was none
    if pattern.is_certain(group):
        return f"CASE WHEN rlike({call.args[0]}, {java}) THEN {found} END"
    return f"CASE WHEN rlike({call.args[0]}, {sql_string(pattern.java_if_set(group))}) THEN {found} END"


_REGEX_REASON = "Java's regular expressions cannot find this group or pattern exactly as CXL defines it"
_PATTERN = frozenset({1})


def _text_method(name: str, doc: str, run: Callable[[str], Any], sql: str, result: Type, *examples: tuple[str, str]) -> Builtin:
    return Builtin(name, "string", doc, (Overload((STRING,), result, run, sql),), examples=examples)


def _test(name: str, doc: str, run: Callable[[str, str], bool], sql: str, *examples: tuple[str, str]) -> Builtin:
    return Builtin(name, "string", doc, (Overload((STRING, STRING), BOOL, run, sql),), examples=examples)


BUILTINS: tuple[Builtin, ...] = (
    _text_method("upper", "Upper case, by Unicode's rules.", str.upper, "upper({0})", STRING, ('"straße".upper()', '"STRASSE"')),
    _text_method("lower", "Lower case, by Unicode's rules.", str.lower, "lower({0})", STRING, ('"ÄB".lower()', '"äb"')),
    _text_method(
        "trim", "Without white space at both ends.", lambda s: s.strip(_SPACES),
        f"trim(BOTH {_SPACES_SQL} FROM {{0}})", STRING, ('"  a b ".trim()', '"a b"'),
    ),
    _text_method(
        "trim_start", "Without white space at the start.", lambda s: s.lstrip(_SPACES),
        f"trim(LEADING {_SPACES_SQL} FROM {{0}})", STRING, ('"  a ".trim_start()', '"a "'),
    ),
    _text_method(
        "trim_end", "Without white space at the end.", lambda s: s.rstrip(_SPACES),
        f"trim(TRAILING {_SPACES_SQL} FROM {{0}})", STRING, ('"  a ".trim_end()', '"  a"'),
    ),
    _text_method("reverse", "The characters in reverse order.", lambda s: s[::-1], "reverse({0})", STRING, ('"abc".reverse()', '"cba"')),
    Builtin(
        "length", "string", "The number of characters of a text, or of elements of an array.",
        (
            Overload((STRING,), INT, len, "CAST(length({0}) AS BIGINT)"),
            Overload((ARRAY,), INT, len, "CAST(array_size({0}) AS BIGINT)"),
        ),
        examples=(('"né".length()', "2"), ("[1, 2, 3].length()", "3")),
    ),
    _test("starts_with", "Does the text start with another?", str.startswith, "startswith({0}, {1})", ('"abc".starts_with("ab")', "true")),
    _test("ends_with", "Does the text end with another?", str.endswith, "endswith({0}, {1})", ('"a.csv".ends_with(".csv")', "true")),
    _test("contains", "Does the text contain another?", lambda s, t: t in s, "contains({0}, {1})", ('"abc".contains("B")', "false")),
    Builtin(
        "replace", "string", "Every occurrence of a text replaced by another.",
        (Overload((STRING, STRING, STRING), STRING, lambda s, a, b: s.replace(a, b), _replace_sql),),
        examples=(('"a-b-c".replace("-", "_")', '"a_b_c"'), ('"ab".replace("", "-")', '"-a-b-"')),
    ),
    Builtin(
        "substring", "string", "From a 0-based position, to the end or as many characters as given.",
        (Overload((STRING, INT, INT), STRING, _substring, _substring_sql, optional=1),),
        nulls=Nulls.RECEIVER,
        examples=(('"hello".substring(1, 3)', '"ell"'), ('"abc".substring(9)', '""'), ('"abc".substring(-2)', '"abc"')),
    ),
    Builtin(
        "left", "string", "The first n characters; null when n is negative.",
        (Overload((STRING, INT), STRING, lambda s, n: s[:n] if n >= 0 else None, _left_sql),),
        examples=(('"hello".left(2)', '"he"'), ('"abc".left(-1)', "null")),
    ),
    Builtin(
        "right", "string", "The last n characters; null when n is negative.",
        (Overload((STRING, INT), STRING, lambda s, n: (s[-n:] if n else "") if n >= 0 else None, _right_sql),),
        examples=(('"hello".right(2)', '"lo"'), ('"abc".right(99)', '"abc"')),
    ),
    Builtin(
        "pad_left", "string", "Filled up at the start to a width, with spaces or a character; never cut.",
        (Overload((STRING, INT, STRING), STRING, _pad_left, _pad_sql("lpad"), (_PAD_FAILURE,), optional=1),),
        nulls=Nulls.RECEIVER,
        examples=(('"42".pad_left(5, "0")', '"00042"'), ('"abc".pad_left(2)', '"abc"')),
    ),
    Builtin(
        "pad_right", "string", "Filled up at the end to a width, with spaces or a character; never cut.",
        (Overload((STRING, INT, STRING), STRING, _pad_right, _pad_sql("rpad"), (_PAD_FAILURE,), optional=1),),
        nulls=Nulls.RECEIVER,
        examples=(('"hi".pad_right(6, ".")', '"hi...."'), ('"abc".pad_right(2)', '"abc"')),
    ),
    Builtin(
        "repeat", "string", "The text n times; null when n is negative.",
        (
            Overload(
                (STRING, INT), STRING, _repeat,
                lambda call: (
                    f"CASE WHEN {call.args[1]} >= 0L AND {_REPEAT_FITS.replace('{0}', call.args[0]).replace('{1}', call.args[1])} "
                    f"THEN repeat({call.args[0]}, {clamped(call.args[1])}) END"
                ),
                (Failure(ErrorKind.STRING_TOO_LARGE, _TOO_LARGE, f"{{1}} >= 0L AND {{0}} IS NOT NULL AND NOT {_REPEAT_FITS}", 0),),
            ),
        ),
        examples=(('"ab".repeat(3)', '"ababab"'), ('"ab".repeat(0)', '""')),
    ),
    Builtin(
        "split", "string", "The parts between a delimiter, taken literally.",
        (Overload((STRING, STRING), array_of(STRING), _split, _split_sql),),
        examples=(('"a,b,,c".split(",")', '["a", "b", "", "c"]'), ('"ab".split("")', '["", "a", "b", ""]')),
    ),
    Builtin(
        "join", "string", "The elements of an array as one text; null elements are empty.",
        (Overload((ARRAY, STRING), STRING, lambda xs, d: d.join(map(to_text, xs)), _join_sql),),
        examples=(('["a", "b"].join(" - ")', '"a - b"'), ("[1, null, 2.5].join(\";\")", '"1;;2.5"')),
    ),
    Builtin(
        "concat", "string", "The text with all arguments after it; nulls are empty, other values are written as text.",
        (Overload((STRING, ANY), STRING, lambda s, *xs: s + "".join(map(to_text, xs)), _concat_sql, variadic=True),),
        nulls=Nulls.RECEIVER,
        examples=(('"a".concat("x", null, 5)', '"ax5"'), ('"n=".concat(2.0)', '"n=2"')),
    ),
    Builtin(
        "format", "string", "The value as text; the format is not used.",
        (Overload((ANY, STRING), STRING, lambda v, _: to_text(v), lambda call: sql_text(call.args[0], call.types[0])),),
        nulls=Nulls.RECEIVER,
        examples=(('42.format("x")', '"42"'), ('"a".format("x")', '"a"')),
    ),
    Builtin(
        "matches", "string", "Does the whole text match a regular expression?",
        (
            Overload(
                (STRING, STRING), BOOL, lambda s, p: compile_regex(p).full_match(s), _matches_sql,
                literal=_PATTERN, check=_check_pattern, python_reason=_REGEX_REASON,
            ),
        ),
        examples=(('"abc".matches("[a-z]+")', "true"), ('"abc1".matches("[a-z]+")', "false")),
    ),
    Builtin(
        "find", "string", "Is a regular expression found anywhere in the text?",
        (
            Overload(
                (STRING, STRING), BOOL, lambda s, p: compile_regex(p).search(s) is not None, _find_sql,
                literal=_PATTERN, check=_check_pattern, python_reason=_REGEX_REASON,
            ),
        ),
        examples=(('"abc1".find("[0-9]")', "true"), ('"abc".find("[0-9]")', "false")),
    ),
    Builtin(
        "capture", "string", "The text of a group of a regular expression (0, the default: the whole match), or null.",
        (
            Overload(
                (STRING, STRING, INT), STRING.as_nullable(),
                lambda s, p, g=0: compile_regex(p).capture(s, g), _capture_sql,
                optional=1, literal=_PATTERN, check=_check_pattern, python_reason=_REGEX_REASON,
            ),
        ),
        examples=(('"abc123".capture("([a-z]+)([0-9]+)", 2)', '"123"'), ('"abc".capture("[0-9]+")', "null")),
    ),
)
