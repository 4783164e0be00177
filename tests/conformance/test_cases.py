"""The conformance cases on both engines: our own always, those of the specification where they lie beside the repository."""  # noqa: E501

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from clinker_spark.cxl.builtins import all_builtins
from clinker_spark.cxl.builtins.families.aggregates import AGGREGATES
from clinker_spark.cxl.builtins.families.collections import HIGHER_ORDER
from clinker_spark.cxl.builtins.families.windows import WINDOWS
from clinker_spark.cxl.errors import ErrorKind
from tests.conformance.cases import Case, read_cases
from tests.conformance.engines import Failures, run_interpreter, run_spark
from tests.support.sessions import quick

OWN = Path(__file__).parent / "own_cases.jsonl"
GIVEN = Path(__file__).parents[3] / "shared" / "reference" / "cxl_cases.jsonl"


def _cases(file: Path) -> list[Case]:
    if not file.exists():
        pytest.skip(f"{file.name} is not beside the repository")
    return read_cases(file)


def _shown(failures: Failures) -> str:
    return "\n".join(f"{name}: {problem}" for name, problem in failures)


@pytest.mark.parametrize("file", [OWN, GIVEN], ids=["own", "given"])
def test_interpreter(file: Path) -> None:
    failures = run_interpreter(_cases(file))
    assert not failures, _shown(failures)


@pytest.mark.parametrize("file", [OWN, GIVEN], ids=["own", "given"])
def test_spark(file: Path, spark: SparkSession) -> None:
    failures = run_spark(_cases(file), spark, one_by_one=quick(spark) if file == OWN else None)
    assert not failures, _shown(failures)


def test_own_cases_are_many_and_different() -> None:
    cases = read_cases(OWN)
    assert len(cases) >= 250
    assert len({case.id for case in cases}) == len(cases)
    assert len({str({**case.raw, "id": "", "note": ""}) for case in cases}) == len(cases)


def test_own_cases_cover_the_language() -> None:
    """Every builtin, closure method, aggregate, window function and statement, and every way to fail."""
    cases = read_cases(OWN)
    text = "\n".join(case.source for case in cases)
    missing = [b.name for b in all_builtins() if b.family != "operator" and f".{b.name}(" not in text]
    missing += [name for name in HIGHER_ORDER if f".{name}(it" not in text]
    missing += [name for name in WINDOWS if f"$window.{name}(" not in text]
    missing += [name for name in AGGREGATES if f" {name}(" not in text]
    statements = (
        "let ",
        "emit ",
        "emit each ",
        " outer {",
        "filter ",
        "distinct",
        "distinct by ",
        "trace ",
        "use ",
        "emit $record.",
    )
    operators = (
        "+",
        "-",
        "*",
        "/",
        "%",
        "==",
        "!=",
        "<",
        "<=",
        ">",
        ">=",
        " and ",
        " or ",
        "not ",
        "??",
        "if ",
        "match ",
        " for ",
    )
    missing += [word for word in (*statements, *operators) if word not in text]
    assert missing == []
    errors = {case.expected_error[1] for case in cases if case.expected_error is not None}
    assert {kind.value for kind in ErrorKind} <= errors
    phases = {case.expected_error[0] for case in cases if case.expected_error is not None}
    assert phases == {"parse", "resolve", "typecheck", "eval"}
