"""Which plans can be streams, and what is said about the others."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from clinker_spark.cli.clinker.main import clinker
from clinker_spark.core.errors import ClinkerError
from clinker_spark.plan.prepare import prepare
from clinker_spark.plan.streams import queries

SOURCE = """\
  - {{ type: source, name: {name}, config: {{ type: csv, glob: "{name}/*.csv",
      watermark: {{ column: at, delay: 1s }}{more}, schema: {{ k: nullable(string), at: date_time, n: int }} }} }}
"""
JOIN = "{ left_keys: k, right_keys: k, time_window: 5s%s }"


SHORT = """\
name = "short"
sources = [
  { name = "a", query = "a/*.csv", connection = { type = "csv" }, schema = { k = "string", at = "date_time" } },
  { name = "b", query = "b/*.csv", connection = { type = "csv" }, schema = { k = "string", at = "date_time" } },
]
target = { type = "csv", path = "out/" }

[transform.join]
left_source = "a"
right_source = "b"
left_keys = ["k"]
right_keys = ["k"]
time_window_ms = 5000
event_time_column = "at"
"""


def plan_text(*nodes: str, a: str = "", join: str = "", out: str = "j", more: str = "", extra: str = "") -> str:
    text = (
        f"pipeline: {{ name: p }}\n{extra}nodes:\n" + SOURCE.format(name="a", more=a) + SOURCE.format(name="b", more="")
    )
    text += f"  - {{ type: stream_join, name: j, input: {{ left: a, right: b }}, config: {JOIN % join} }}\n"
    text += "".join(f"  - {node}\n" for node in nodes)
    return text + f"  - {{ type: output, name: out, input: {out}, config: {{ type: csv, path: out/{more} }} }}\n"


def problems(folder: Path, text: str) -> list[tuple[str, str]]:
    (folder / "p.yaml").write_text(text)
    try:
        queries(prepare(folder / "p.yaml"))
    except ClinkerError as error:
        assert all(found.span is not None and found.help for found in error.diagnostics)
        return [(found.code, found.message) for found in error.diagnostics]
    return []


def totals_text(window: str = "tumbling: { size: 5s }", emit: str = "n = count(*)", join: str = "", a: str = "") -> str:
    """Totals behind the join."""
    config = f"{{ group_by: [left_k], time_window: {{ {window} }}, cxl: 'emit {emit}' }}"
    return plan_text(f"{{ type: aggregate, name: g, input: j, config: {config} }}", out="g", join=join, a=a)


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        (plan_text(join=", right_columns: [x]"), "E203", "'x'"),
        (plan_text(join=', left_prefix: "right_"'), "E502", "would both be 'right_k'"),
        (plan_text(join=", left_columns: [], right_columns: []"), "E502", "no column"),
        (plan_text(join=', where: "left.n / right.n > 1"'), "E507", "must not be able to fail"),
        (plan_text(join=", late_data: reopen"), "E500", "'allowed_lateness'"),
        (plan_text(join=", allowed_lateness: 5s"), "E500", "late_data: reopen"),
        (plan_text().replace("right_keys: k", "right_keys: [k, n]"), "E500", "1 left key(s)"),
        (plan_text().replace("right_keys: k", "right_keys: n"), "E500", "cannot be compared"),
        (plan_text().replace("left_keys: k,", "left_keys: [],"), "E007", "left_keys"),
        (plan_text().replace("time_window: 5s", "time_window: { min: 5s, max: 1s }"), "E500", "above 'max'"),
        (plan_text().replace("right: b", "rigth: b"), "E500", "no side 'rigth'"),
        (plan_text().replace("watermark: { column: at, delay: 1s },", "", 1), "E501", "have no time"),
        (plan_text().replace("at: date_time", "at: nullable(date_time)", 1), "E501", "may be null"),
        (plan_text(a=", correlation_key: k"), "E503", "'correlation_key'"),
        *[
            (
                plan_text(
                    a=f", files: {{ {key}: {value} }}",
                    extra="error_handling: { strategy: continue, dlq: { path: dead.csv } }\n",
                ),
                "E503",
                f"'{key}' cannot be used in a stream",
            )
            for key, value in (
                ("on_bad_file", "skip"),
                ("take_first", "2"),
                ("take_last", "2"),
                ("sort_by", "modified"),
                ("sort_order", "desc"),
            )
        ],
        (
            plan_text(
                '{ type: transform, name: t, input: x, config: { cxl: "emit b = $doc.head.batch" } }',
                "{ type: output, name: raw, input: t, config: { type: csv, path: raw/ } }",
            ).replace(
                "nodes:\n",
                "nodes:\n  - { type: source, name: x, config: { type: json, glob: x/*.json, schema: { k: string },\n"
                "      options: { format: object, record_path: rows },\n"
                "      envelope: { sections: { head: { extract: { json_pointer: /head }, "
                "fields: { batch: string } } } } } }\n",
            ),
            "E503",
            "'$doc.section.field' cannot be read in a stream",
        ),
        (plan_text(more=", sort_order: [left_k]"), "E503", "'sort_order'"),
        (
            plan_text(more=", reconstruct_envelope: true").replace("csv, path: out/", "json, path: out.json"),
            "E503",
            "'reconstruct_envelope'",
        ),
        (plan_text(more=", split: { max_records: 5 }").replace("out/,", "out.csv,"), "E503", "'split'"),
        (plan_text().replace("path: out/", 'path: "out/{timestamp}.csv"'), "E503", "no tokens"),
        (plan_text(extra="error_handling: { strategy: continue, dlq: { max_rate: 5% } }\n"), "E503", "'max_rate'"),
        (
            plan_text(
                '{ type: aggregate, name: g, input: j, config: { group_by: [left_k], cxl: "emit n = count(*)" } }',
                out="g",
            ),
            "E503",
            "'g' cannot be part of a stream",
        ),
        *[
            (plan_text(node, out="g"), "E503", "'g' cannot be part of a stream")
            for node in (
                "{ type: transform, name: g, input: a, config: { cxl: distinct by k } }",
                "{ type: cull, name: g, input: a, config: { partition_by: [k], "
                "rules: [{ name: r, drop_group_when: count(*) > 3 }] } }",
                "{ type: reshape, name: g, input: a, config: { partition_by: [k], "
                "rules: [{ name: r, when: n > 3, mutate: { set: { n: 0 } } }] } }",
                "{ type: query, name: g, inputs: [a], config: { query: 'from r in a select {k: r.k}' } }",
                "{ type: merge, name: g, inputs: [a, b], config: { mode: interleave } }",
                "{ type: combine, name: g, input: { l: a, r: b }, "
                "config: { where: l.k == r.k, propagate_ck: driver, cxl: emit z = l.k } }",
            )
        ],
        (totals_text(emit="n = collect(left_n)"), "E503", "'collect'"),
        (totals_text(emit="n = sum(1 / left_n)"), "E503", "may fail at 'g'"),
        (totals_text("tumbling: { size: 5s }, late: dead_letter"), "E503", "late: dead_letter"),
        (totals_text("hopping: { size: 5s, slide: 7s }"), "E503", "leave out time"),
        (totals_text(join=", kind: full"), "E156", "'j' makes records"),
        (
            plan_text(
                "{ type: aggregate, name: g, input: a, "
                "config: { group_by: [k], time_window: { session: { gap: 5s } }, documents: separate, "
                "cxl: emit n = count(*) } }",
                out="g",
            ),
            "E503",
            "for each file",
        ),
        (
            plan_text(
                "{ type: merge, name: m, inputs: [a, b] }",
                "{ type: aggregate, name: g, input: m, "
                "config: { group_by: [k], time_window: { tumbling: { size: 5s } }, cxl: emit n = count(*) } }",
                out="g",
            ).replace("delay: 1s", "delay: 2s", 1),
            "E503",
            "different delays",
        ),
        (
            plan_text(
                "{ type: stream_join, name: j2, input: { left: j, right: b }, "
                "config: { left_keys: left_k, right_keys: k, time_window: 5s, left_prefix: x_ } }",
                out="j2",
                join=", kind: full",
            ),
            "E501",
            "left input 'j' have no time",
        ),
        (
            plan_text(
                '{ type: transform, name: t, input: j, config: { cxl: "emit x = 1 / left_n" } }',
                "{ type: stream_join, name: j2, input: { left: t, right: b }, "
                "config: { left_keys: left_k, right_keys: k, time_window: 5s, left_prefix: x_ } }",
                out="j2",
            ),
            "E509",
            "between two nodes",
        ),
    ],
)
def test_what_cannot_be_a_stream_is_told(tmp_path: Path, text: str, code: str, words: str) -> None:
    found = problems(tmp_path, text)
    assert any(c == code and words in message for c, message in found), found


def test_what_is_said_of_lateness_holds_for_streams_too(tmp_path: Path) -> None:
    """`allowed_lateness` of an aggregate is for runs; the warning must not speak of runs alone."""
    path = tmp_path / "p.yaml"
    path.write_text(totals_text().replace("cxl: 'emit", "allowed_lateness: 5m, cxl: 'emit"))
    plan = prepare(path)
    queries(plan)
    [warning] = plan.warnings
    assert warning.code == "W027" and "in a stream the 'delay' of the sources says" in warning.message


def test_every_place_that_writes_is_a_query(tmp_path: Path) -> None:
    text = plan_text("{ type: output, name: raw, input: a, config: { type: csv, path: raw/ } }")
    assert problems(tmp_path, text) == []
    found = {query.name: [output.name for output in query.outputs] for query in queries(prepare(tmp_path / "p.yaml"))}
    assert found == {"j": ["out"], "a": ["raw"]}


@pytest.mark.parametrize(
    "window", ["tumbling: { size: 5s }", "hopping: { size: 6s, slide: 2s }", "session: { gap: 5s }"]
)
def test_totals_behind_a_join_of_many_files(tmp_path: Path, window: str) -> None:
    """A pair is of two files: nobody has to say that its files are totalled together."""
    assert problems(tmp_path, totals_text(window)) == []


def test_explain_needs_no_data(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(plan_text(join=", kind: left, late_data: reopen, allowed_lateness: 1m, late_rule: window"))
    result = CliRunner().invoke(clinker, ["stream", str(path), "--explain"])
    assert result.exit_code == 0, result.output
    assert "watermark 'at' less 66s" in result.output
    assert "hold    j (stream_join:left)" in result.output
    assert "Late records: reopen, after 1m, by the rule of window" in result.output


def test_flush_goes_with_once(tmp_path: Path) -> None:
    result = CliRunner().invoke(clinker, ["stream", str(tmp_path / "p.yaml"), "--flush-at-end"])
    assert result.exit_code == 2 and "--once" in result.output


@pytest.mark.parametrize("name", ["p.yaml", "p.toml"])
def test_a_checkpoint_that_is_not_there_is_none(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text(plan_text() if name == "p.yaml" else SHORT)
    result = CliRunner().invoke(clinker, ["state", "check", str(path)])
    assert result.exit_code == 0 and "no checkpoint yet" in result.output
