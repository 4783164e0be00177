"""Nothing is published before the numbers of a run agree: what was read was written, failed, or is a counted drop.

The nodes write down what must be true (`plan.ledger`), the jobs that write outputs count. Spark may count a task twice
that ran twice, or leave a count out with the part of a plan that it did not need. So a difference is no error yet: the
records are counted once more, in jobs of their own, and only if these numbers differ as well, the run stops (E412).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pyarrow.parquet as pq

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.plan.facts import Component
from clinker_spark.plan.ledger import WITHHELD_FROM, Difference, Entry, Flow, count, solve
from clinker_spark.plan.nodes.base import PlanNode
from clinker_spark.runtime.errors import AccountingError
from clinker_spark.runtime.reject.source_letters import kept_by_readers
from clinker_spark.runtime.run.report import Balance, NodeReport
from clinker_spark.runtime.run.state import RunState
from clinker_spark.spark.build.builder import Builder
from clinker_spark.spark.fragments.task import WRITTEN_BYTES
from clinker_spark.spark.scan.scans import final_count, forget_counts

HELP = "this is a defect of clinker, or a file that changed while it was read: run again, and report it if it stays"


class Accounts:
    """The numbers of one run."""

    def __init__(self, state: RunState) -> None:
        self.state = state
        self.read: dict[str, int] = {}
        """By source: how many records it has, as its readers or its files say."""
        self.first: dict[str, int] | None = None
        """All numbers of the first pass, when every output was written in it."""

    # ------------------------------------------------------------ numbers

    def job_starts(self, output: str) -> None:
        """What readers said in an earlier job is no number of this one. (Sources of totals that workers make were read
        while the pass was built, and what their readers said is what counts.)"""
        scans, read = self.state.builder.scans, self.state.builder.memo.read_already
        for name in self.state.sources_of(output):
            if not (name in scans and scans[name].here) and name not in read:
                forget_counts(self.state.progress, name)

    def job_done(self, output: str, parts: Sequence[Path], *, lines: bool = False) -> None:
        """After the job of an output: what its readers have to say, and its `parts`, if they say how many records they
        have, or workers wrote them: `lines`. The next read of these files would say it anew."""
        builder = self.state.builder
        if lines:
            builder.metrics.facts[f"{output}: in parts"] = sum(part.stat().st_size for part in parts)
            size, there = count(f"{output}: {WRITTEN_BYTES}"), count(f"{output}: in parts")
            builder.ledger.law(output, "wrote {left} bytes, and its parts have {right}", size, there)
        elif parts:
            builder.metrics.facts[f"{output}: in files"] = sum(pq.read_metadata(part).num_rows for part in parts)
            rows, there = count(f"{output}: rows"), count(f"{output}: in files")
            builder.ledger.law(output, "wrote {left} records, and its files have {right}", rows, there)
        aside = None
        for name in self.state.sources_of(output):
            scan = builder.scans[name]
            if scan.rows is not None:
                self.read[name] = scan.rows
            if scan.splits is not None and builder.progress is not None and builder.run.local:
                given = final_count(builder.progress, name, scan.splits)
                if given is not None:
                    builder.metrics.facts[f"{name}: given"] = given
            if scan.split_files is not None:
                aside = aside or kept_by_readers(self.state)
                if aside is not None:
                    index = self.state.source(name).index
                    self.read[name] = aside.records[name]
                    builder.metrics.facts[f"{name}: kept aside"] = sum(c.count for c in aside.kept if c.source == index)

    def numbers(self) -> dict[str, int]:
        """What is known of the last pass."""
        builder = self.state.builder
        known = {f"{name}: read": count for name, count in self.read.items()} | builder.metrics.facts
        for name in builder.metrics.counts:
            for metric, value in builder.metrics.counted(name).items():
                if isinstance(value, int):
                    known[f"{name}: {metric}"] = value
        return known

    def _solved(self) -> tuple[dict[str, int], list[Difference]]:
        return solve(self.state.builder.ledger.laws.values(), self.numbers())

    # ------------------------------------------------------------ checks

    def before_letters(self) -> None:
        """Are the counts right? Whether records failed is decided by them."""
        if not self._trusted():
            self._count_again()
        values, differences = self._solved()
        if differences:
            raise self._error(differences)
        for name in self.state.builder.scans:
            if f"{name}: read" in values:
                self.read[name] = values[f"{name}: read"]
        for report in self.state.report.sources:
            report.records = self.read.get(report.name, report.records)
        if all(node.name in self.state.outcome.written for node in self.state.plan.outputs):
            self.first = values

    def _trusted(self) -> bool:
        """Do the numbers agree, and is every number of failures known?"""
        values, differences = self._solved()
        if differences:
            return False
        if self.state.unsure:
            return True
        builder = self.state.builder
        return builder.ledger.failed.value(values) is not None and not self._not_counted(builder)

    def _not_counted(self, builder: Builder) -> list[str]:
        """The sources of which readers should have said how many records they gave, and did not. Joins and queries
        may stop reading before the end, or not begin."""
        plan = self.state.plan
        early = [node for node in plan.nodes if node.stops_early]
        in_part = {before.name for node in early for before in plan.upstream(node.name)}
        found = []
        for name, scan in builder.scans.items():
            said = (
                f"{name}: given" in builder.metrics.facts
                or scan.rows is not None
                or f"{name}.source" in builder.metrics.counts
            )
            said = said and (scan.split_files is None or f"{name}: kept aside" in builder.metrics.facts)
            if name not in in_part and not said and builder.progress is not None:
                found.append(name)
        return found

    def _count_again(self) -> None:
        builder = self.state.builder
        for name in self._not_counted(builder):
            self.read[name] = builder.source_count(self.state.source(name))
        mentioned = {
            term for law in builder.ledger.laws.values() for side in (law.left, law.right) for term, _ in side.terms
        }
        mentioned |= {term for term, _ in builder.ledger.failed.terms}
        builder.metrics.recount(
            name
            for name, counted in builder.metrics.counts.items()
            if any(f"{name}: {metric}" in mentioned for metric in counted.metrics)
        )
        for name, report in self.state.outcome.written.items() if self.state.outcome.again != "cut" else ():
            report.records = builder.metrics.counted(name).get("rows", report.records)

    def check(self) -> None:
        """Before anything is published: all laws of the last pass, and a dead letter for each record that failed."""
        found = self._differences()
        if found:
            self._count_again()
            found = self._differences()
        if found:
            raise self._error(found)
        self._report()

    def _differences(self) -> list[Difference]:
        values, found = self._solved()
        if found:
            return found
        # A file that could not be read is a letter, and no record.
        letters = self.state.report.dead_letters - sum(map(len, self.state.inputs.bad.values()))
        failed = None if self.state.holds_groups else self.state.builder.ledger.failed.value(values)
        if failed is not None and letters != failed and not (self.state.unsure and letters > failed):
            return [Difference("", f"{failed:,} records failed, and there are {letters:,} dead letters")]
        for component in self.state.plan.facts.flow.components:
            balance = self._balance(component, values)
            if balance is not None and balance.missing:
                found.append(Difference(balance.sources[0], f"and what follows it: {balance}"))
        return found

    def _balance(self, component: Component, values: Mapping[str, int]) -> Balance | None:
        """Where the records of some sources went, if each of them went to one place and all numbers are known.

        With correlation keys, what is withheld are dead letters. Where its groups were never read again, what would
        have been left out of them was counted by the first pass."""
        if not component.conserves or not component.sources:
            return None
        last = values if self.state.outcome.again != "groups" else self.first
        read = [self.read.get(name) for name in component.sources]
        if last is None or None in read:
            return None
        dropped: list[tuple[str, str, int]] = []
        for name in component.nodes:
            for reason, records in self._dropped(name, last).items():
                if reason == WITHHELD_FROM:  # these are dead letters
                    continue
                if records is None:
                    return None
                if records:
                    dropped.append((name, reason, records))
        written = sum(self._written[name] for name in component.outputs)
        sources = [report for report in self.state.report.sources if report.name in component.sources]
        letters = sum(report.dead_letters for report in sources)
        return Balance(list(component.sources), sum(n for n in read if n is not None), written, letters, dropped)

    def _dropped(self, node: str, values: Mapping[str, int]) -> dict[str, int | None]:
        """By reason; None is what nobody knows."""
        found: dict[str, int | None] = {}
        entry = self.state.builder.ledger.entries.get(node)
        for (reason, _), flow in entry.dropped.items() if entry is not None else ():
            count, before = flow.value(values), found.get(reason, 0)
            found[reason] = None if count is None or before is None else before + count
        return found

    @property
    def _written(self) -> dict[str, int]:
        return {node.name: self.state.outcome.written[node.name].records for node in self.state.plan.outputs}

    def _error(self, found: list[Difference]) -> AccountingError:
        diagnostics = []
        for difference in found:
            node = next((node for node in self.state.plan.nodes if node.name == difference.node), None)
            message = difference.message if node is None else f"'{node.name}' {difference.message}"
            if node is None:
                diagnostics.append(Diagnostic("E412", message, help=HELP))
            else:
                diagnostics.append(node.diagnostic("E412", message, help=HELP))
        return AccountingError(diagnostics)

    # ------------------------------------------------------------ report

    def _report(self) -> None:
        """The numbers of all nodes, and in short where records went."""
        report, plan = self.state.report, self.state.plan
        values, _ = self._solved()
        failed = self._failed(values)
        for node in plan.nodes:
            entry = self.state.builder.ledger.entries.get(node.name)
            if entry is not None:
                report.nodes.append(self._node(node, entry, values, failed))
        for source in report.sources:
            source.records = self.read.get(source.name, values.get(f"{source.name}: read"))
        for component in plan.facts.flow.components:
            balance = self._balance(component, values)
            if balance is not None and not balance.missing:
                report.balances.append(balance)
                self.state.tell("balanced", balance.as_dict())

    def _failed(self, values: Mapping[str, int]) -> dict[str, int]:
        """By node: the records that failed there. Where groups are withheld, those that were diverted there."""
        found: Counter[str] = Counter()
        if self.state.holds_groups:
            for name, entry in self.state.builder.ledger.entries.items():
                found[name] += sum(flow.value(values) or 0 for flow in entry.failed.values())
        else:
            found.update(self.state.outcome.failed_at)
        return dict(found)

    def _node(self, node: PlanNode, entry: Entry, values: Mapping[str, int], failed: Mapping[str, int]) -> NodeReport:
        took: dict[str, int | None] = {}
        for name, end in entry.took.items():
            before = tuple(other for other in end.carried if other != node.name)
            took[name] = self._fine(end.flow, before, values, failed)
        passed: dict[str | None, int | None] = {
            port: self._fine(end.flow, end.carried, values, failed) for port, end in entry.passed.items()
        }
        dropped = {reason: count for reason, count in self._dropped(node.name, values).items() if count}
        if not node.inputs:
            took = {"files": self.read.get(node.name, values.get(f"{node.name}: read"))}
        if not node.streams:
            written = self._written[node.name]
            if cut := (passed[None] or 0) - written:
                dropped[WITHHELD_FROM] = dropped.get(WITHHELD_FROM, 0) + cut
            passed = {None: written}
        return NodeReport(
            node.name,
            node.kind,
            _sum(took.values()),
            _sum(passed.values()) if len(passed) == 1 or node.ports else None,
            dropped,
            failed.get(node.name, 0),
            dict(took) if len(took) > 1 else {},
            {port or "": count for port, count in passed.items()} if len(passed) > 1 else {},
            node.details().get("documents"),
        )

    def _fine(
        self, flow: Flow, carried: tuple[str, ...], values: Mapping[str, int], failed: Mapping[str, int]
    ) -> int | None:
        """How many records of a flow have not failed: those that some nodes `carried` on only wait to be diverted."""
        count = flow.value(values)
        if count is None or self.state.holds_groups:
            return count
        entries = self.state.builder.ledger.entries
        for name in carried:
            # What was diverted inside of that node is no longer there.
            inside = [flow for place, flow in entries[name].failed.items() if place != name]
            count -= failed.get(name, 0) - sum(flow.value(values) or 0 for flow in inside)
        return count


def _sum(counts: Iterable[int | None]) -> int | None:
    found = 0
    for number in counts:
        if number is None:
            return None
        found += number
    return found
