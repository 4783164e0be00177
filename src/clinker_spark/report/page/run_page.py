"""The page of a run: what happened, where records went, what it cost, why records failed, and what was run.

Every number on it is one of the run report, which lies in the page as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.plan.graph import Plan
from clinker_spark.report.explain import explain
from clinker_spark.report.page.chart import memory_chart
from clinker_spark.report.page.graph import graph
from clinker_spark.report.page.html import Html, element, number, section, table
from clinker_spark.report.page.settings import arbitration_table, settings_table, workspace_text
from clinker_spark.runtime.commit.small_files import replace_file
from clinker_spark.runtime.errors import IoError
from clinker_spark.runtime.reject.letter_files import Reason, read_letters, reasons
from clinker_spark.runtime.run.report import NodeReport, RunReport

_SHOWN_CELLS = 8


def write_page(place: Path, plan: Plan, report: RunReport, ended: Sequence[Diagnostic] = ()) -> None:
    """Write the page of a run whose outputs are published, or of one that was `ended`. Raises `IoError`."""
    letters = [] if ended else report.letter_paths
    found = [reason for path in letters for reason in reasons(read_letters(path))]
    page = RunPage(plan, report, explain(plan, "text"), found, limit_of(plan, report), ended)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        replace_file(place, page.html().encode())
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        help_text = "the run itself is done, and its outputs are published" if not ended else "name another file"
        raise IoError([Diagnostic("E401", f"cannot write '{place}': {reason}", help=help_text)]) from None


def limit_of(plan: Plan, report: RunReport) -> int | None:
    """How much memory the run might use: what was watched, which may be the limit of the machine."""
    used = report.cost.used
    watched = None if used is None or used.arbitration is None else used.arbitration.get("limit_bytes")
    return plan.memory_limit if watched is None else watched


@dataclass(frozen=True)
class RunPage:
    """What the page is made of."""

    plan: Plan
    report: RunReport
    explained: str
    """The plan in words."""
    reasons: Sequence[Reason] = ()
    """Why records failed, with samples."""
    limit: int | None = None
    """How much memory the run may use."""
    ended: Sequence[Diagnostic] = ()
    """Why the run failed, if it did."""

    def html(self) -> str:
        """The whole page."""
        head = element(
            "head",
            Html('<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'),
            Html('<link rel="icon" href="data:,">'),  # or else browsers ask the server for one
            element("title", f"{self.report.identity.pipeline}: run report"),
            element("style", Html(files(__package__).joinpath("style.css").read_text(encoding="utf-8"))),
        )
        data = json.dumps(self.report.as_dict(), ensure_ascii=False, default=str).replace("<", "\\u003c")
        body = element(
            "body",
            self._header(),
            self._failure(),
            section("Pipeline", graph(self.plan, dict(self._lines()), self._failed())),
            section("Nodes", self._nodes()),
            self._memory(),
            section("Where records went", self._accounts()),
            self._letters(),
            section("Stages", self._stages()),
            section("What was run", self._sources()),
            Html(f'<script type="application/json" id="report">{data}</script>'),
        )
        return f"<!doctype html>\n{element('html', head, body, lang='en')}\n"

    # ------------------------------------------------------------ parts

    def _header(self) -> Html:
        report = self.report
        dead = bool(report.dead_letters)
        words = "failed: nothing was published" if self.ended else "done with dead letters" if dead else "done"
        verdict = element("span", words, class_=f"verdict{' dead' * (dead or bool(self.ended))}")
        facts = f" · started {report.identity.started} · run {report.identity.execution_id}"
        cards = [
            ("time", number(report.cost.seconds, "seconds", "seconds")),
            ("records read", self._sum("sources", [source.records for source in report.sources])),
            ("records written", self._sum("outputs", [output.records for output in report.outputs])),
            ("dead letters", number(report.dead_letters, "dead_letters")),
        ]
        if report.cost.used is not None and report.cost.used.memory.peak is not None:
            peak = report.cost.used.memory.peak.total
            cards.append(("peak memory", number(peak, "used.memory.peak_bytes", "bytes")))
        shown = [element("div", element("small", name), element("b", value), class_="card") for name, value in cards]
        return element(
            "header",
            element("h1", report.identity.pipeline),
            element("p", verdict, element("span", facts, class_="soft")),
            element("div", *shown, class_="cards"),
        )

    def _failure(self) -> Html:
        """Why it ended, where it stands in the pipeline, and what to do."""
        if not self.ended:
            return Html("")
        parts = []
        for found in self.ended:
            parts.append(element("p", element("b", f"{found.code} "), element("code", found.message)))
            if found.help:
                parts.append(element("p", element("code", found.help), class_="soft"))
        return section("Why it ended", *parts)

    def _sum(self, name: str, counts: Sequence[int | None]) -> Html:
        known = [count for count in counts if count is not None]
        total = sum(known) if len(known) == len(counts) else None
        return number(total, f"sum:{name}.*.records")

    def _lines(self) -> Iterator[tuple[str, str]]:
        for node in self.report.nodes:
            if node.passed is not None:
                yield node.name, f"{node.passed:,} {'passed on' if self.plan[node.name].streams else 'written'}"

    def _failed(self) -> dict[str, int]:
        return {node.name: node.failed for node in self.report.nodes if node.failed}

    def _nodes(self) -> Html:
        used = {} if self.report.cost.used is None else self.report.cost.used.nodes
        head = ["node", "took", "passed on", "left out", "failed", "task time", "memory", "spilled"]
        most = {
            name: max((getattr(found, name) for found in used.values()), default=0)
            for name in ("seconds", "peak_bytes", "spilled_bytes")
        }
        most["passed"] = max((node.passed or 0 for node in self.report.nodes), default=0)
        rows = []
        for i, node in enumerate(self.report.nodes):
            cost: list[Any] = ["", "", ""]
            if (found := used.get(node.name)) is not None:
                cost = [
                    self._bar(node.name, name, getattr(found, name), most[name], style)
                    for name, style in (("seconds", ""), ("peak_bytes", "memory"), ("spilled_bytes", "spill"))
                ]
            rows.append([*self._counts(node, f"nodes.{i}", most["passed"]), *cost])
        return table(head, rows, range(1, len(head)))

    def _counts(self, node: NodeReport, path: str, most: float) -> list[Any]:
        dropped = [
            element("div", number(count, f"{path}.dropped.{reason}"), f" {reason}")
            for reason, count in node.dropped.items()
        ]
        failed = number(node.failed, f"{path}.failed") if node.failed else ""
        name = [element("b", node.name), element("span", f" {node.kind}", class_="soft")]
        return [
            element("div", *name),
            number(node.took, f"{path}.took"),
            "" if node.passed is None else _with_bar(number(node.passed, f"{path}.passed"), node.passed, most, "rows"),
            element("div", *dropped),
            failed,
        ]

    def _bar(self, node: str, name: str, value: float, most: float, style: str) -> Any:
        if not value:
            return ""
        shown = round(value, 3) if name == "seconds" else int(value)
        text = number(shown, f"used.nodes.{node}.{name}", "seconds" if name == "seconds" else "bytes")
        return _with_bar(text, value, most, style)

    def _memory(self) -> Html:
        used = self.report.cost.used
        if used is None or not used.memory.samples:
            return Html("")
        note = element("p", "All processes of the run together, sampled while it went on.", class_="soft")
        return section("Memory", memory_chart(used.memory.samples, self.limit), note)

    def _accounts(self) -> Html:
        report = self.report
        rows: list[list[Any]] = []
        for i, source in enumerate(report.sources):
            path = f"sources.{i}"
            rows.append(
                [
                    element("div", "read ", element("b", source.name)),
                    number(source.records, f"{path}.records"),
                    number(source.dead_letters, f"{path}.dead_letters"),
                    number(source.bytes, f"{path}.bytes", "bytes"),
                    f"{source.files} file(s)",
                ]
            )
        for i, output in enumerate(report.outputs):
            path = f"outputs.{i}"
            shown = element("code", output.paths[0]) if output.paths else ""
            more = f" and {len(output.paths) - 1} more" if len(output.paths) > 1 else ""
            rows.append(
                [
                    element("div", "wrote ", element("b", output.name)),
                    number(output.records, f"{path}.records"),
                    "",
                    number(output.bytes, f"{path}.bytes", "bytes"),
                    element("div", shown, more),
                ]
            )
        sums = [element("p", element("b", ", ".join(b.sources)), f": {b}") for b in report.balances]
        return element("div", table(["", "records", "dead letters", "size", "files"], rows, (1, 2, 3)), *sums)

    def _letters(self) -> Html:
        report = self.report
        if not report.letters:
            return Html("")
        counts = table(
            ["reason", "at", "source", "records"],
            [
                [letter.category, letter.stage, letter.source, number(letter.count, f"letters.{i}.count")]
                for i, letter in enumerate(report.letters)
            ],
            (3,),
        )
        places = [element("p", element("code", f"clinker dlq inspect {path}")) for path in report.letter_paths]
        return section("Dead letters", counts, *[self._sample(reason) for reason in self.reasons], *places)

    def _sample(self, reason: Reason) -> Html:
        field = f", field {reason.field}" if reason.field else ""
        rows = [
            [
                f"{letter.engine['source_file']}, row {letter.engine['source_row']}",
                letter.engine.get("error_detail", ""),
                ", ".join(f"{name}={value}" for name, value in list(letter.record.items())[:_SHOWN_CELLS]),
            ]
            for letter in reason.samples
        ]
        title = element("summary", f"{reason.category} at {reason.stage}{field}")
        return element("details", title, table(["where", "why", "record"], rows), open="open")

    def _stages(self) -> Html:
        rows = [
            [name, number(spent, f"stage_seconds.{name}", "seconds")]
            for name, spent in self.report.cost.stage_seconds.items()
        ]
        return table(["stage", "time"], rows, (1,))

    def _sources(self) -> Html:
        return element(
            "div",
            settings_table(self.plan),
            arbitration_table(self.report.cost.used),
            element("details", element("summary", "The plan"), element("pre", self.explained)),
            element(
                "details", element("summary", f"{self.plan.file.path.name}"), element("pre", self.plan.file.source.text)
            ),
            workspace_text(self.plan),
        )


def _with_bar(text: Html, value: float, most: float, style: str) -> Html:
    share = 100 * value / most if most else 0.0
    return element("div", text, element("span", class_=f"bar {style}", style=f"width:{share:.0f}%"))
