"""What is found out about a pipeline before anything runs: variables, merges, paths, compositions. No Java."""

from __future__ import annotations

from pathlib import Path

import pytest

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.diagnostics.registry import lookup
from clinker_spark.core.errors import ClinkerError
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.prepare import prepare
from clinker_spark.plan.variables import sources_by_name

TWO = """\
pipeline: { name: demo }
nodes:
  - { type: source, name: shop, config: { type: csv, path: shop.csv, schema: { day: date, n: int }%(shop)s } }
  - { type: source, name: web, config: { type: csv, path: web.csv, schema: { day: date, n: int }%(web)s } }
  - type: transform
    name: shop_days
    input: shop
    config:
      declares: [{ name: last_day, scope: source, type: date }]
      cxl: emit $source.last_day = day
%(join)s
  - { type: transform, name: age, input: both, config: { cxl: "%(cxl)s" } }
  - { type: output, name: report, input: age, config: { type: csv, path: "%(path)s" } }
"""
MERGE = "  - { type: merge, name: both, inputs: [shop_days, web] }"
COMBINE = """\
  - type: combine
    name: both
    input: { s: shop_days, w: web }
    config: { where: s.n == w.n, propagate_ck: driver, cxl: "emit n = s.n" }"""


def text(**parts: str) -> str:
    usual = {"shop": "", "web": "", "join": MERGE, "cxl": "emit x = 1", "path": "out.csv"}
    return TWO % (usual | parts)


def plan(folder: Path, given: str) -> Plan:
    path = folder / "pipeline.yaml"
    path.write_text(given)
    return prepare(path)


def found(folder: Path, given: str) -> tuple[Diagnostic, ...]:
    try:
        return plan(folder, given).warnings
    except ClinkerError as error:
        return tuple(error.diagnostics)


def said(folder: Path, given: str) -> list[tuple[str, str]]:
    """Code, and the text that is marked."""
    result = []
    for d in found(folder, given):
        assert d.source is not None and d.span is not None and d.help and lookup(d.code)
        result.append((d.code, d.source.text[d.span.start : d.span.end]))
    return result


# ---------------------------------------------------------------- variables of sources


@pytest.mark.parametrize("join", [MERGE, COMBINE], ids=["merge", "combine"])
@pytest.mark.parametrize(
    ("variable", "code"),
    [
        ("$source.last_day", "E172"),
        ("$source.shop.last_day", None),
        ("$source.web.last_day", None),
        ("$source.nowhere.last_day", "E203"),
        ("$source.shop.row", "E172"),
        ("$source.shop.lst_day", "E203"),
        ("$source.name", None),
        ("$source.row", None),
    ],
)
def test_a_variable_of_one_of_several_sources(tmp_path: Path, join: str, variable: str, code: str | None) -> None:
    # After a combine the built-in members are those of the driver's record.
    given = text(join=join, cxl=f"emit x = {variable}")
    assert said(tmp_path, given) == ([] if code is None else [(code, variable)])


def test_inputs_have_names_too(tmp_path: Path) -> None:
    for join, name in ((MERGE, "shop_days"), (COMBINE, "s")):
        bound = plan(tmp_path, text(join=join, cxl=f"emit x = $source.{name}.last_day"))
        assert [source.name for source in sources_by_name(bound, bound["age"])[name]] == ["shop"]
    more = MERGE.replace("name: both", "name: all") + "\n  - { type: merge, name: both, inputs: [all, shop_days] }"
    assert said(tmp_path, text(join=more, cxl="emit x = $source.all.last_day")) == [("E172", "$source.all.last_day")]
    assert said(tmp_path, text(join=more, cxl="emit x = $source.shop_days.last_day")) == []


def test_branches_of_one_source_are_one_source(tmp_path: Path) -> None:
    given = """\
pipeline: { name: demo }
nodes:
  - { type: source, name: s, config: { type: csv, path: a.csv, schema: { n: int } } }
  - type: transform
    name: t
    input: s
    config: { declares: [{ name: last, scope: source, type: int }], cxl: emit $source.last = n }
  - { type: route, name: r, input: t, config: { conditions: { big: n > 5 }, default: small } }
  - { type: merge, name: m, inputs: [r.big, r.small] }
  - { type: transform, name: u, input: m, config: { cxl: emit x = $source.last } }
  - { type: output, name: o, input: u, config: { type: csv, path: "{source_name}.csv" } }
"""
    assert said(tmp_path, given) == []


