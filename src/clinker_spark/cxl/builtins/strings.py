"""Methods on strings. Positions and lengths count Unicode characters (code points)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from clinker_spark.core.types import ANY, ARRAY, BOOL, INT, STRING, Kind, Type, array_of
from clinker_spark.cxl.builtins.sqltext import MAX_INT, NULL_STRING, clamped, regex_quote, sql_string
from clinker_spark.cxl.builtins.table import NOT_LITERAL, Builtin, Failure, Nulls, Overload, SqlCall
from clinker_spark.cxl.charclasses import later_case_pairs
from clinker_spark.cxl.errors import ErrorKind, Fail
from clinker_spark.cxl.limits import MAX_STRING_BYTES
from clinker_spark.cxl.regexes import Regex, RegexError, compile_regex

# Unicode's White_Space. Python's own strip() also takes the separators U+001C to U+001F.
BLANKS = "\t\n\v\f\r \x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"

_UPPER_LATER = {lower: upper for upper, lower in later_case_pairs()}
_LOWER_LATER = dict(later_case_pairs())


def _upper(s: str) -> str:
    return s.upper() if s.isascii() else s.upper().translate(_UPPER_LATER)


def _lower(s: str) -> str:
    return s.lower() if s.isascii() else s.lower().translate(_LOWER_LATER)


# ----------------------------------------------------------------- replace, split


def _characters(text: str) -> str:
    """An array of the characters of a string that is not empty."""
    return f"split({text}, '', -1)"


def _replace_sql(call: SqlCall) -> str:
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


def _split(s: str, delimiter: str) -> list[str]:
    return s.split(delimiter) if delimiter else ["", *s, ""]


def _split_sql(call: SqlCall) -> str:
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


def _substring(s: str, start: int | None, length: int | None = None) -> str:
    first = max(start or 0, 0)
    return s[first:] if length is None or length < 0 else s[first : first + length]


def _substring_sql(call: SqlCall) -> str:
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


class _NullIfNegative:
    """The result type of methods that count: a String, which is null for a negative count."""

    def __call__(self, types: Sequence[Type]) -> Type:
        return STRING.as_nullable()

    def with_literals(self, types: Sequence[Type], literals: Sequence[Any]) -> Type:
        return STRING if isinstance(literals[1], int) and literals[1] >= 0 else STRING.as_nullable()


_COUNTED = _NullIfNegative()


def _end_sql(function: str) -> Callable[[SqlCall], str]:
    def sql(call: SqlCall) -> str:
        text, count = call.args
        literal = call.literal(1)
        if isinstance(literal, int):
            return f"{function}({text}, {min(literal, MAX_INT)})" if literal >= 0 else NULL_STRING
        return f"CASE WHEN {count} >= 0L THEN {function}({text}, {clamped(count)}) END"

    return sql


# ------------------------------------------------------------------ pad and repeat

_TOO_LARGE = "the string would be larger than 10 MiB"
_SAFE_WIDTH = MAX_STRING_BYTES // 4  # no character takes more than four bytes


def _pad(*, left: bool) -> Callable[..., str | None]:
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


def _pad_too_large(char_bytes: str) -> str:
    # No sum here can overflow, whatever the width is.
    missing = "greatest({1}, 0L) - char_length({0})"
    bytes_ = f"octet_length({{0}}) + least({missing}, {MAX_STRING_BYTES + 1}L) * {char_bytes}"
    return f"{missing} > 0L AND {bytes_} > {MAX_STRING_BYTES}L"


def _pad_sql(function: str, too_large: str) -> Callable[[SqlCall], str]:
    def sql(call: SqlCall) -> str:
        text, width = call.args[:2]
        fill = _fill_sql(call)
        literal = call.literal(1)
        if isinstance(literal, int) and literal <= _SAFE_WIDTH:
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


def _pad_builtin(name: str, function: str, doc: str, examples: tuple[tuple[str, str], ...]) -> Builtin:
    run = _pad(left=function == "lpad")

    def overload(params: tuple[Type, ...], char_bytes: str) -> Overload:
        when = _pad_too_large(char_bytes)
        return Overload(
            params,
            _COUNTED,
            run,
            _pad_sql(function, when),
            (Failure(ErrorKind.STRING_TOO_LARGE, _TOO_LARGE, when, 1),),
            safe=lambda literals: isinstance(literals[1], int) and literals[1] <= _SAFE_WIDTH,
        )

    with_fill = overload((STRING, INT, STRING), "greatest(octet_length(left({2}, 1)), 1)")
    return Builtin(name, "string", doc, (overload((STRING, INT), "1"), with_fill), Nulls.RECEIVER, examples)


def _repeat(s: str, count: int) -> str | None:
    if count < 0:
        return None
    if len(s.encode()) * count > MAX_STRING_BYTES:
        raise Fail(ErrorKind.STRING_TOO_LARGE, count)
    return s * count if s else ""


_REPEAT_TOO_LARGE = f"octet_length({{0}}) * least({{1}}, {MAX_STRING_BYTES + 1}L) > {MAX_STRING_BYTES}L"


def _repeat_sql(call: SqlCall) -> str:
    text, count = call.args
    literal = call.literal(1)
    if isinstance(literal, int):
        if literal <= 0:
            return f"repeat({text}, 0)" if literal == 0 else NULL_STRING
        fits = f"octet_length({text}) <= {MAX_STRING_BYTES // literal}"
        return f"CASE WHEN {fits} THEN repeat({text}, {min(literal, MAX_STRING_BYTES)}) END"
    fits = f"NOT ({_REPEAT_TOO_LARGE.format(*call.args)})"
    return f"CASE WHEN {count} >= 0L AND {fits} THEN repeat({text}, {clamped(count, MAX_STRING_BYTES)}) END"


# ------------------------------------------------------------------- join and concat


def _to_text(value: Any) -> str:
    from clinker_spark.cxl.builtins.text import to_text

    return "" if value is None else to_text(value)


def _text_sql(sql: str, t: Type) -> str:
    from clinker_spark.cxl.builtins.text import sql_text

    return sql if t.kind is Kind.STRING and not t.is_dynamic else sql_text(sql, t)


def _join(items: list[Any], delimiter: str) -> str:
    return delimiter.join(map(_to_text, items))


def _join_sql(call: SqlCall) -> str:
    element = call.types[0].element or ANY
    text = _text_sql("cxl_e", element)
    items = call.args[0] if text == "cxl_e" else f"transform({call.args[0]}, cxl_e -> {text})"
    return f"array_join({items}, {call.args[1]}, '')"


def _concat(s: str, *values: Any) -> str:
    return s + "".join(map(_to_text, values))


def _concat_sql(call: SqlCall) -> str:
    parts = [call.args[0]]
    for i in range(1, len(call.args)):
        literal = call.literal(i)
        if literal is NOT_LITERAL:
            parts.append(f"coalesce({_text_sql(call.args[i], call.types[i])}, '')")
        elif text := _to_text(literal):
            parts.append(sql_string(text))
    return f"concat({', '.join(parts)})" if len(parts) > 1 else parts[0]


# ---------------------------------------------------------------- regular expressions

_PYTHON_ONLY = "Java cannot run this pattern on a text of any length, or not with the same result"


def _check_pattern(literals: Sequence[Any]) -> tuple[int, str] | None:
    try:
        if isinstance(literals[1], str):
            compile_regex(literals[1])
    except RegexError as e:
        return 1, f"invalid regex pattern: {e}"
    return None


def _pattern(call: SqlCall) -> Regex | None:
    literal = call.literal(1)
    return compile_regex(literal) if isinstance(literal, str) else None


def _matches_sql(call: SqlCall) -> str | None:
    pattern = _pattern(call)
    if pattern is None or pattern.java_full is None:
        return None
    if pattern.literal is not None:
        return f"({call.args[0]} = {sql_string(pattern.literal)})"
    return f"rlike({call.args[0]}, {sql_string(pattern.java_full)})"


def _find_sql(call: SqlCall) -> str | None:
    pattern = _pattern(call)
    if pattern is None or pattern.java is None:
        return None
    if pattern.literal is not None:
        return f"contains({call.args[0]}, {sql_string(pattern.literal)})"
    return f"rlike({call.args[0]}, {sql_string(pattern.java)})"


def _capture_sql(call: SqlCall) -> str | None:
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


def _method(
    name: str,
    doc: str,
    overload: Overload,
    *examples: tuple[str, str],
    nulls: Nulls = Nulls.PROPAGATE,
) -> Builtin:
    return Builtin(name, "string", doc, (overload,), nulls, examples)


_LITERAL_PATTERN = frozenset({1})


def _trim_sql(function: str, ends: str) -> str:
    """Trimming a set of characters is slow in Spark (measured: seven times a plain trim). After the fast removal of
    spaces it is only needed where another white space, or anything beyond ASCII, is left at an end."""
    fast = f"{function}({{0}})"
    first, last = f"{fast} >= '!' AND {fast} < chr(127)", f"right({fast}, 1) BETWEEN '!' AND '~'"
    done = {"LEADING": first, "TRAILING": last, "BOTH": f"{first} AND {last}"}[ends]
    return f"CASE WHEN {done} THEN {fast} ELSE trim({ends} {sql_string(BLANKS)} FROM {{0}}) END"


BUILTINS: tuple[Builtin, ...] = (
    _method(
        "upper",
        "In upper case, by Unicode's full mapping.",
        Overload((STRING,), STRING, _upper, "upper({0})"),
        ('"hello".upper()', '"HELLO"'),
        ('"straße".upper()', '"STRASSE"'),
    ),
    _method(
        "lower",
        "In lower case, by Unicode's full mapping.",
        Overload((STRING,), STRING, _lower, "lower({0})"),
        ('"Hello".lower()', '"hello"'),
        ('"ΟΔΟΣ".lower()', '"οδος"'),
    ),
    _method(
        "trim",
        "Without Unicode white space at both ends.",
        Overload((STRING,), STRING, lambda s: s.strip(BLANKS), _trim_sql("trim", "BOTH")),
        ('"  a b ".trim()', '"a b"'),
        ('"\\t".trim()', '""'),
    ),
    _method(
        "trim_start",
        "Without Unicode white space at the start.",
        Overload((STRING,), STRING, lambda s: s.lstrip(BLANKS), _trim_sql("ltrim", "LEADING")),
        ('"  a ".trim_start()', '"a "'),
        ('"".trim_start()', '""'),
    ),
    _method(
        "trim_end",
        "Without Unicode white space at the end.",
        Overload((STRING,), STRING, lambda s: s.rstrip(BLANKS), _trim_sql("rtrim", "TRAILING")),
        ('"  a ".trim_end()', '"  a"'),
        ('"a\\n".trim_end()', '"a"'),
    ),
    _method(
        "starts_with",
        "Does it start with this text? Case matters.",
        Overload((STRING, STRING), BOOL, lambda s, t: s.startswith(t), "startswith({0}, {1})"),
        ('"order-7".starts_with("order")', "true"),
        ('"a".starts_with("")', "true"),
    ),
    _method(
        "ends_with",
        "Does it end with this text? Case matters.",
        Overload((STRING, STRING), BOOL, lambda s, t: s.endswith(t), "endswith({0}, {1})"),
        ('"report.csv".ends_with(".csv")', "true"),
        ('"a".ends_with("A")', "false"),
    ),
    _method(
        "contains",
        "Does it contain this text? Case matters.",
        Overload((STRING, STRING), BOOL, lambda s, t: t in s, "contains({0}, {1})"),
        ('"hello world".contains("lo w")', "true"),
        ('"a".contains(null)', "null"),
    ),
    _method(
        "replace",
        "With every occurrence of a text replaced. The empty text occurs before each character and at the end.",
        Overload((STRING, STRING, STRING), STRING, lambda s, find, to: s.replace(find, to), _replace_sql),
        ('"foo-bar-baz".replace("-", "_")', '"foo_bar_baz"'),
        ('"ab".replace("", "-")', '"-a-b-"'),
    ),
    _method(
        "substring",
        "From a 0-based position, to the end or up to a length. A negative or null position is 0.",
        Overload((STRING, INT, INT), STRING, _substring, _substring_sql, optional=1),
        ('"hello".substring(1, 3)', '"ell"'),
        ('"hello".substring(-2)', '"hello"'),
        ('"hello".substring(9)', '""'),
        nulls=Nulls.RECEIVER,
    ),
    _method(
        "left",
        "The first n characters; null for a negative n.",
        Overload((STRING, INT), _COUNTED, lambda s, n: s[:n] if n >= 0 else None, _end_sql("left")),
        ('"hello".left(2)', '"he"'),
        ('"abc".left(-1)', "null"),
    ),
    _method(
        "right",
        "The last n characters; null for a negative n.",
        Overload((STRING, INT), _COUNTED, lambda s, n: s[max(len(s) - n, 0) :] if n >= 0 else None, _end_sql("right")),
        ('"hello".right(2)', '"lo"'),
        ('"abc".right(99)', '"abc"'),
    ),
    _pad_builtin(
        "pad_left",
        "lpad",
        "Filled on the left, up to a width, with a character (the first of the argument; a space if there is none).",
        (('"7".pad_left(3, "0")', '"007"'), ('"long".pad_left(2)', '"long"'), ('"x".pad_left(-1)', "null")),
    ),
    _pad_builtin(
        "pad_right",
        "rpad",
        "Filled on the right, up to a width, with a character (the first of the argument; a space if there is none).",
        (('"hi".pad_right(6, ".")', '"hi...."'), ('"hi".pad_right(3, "")', '"hi "')),
    ),
    _method(
        "repeat",
        "The text n times over; null for a negative n.",
        Overload(
            (STRING, INT),
            _COUNTED,
            _repeat,
            _repeat_sql,
            (Failure(ErrorKind.STRING_TOO_LARGE, _TOO_LARGE, _REPEAT_TOO_LARGE, 1),),
            safe=lambda literals: isinstance(literals[1], int) and literals[1] <= 0,
        ),
        ('"ab".repeat(3)', '"ababab"'),
        ('"ab".repeat(0)', '""'),
    ),
    _method(
        "reverse",
        "The characters in reverse order.",
        Overload((STRING,), STRING, lambda s: s[::-1], "reverse({0})"),
        ('"hello".reverse()', '"olleh"'),
        ('"".reverse()', '""'),
    ),
    Builtin(
        "length",
        "string",
        "The number of characters of a string, or of elements of an array.",
        (
            Overload((STRING,), INT, len, "CAST(char_length({0}) AS BIGINT)"),
            Overload((ARRAY,), INT, len, "CAST(array_size({0}) AS BIGINT)"),
        ),
        examples=(('"hello".length()', "5"), ("[1, 2].length()", "2"), ('"".length()', "0")),
    ),
    _method(
        "split",
        "The parts between the occurrences of a literal delimiter.",
        Overload((STRING, STRING), array_of(STRING), _split, _split_sql),
        ('"a,b,c".split(",")', '["a", "b", "c"]'),
        ('"ab".split("")', '["", "a", "b", ""]'),
    ),
    _method(
        "join",
        "The elements of an array as text, with a delimiter between them; a null element is empty text.",
        Overload((ARRAY, STRING), STRING, _join, _join_sql),
        ('["a", "b"].join(" - ")', '"a - b"'),
        ('[1, null, 2].join(",")', '"1,,2"'),
    ),
    _method(
        "concat",
        "Followed by the arguments as text; a null argument is empty text.",
        Overload((STRING, ANY), STRING, _concat, _concat_sql, variadic=True),
        ('"a".concat("b", 1)', '"ab1"'),
        ('"a".concat(null)', '"a"'),
        nulls=Nulls.RECEIVER,
    ),
    _method(
        "format",
        "The value as text; the same as to_string(). The argument is ignored.",
        Overload((ANY, STRING), STRING, lambda value, _: _to_text(value), lambda c: _text_sql(c.args[0], c.types[0])),
        ('42.format("")', '"42"'),
        ('"x".format("%s")', '"x"'),
        nulls=Nulls.RECEIVER,
    ),
    _method(
        "matches",
        "Does the whole text match the regular expression?",
        Overload(
            (STRING, STRING),
            BOOL,
            lambda s, pattern: compile_regex(pattern).full_match(s),
            _matches_sql,
            literal=_LITERAL_PATTERN,
            check=_check_pattern,
            python_reason=_PYTHON_ONLY,
        ),
        ('"abc123".matches("[a-z]+[0-9]+")', "true"),
        ('"abc123".matches("[a-z]+")', "false"),
    ),
    _method(
        "find",
        "Does the regular expression match anywhere in the text?",
        Overload(
            (STRING, STRING),
            BOOL,
            lambda s, pattern: compile_regex(pattern).search(s) is not None,
            _find_sql,
            literal=_LITERAL_PATTERN,
            check=_check_pattern,
            python_reason=_PYTHON_ONLY,
        ),
        ('"abc123".find("[0-9]+")', "true"),
        ('"abc".find("^b")', "false"),
    ),
    _method(
        "capture",
        "What the regular expression (or one of its groups) matches first; null without a match or such a group.",
        Overload(
            (STRING, STRING, INT),
            STRING.as_nullable(),
            lambda s, pattern, group=0: compile_regex(pattern).capture(s, group),
            _capture_sql,
            optional=1,
            literal=_LITERAL_PATTERN,
            check=_check_pattern,
            python_reason=_PYTHON_ONLY,
        ),
        ('"id=42".capture("id=([0-9]+)", 1)', '"42"'),
        ('"abc".capture("[0-9]+")', "null"),
    ),
)
