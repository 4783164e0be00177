"""Conformance cases: reading them, compiling their programs, and comparing what comes out."""

from __future__ import annotations

import datetime as dt
import json
import math
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from clinker_spark.core.types import Kind, Type
from clinker_spark.cxl import values
from clinker_spark.cxl.errors import CxlError
from clinker_spark.cxl.program import Program, compile
from clinker_spark.cxl.system import Context, default_context

CLOCK = dt.datetime(2026, 1, 15, 12, 0, 0)
_KINDS = {
    "int": Kind.INT,
    "float": Kind.FLOAT,
    "decimal": Kind.DECIMAL,
    "string": Kind.STRING,
    "bool": Kind.BOOL,
    "date": Kind.DATE,
    "date_time": Kind.DATETIME,
    "datetime": Kind.DATETIME,
    "array": Kind.ARRAY,
    "map": Kind.MAP,
}


@dataclass(frozen=True)
class Case:
    id: str
    raw: dict[str, Any]

    @property
    def source(self) -> str:
        return self.raw["program"] if "program" in self.raw else f"emit v = {self.raw['expr']}"

    @property
    def is_expression(self) -> bool:
        return "program" not in self.raw

    @property
    def mode(self) -> str:
        return self.raw.get("mode", "row")

    @property
    def expect(self) -> Any:
        return self.raw["expect"]

    @property
    def expected_error(self) -> tuple[str, str] | None:
        """(phase, kind) when the case must fail."""
        e = self.expect
        return (e["phase"], e["error"]) if isinstance(e, dict) and {"error", "phase"} <= e.keys() else None

    def compile(self) -> Program:
        options = {k: self.raw[k] for k in ("max_expansion", "modules", "vars", "config") if k in self.raw}
        return compile(
            self.source,
            self.raw.get("schema", {}),
            mode="aggregate" if self.mode == "aggregate" else "row",
            group_by=self.raw.get("group_by", ()),
            **options,
        )


_BATCH = "test-batch-000"


def context() -> Context:
    """The context that the cases were written against."""
    base = default_context("test.csv", CLOCK)
    return replace(
        base,
        pipeline={**base.pipeline, "name": "test_pipeline", "batch_id": _BATCH},
        source={**base.source, "name": "test_source", "batch": _BATCH},
    )


def read_cases(path: Path) -> list[Case]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return [Case(raw["id"], raw) for raw in (json.loads(line) for line in lines if line.strip())]


def compile_case(case: Case) -> tuple[Program | None, str | None]:
    """The program, or None and what is wrong (None, None: it failed to compile just as it should)."""
    wanted = case.expected_error
    try:
        program = case.compile()
    except CxlError as error:
        if wanted is not None and wanted[0] == error.phase:
            return None, None
        found = "; ".join(d.message for d in error.diagnostics)
        return None, f"expected {case.expect!r}, got a {error.phase} error: {found}"
    if wanted is not None and wanted[0] != "eval":
        return None, f"expected a {wanted[0]} error, but it compiled"
    return program, None


def plain(value: Any) -> Any:
    """A value in the spelling of the cases file."""
    match value:
        case Decimal():
            return format(value, "f")
        case dt.datetime():
            return value.isoformat()
        case dt.date():
            return value.isoformat()
        case float() if math.isnan(value):
            return "NaN"
        case list():
            return [plain(v) for v in value]
        case dict():
            return {k: plain(v) for k, v in value.items()}
    return value


def same(expected: Any, got: Any) -> bool:
    """Equal as the cases mean it: numbers by value, booleans never numbers, maps by content."""
    if isinstance(expected, bool) or isinstance(got, bool):
        return expected is got
    if isinstance(expected, int | float) and isinstance(got, int | float):
        return expected == got or math.isclose(expected, got, rel_tol=1e-12)
    if isinstance(expected, list) and isinstance(got, list):
        return len(expected) == len(got) and all(map(same, expected, got))
    if isinstance(expected, dict) and isinstance(got, dict):
        return expected.keys() == got.keys() and all(same(expected[k], got[k]) for k in expected)
    return bool(expected == got)


def wrong_type(case: Case, value: Any, static: Type) -> str | None:
    """What is wrong with the result's type, when the case names one."""
    wanted = case.raw.get("result_type")
    if wanted is None or value is None:
        return None
    kind = values.kind_of(value)
    if kind is not _KINDS[wanted]:
        return f"expected a value of type {wanted}, got {kind.value}"
    if not static.is_dynamic and static.kind is not _KINDS[wanted]:
        return f"expected the static type {wanted}, got {static}"
    return None


@dataclass(frozen=True)
class Got:
    """What an engine made of a case: rows, or an error kind, or a skip."""

    rows: list[dict[str, Any]] | None = None
    error: str | None = None
    skipped: str | None = None
    scoped: dict[str, Any] | None = None


def difference(case: Case, program: Program, got: Got) -> str | None:
    """None when the engine did as the case says."""
    wanted = case.expected_error
    if wanted is not None or got.error is not None:
        kind = None if wanted is None else wanted[1]
        return None if got.error == kind else f"expected {case.expect!r}, got {_shown(got)}"
    expect = case.expect
    if case.mode == "aggregate":
        return None if same(expect["rows"], plain(got.rows)) else f"expected {expect['rows']!r}, got {_shown(got)}"
    if case.is_expression:
        if got.rows is None or len(got.rows) != 1 or not same(expect, plain(got.rows[0]["v"])):
            return f"expected {expect!r}, got {_shown(got)}"
        return wrong_type(case, got.rows[0]["v"], program.output["v"])
    if "skip" in expect:
        return None if got.skipped is not None else f"expected a skip, got {_shown(got)}"
    rows = [expect["emit"]] if "emit" in expect else expect.get("emit_many")
    if not same(rows, plain(got.rows)):
        return f"expected {expect!r}, got {_shown(got)}"
    for scope in ("pipeline", "source", "record"):
        wanted_vars = expect.get(f"{scope}_vars")
        found = {k.partition(".")[2]: v for k, v in (got.scoped or {}).items() if k.startswith(f"${scope}.")}
        if wanted_vars is not None and not same(wanted_vars, plain(found)):
            return f"expected {scope} variables {wanted_vars!r}, got {found!r}"
    return None


def _shown(got: Got) -> str:
    if got.error is not None:
        return f"error {got.error}"
    return f"skip {got.skipped}" if got.skipped is not None else repr(plain(got.rows))