def test_variables_stand_where_they_are_read(tmp_path: Path) -> None:
    given = text(cxl="emit x = 1").replace(
        'config: { cxl: "emit x = 1" }',
        'config: { cxl: "emit x = 1", validations: [{ check: $source.last_day == day }] }',
    )
    assert said(tmp_path, given) == [("E172", "$source.last_day")]
    route = (
        "  - { type: route, name: both, input: m, config: { conditions: { a: $source.last_day == day }, default: b } }"
    )
    given = text(join=MERGE.replace("name: both", "name: m") + "\n" + route).replace("input: both", "input: both.a")
    assert said(tmp_path, given) == [("E172", "$source.last_day")]


def test_conditions_have_no_arguments(tmp_path: Path) -> None:
    given = text().replace('"emit x = 1" }', '"emit x = 1", validations: [{ check: n > 0, args: { least: 5 } }] }')
    assert said(tmp_path, given) == [("W027", "args")]


def test_who_writes_a_variable_declares_it(tmp_path: Path) -> None:
    given = text(cxl="emit $source.last_day = day")
    assert [code for code, _ in said(tmp_path, given)] == ["E203"]


# ---------------------------------------------------------------- init

INIT = """\
pipeline: { name: demo }
nodes:
  - { type: source, name: orders, config: { type: csv, path: orders.csv, schema: { day: date } } }
  - type: transform
    name: first
    input: orders
    config:
      phase: init
      declares: [{ name: day, scope: pipeline, type: date }]
      cxl: emit $pipeline.day = day
%s
  - { type: output, name: out, input: %s, config: { type: csv, path: out.csv } }
"""


def test_nothing_reads_an_init_transform(tmp_path: Path) -> None:
    assert said(tmp_path, INIT % ("", "first")) == [("E164", "first")]
    assert said(tmp_path, INIT % ("", "orders")) == []
    second = """\
  - type: transform
    name: second
    input: first
    config:
      phase: init
      declares: [{ name: x, scope: pipeline, type: date }]
      cxl: emit $pipeline.x = $pipeline.day"""
    assert said(tmp_path, INIT % (second, "orders")) == []  # both run first, one after the other
    window = (
        "  - { type: transform, name: w, input: orders, config: { analytic_window: { group_by: [day], source: first }, "
    )
    assert said(tmp_path, INIT % (window + "cxl: emit n = $window.count() } }", "w")) == [("E164", "first")]


def test_an_init_transform_reads_nothing_that_is_written_later(tmp_path: Path) -> None:
    later = """\
  - type: transform
    name: later
    input: orders
    config: { declares: [{ name: n, scope: pipeline, type: date }], cxl: emit $pipeline.n = day }"""
    given = (INIT % (later, "later")).replace("cxl: emit $pipeline.day = day", "cxl: emit $pipeline.day = $pipeline.n")
    assert said(tmp_path, given) == [("E175", "$pipeline.n")]


def test_an_output_of_a_composition_is_no_init_transform(tmp_path: Path) -> None:
    (tmp_path / "c.comp.yaml").write_text(
        "_compose: { name: c, inputs: { rows: {} }, outputs: { out: first } }\nnodes:\n"
        "  - type: transform\n    name: first\n    input: rows\n    config:\n      phase: init\n"
        "      declares: [{ name: day, scope: pipeline, type: date }]\n      cxl: emit $pipeline.day = day\n"
    )
    given = INIT.replace("phase: init", "phase: runtime") % (
        "  - { type: composition, name: c, use: c.comp.yaml, input: orders }",
        "c",
    )
    assert ("E164", "first") in said(tmp_path, given)


# ---------------------------------------------------------------- merges


@pytest.mark.parametrize(
    ("shop", "web", "what"),
    [
        ("", ", on_unmapped: { mode: drop }", "'shop' has on_unmapped auto_widen, and 'web' has on_unmapped drop"),
        (", on_unmapped: { mode: reject }", ", on_unmapped: { mode: drop }", "reject, and 'web' has on_unmapped drop"),
        (", correlation_key: n", "", "'shop' has correlation_key n, and 'web' has no correlation_key"),
        (", correlation_key: n", ", correlation_key: [n, day]", "correlation_key n, day"),
    ],
)
def test_merged_sources_agree(tmp_path: Path, shop: str, web: str, what: str) -> None:
    (d,) = found(tmp_path, text(shop=shop, web=web))
    assert d.code == "E315" and what in d.message and d.source is not None and d.span is not None
    assert d.source.text[d.span.start : d.span.end] == "web"
    assert said(tmp_path, text(shop=web or shop, web=web or shop)) == []


def test_keys_may_be_listed_in_any_order(tmp_path: Path) -> None:
    assert said(tmp_path, text(shop=", correlation_key: [day, n]", web=", correlation_key: [n, day]")) == []


