"""Help on one word of the language: methods and functions out of the builtin table, statements from a short list."""

from __future__ import annotations

from collections.abc import Sequence

from clinker_spark.core.diagnostics.suggest import nearest
from clinker_spark.core.types import Type
from clinker_spark.cxl.builtins import methods
from clinker_spark.cxl.builtins.families.aggregates import AGGREGATES
from clinker_spark.cxl.builtins.families.collections import HIGHER_ORDER
from clinker_spark.cxl.builtins.families.windows import WINDOWS
from clinker_spark.cxl.builtins.table import Builtin, Overload

STATEMENTS = {
    "let": "let NAME = EXPR: names a value for the statements after it.",
    "emit": "emit NAME = EXPR: adds a column to the record, or replaces one.",
    "each": "emit each NAME in ARRAY [outer] { ... }: one output record per element.",
    "filter": "filter CONDITION: keeps the record if the condition is true, and drops it if not.",
    "distinct": "distinct [by NAME]: drops records seen before.",
    "trace": "trace [info|warn|error|debug] [if CONDITION] MESSAGE: writes to the log.",
    "use": "use a.b [as NAME]: brings in a module of constants and functions; before all other statements.",
    "if": "if CONDITION then A [else B]: without else the other value is null.",
    "match": "match VALUE { 1 => A, 2 => B, _ => C }: the first arm that is equal; without VALUE: that is true.",
    "for": "[EXPR for NAME in ARRAY if CONDITION]: an array made from another one.",
    "??": "A ?? B: A, or B where A is null.",
    "catch": "A.catch(B): A, or B where A is null, like `??`. It does not catch errors.",
    "now": "now: when the run began, as a DateTime.",
    "it": "it => EXPR: a closure, as the argument of filter, map, find, any or flat_map.",
}


def topics() -> list[str]:
    """Every word that `:help` knows."""
    return sorted({*methods(), *HIGHER_ORDER, *AGGREGATES, *WINDOWS, *STATEMENTS})


def topic(word: str) -> str:
    """The page of a word; a word may be several things (`filter`, `sum`)."""
    word = word.strip().removeprefix(".").removeprefix("$window.").removesuffix("()")
    parts = [STATEMENTS[word]] if word in STATEMENTS else []
    if word in methods():
        parts.append(_method(methods()[word]))
    if word in HIGHER_ORDER:
        row = HIGHER_ORDER[word]
        parts.append(_page([f"Array.{word}(it => ...)"], row.doc, row.examples))
    if word in AGGREGATES:
        parts.append(_page([f"{word}(...), in an aggregate"], AGGREGATES[word].doc, AGGREGATES[word].examples))
    if word in WINDOWS:
        parts.append(_page([f"$window.{word}(...)"], WINDOWS[word].doc, ()))
    if parts:
        return "\n\n".join(parts)
    close = nearest(word, topics())
    return f"no help on '{word}'; " + (f"did you mean '{close}'?" if close else ":help lists the commands")


def _method(row: Builtin) -> str:
    signatures = list(dict.fromkeys(signature(row.name, overload) for overload in row.overloads))
    return _page(signatures, row.doc, row.examples)


def _page(signatures: Sequence[str], doc: str, examples: Sequence[tuple[str, str]]) -> str:
    lines = [*signatures, f"  {doc}"]
    width = max((len(expression) for expression, _ in examples), default=0)
    lines += [f"    {expression.ljust(width)}  =>  {value}" for expression, value in examples]
    return "\n".join(lines)


def signature(name: str, overload: Overload) -> str:
    """`String.substring(Int [, Int]) -> String`."""
    receiver, *rest = overload.params
    required = len(rest) - overload.optional
    text = ", ".join(str(t) for t in rest[:required])
    for t in rest[required:]:
        text += f" [, {t}]" if text else f"[{t}]"
    return f"{receiver}.{name}({text}{', ...' * overload.variadic}){_result(overload)}"


def _result(overload: Overload) -> str:
    try:
        result: Type | None = overload.result_type(overload.params)
    except Exception:  # a rule that needs the arguments of a real call
        result = None
    return f" -> {result}" if result is not None else ""
