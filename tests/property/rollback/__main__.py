"""Generated pipelines against the model: `python -m tests.property.rollback --seeds 0:300`."""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter, defaultdict
from pathlib import Path
from statistics import mean
from typing import Any

from tests.property.rollback.check import Compared, compare, report
from tests.property.rollback.graph import Graph
from tests.property.rollback.graphs import generated
from tests.property.rollback.shrink import shrink

MOST_JOBS = 8
"""Runs with more Spark jobs are named."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default="0:300", help="from:to, or one, or several with commas")
    parser.add_argument("--full", type=int, default=0, help="print whole reports of so many differences")
    parser.add_argument("--shrink", action="store_true", help="make the printed ones small first")
    parser.add_argument("--stop", type=int, default=10**9, help="after so many differences")
    parser.add_argument("--partitions", default="2")
    parser.add_argument("--large", action="store_true", help="plan as for large inputs")
    parser.add_argument("--usual", action="store_true", help="in a session as users have it, for times")
    parser.add_argument("--rounds", type=int, default=1, help="the same so many times in one session, for times")
    given = parser.parse_args()
    from clinker_spark.spark.session.sessions import session
    from clinker_spark.spark.session.small_inputs import SETTING, SMALL
    from tests.support.sessions import quick

    folder = tempfile.mkdtemp(prefix="rollback-")
    conf = {"spark.sql.shuffle.partitions": given.partitions, "spark.sql.warehouse.dir": folder}
    java = "" if given.usual else "-XX:TieredStopAtLevel=1"
    spark = session("local[2]", app_name="rollback", conf={} if given.usual else conf, java_options=java)
    used = spark if given.usual else quick(spark)
    used.conf.set(SETTING, "0" if given.large else str(SMALL))
    try:
        for number in range(given.rounds):
            if given.rounds > 1:
                print(f"--- round {number + 1}", flush=True)
            _campaign(given, used, warm=number > 0)
    finally:
        spark.stop()


def seeds_of(text: str) -> list[int]:
    if ":" in text:
        first, last = text.split(":")
        return list(range(int(first or 0), int(last)))
    return [int(part) for part in text.split(",")]


def _compare(graph: Graph, spark: Any) -> Compared:
    with tempfile.TemporaryDirectory(prefix="rollback-") as name:
        return compare(graph, Path(name), spark)


def _campaign(given: argparse.Namespace, spark: Any, *, warm: bool) -> None:
    kinds: dict[str, list[int]] = defaultdict(list)
    costs: dict[str, list[tuple[float, int]]] = defaultdict(list)
    doubtful = shown = different = total = 0
    for seed in seeds_of(given.seeds):
        compared = _compare(generated(seed), spark)
        total += 1
        if total % 20 == 0:
            print(f"({total} graphs, {different} different)", flush=True)
        if warm or total > 3:  # the first ones warm the session up
            costs[_cost_kind(compared)].append((compared.found.seconds, compared.found.jobs))
        if compared.found.jobs > MOST_JOBS:
            print(f"seed {seed}: {compared.found.jobs} jobs", flush=True)
        if not compared.said:
            continue
        if compared.result.doubtful:
            doubtful += 1
            continue
        different += 1
        kinds[compared.kind].append(seed)
        print(f"seed {seed}: {compared.kind}", flush=True)
        if shown < given.full:
            shown += 1
            if given.shrink:
                compared = _compare(_shrunk(compared, spark), spark)
            print(report(compared), "\n" + "=" * 100, flush=True)
        if different >= given.stop:
            break
    print(f"\n{total} graphs, {different} different, {doubtful} doubtful")
    for kind, seeds in sorted(kinds.items(), key=lambda item: -len(item[1])):
        print(f"{len(seeds):5}  {kind}: {seeds[:12]}")
    everything = [cost for those in costs.values() for cost in those]
    for name, those in [*sorted(costs.items()), ("everything", everything)]:
        if those:
            seconds, jobs = [s for s, _ in those], [j for _, j in those]
            print(
                f"{name:28} {len(those):4} runs  {mean(seconds):5.2f} s (most {max(seconds):5.2f})"
                f"  {mean(jobs):5.1f} jobs (most {max(jobs)})"
            )


def _cost_kind(compared: Compared) -> str:
    levels = Counter(compared.result.levels)
    if compared.result.exit not in ("0", "2"):
        return "stopped"
    if not compared.result.failures:
        return "clean"
    return "failures after totals" if any(level > 0 for level in levels) else "failures of records"


def _shrunk(compared: Compared, spark: Any) -> Graph:
    kind = set(compared.kind.split(", "))

    def differs(graph: Graph) -> bool:
        try:
            again = _compare(graph, spark)
        except Exception:
            return False
        if again.found.exit not in ("0", "2") and again.found.exit != compared.found.exit:
            return False
        return bool(again.said) and not again.result.doubtful and bool(kind & set(again.kind.split(", ")))

    return shrink(compared.graph, differs)


if __name__ == "__main__":
    main()
