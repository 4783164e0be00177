"""A stream of made-up records to the screen, and everything that tells about it afterwards."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from clinker_spark.cli.clinker.main import clinker
from clinker_spark.plan.prepare import prepare
from clinker_spark.report.page.stream import page
from clinker_spark.spark.connectors.made_up import Made, Rate, messages
from clinker_spark.spark.session import sessions
from clinker_spark.streaming.api import start_stream

PIPELINE = """\
pipeline: { name: demo }
stream: { partitions: 1 }
nodes:
  - type: source
    name: clicks
    config: { type: rate, rows_per_second: 40, rows: 300, keys: 3, max_rows: 200, watermark: { column: at, delay: 1s },
              schema: { number: int, at: date_time, key: string } }
  - type: aggregate
    name: per_key
    input: clicks
    config:
      group_by: [key]
      time_window: { tumbling: { size: 2s } }
      cxl: |
        emit clicks = count(*)
        emit last = max(number)
  - { type: output, name: screen, input: per_key, config: { type: console, rows: 5, format: json } }
"""


def test_made_up_records_on_the_screen(
    tmp_path: Path, started: SparkSession, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "p.yaml").write_text(PIPELINE)
    stream = start_stream(tmp_path / "p.yaml", started, once=True, flush_at_end=True)
    report = stream.wait(300)
    assert not stream.queries[0].isActive
    assert report.records == {"clicks": 300} and report.late == 0

    wanted: Counter[tuple[str, int]] = Counter()
    rate = Rate("clicks", 40, 300, 3, 200, str(tmp_path / "began"), "", 1)
    for message in next(messages(rate, rate.began(), Made(0, 300))):
        record = json.loads(message.value())
        wanted[record["key"], (record["number"] + 40) // 80] += 1  # times count less the delay
    shown = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert all(line["event"] == "record" and line["output"] == "screen" for line in shown)
    found = {(line["record"]["key"], (line["record"]["last"] + 40) // 80): line["record"]["clicks"] for line in shown}
    assert len(found) == len(shown) > 6 and found.items() <= wanted.items()
    assert max(Counter(line["batch"] for line in shown).values()) == 5

    assert "300" in page(prepare(tmp_path / "p.yaml"), report)
    monkeypatch.setattr(sessions, "session", lambda *given, **settings: started)
    result = CliRunner().invoke(clinker, ["state", "show", str(tmp_path / "p.checkpoint")])
    assert result.exit_code == 0, result.output
    assert "per_key: 0 totals of open windows" in result.output
