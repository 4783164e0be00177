"""Which node of the pipeline an operator of Spark worked for.

The jobs of a run count records where they pass from node to node, and each count is a mark in Spark's executed plan
that bears the name of its node. What lies between two marks was done for the node of the upper one. Nodes that Spark
fuses have no mark between them: what they cost together is shown at the last of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from clinker_spark.spark.measure.executions import Execution, Operator

_MARK = re.compile(r"CollectMetrics node:([^:]+):\d+")
_SHUFFLES = ("Exchange", "BroadcastExchange")
_RUN_TIMES = ("duration", "time to run Python workers")


@dataclass
class NodeMeasure:
    """What one node used, over all jobs of a run."""

    seconds: float = 0.0
    """Time of tasks. Tasks of several cores at once add up to more than the clock shows."""
    spilled_bytes: int = 0
    peak_bytes: int = 0
    """The most that one of its operators held in one task: sorts, hash tables, windows."""
    shuffled_bytes: int = 0

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "seconds": round(self.seconds, 3)}


def node_measures(executions: Iterable[Execution], last: str) -> dict[str, NodeMeasure]:
    """By node. What lies above the topmost mark of a plan belongs to its output; where there is none, to `last`."""
    found: dict[str, NodeMeasure] = {}
    for execution in executions:
        plan = _ExecutedPlan(execution, last)
        for operator in execution:
            node = plan.node_of(operator)
            measure = found.setdefault(node, NodeMeasure())
            measure.spilled_bytes += int(_total(operator, "spill size"))
            measure.shuffled_bytes += int(_total(operator, "shuffle bytes written"))
            if (peak := operator.metrics.get("peak memory")) is not None:
                measure.peak_bytes = max(measure.peak_bytes, int(peak.most))
        for node, seconds in plan.seconds():
            found.setdefault(node, NodeMeasure()).seconds += seconds
    return found


class _ExecutedPlan:
    """One executed plan as a graph, from the root down."""

    def __init__(self, operators: Execution, last: str) -> None:
        self.operators = {operator.id: operator for operator in operators}
        self.last = last
        self.above: dict[int, int] = {}
        self.cluster: dict[int, Operator] = {}
        for operator in operators:
            for below in operator.below:
                self.above.setdefault(below, operator.id)
            for member in operator.members:
                self.cluster[member] = operator

    def node_of(self, operator: Operator) -> str:
        """The node of the next mark above; of generated code, that of its topmost operator."""
        place: int | None = operator.id
        if operator.members:
            place = next(
                (m for m in operator.members if self.above.get(m) not in operator.members), operator.members[0]
            )
        top = None
        while place is not None:
            match = _MARK.match(self.operators[place].text)
            if match is not None:
                return match[1].partition(".")[0]
            top, place = place, self.above.get(place)
        return self._topmost(top)

    def _topmost(self, root: int | None) -> str:
        """The node of the first mark from the root down."""
        waiting = [] if root is None else [root]
        while waiting:
            operator = self.operators[waiting.pop(0)]
            match = _MARK.match(operator.text)
            if match is not None:
                return match[1].partition(".")[0]
            waiting += operator.below
        return self.last

    def seconds(self) -> Iterator[tuple[str, float]]:
        """The time of tasks by node. Generated code is timed with everything that it reads in the same task: what that
        took is taken off."""
        for operator in self.operators.values():
            spent = sum(_total(operator, name) for name in _RUN_TIMES)
            if not spent:
                continue
            inner = sum(self._timed_below(operator)) if operator.members else 0.0
            yield self.node_of(operator), max(spent - inner, 0.0)

    def _timed_below(self, cluster: Operator) -> Iterator[float]:
        """The times of what is read by generated code, up to the next exchange."""
        waiting = [below for member in cluster.members for below in self.operators[member].below]
        seen: set[int] = set()
        while waiting:
            place = waiting.pop()
            operator = self.operators[place]
            if place in cluster.members or place in seen or operator.name in _SHUFFLES:
                continue
            timed = self.cluster.get(place, operator)
            seen |= {place, *timed.members}
            if spent := sum(_total(timed, name) for name in _RUN_TIMES):
                yield spent
            else:
                waiting += operator.below


def _total(operator: Operator, name: str) -> float:
    metric = operator.metrics.get(name)
    return 0.0 if metric is None else metric.total
