"""Methods on strings. Positions and lengths count Unicode characters (code points)."""

from __future__ import annotations

from collections.abc import Callable

from clinker_spark.core.types import ANY, ARRAY, BOOL, INT, STRING, Type, array_of
from clinker_spark.cxl.builtins import stringops as ops
from clinker_spark.cxl.builtins.table import NOT_LITERAL, Builtin, Failure, Nulls, Overload, SqlCall
from clinker_spark.cxl.builtins.text import sql_text, to_text
from clinker_spark.cxl.errors import ErrorKind
from clinker_spark.cxl.regex.patterns import compile_regex


def _method(
    name: str,
    doc: str,
    overload: Overload,
    *examples: tuple[str, str],
    nulls: Nulls = Nulls.PROPAGATE,
) -> Builtin:
    return Builtin(name, "string", doc, (overload,), nulls, examples)


def _texts_written(form: str) -> Callable[[SqlCall], str | None]:
    """The form, where texts to find and to put in their place are written in the program."""
    return lambda call: form if all(isinstance(call.literal(i), str) for i in range(1, len(call.args))) else None


def _numbers_written(form: str) -> Callable[[SqlCall], str | None]:
    return lambda call: form if all(call.literal(i) is not NOT_LITERAL for i in range(1, len(call.args))) else None


def _count_written(form: str) -> Callable[[SqlCall], str | None]:
    return lambda call: form if isinstance(call.literal(1), int) and call.literal(1) >= 0 else None


def _pattern_written(form: str) -> Callable[[SqlCall], str | None]:
    def name(call: SqlCall) -> str | None:
        group = call.literal(2) if len(call.args) > 2 else 0
        return form if isinstance(call.literal(1), str) and isinstance(group, int) else None

    return name


def _width_written(form: str) -> Callable[[SqlCall], str | None]:
    def name(call: SqlCall) -> str | None:
        width = call.literal(1)
        written = isinstance(width, int) and 0 <= width <= ops.SAFE_WIDTH
        return form if written and (len(call.args) < 3 or call.literal(2) is not NOT_LITERAL) else None

    return name


def _pad_builtin(name: str, function: str, doc: str, examples: tuple[tuple[str, str], ...]) -> Builtin:
    run = ops.pad(left=function == "lpad")

    def overload(params: tuple[Type, ...], char_bytes: str) -> Overload:
        when = ops.pad_too_large(char_bytes)
        return Overload(
            params,
            ops.COUNTED,
            run,
            ops.pad_sql(function, when),
            (Failure(ErrorKind.STRING_TOO_LARGE, ops.TOO_LARGE, when, 1),),
            safe=lambda literals: isinstance(literals[1], int) and literals[1] <= ops.SAFE_WIDTH,
            vector=_width_written(f"strings.{name}"),
        )

    with_fill = overload((STRING, INT, STRING), "greatest(octet_length(left({2}, 1)), 1)")
    return Builtin(name, "string", doc, (overload((STRING, INT), "1"), with_fill), Nulls.RECEIVER, examples)


_LITERAL_PATTERN = frozenset({1})

