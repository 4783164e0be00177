"""The builtin table, row by row: every overload over values of its parameters' types, on both engines.

Each overload is called with typed columns, with literals among its arguments, and through columns of type any, where
the record decides which overload runs. Values are the edges of their types (see `tests/property/records.py`).
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import pytest
from pyspark.sql import SparkSession

from clinker_spark.core.types import ANY, Kind, Type, parse_type
from clinker_spark.cxl.builtins import all_builtins
from clinker_spark.cxl.builtins.families.collections import HIGHER_ORDER
from clinker_spark.cxl.builtins.table import Builtin, Overload
from clinker_spark.cxl.check.infer import overloads
from clinker_spark.cxl.errors import CxlError
from clinker_spark.cxl.interpret.coerce import coerce_record
from clinker_spark.cxl.program import Program, compile
from tests.conformance.cases import plain
from tests.property import records
from tests.property.agreement import disagreements, identical
from tests.property.batches import alike, frame
from tests.property.campaign import BATCH, CONTEXT
from tests.property.programs import COUNTED, COUNTS, LITERALS, SPECIAL
from tests.support.sessions import quick

ROWS = 130
LITERALS_EACH = 3

# The columns of each kind of parameter, and the pools their values come from. Containers and decimals come in several.
KINDS: dict[Kind, tuple[tuple[str, Any], ...]] = {
    Kind.BOOL: (("bool", records.BOOLS),),
    Kind.INT: (("int", records.INTS),),
    Kind.FLOAT: (("float", (records.FLOATS[0], records.FLOATS[1] + records.UNUSUAL_FLOATS)),),
    Kind.DECIMAL: (("decimal(2)", records.DECIMALS_2), ("decimal(4)", records.DECIMALS_4)),
    Kind.STRING: (("string", records.STRINGS), ("string", records.CODES)),
    Kind.DATE: (("date", records.DATES),),
    Kind.DATETIME: (("date_time", records.TIMES),),
    Kind.ARRAY: (
        ("array(int)", records.INT_ARRAYS),
        ("array(float)", records.FLOAT_ARRAYS),
        ("array(string)", records.STRING_ARRAYS),
        ("array(array(int))", records.NESTED_ARRAYS),
        ("array", records.ANY_ARRAYS),
    ),
    Kind.MAP: (("map", records.MAPS), ("map(int)", records.INT_MAPS)),
    Kind.ANY: (("any", records.ANYTHING),),
}
POSITIONS = 3


def _column(kind: Kind, form: int, position: int, dynamic: bool = False) -> str:
    return f"{kind.value.lower()}{form}_{position}{'_any' if dynamic else ''}"


@cache
def columns() -> dict[str, str]:
    """Typed columns for each kind and position, and the same values once more as any."""
    found: dict[str, str] = {}
    for kind, forms in KINDS.items():
        for form, (spelled, _) in enumerate(forms):
            for position in range(POSITIONS):
                found[_column(kind, form, position)] = spelled
                if kind is not Kind.DECIMAL:
                    found[_column(kind, form, position, dynamic=True)] = "any"
    return found


@cache
def types() -> dict[str, Type]:
    return {name: parse_type(spelled) or ANY for name, spelled in columns().items()}


@cache
def rows() -> tuple[dict[str, Any], ...]:
    """Every value comes at every position; which values meet is left to chance, the same chance each time."""
    rng = random.Random(7)
    drawn: dict[str, list[Any]] = {}
    for kind, forms in KINDS.items():
        for form, (spelled, (usual, edges)) in enumerate(forms):
            for position in range(POSITIONS):
                pool = [*usual, *edges]
                values = pool + [rng.choice(usual if rng.random() < 0.5 else edges) for _ in range(ROWS - len(pool))]
                rng.shuffle(values)
                drawn[_column(kind, form, position)] = values
                if kind is not Kind.DECIMAL:
                    coerced = [coerce_record({"v": v}, {"v": parse_type(spelled) or ANY})["v"] for v in values]
                    drawn[_column(kind, form, position, dynamic=True)] = coerced
    return tuple(coerce_record({name: drawn[name][i] for name in drawn}, types()) for i in range(ROWS))


# ---------------------------------------------------------------- calls as text


def call_text(builtin: Builtin, args: list[str]) -> str:
    if builtin.family != "operator":
        return f"({args[0]}).{builtin.name}({', '.join(args[1:])})"
    if builtin.name == "[]":
        return f"({args[0]})[{args[1]}]"
    return f"(-{args[0]})" if builtin.name == "negate" else f"({args[0]} {builtin.name} {args[1]})"


def _forms(param: Type) -> range:
    if param.kind is Kind.ARRAY and param.element is not None and param.element.kind is not Kind.ANY:
        return range(2, 3) if param.element.kind is Kind.STRING else range(0, 1)
    return range(len(KINDS[param.kind]))


def _literals(builtin: Builtin, overload: Overload, position: int, rng: random.Random) -> list[str]:
    at, param = (builtin.name, position), overload.params[position]
    if at in SPECIAL or at in COUNTED:
        texts = list(SPECIAL.get(at, COUNTS))
        return texts if overload is builtin.overloads[0] else rng.sample(texts, min(2, len(texts)))
    name = {Kind.ANY: "any", Kind.DECIMAL: "decimal", Kind.DATETIME: "date_time"}.get(
        param.kind, param.kind.value.lower()
    )
    return (
        rng.sample([*LITERALS[name], "null"], LITERALS_EACH)
        if len(LITERALS[name]) >= LITERALS_EACH
        else list(LITERALS[name])
    )


def _arities(overload: Overload) -> list[int]:
    most = len(overload.params)
    return [*range(most - overload.optional, most + 1), *([most + 1] if overload.variadic else [])]


def _param(overload: Overload, position: int) -> Type:
    return overload.params[min(position, len(overload.params) - 1)]


def calls(builtin: Builtin, overload: Overload) -> Iterator[str]:
    """The expressions that try one overload."""
    rng = random.Random(f"{builtin.name} {overload.params}")

    def column(position: int, form: int, dynamic: bool = False) -> str:
        param = _param(overload, position)
        forms = _forms(param)
        typed = _column(param.kind, forms[form % len(forms)], min(position, POSITIONS - 1), dynamic)
        return typed if typed in columns() else _column(Kind.INT, 0, min(position, POSITIONS - 1), dynamic)

    for arity in _arities(overload):
        args = [column(p, 0) for p in range(arity)]
        fixed = {p: _literals(builtin, overload, p, rng) for p in overload.literal if p < arity}
        for p, texts in fixed.items():
            args[p] = texts[0]
        for form in range(max(len(_forms(_param(overload, p))) for p in range(arity))):
            yield call_text(builtin, [fixed[p][0] if p in fixed else column(p, form) for p in range(arity)])
        dynamic = [fixed[p][0] if p in fixed else column(p, 0, dynamic=True) for p in range(arity)]
        yield call_text(builtin, dynamic)
        yield call_text(builtin, [_column(Kind.ANY, 0, 0), *dynamic[1:]])  # whatever the record brings
        for p in range(1, arity):
            yield call_text(builtin, [a if i != p else dynamic[i] for i, a in enumerate(args)])
            texts = fixed.get(p) or _literals(builtin, overload, min(p, len(overload.params) - 1), rng)
            yield call_text(builtin, [*dynamic[:p], texts[-1], *dynamic[p + 1 :]])
            for text in texts:
                yield call_text(builtin, [a if i != p else text for i, a in enumerate(args)])
        if 0 not in overload.literal and arity > 1:
            yield call_text(builtin, [_literals(builtin, overload, 0, rng)[0], *args[1:]])


# ---------------------------------------------------------------- tests


@pytest.fixture(scope="module")
def quick_spark(spark: SparkSession) -> SparkSession:
    return quick(spark)


def _compiled(texts: Iterator[str] | list[str]) -> list[tuple[str, Program]]:
    found: dict[str, Program] = {}
    for text in texts:
        if text not in found:
            try:
                found[text] = compile(f"emit v = {text}", types())
            except CxlError:
                continue  # a literal that is checked at compile time, or a type that another overload does not share
    return list(found.items())


def _reached(program: Program) -> set[tuple[str, int]]:
    found = set()
    for expression in program.typed.expressions():
        for node in expression.walk():
            builtin = getattr(node, "builtin", None)
            if builtin is not None:
                chosen = getattr(node, "overloads", None) or (node.overload,)  # type: ignore[attr-defined]
                found |= {(builtin.name, builtin.overloads.index(o)) for o in chosen}
    return found


def test_every_overload_agrees(quick_spark: SparkSession) -> None:
    programs = _compiled(
        text for builtin in all_builtins() for overload in builtin.overloads for text in calls(builtin, overload)
    )
    reached = set().union(*(_reached(p) for _, p in programs))
    everything = {(b.name, i) for b in all_builtins() for i in range(len(b.overloads))}
    assert not everything - reached, "overloads that no call selects"
    data = list(rows())
    df = frame(quick_spark, types(), data)
    problems, values = [], 0
    batches = alike(programs, lambda pair: pair[1], BATCH, CONTEXT)
    with ThreadPoolExecutor(2) as pool:  # Spark plans a query on one core
        answers = pool.map(lambda batch: disagreements([p for _, p in batch], data, df, CONTEXT), batches)
    for batch, (found, results) in zip(batches, answers, strict=True):
        values += sum((r.row or {}).get("v") is not None for mine in results for r in mine)
        seen: set[int] = set()
        for d in found:
            if d.program not in seen:  # one record of each program is enough to read
                seen.add(d.program)
                problems.append(f"{_explained(*batch[d.program], data[d.record])}\n{d}")
    assert not problems, f"{len(problems)} of {len(programs)} calls differ\n\n" + "\n\n".join(problems[:40])
    assert values > len(programs) * ROWS * 0.3


def _explained(text: str, program: Program, record: dict[str, Any]) -> str:
    read = {n.name for e in program.typed.expressions() for n in e.walk() if type(n).__name__ == "Field"}
    return f"{text} with { ({name: record[name] for name in sorted(read)})!r}"


def _examples() -> list[tuple[str, str]]:
    rows = [*all_builtins(), *HIGHER_ORDER.values()]
    return [example for row in rows for example in row.examples]


def test_every_row_has_an_example() -> None:
    assert [b.name for b in all_builtins() if not b.examples] == []


@pytest.mark.parametrize("folded", [True, False])
def test_every_example_is_true(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, folded: bool) -> None:
    """Also when nothing is computed before the run, so that the engines themselves have to."""
    if not folded:
        unfolded: Callable[[Any], Any] = lambda call: call  # noqa: E731
        monkeypatch.setattr(overloads, "fold", unfolded)
    examples = _examples()
    programs = [compile(f"emit v = {text}", {}) for text, _ in examples]
    df = frame(quick(spark), {"none": ANY}, [{"none": None}])
    found, results = disagreements(programs, [{}], df, CONTEXT)
    assert [f"{examples[d.program][0]}\n{d}" for d in found] == []
    wrong = []
    for (text, expected), [result] in zip(examples, results, strict=True):
        value = plain((result.row or {}).get("v")) if result.error is None else result.error["kind"]
        if not identical(value, json.loads(expected)):
            wrong.append(f"{text} is {json.dumps(value, ensure_ascii=False)}, not {expected}")
    assert wrong == []
