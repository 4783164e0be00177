"""Regular expressions over whole Arrow columns: RE2 runs what Java does not, without a step of Python per value."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from clinker_spark.cxl import ir
from clinker_spark.cxl.regex.patterns import Regex, compile_regex

Batch = Callable[[pa.Array], pa.Array]


def over_columns(expression: ir.TExpr) -> Batch | None:
    """`matches`, `find` or `capture` as a function of the column of texts; None when it is none of them, or when RE2
    has no words for the pattern."""
    if not isinstance(expression, ir.Call) or expression.builtin.name not in ("matches", "find", "capture"):
        return None
    text, *constants = expression.args
    values = [c.value for c in constants if isinstance(c, ir.Const)]
    if not isinstance(text, ir.Slot) or len(values) < len(constants) or not isinstance(values[0], str):
        return None
    pattern, name = compile_regex(values[0]), expression.builtin.name
    group = None if name != "capture" else 0 if len(values) < 2 else values[1]
    if group is not None and not 0 <= group <= pattern.groups:
        return None
    return _in_re2(pattern, name, group)


def over_texts(pattern: Regex, name: str, group: int | None) -> Batch:
    """The same for any pattern: what RE2 has no words for is looked at text by text, also in linear time."""
    found = _in_re2(pattern, name, group)
    if found is not None:
        return found
    one, kind = _one_by_one(pattern, name, group), pa.bool_() if group is None else pa.string()
    return lambda texts: pa.array([None if text is None else one(text) for text in texts.to_pylist()], kind)


def _in_re2(pattern: Regex, name: str, group: int | None) -> Batch | None:
    found = pattern.for_columns(group, full=name == "matches")
    if found is None:
        return None
    run = _match(found[0]) if group is None else _capture(found[0], keep_empty=pattern.can_be_empty(group))
    try:
        run(pa.array([""]))
    except pa.ArrowInvalid:  # too large for RE2
        return None
    return run if not found[1] else _where_ascii(run, _one_by_one(pattern, name, group))


def _match(re2: str) -> Batch:
    return lambda texts: pc.match_substring_regex(texts, re2)


def _capture(re2: str, *, keep_empty: bool) -> Batch:
    def run(texts: pa.Array) -> pa.Array:
        matches = pc.extract_regex(texts, re2)
        found = pc.struct_field(matches, "cxl")  # null where there is no match
        return found if keep_empty else pc.if_else(pc.equal(found, ""), pa.scalar(None, found.type), found)

    return run


def _one_by_one(pattern: Regex, name: str, group: int | None) -> Callable[[str], object]:
    if group is not None:
        return lambda text: pattern.capture(text, group)
    return pattern.full_match if name == "matches" else lambda text: pattern.search(text) is not None


def _where_ascii(run: Batch, one: Callable[[str], object]) -> Batch:
    def mixed(texts: pa.Array) -> pa.Array:
        plain = pc.string_is_ascii(texts)
        found = run(pc.if_else(plain, texts, pa.scalar(None, texts.type)))
        if pc.all(plain, min_count=0).as_py():
            return found
        pairs = zip(texts.to_pylist(), plain.to_pylist(), strict=True)
        others = [None if text is None or is_plain else one(text) for text, is_plain in pairs]
        return pc.coalesce(found, pa.array(others, found.type))

    return mixed