BUILTINS: tuple[Builtin, ...] = (
    _method(
        "upper",
        "In upper case, by Unicode's full mapping.",
        Overload((STRING,), STRING, ops.upper, ops.UPPER, vector="strings.upper"),
        ('"hello".upper()', '"HELLO"'),
        ('"straße".upper()', '"STRASSE"'),
    ),
    _method(
        "lower",
        "In lower case, by Unicode's full mapping.",
        Overload((STRING,), STRING, ops.lower, ops.LOWER, vector="strings.lower"),
        ('"Hello".lower()', '"hello"'),
        ('"ΟΔΟΣ".lower()', '"οδος"'),
    ),
    _method(
        "trim",
        "Without Unicode white space at both ends.",
        Overload((STRING,), STRING, lambda s: s.strip(ops.BLANKS), ops.trim_sql("trim", "BOTH"), vector="strings.trim"),
        ('"  a b ".trim()', '"a b"'),
        ('"\\t".trim()', '""'),
    ),
    _method(
        "trim_start",
        "Without Unicode white space at the start.",
        Overload(
            (STRING,),
            STRING,
            lambda s: s.lstrip(ops.BLANKS),
            ops.trim_sql("ltrim", "LEADING"),
            vector="strings.trim_start",
        ),
        ('"  a ".trim_start()', '"a "'),
        ('"".trim_start()', '""'),
    ),
    _method(
        "trim_end",
        "Without Unicode white space at the end.",
        Overload(
            (STRING,),
            STRING,
            lambda s: s.rstrip(ops.BLANKS),
            ops.trim_sql("rtrim", "TRAILING"),
            vector="strings.trim_end",
        ),
        ('"  a ".trim_end()', '"  a"'),
        ('"a\\n".trim_end()', '"a"'),
    ),
    _method(
        "starts_with",
        "Does it start with this text? Case matters.",
        Overload(
            (STRING, STRING), BOOL, lambda s, t: s.startswith(t), "startswith({0}, {1})", vector="strings.starts_with"
        ),
        ('"order-7".starts_with("order")', "true"),
        ('"a".starts_with("")', "true"),
    ),
    _method(
        "ends_with",
        "Does it end with this text? Case matters.",
        Overload((STRING, STRING), BOOL, lambda s, t: s.endswith(t), "endswith({0}, {1})", vector="strings.ends_with"),
        ('"report.csv".ends_with(".csv")', "true"),
        ('"a".ends_with("A")', "false"),
    ),
    _method(
        "contains",
        "Does it contain this text? Case matters.",
        Overload((STRING, STRING), BOOL, lambda s, t: t in s, "contains({0}, {1})", vector="strings.contains"),
        ('"hello world".contains("lo w")', "true"),
        ('"a".contains(null)', "null"),
    ),
    _method(
        "replace",
        "With every occurrence of a text replaced. The empty text occurs before each character and at the end.",
        Overload(
            (STRING, STRING, STRING),
            STRING,
            lambda s, find, to: s.replace(find, to),
            ops.replace_sql,
            vector=_texts_written("strings.replace"),
        ),
        ('"foo-bar-baz".replace("-", "_")', '"foo_bar_baz"'),
        ('"ab".replace("", "-")', '"-a-b-"'),
    ),
    _method(
        "substring",
        "From a 0-based position, to the end or up to a length. A negative or null position is 0.",
        Overload(
            (STRING, INT, INT),
            STRING,
            ops.substring,
            ops.substring_sql,
            optional=1,
            vector=_numbers_written("strings.substring"),
        ),
        ('"hello".substring(1, 3)', '"ell"'),
        ('"hello".substring(-2)', '"hello"'),
        ('"hello".substring(9)', '""'),
        nulls=Nulls.RECEIVER,
    ),
    _method(
        "left",
        "The first n characters; null for a negative n.",
        Overload(
            (STRING, INT),
            ops.COUNTED,
            lambda s, n: s[:n] if n >= 0 else None,
            ops.end_sql("left"),
            vector=_count_written("strings.left"),
        ),
        ('"hello".left(2)', '"he"'),
        ('"abc".left(-1)', "null"),
    ),
    _method(
        "right",
        "The last n characters; null for a negative n.",
        Overload(
            (STRING, INT),
            ops.COUNTED,
            lambda s, n: s[max(len(s) - n, 0) :] if n >= 0 else None,
            ops.end_sql("right"),
            vector=_count_written("strings.right"),
        ),
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
            ops.COUNTED,
            ops.repeat,
            ops.repeat_sql,
            (Failure(ErrorKind.STRING_TOO_LARGE, ops.TOO_LARGE, ops.REPEAT_TOO_LARGE, 1),),
            safe=lambda literals: isinstance(literals[1], int) and literals[1] <= 0,
        ),
        ('"ab".repeat(3)', '"ababab"'),
        ('"ab".repeat(0)', '""'),
    ),
    _method(
        "reverse",
        "The characters in reverse order.",
        Overload((STRING,), STRING, lambda s: s[::-1], "reverse({0})", vector="strings.reverse"),
        ('"hello".reverse()', '"olleh"'),
        ('"".reverse()', '""'),
    ),
    Builtin(
        "length",
        "string",
        "The number of characters of a string, or of elements of an array.",
        (
            Overload((STRING,), INT, len, "CAST(char_length({0}) AS BIGINT)", vector="strings.length"),
            Overload((ARRAY,), INT, len, "CAST(array_size({0}) AS BIGINT)"),
        ),
        examples=(('"hello".length()', "5"), ("[1, 2].length()", "2"), ('"".length()', "0")),
    ),
    _method(
        "split",
        "The parts between the occurrences of a literal delimiter.",
        Overload((STRING, STRING), array_of(STRING), ops.split, ops.split_sql),
        ('"a,b,c".split(",")', '["a", "b", "c"]'),
        ('"ab".split("")', '["", "a", "b", ""]'),
    ),
    _method(
        "join",
        "The elements of an array as text, with a delimiter between them; a null element is empty text.",
        Overload((ARRAY, STRING), STRING, ops.join, ops.join_sql),
        ('["a", "b"].join(" - ")', '"a - b"'),
        ('[1, null, 2].join(",")', '"1,,2"'),
    ),
    _method(
        "concat",
        "Followed by the arguments as text; a null argument is empty text.",
        Overload((STRING, ANY), STRING, ops.concat, ops.concat_sql, variadic=True, vector="text.concat"),
        ('"a".concat("b", 1)', '"ab1"'),
        ('"a".concat(null)', '"a"'),
        nulls=Nulls.RECEIVER,
    ),
    _method(
        "format",
        "The value as text; the same as to_string(). The argument is ignored.",
        Overload(
            (ANY, STRING),
            STRING,
            lambda value, _: to_text(value),
            lambda c: sql_text(c.args[0], c.types[0]),
            vector="text.to_string",
        ),
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
            ops.matches_sql,
            literal=_LITERAL_PATTERN,
            check=ops.check_pattern,
            python_reason=ops.PYTHON_ONLY,
            vector=_pattern_written("patterns.matches"),
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
            ops.find_sql,
            literal=_LITERAL_PATTERN,
            check=ops.check_pattern,
            python_reason=ops.PYTHON_ONLY,
            vector=_pattern_written("patterns.find"),
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
            ops.capture_sql,
            optional=1,
            literal=_LITERAL_PATTERN,
            check=ops.check_pattern,
            python_reason=ops.PYTHON_ONLY,
            vector=_pattern_written("patterns.capture"),
        ),
        ('"id=42".capture("id=([0-9]+)", 1)', '"42"'),
        ('"abc".capture("[0-9]+")', "null"),
    ),
)
