"""The operators of executed plans with the numbers that Spark kept of them.

Spark's status store knows them also without its web pages. Only a classic session has one: over Spark Connect there is
nothing to read, and a run is reported without these numbers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from clinker_spark.spark.session.sessions import is_connect

_UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40, "PiB": 1 << 50}
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_NUMBER = re.compile(r"([\d,.]+)(?: ([A-Za-z]+))?")


@dataclass(frozen=True)
class Metric:
    """A number of an operator: over all its tasks, and of the task that has the most. Bytes, seconds or a count."""

    total: float
    most: float


@dataclass(frozen=True)
class Operator:
    """An operator of an executed plan."""

    id: int
    name: str
    text: str
    """What Spark says about it, such as `Sort [total#4L ASC], true, 0`."""
    metrics: Mapping[str, Metric]
    below: tuple[int, ...]
    """The operators that it reads."""
    members: tuple[int, ...]
    """Of generated code: the operators that are compiled together."""


Execution = tuple[Operator, ...]


def executions_so_far(spark: SparkSession) -> int:
    """The number that the next executed plan will have at least; `executions` takes it."""
    store = _store(spark)
    return 0 if store is None else max((int(e.executionId()) for e in _listed(store)), default=-1) + 1


def executions(spark: SparkSession, first: int) -> Iterator[Execution]:
    """The plans that were executed since, oldest first. Nothing where Spark keeps no such store."""
    store = _store(spark)
    if store is None:
        return
    mapper = _json_mapper(spark)
    for found in _listed(store):
        number = found.executionId()
        if number >= first:
            graph = store.planGraph(number)
            parts = (graph.allNodes(), graph.edges(), store.executionMetrics(number))
            yield _operators(*(json.loads(mapper.writeValueAsString(part)) for part in parts))


def _store(spark: SparkSession) -> Any:
    if is_connect(spark):
        return None
    try:
        return spark._jsparkSession.sharedState().statusStore()
    except (AttributeError, PySparkException):  # another kind of session, or a Spark that has it elsewhere
        return None


def _listed(store: Any) -> Iterator[Any]:
    every = store.executionsList()
    return (every.apply(i) for i in range(every.size()))


def _json_mapper(spark: SparkSession) -> Any:
    """One message for a whole plan, instead of one for every number of every operator."""
    jvm: Any = spark._jvm
    jackson = jvm.com.fasterxml.jackson
    mapper = jackson.databind.ObjectMapper()
    mapper.registerModule(getattr(getattr(jackson.module.scala, "DefaultScalaModule$"), "MODULE$"))
    return mapper


def _operators(nodes: list[dict[str, Any]], edges: list[dict[str, int]], values: dict[str, str]) -> Execution:
    below: dict[int, list[int]] = {}
    for edge in edges:
        below.setdefault(edge["toId"], []).append(edge["fromId"])
    found = []
    for node in nodes:
        texts = ((metric["name"], values.get(str(metric["accumulatorId"]))) for metric in node["metrics"])
        metrics = {name: number for name, text in texts if text is not None and (number := measured(text)) is not None}
        members = tuple(member["id"] for member in node.get("nodes", ()))
        found.append(
            Operator(node["id"], node["name"], node["desc"], metrics, tuple(below.get(node["id"], ())), members)
        )
    return tuple(found)


def measured(text: str) -> Metric | None:
    """A number as Spark prints it for people. None for averages, which have no total.

    >>> measured("1,000"), measured("0.0 B"), measured("3.1 s")
    (Metric(total=1000.0, most=1000.0), Metric(total=0.0, most=0.0), Metric(total=3.1, most=3.1))
    >>> measured("total (min, med, max (stageId: taskId))\\n16.5 MiB (8.0 MiB, 8.2 MiB, 8.5 MiB (stage 2.0: task 2))")
    Metric(total=17301504.0, most=8912896.0)
    >>> measured("(min, med, max (stageId: taskId)):\\n(1, 1, 1 (stage 2.0: task 2))")
    """
    head, _, rest = text.partition("\n")
    if not rest:
        found = _number(head)
        return None if found is None else Metric(found, found)
    total, _, shares = rest.partition(" (")
    number = _number(total) if not rest.startswith("(") else None
    if number is None:
        return None
    most = _number(shares.split(", ")[2].partition(" (")[0]) if shares.count(", ") >= 2 else number
    return Metric(number, number if most is None else most)


def _number(text: str) -> float | None:
    match = _NUMBER.fullmatch(text.strip())
    if match is None:
        return None
    scale = 1.0 if match[2] is None else _UNITS.get(match[2]) or _SECONDS.get(match[2])
    return None if scale is None else float(match[1].replace(",", "")) * scale
