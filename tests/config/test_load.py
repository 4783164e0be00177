"""Pipelines and compositions that are right, and files that are not where they should be."""

from __future__ import annotations

import datetime as dt
import time
from pathlib import Path

import pytest

from clinker_spark import config
from clinker_spark.config.errors import ConfigError
from clinker_spark.config.load import PipelineFile, load_composition, load_pipeline, parse_pipeline
from clinker_spark.config.model.combine import CombineNode
from clinker_spark.config.model.output import CsvOutput, OutputNode
from clinker_spark.config.model.schema import layout
from clinker_spark.config.model.source import CsvSource, SourceNode
from clinker_spark.config.model.transform import TransformNode
from clinker_spark.config.variables import variable_types, variable_values
from clinker_spark.core.span import Source
from tests.config.pipelines import chain

DATA = Path(__file__).parent / "data"


@pytest.fixture(scope="module")
def full() -> PipelineFile:
    return load_pipeline(DATA / "full.yaml")


def codes(path: Path) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load_pipeline(path)
    assert caught.value.exit_code == 1
    return [d.code for d in caught.value.diagnostics]


def with_schema(schema: str) -> str:
    return (
        "pipeline: { name: demo }\nnodes:\n"
        f"  - {{ type: source, name: orders, config: {{ type: csv, path: a.csv, schema: {schema} }} }}\n"
        "  - { type: output, name: out, input: orders, config: { type: csv, path: b.csv } }\n"
    )


# ---------------------------------------------------------------- a pipeline that is right


def test_a_full_pipeline_has_no_findings(full: PipelineFile) -> None:
    assert full.warnings == ()
    assert [node.kind for node in full.nodes][:6] == ["source"] * 5 + ["merge"]


def test_settings(full: PipelineFile) -> None:
    settings = full.settings
    assert (settings.name, settings.batch_size, settings.memory.limit) == ("full", 2048, 2 * 2**30)
    assert variable_values(settings.vars) == {"threshold": 500.0, "region": "central", "since": dt.date(2026, 1, 31)}
    assert {name: str(t) for name, t in variable_types(settings.vars).items()} == {
        "threshold": "Float",
        "region": "String",
        "since": "Date",
    }
    assert full.error_handling.dlq.max_rate == 0.05
    assert full.error_handling.dlq.per_source["orders"].min_records == 0


def test_a_source(full: PipelineFile) -> None:
    node = full.node("orders")
    assert isinstance(node, SourceNode) and isinstance(node.config, CsvSource)
    assert node.source_name == "shop_orders"
    assert node.config.correlation_key == ("order_id",)
    assert [(s.field, s.order, s.null_order) for s in node.config.sort_order] == [
        ("order_id", "asc", "last"),
        ("day", "desc", "first"),
    ]
    assert node.config.modified_after == dt.timedelta(days=7)
    assert node.config.modified_before == dt.datetime(2026, 12, 31)
    assert node.config.options.encoding == "iso8859-1"
    schema = full.schema_of("orders")
    assert schema is not None
    assert {name: str(t) for name, t in schema.types().items()} == {
        "order_id": "String",
        "product_id": "String",
        "amount": "Nullable(Decimal)",
        "day": "Date",
        "tags": "Array(String)",
    }
    amount = schema.column("amount")
    assert amount is not None and (amount.digits, amount.data_type.scale) == (12, 2)
    assert full.source.text[schema.document.span_of((*schema.path, 3, "type")).start :].startswith("date,")


def test_a_fixed_width_layout(full: PipelineFile) -> None:
    schema = full.schema_of("ledger")
    assert schema is not None
    assert layout(schema.columns) == [(0, 12), (12, 22)]


def test_the_other_nodes(full: PipelineFile) -> None:
    combine, report, low, clean = (full.node(name) for name in ("priced", "report", "report_low", "clean"))
    assert isinstance(combine, CombineNode)
    assert (combine.probe_name, list(combine.input)) == ("orders", ["orders", "prices"])
    assert combine.config.propagate_ck.named == ("order_id",)
    assert isinstance(report, OutputNode) and isinstance(low, OutputNode) and isinstance(low.config, CsvOutput)
    assert low.config.path == "out/low.csv" and low.config.options.delimiter == "\t"
    assert report.config.mapping is not None
    assert [(m.output, m.source) for m in report.config.mapping] == [("order_id", "order_id"), ("sum", "total")]
    assert isinstance(clean, TransformNode)
    assert clean.config.declares[1].value == 0.5
    assert clean.config.validations[1].args == {"lowest": 0.5, "strict": True}
    assert full.node("rest").kind == "output"


def test_declared_variables(full: PipelineFile) -> None:
    found = {scope: {name: str(t) for name, t in names.items()} for scope, names in full.declared_variables().items()}
    assert found == {"pipeline": {"last_day": "Nullable(Date)"}, "source": {}, "record": {"score": "Float"}}


def test_models_are_frozen(full: PipelineFile) -> None:
    with pytest.raises(ValueError, match="frozen"):
        full.settings.name = "other"


def test_places_stay_reachable(full: PipelineFile) -> None:
    path = full.path_of("clean", "config", "cxl")
    program = full.text_of(path)
    assert program.text.startswith("let net = amount * 2\nfilter")
    start = program.to_file_offset(program.text.index("emit total"))
    assert full.source.text[start:].startswith("emit total = net")
    assert full.source.text[full.span_of(("nodes", 0, "name")).start :].startswith("orders\n")
    assert full.source.text[full.document.key_span(path).start :].startswith("cxl: |")
    with pytest.raises(KeyError):
        full.text_of(("nodes", 0, "config"))
    found = full.diagnostic("E200", "wrong", path, "mend it", key=True)
    assert found.span == full.document.key_span(path)