def test_what_joins_and_groups_made_agrees_with_everything(tmp_path: Path) -> None:
    groups = (
        "  - { type: aggregate, name: g, input: shop_days, config: { group_by: [day, n], cxl: emit c = count(*) } }\n"
    )
    counted = '  - { type: transform, name: c, input: web, config: { cxl: "emit c = 1" } }\n'
    join = groups + counted + "  - { type: merge, name: both, inputs: [g, c] }"
    assert said(tmp_path, text(join=join, web=", on_unmapped: { mode: drop }")) == []


# ---------------------------------------------------------------- paths


@pytest.mark.parametrize(
    ("path", "code", "marked"),
    [
        ("{source_name}.csv", "E407", "{source_name}"),
        ("out/{source_name:shop}.csv", None, ""),
        ("out/{source_name:shp}.csv", "E407", "{source_name:shp}"),
        ("out/{source_name:shop_days}.csv", "E407", "{source_name:shop_days}"),
        ("out/{pipeline_hash:12}{batch_id:-:}.csv", None, ""),
        ("out/{pipeline_hash:x}.csv", "E007", '"out/{pipeline_hash:x}.csv"'),
        ("out/{timestamp:x}.csv", "E007", '"out/{timestamp:x}.csv"'),
        ("out/{source_file:x}.csv", "E007", '"out/{source_file:x}.csv"'),
        ("out/{channel}.csv", "E009", '"out/{channel}.csv"'),
        ("out/{channel:a:b}x.csv", None, ""),
        ("out{n}.csv", "W027", '"out{n}.csv"'),
    ],
)
def test_tokens_of_paths(tmp_path: Path, path: str, code: str | None, marked: str) -> None:
    assert said(tmp_path, text(path=path)) == ([] if code is None else [(code, marked)])


def test_a_source_that_feeds_another_output(tmp_path: Path) -> None:
    given = text() + (
        '  - { type: output, name: alone, input: web, config: { type: csv, path: "{source_name:shop}.csv" } }\n'
    )
    (d,) = found(tmp_path, given)
    assert d.code == "E407" and d.message == "source 'shop' does not feed output 'alone'"
    assert d.help == "write {source_name:web}"


# ---------------------------------------------------------------- compositions

BODY = """\
_compose:
  name: age
  inputs: { rows: { schema: [{ name: day, type: date }] } }
  outputs: { out: aged }
  scoped_vars: { %s }
nodes:
  - { type: transform, name: aged, input: rows, config: { cxl: "emit days = $pipeline.last.diff_days(day)" } }
"""
CALL = """\
pipeline: { name: demo }
nodes:
  - { type: source, name: orders, config: { type: csv, path: orders.csv, schema: { day: date } } }
  - type: transform
    name: latest
    input: orders
    config: { declares: [{ name: last, scope: pipeline, type: %s }], cxl: "emit $pipeline.last = %s" }
  - { type: composition, name: age, use: age.comp.yaml, input: latest }
  - { type: output, name: out, input: age, config: { type: csv, path: out.csv } }
"""


@pytest.mark.parametrize(
    ("asks", "kind", "value", "expected"),
    [
        ("pipeline: { last: { type: date } }", "date", "day", []),
        ("", "date", "day", [("E173", "$pipeline.last")]),
        ("pipeline: { last: { type: int } }", "date", "day", [("E174", "age.comp.yaml")]),
        ("pipeline: { last: { type: date }, lst: { type: date } }", "date", "day", [("E174", "age.comp.yaml")]),
        ("source: { last: { type: date } }", "date", "day", [("E174", "age.comp.yaml")]),
    ],
)
def test_variables_that_compositions_ask_for(
    tmp_path: Path, asks: str, kind: str, value: str, expected: list[tuple[str, str]]
) -> None:
    (tmp_path / "age.comp.yaml").write_text(BODY % asks)
    assert said(tmp_path, CALL % (kind, value)) == expected


def test_two_calls_of_a_composition_write_no_variable_twice(tmp_path: Path) -> None:
    body = BODY % ""
    body = body.replace('cxl: "emit days = $pipeline.last.diff_days(day)"', 'cxl: "emit $pipeline.own = day", D')
    body = body.replace(", D", ", declares: [{ name: own, scope: pipeline, type: date }]")
    (tmp_path / "age.comp.yaml").write_text(body)
    call = CALL % ("date", "day")
    assert said(tmp_path, call) == []
    again = call.replace("name: age,", "name: again,").split("\n")
    twice = call.replace("input: age,", "input: again,").replace(
        "  - { type: output", again[7].replace("input: latest", "input: age") + "\n  - { type: output"
    )
    assert [code for code, _ in said(tmp_path, twice)] == ["E014"]


