"""The page of a run: every number on it is one of the report, and what users wrote cannot become HTML."""

from __future__ import annotations

import json
import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.report.page.html import seconds
from clinker_spark.report.page.run_page import RunPage, limit_of, write_page
from clinker_spark.report.summary import size
from clinker_spark.runtime.run.report import Rollback, RunIdentity, RunReport
from tests.report.page.reports import NAMES, page_of, plan_of


class Reader(HTMLParser):
    """The numbers, tags and report of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.numbers: list[tuple[str, str, str]] = []
        self.tags: Counter[str] = Counter()
        self.links: list[str] = []
        self.report = ""
        self.others: list[str] = []
        """Other texts with numbers in them, but for those of scales and of what users wrote."""
        self._class = ""
        self._path: tuple[str, str] | None = None
        self._in_report = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        given = {name: value or "" for name, value in attrs}
        self.links += [value for name, value in given.items() if name in ("src", "href", "srcset", "action")]
        self._path = (given["data-path"], given["data-value"]) if "data-path" in given else None
        self._in_report = given.get("id") == "report"
        self._class = tag if tag in ("style", "pre", "code", "title", "td") else given.get("class", "")

    def handle_endtag(self, tag: str) -> None:
        self._class = ""

    def handle_data(self, data: str) -> None:
        if self._in_report:
            self.report += data
        elif self._path is not None:
            self.numbers.append((*self._path, data))
            self._path = None
        elif re.search(r"\d", data) and not self._class.startswith(("style", "pre", "code", "title", "tick")):
            self.others.append(data.strip(" :"))


def value_at(report: Any, path: str) -> Any:
    if path.startswith("sum:"):
        name, _, key = path.removeprefix("sum:").split(".")
        return sum(item[key] for item in report[name])
    for part in path.split("."):
        report = report[int(part)] if isinstance(report, list) else report[part]
    return report


@pytest.mark.parametrize("example", NAMES)
def test_every_number_is_one_of_the_report(example: str) -> None:
    page = page_of(example)
    found = Reader(page.html())
    report = json.loads(found.report)
    assert report == json.loads(json.dumps(page.report.as_dict()))
    assert len(found.numbers) > 5 * len(page.plan.nodes)
    for path, value, shown in found.numbers:
        assert float(value) == float(value_at(report, path)), path
        count = float(value)
        assert shown in (f"{int(count):,}", size(int(count)), seconds(count)), path


@pytest.mark.parametrize("example", NAMES)
def test_numbers_inside_of_texts_are_those_of_the_report(example: str) -> None:
    page = page_of(example)
    found = Reader(page.html())
    report = json.loads(found.report)
    expected = [f"· started {report['started']} · run {report['execution_id']}"]
    for node in report["nodes"]:  # in the drawing
        expected.append(f"{node['passed']:,} {'written' if node['kind'] == 'output' else 'passed on'}")
        expected += [f"{node['failed']:,} ✕"] if node["failed"] else []
    expected += [f"{source['files']} file(s)" for source in report["sources"]]
    expected += [f"and {len(output['paths']) - 1} more" for output in report["outputs"]]
    expected += [
        f"{b['read']} read = {b['written']} written + {b['dead_letters']} dead letters" for b in report["balances"]
    ]
    of_users = {"a&b.csv, row 7", "'<script>alert(1)</script>' is no int", "id=5, note=</script><b>bold</b>"}
    assert Counter(text for text in found.others if text not in of_users) == Counter(expected)


@pytest.mark.parametrize("example", NAMES)
def test_nothing_is_loaded_from_anywhere(example: str) -> None:
    text = page_of(example).html()
    assert Reader(text).links == ["data:,"]
    assert not re.search(r"url\(|@import|https?://", text)


def test_what_users_wrote_stays_text() -> None:
    text = page_of("21-retraction").html()
    found = Reader(text)
    assert found.tags["script"] == 1 and "<b>bold</b>" not in text and "&lt;script&gt;alert(1)" in text


def test_a_run_that_was_not_measured_has_a_page() -> None:
    plan = plan_of("02-sales-roll-up")
    text = RunPage(plan, RunReport(RunIdentity("sales", "id", "", "2026-01-02T03:04:05Z")), "the plan").html()
    assert ">Memory<" not in text and ">Dead letters<" not in text and ">done<" in text


def test_rows_have_bars_and_settings_are_shown() -> None:
    text = page_of("02-sales-roll-up").html()
    assert text.count('class="bar rows"') == len(page_of("02-sales-roll-up").report.nodes)
    for shown in ("backpressure", "resume_threshold", "times that readers were made to wait"):
        assert f">{shown}<" in text


def test_the_limit_that_was_watched_is_a_line_without_a_declared_one() -> None:
    page = page_of("02-sales-roll-up", None)
    assert page.plan.memory_limit is None
    assert limit_of(page.plan, page.report) == 3 << 30
    page.report.cost.used = None
    assert limit_of(page.plan, page.report) is None


def test_a_run_that_failed_says_why(tmp_path: Path) -> None:
    page = page_of("02-sales-roll-up")
    why = Diagnostic("E310", "'totals' needs more memory than the limit <1G>", help="raise the limit")
    write_page(tmp_path / "run.html", page.plan, page.report, [why])
    text = (tmp_path / "run.html").read_text()
    assert ">failed: nothing was published<" in text and ">Why it ended<" in text and ">Memory<" in text
    assert "E310" in text and "limit &lt;1G&gt;" in text and "raise the limit" in text
    assert ">Why it ended<" not in page.html()


def test_counters_of_a_retraction_are_plain_numbers_for_programs() -> None:
    report = RunReport(RunIdentity("a", "b", "c", "d"), rollback=Rollback(retraction=Counter(iterations=2)))
    uncounted = {"partitions_dispatched", "partitions_recomputed", "subdag_replay_rows"}
    uncounted |= {"synthetic_ck_columns_emitted_total"}
    found = json.loads(json.dumps(report.as_dict()))["retraction"]
    assert found.pop("iterations") == 2 and {key for key, value in found.items() if value is None} == uncounted
    nothing = RunReport(RunIdentity("a", "b", "c", "d")).as_dict()["retraction"]
    assert set(nothing.values()) == {0} and nothing.keys() == {*found, "iterations"}