def test_folded_programs_have_places_too(full: PipelineFile) -> None:
    program = full.text_of(full.path_of("priced", "config", "cxl"))
    start = program.to_file_offset(program.text.index("emit value"))
    assert full.source.text[start:].startswith("emit value = orders.total")


# ---------------------------------------------------------------- schemas in files


@pytest.mark.parametrize(
    ("file", "types"),
    [
        ("orders.schema.yaml", {"order_id": "String", "amount": "Float"}),
        ("short.schema.yaml", {"order_id": "String", "amount": "Decimal"}),
    ],
)
def test_schema_files(file: str, types: dict[str, str]) -> None:
    found = parse_pipeline(Source("p.yaml", with_schema(file)), DATA / "p.yaml")
    schema = found.schema_of("orders")
    assert schema is not None and {name: str(t) for name, t in schema.types().items()} == types
    assert schema.source.name.endswith(file)
    amount = schema.document.span_of((*schema.path, 1, "name"))
    assert schema.source.text[amount.start :].startswith(("amount", "{ type: decimal"))


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("nothing.schema.yaml", ["E157"]),
        ("broken.schema.yaml", ["E226", "E005"]),
        ("order.schema.yaml", ["E157"]),
        ("double.schema.yaml", ["E226"]),
    ],
)
def test_schema_files_that_are_wrong(file: str, expected: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_pipeline(Source("p.yaml", with_schema(file)), DATA / "p.yaml")
    found = caught.value.diagnostics
    assert [d.code for d in found] == expected
    for d in found:
        assert d.source is not None and d.span is not None and d.span.end <= len(d.source.text)
        assert d.source.name.endswith(file if d.code != "E157" else "p.yaml")
    if file == "order.schema.yaml":
        assert found[0].help == "did you mean 'orders.schema.yaml'?"


@pytest.mark.parametrize("content", ["", "just a text\n", "5\n", "[]\n", "columns: text\n", "a: [1]\n", "- [x]\n"])
def test_schema_files_with_something_else(content: str, tmp_path: Path) -> None:
    (tmp_path / "x.schema.yaml").write_text(content)
    (tmp_path / "p.yaml").write_text(with_schema("x.schema.yaml"))
    assert set(codes(tmp_path / "p.yaml")) <= {"E157", "E201", "E226", "E006", "E007"}


def test_checks_of_the_source_use_the_columns_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "x.schema.yaml").write_text("- { name: id, type: int }\n")
    text = with_schema("x.schema.yaml, correlation_key: ids")
    (tmp_path / "p.yaml").write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_pipeline(tmp_path / "p.yaml")
    (found,) = caught.value.diagnostics
    assert found.code == "E153" and found.help == "did you mean 'id'?"
    assert found.source is not None and found.source.name.endswith("p.yaml")


# ---------------------------------------------------------------- compositions


def test_a_composition() -> None:
    found = load_composition(DATA / "score.comp.yaml")
    assert found.warnings == ()
    assert found.interface.outputs == {"out": "rated", "rest": "split.low"}
    limit, name, since = found.interface.config_schema.values()
    assert (limit.value, limit.is_required, limit.refuses(2.0)) == (0.5, False, "lies outside 0.0 to 1.0")
    assert (name.value, name.is_required, name.refuses("xyz")) == (None, True, "is none of abc, def")
    assert (since.value, since.is_required) == (dt.date(2026, 1, 31), True)
    assert found.graph.roots == ("rows",)
    assert [(e.producer, e.port) for e in found.graph.inputs("rated")] == [("split", "high")]
    assert list(found.schemas) == [("_compose", "inputs", "rows", "schema")]


# ---------------------------------------------------------------- files


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "pipeline.yaml").write_bytes(b"pipeline: \xff\n")
    assert codes(tmp_path / "pipeline.yaml") == ["E224"]
    assert codes(tmp_path) == ["E224"]
    assert codes(tmp_path / "no" / "such.yaml") == ["E224"]
    with pytest.raises(ConfigError, match="no such file") as caught:
        load_pipeline(tmp_path / "pipelin.yaml")
    assert "did you mean" in str(caught.value.diagnostics[0].help)


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + with_schema("{ id: int }").encode())
    assert load_pipeline(path).span_of(("pipeline",)).start == 10


def test_the_public_names() -> None:
    assert config.load_pipeline is load_pipeline
    assert all(hasattr(config, name) for name in config.__all__)
    with pytest.raises(AttributeError):
        config.nothing  # noqa: B018


# ---------------------------------------------------------------- size


def test_thirty_nodes_load_at_once() -> None:
    source = Source("big.yaml", chain(30))
    parse_pipeline(source, Path("big.yaml"))  # the models are built when they are first used
    taken = []
    for _ in range(5):
        start = time.process_time()  # of this process alone: other work on the machine does not count
        parse_pipeline(source, Path("big.yaml"))
        taken.append(time.process_time() - start)
    assert min(taken) < 0.1


def test_a_thousand_nodes_load_too() -> None:
    found = parse_pipeline(Source("big.yaml", chain(1000)), Path("big.yaml"))
    assert len(found.graph.order()) == 1000