# ---------------------------------------------------------------- keys without effect in this graph

ONE = """\
pipeline: { name: demo }
nodes:
  - { type: source, name: s, config: { type: csv, path: a.csv, schema: { id: int, n: int }%s } }
  - { type: transform, name: t, input: s, config: { cxl: "%s"%s } }
  - { type: output, name: o, input: t, config: { type: csv, path: o.csv%s } }
%s
"""


@pytest.mark.parametrize(
    ("source", "program", "transform", "output", "errors", "marked"),
    [
        ("", "emit x = 1", ", analytic_window: { group_by: [id] }", "", "", "analytic_window"),
        ("", "emit x = $window.count()", ", analytic_window: { group_by: [id] }", "", "", None),
        ("", "emit x = 1", "", ", include_correlation_keys: true", "", "include_correlation_keys"),
        (", correlation_key: id", "emit x = 1", "", ", include_correlation_keys: true", "", None),
        ("", "emit x = 1", "", ", correlation_fanout_policy: all", "", "correlation_fanout_policy"),
        ("", "emit x = 1", "", "", "retraction_scope: group", "retraction_scope"),
        ("", "emit x = 1", "", "", "max_group_buffer: 5", "max_group_buffer"),
        ("", "emit x = 1", "", "", "strategy: continue, dlq: { include_retracted: false }", "include_retracted"),
        (", correlation_key: id", "emit x = 1", "", "", "retraction_scope: group, max_group_buffer: 5", None),
        ("", "emit x = 1", "", "", "dlq: { max_rate: 5% }", "max_rate"),
        ("", "emit x = 1", "", ", schema: [{ name: idd, type: decimal, scale: 2 }]", "", "idd"),
        ("", "emit x = 1", "", ", schema: [{ name: id, type: decimal, scale: 2 }]", "", None),
    ],
)
def test_keys_without_effect(
    tmp_path: Path, source: str, program: str, transform: str, output: str, errors: str, marked: str | None
) -> None:
    handling = f"error_handling: {{ {errors} }}" if errors else ""
    given = ONE % (source, program, transform, output, handling)
    assert said(tmp_path, given) == ([] if marked is None else [("W027", marked)])


def test_record_path_goes_with_one_document(tmp_path: Path) -> None:
    for form, code in (("array", None), ("object", None), ("ndjson", "E363")):
        options = f", options: {{ format: {form}, record_path: a.b }}"
        given = (ONE % (options, "emit x = 1", "", "", "")).replace(
            "type: csv, path: a.csv", "type: json, path: a.json"
        )
        assert said(tmp_path, given) == ([] if code is None else [(code, "record_path")])


def test_correlation_keys_that_no_input_has(tmp_path: Path) -> None:
    named = COMBINE.replace("propagate_ck: driver", "propagate_ck: { named: [n, m] }")
    given = text(join=named, shop=", correlation_key: n")
    assert said(tmp_path, given) == [("W027", "m")]


def test_a_sort_column_is_marked_alone(tmp_path: Path) -> None:
    for sort in ("idd", "[id, idd]", "[{ field: idd, order: desc }]", "{ field: idd }"):
        given = ONE % ("", "emit x = 1", "", f", sort_order: {sort}", "")
        assert said(tmp_path, given) == [("E203", "idd")]


@pytest.mark.parametrize(
    ("source", "output", "code", "marked"),
    [
        ("path: a.csv, watermark: { column: dya }", "type: csv, path: o.csv", "E154", "dya"),
        ("path: a.csv", "type: parquet, path: o/, partition_by: x", "E443", "x"),
        ("path: a.csv", "type: parquet, path: o/, partition_by: [day, id], exclude: [x]", "E443", "[day, id]"),
        (
            'glob: "*.csv", files: { only_new: true }',
            "type: csv, path: o.csv, if_exists: append, sort_order: [id]",
            "W442",
            "[id]",
        ),
        (
            'glob: "*.csv", files: { only_new: true }, correlation_key: id',
            "type: csv, path: o/, if_exists: append",
            "W442",
            "id",
        ),
    ],
)
def test_keys_that_do_not_fit_the_columns_or_each_other(
    tmp_path: Path, source: str, output: str, code: str, marked: str
) -> None:
    nodes = (
        "pipeline: { name: demo }\nerror_handling: { strategy: continue, dlq: { path: dead.csv } }\nnodes:\n"
        "  - { type: source, name: s, config: { schema: { id: int, day: date, x: float }, type: csv, "
        f"{source} }} }}\n"
        f"  - {{ type: output, name: o, input: s, config: {{ {output} }} }}\n"
    )
    assert (code, marked) in said(tmp_path, nodes)
