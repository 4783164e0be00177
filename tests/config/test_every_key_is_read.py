"""Every key of a pipeline or of clinker.toml is read by someone who acts on it, or refused: none is silently ignored.

A key counts as read when code takes it from a value of its model. What a value is called where is not written in
Python, so `READERS` says it for each model: in which files, in which functions, under which names. A new key that
nobody reads is not found there, and neither is a new model.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_origin

import pytest

import clinker_spark
from clinker_spark.config.findings.translate import findings
from clinker_spark.config.load import parse_pipeline
from clinker_spark.config.model import (
    aggregate,
    combine,
    composition,
    envelope_node,
    groups,
    join_values,
    merge,
    order,
    output,
    output_formats,
    query,
    route,
    schema,
    source,
    stream_join,
    transform,
)
from clinker_spark.config.model.base import Model
from clinker_spark.config.model.connectors import demo, kafka, postgres, settings
from clinker_spark.config.model.documents import files as nodes
from clinker_spark.config.model.documents import pipeline, stream, workspace
from clinker_spark.config.model.node import InputNode, NodeModel
from clinker_spark.config.model.sources import config as source_config
from clinker_spark.config.model.sources import envelope, record_kinds, split_rows, split_values
from clinker_spark.config.model.sources import formats as source_formats
from clinker_spark.config.model.sources import keys as source_keys
from clinker_spark.config.refused import FOR_PEOPLE, REFUSED, default_of, refused_keys
from clinker_spark.core.span import Source
from tests.config.golden_cases import findings as findings_in

ROOT = Path(clinker_spark.__file__).parent
DOCS = Path(__file__).parents[2] / "docs"

# file: function: what the value is called there. 'key' in quotes: the key is asked for by its name.
READERS: dict[type[Model], tuple[str, ...]] = {
    aggregate.AggregateConfig: ("plan/bind/aggregate.py: *: config", "plan/bind/aggregate.py: *: 'key'"),
    aggregate.AggregateNode: ("plan/bind/aggregate.py: *: node",),
    aggregate.TimeWindow: ("config/model/aggregate.py: window: self", "plan/bind/aggregate.py: *: config.time_window"),
    aggregate.Tumbling: ("spark/operators/time_windows.py: *: window",),
    aggregate.Hopping: ("spark/operators/time_windows.py: *: window",),
    aggregate.Session: ("spark/operators/time_windows.py: *: window",),
    combine.CombineConfig: (
        "plan/bind/combine.py: *: self.config",
        "plan/bind/combine.py: *: 'key'",
        "spark/operators/combine*.py: *: *config",
        "spark/joins/*.py: *: *config",
        "plan/nodes/combine.py: *: self.config",
    ),
    combine.CombineNode: ("plan/bind/combine.py: *: *node",),
    combine.PropagateCk: ("plan/nodes/combine.py: keys: wanted",),
    composition.CompositionNode: ("plan/bind/composition.py: *: node", "config/model/composition.py: inputs_in: 'key'"),
    composition.Interface: ("plan/bind/composition.py: *: body.interface",),
    composition.Parameter: (
        "config/model/composition.py: value: self",
        "config/model/composition.py: is_required: self",
        "config/model/composition.py: refuses: self",
    ),
    composition.Port: (
        "plan/bind/composition.py: _port*: 'key'",
        "plan/bind/composition.py: _unfed_ports: declared[[]name[]]",
    ),
    composition.ResourceSlot: ("plan/bind/composition.py: _resources: spec",),
    composition.ScopedVar: ("plan/bind/composition.py: _scoped_variables: spec",),
    composition.ScopedVars: ("plan/bind/composition.py: _scoped_variables: wanted",),
    groups.CullConfig: ("plan/bind/cull.py: bind_cull: config",),
    groups.CullNode: ("plan/bind/cull.py: bind_cull: node",),
    groups.CullRule: ("plan/bind/cull.py: bind_cull: rule", "plan/bind/cull.py: bind_cull: 'key'"),
    groups.Mutate: ("plan/bind/reshape.py: _rule: rule.mutate",),
    groups.ReshapeConfig: ("plan/bind/reshape.py: bind_reshape: config",),
    groups.ReshapeNode: ("plan/bind/reshape.py: bind_reshape: node",),
    groups.ReshapeRule: ("plan/bind/reshape.py: _rule: rule", "plan/bind/reshape.py: bind_reshape: 'key'"),
    groups.Synthesize: ("plan/bind/reshape.py: _rule: made",),
    envelope.Envelope: ("config/model/sources/envelope.py: types: self", "runtime/discover/envelopes.py: *: envelope"),
    envelope.Extract: ("config/model/sources/envelope.py: path: self",),
    envelope.Section: ("config/model/sources/envelope.py: types: found", "runtime/discover/envelopes.py: *: spec"),
    envelope_node.EnvelopeConfig: ("plan/bind/envelope.py: bind_envelope: config",),
    envelope_node.EnvelopeNode: ("config/model/envelope_node.py: : 'key'", "plan/bind/envelope.py: *: node"),
    record_kinds.Discriminator: ("spark/scan/kinds/lines.py: _place: found",),
    record_kinds.RecordKind: ("spark/scan/kinds/lines.py: *: kind",),
    record_kinds.RecordKinds: ("spark/scan/kinds/lines.py: *: *.spec", "spark/scan/kinds/lines.py: *: spec"),
    record_kinds.Trailer: ("spark/scan/kinds/lines.py: structure_problem: trailer",),
    merge.MergeConfig: ("plan/bind/merge.py: bind_merge: config",),
    merge.MergeNode: ("plan/bind/merge.py: *: node",),
    NodeModel: ("plan/bind/node.py: *: node",),
    InputNode: ("config/model/node.py: : 'key'",),
    nodes.PipelineDocument: ("config/load.py: parse_pipeline: 'key'", "config/load.py: nodes: 'key'"),
    nodes.CompositionDocument: ("config/load.py: parse_composition: 'key'", "config/load.py: nodes: 'key'"),
    order.SortField: ("spark/operators/*.py: *: item",),
    kafka.LetterTopic: ("streaming/connectors/letters.py: *: given",),
    kafka.MessageText: ("streaming/connectors/topics.py: *: config.options",),
    kafka.MessageLine: ("spark/connectors/shapes.py: *: config.options",),
    kafka.Metadata: ("config/model/connectors/kafka.py: *: 'key'",),
    kafka.TopicRead: ("streaming/connectors/topics.py: *: config", "config/model/connectors/*.py: check_topic: self"),
    kafka.TopicWrite: (
        "streaming/connectors/topics.py: *: *config",
        "spark/connectors/shapes.py: *: config",
        "config/model/connectors/kafka.py: check_columns: self",
    ),
    postgres.TableWrite: ("streaming/connectors/tables.py: *: *config",),
    settings.FromEnvironment: ("streaming/connectors/places.py: resolved: value",),
    output.KafkaOutput: (),
    output.PostgresOutput: (),
    source.KafkaSource: (),
    source.RateSource: (),
    output.ConsoleOutput: (),
    demo.RateRead: ("streaming/connectors/demo.py: *: config",),
    demo.ConsoleWrite: ("streaming/connectors/demo.py: *: *config",),
    output.Mapped: ("plan/output_columns.py: *: item",),
    output.Split: ("spark/operators/output.py: *: *split", "runtime/*.py: *: *split"),
    join_values.JoinValues: ("spark/render/joined_values.py: *: join",),
    output_formats.WrittenEnvelope: ("plan/bind/envelope.py: *: written",),
    output.CsvWrite: ("spark/render/csv_lines.py: *: config.options", "plan/bind/envelope.py: *: config.options"),
    output.JsonWrite: ("spark/render/json_lines.py: *: config.options", "plan/bind/envelope.py: *: config.options"),
    output.XmlWrite: ("spark/render/xml_lines.py: *: options", "plan/bind/envelope.py: *: config.options"),
    output.FixedWidthWrite: ("spark/render/fixed_lines.py: *: config.options",),
    output.ParquetWrite: ("spark/operators/output.py: *: *.options", "runtime/run/*.py: *: *.options"),
    output.OutputConfig: (
        "plan/output_columns.py: *: config",
        "plan/bind/output.py: *: node.config",
        "plan/graph.py: shows_keys: output.config",
        "spark/operators/output.py: *: *config",
        "spark/operators/sort_keys.py: *: *config",
        "spark/rejects/withheld.py: *: node.config",
        "spark/render/*.py: *: config",
        "runtime/run/outputs.py: *: *config",
        "runtime/paths/*.py: *: *config",
        "config/model/output.py: output_name: self.config",
        "config/load.py: schema_of: 'key'",
    ),
    **dict.fromkeys(
        (output.CsvOutput, output.JsonOutput, output.XmlOutput, output.FixedWidthOutput),
        ("spark/render/*.py: *: config",),
    ),
    output.ParquetOutput: ("spark/operators/output.py: *: *config", "plan/nodes/output.py: partition_by: 'key'"),
    output.OutputNode: ("plan/bind/output.py: *: node",),
    pipeline.Memory: (
        "config/model/documents/pipeline.py: declared_limit: self",
        "runtime/arbitrate/session.py: *: memory",
    ),
    pipeline.VarDecl: ("config/variables.py: *: decl*", "config/model/documents/pipeline.py: value: self"),
    pipeline.Concurrency: ("runtime/run/memory.py: *: *.concurrency",),
    pipeline.Metrics: ("runtime/run/options.py: spool_folder: *.metrics",),
    pipeline.Settings: (
        "plan/passes/fragments.py: *: *.settings",
        "config/model/documents/pipeline.py: declared_batch_size: self",
        "plan/prepare.py: prepare: file.settings",
        "runtime/run/memory.py: *: *.settings",
        "runtime/run/options.py: spool_folder: *.settings",
        "runtime/run/options.py: contexts: *.settings",
        "spark/operators/source.py: *: *.settings",
    ),
    pipeline.SourceDlq: ("runtime/*.py: *: own",),
    pipeline.Dlq: ("runtime/*.py: *: *dlq", "runtime/*.py: *: handling", "spark/rejects/letters.py: *: handling"),
    pipeline.ErrorHandling: ("runtime/*.py: *: *handling", "spark/*.py: *: *handling"),
    query.QueryConfig: ("plan/query/node.py: *: 'key'", "plan/query/node.py: *: *config"),
    query.QueryNode: ("plan/query/node.py: *: *node", "plan/query/node.py: *: 'key'"),
    route.RouteConfig: ("plan/bind/route.py: bind_route: config",),
    route.RouteNode: ("plan/bind/route.py: bind_route: node",),
    schema.ColumnPatch: ("config/model/schema.py: patched: patch", "config/model/schema.py: patched: 'key'"),
    schema.FieldPlaces: ("config/model/schema.py: patched: places",),
    schema.FieldPlace: ("config/model/schema.py: patched: place", "config/model/schema.py: : 'key'"),
    split_rows.RowSplit: ("spark/scan/text/rows_of_values.py: value_rows: s",),
    split_values.SplitValues: ("plan/bind/split_values.py: *: split",),
    schema._Named: ("config/model/schema.py: *: column", "config/model/schema.py: data_type: self"),
    schema.Described: (
        "config/model/schema.py: data_type: self",
        "config/model/schema.py: digits: self",
        "spark/scan/*.py: *: column",
        "config/model/schema.py: *: column",
        "config/model/schema.py: patched: 'key'",
        "spark/render/*.py: *: declared",
    ),
    schema._Placed: ("config/model/schema.py: layout: column", "config/model/schema.py: : 'key'"),
    schema.Column: (
        "config/model/schema.py: data_type: self",
        "config/model/schema.py: digits: self",
        "config/model/schema.py: layout: column",
        "spark/render/*.py: *: declared",
        "spark/scan/*.py: *: column",
        "spark/render/cell_text.py: *: column",
    ),
    source_keys.Files: (
        "runtime/discover/sources.py: _ordered: spec",
        "runtime/discover/*.py: *: config.files",
        "plan/nodes/source.py: only_new: self.config.files",
    ),
    source_keys.OnUnmapped: ("spark/operators/source.py: *: *.on_unmapped",),
    source_keys.Watermark: (
        "spark/operators/time_windows.py: *: watermark",
        "streaming/watch/beats.py: *: mark",
        "plan/streams.py: *: mark",
    ),
    stream.StreamSettings: (
        "streaming/run.py: *: settings",
        "streaming/run.py: *: *.stream",
        "streaming/batches.py: *: *.stream",
        "streaming/checkpoint.py: *: *.stream",
    ),
    stream_join.TimeWindow: ("spark/operators/stream_join.py: *: window",),
    stream_join.StreamJoinConfig: (
        "plan/bind/stream_join.py: *: self.config",
        "plan/nodes/stream_join.py: *: *config",
        "spark/operators/stream_join.py: *: *config",
        "config/model/stream_join.py: event_side: self",
    ),
    stream_join.StreamJoinNode: ("plan/bind/stream_join.py: *: node",),
    source_config.SourceConfig: (
        "runtime/discover/sources.py: *: *config",
        "runtime/discover/source_order.py: *: node.config",
        "spark/operators/source*.py: *: node.config",
        "plan/bind/source.py: *: *config",
        "plan/nodes/source.py: by_document: self.config",
        "runtime/discover/envelopes.py: *: source.config",
        "spark/build/source_columns.py: conventions_of: config",
        "config/model/source.py: source_name: self.config",
        "config/model/sources/config.py: adjusted: self",
        "config/load.py: schema_of: 'key'",
    ),
    **dict.fromkeys(
        (source.CsvSource, source.JsonSource, source.XmlSource, source.FixedWidthSource, source.ParquetSource),
        ("spark/operators/source.py: *: node.config", "config/model/sources/config.py: adjusted: 'key'"),
    ),
    source.DatasetSource: ("spark/scan/dataset/source.py: *: options", "spark/operators/source.py: *: node.config"),
    source.SourceNode: ("plan/bind/source.py: bind_source: node",),
    source_formats.CsvRead: ("spark/scan/csv/*.py: *: *options",),
    source_formats.JsonRead: ("spark/scan/json/source.py: *: request.options",),
    source_formats.XmlRead: ("spark/scan/xml/source.py: *: options",),
    source_formats.FixedWidthRead: ("spark/scan/fixed/rows.py: *: options",),
    source_formats.ParquetRead: (),
    transform.AnalyticWindow: (
        "plan/bind/transforms/windows.py: *: spec",
        "config/model/transform.py: further_inputs_in: 'key'",
    ),
    transform.Frame: ("spark/operators/transform.py: *: frame", "plan/bind/transforms/windows.py: *: spec.frame"),
    transform.Validation: ("plan/bind/transforms/validations.py: *: validation",),
    transform.Declaration: (
        "plan/bind/transforms/scopes.py: *: declared",
        "config/model/transform.py: value: self",
        "config/variables.py: variable_types: decl",
    ),
    transform.LogRule: (
        "runtime/run/pipeline.py: *: *rule",
        "spark/operators/record_log.py: *: *.rule",
        "plan/bind/transforms/record_logs.py: *: rule",
    ),
    transform.TransformConfig: (
        "plan/bind/transform.py: bind_transform: config",
        "plan/bind/transform.py: bind_transform: 'key'",
        "plan/bind/transforms/validations.py: *: node.config",
    ),
    transform.TransformNode: ("plan/bind/transform.py: bind_transform: node",),
    workspace.Spill: ("runtime/arbitrate/*.py: *: *.config", "runtime/arbitrate/*.py: *: *.spill"),
    workspace.Staging: ("runtime/staging/settings.py: *: *config", "runtime/staging/checks.py: *: *config"),
    workspace.Publication: (),
    workspace.Storage: (),
    workspace.Channel: (),
    workspace.Group: (),
    workspace.Resource: ("plan/bind/composition.py: _resources: resource",),
    workspace.Catalog: (
        "config/workspace.py: rules_folder: *.catalog",
        "plan/bind/composition.py: _resources: workspace.config.catalog",
    ),
    workspace.Spark: ("cli/clinker/actions/session_settings.py: *: *spark",),
    workspace.Session: ("cli/warm/start.py: *: *.session",),
    workspace.WorkspaceConfig: (
        "runtime/staging/settings.py: *: *.config",
        "cli/clinker/actions/session_settings.py: *: *.config",
        "cli/warm/start.py: *: *.config",
        "config/workspace.py: rules_folder: *.config",
    ),
}

HOLD_REFUSED = (workspace.Storage, workspace.Resource)
"""Models that hold nothing but what is refused."""


def models(base: type[Model] = Model) -> Iterator[type[Model]]:
    for model in base.__subclasses__():
        if model.__module__.startswith("clinker_spark.config.model"):
            yield model
            yield from models(model)


MODELS = sorted(set(models()), key=lambda model: (model.__module__, model.__name__))


@cache
def reads() -> tuple[tuple[str, str, str, str], ...]:
    """Everything that is taken from anything, or named in quotes: file, function, from what, what."""
    found = []
    for path in sorted(ROOT.rglob("*.py")):
        for function, node in _with_function(ast.parse(path.read_text(encoding="utf-8")), ""):
            file = path.relative_to(ROOT).as_posix()
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                found.append((file, function, ast.unparse(node.value), node.attr))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append((file, function, "'key'", node.value))
    return tuple(found)


def _with_function(node: ast.AST, function: str) -> Iterator[tuple[str, ast.AST]]:
    for child in ast.iter_child_nodes(node):
        inside = child.name if isinstance(child, ast.FunctionDef) else function
        yield inside, child
        yield from _with_function(child, inside)


def unread(model: type[Model], own: dict[str, Any], patterns: tuple[str, ...]) -> list[str]:
    """The keys of a model that nobody takes from it."""
    places = [tuple(part.strip() for part in pattern.split(":")) for pattern in patterns]
    missing = []
    for name, info in own.items():
        words = {name, info.alias or name}
        if not any(
            what in words and all(fnmatchcase(*pair) for pair in zip((file, function, whom), place, strict=True))
            for file, function, whom, what in reads()
            for place in places
        ):
            missing.append(name)
    return missing


def own_keys(model: type[Model]) -> dict[str, Any]:
    """The keys that the model itself has, without those that say which model it is, and those with one value only."""
    named = model.__annotations__
    found = {name: info for name, info in model.model_fields.items() if name in named}
    for name, info in list(found.items()):
        only = get_origin(info.annotation) is Literal and len(info.annotation.__args__) == 1  # type: ignore[union-attr]
        if only or (name == "type" and issubclass(model, NodeModel)):
            del found[name]
    return found


def excused(model: type[Model]) -> set[str]:
    tables: tuple[dict[type[Model], Any], ...] = (REFUSED, FOR_PEOPLE)
    return {name for table in tables for name in table.get(model, ())}


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_every_key_is_read_or_refused(model: type[Model]) -> None:
    assert model in READERS, f"say in READERS who reads the keys of {model.__name__}"
    if model in HOLD_REFUSED:
        return
    own = {name: info for name, info in own_keys(model).items() if name not in excused(model)}
    if model is workspace.WorkspaceConfig:
        own = {name: info for name, info in own.items() if name not in ("channel", "group")}
    assert unread(model, own, READERS[model]) == []


def test_tables_name_keys_that_are_there_and_that_nobody_reads() -> None:
    for table in (REFUSED, FOR_PEOPLE):
        for model, names in table.items():
            known = {name: info for name, info in model.model_fields.items() if name in names}
            assert set(known) == set(names), model
            if READERS[model] and model is not NodeModel:
                assert unread(model, known, READERS[model]) == list(known), f"{model.__name__}: it is read now"


def test_a_key_that_nobody_reads_is_found() -> None:
    class Invented(workspace.Spark):
        """Somebody adds a key."""

        zone: str | None = None

    class Known(workspace.Spark):
        master: str | None = None

    assert unread(Invented, own_keys(Invented), READERS[workspace.Spark]) == ["zone"]
    assert unread(Known, own_keys(Known), READERS[workspace.Spark]) == []
    assert unread(Known, own_keys(Known), ("spark/*.py: nowhere: spark",)) == ["master"]


# ---------------------------------------------------------------- what is said about the others


def other_value(model: type[Model], name: str) -> Any:
    default = default_of(model, name)
    if isinstance(default, bool):
        return not default
    if isinstance(default, int | float):
        return default + 1
    return {"x": "y"} if isinstance(default, dict) else ("x",) if isinstance(default, tuple) else "another"


@pytest.mark.parametrize("model", [*REFUSED], ids=lambda model: model.__name__)
def test_refused_keys_are_told_at_their_place_unless_they_have_their_default(model: type[Model]) -> None:
    table = REFUSED[model]
    for name in table:
        given = model.model_construct(_fields_set={name}, **{name: other_value(model, name)})
        (found,) = refused_keys(given)
        assert found.code == "E009" and found.at == (name,) and found.on_key
        assert f"'{name}'" in found.message and table[name] in found.message
        usual = model.model_construct(_fields_set={name}, **{name: default_of(model, name)})
        assert list(refused_keys(usual)) == []


PIPELINE = """\
pipeline: { name: demo%s }
nodes:
  - type: source
    name: orders
    config: { type: csv, path: orders.csv, schema: [{ name: id, type: int%s }]%s }
  - { type: transform, name: t, input: orders, config: { cxl: "emit x = 1"%s } }
  - { type: output, name: out, input: t, config: { type: json, path: out.json%s } }
%s
"""


@pytest.mark.parametrize(
    ("place", "text", "code", "key"),
    [
        (0, ", batch_size: 10, memory: { backpressure: spill, resume_threshold: 0.5 }", None, ""),
        (0, ", concurrency: { chunk_size: 5 }", "E009", "chunk_size"),
        (0, ", metrics: { spool_dir: x }", None, ""),
        (3, ", batch_size: 5", "E009", "batch_size"),
        (1, ", width: 5", "W027", "width"),
        (1, ", justify: left", "W027", "justify"),
        (1, ", truncation: warn", "E009", "warn"),
        (2, ", exclude: [x]", "W027", "exclude"),
        (2, ", modified_after: 7d", "W027", "modified_after"),
        (2, ", min_size: 5", "W027", "min_size"),
        (2, ", files: { on_no_match: skip }", "W027", "on_no_match"),
        (2, ", files: { on_no_match: error }", None, ""),
        (2, ", on_unsorted: error", "W027", "on_unsorted"),
        (2, ", on_unmapped: drop", None, ""),
        (2, ", on_unmapped: dropp", "E007", "dropp"),
        (2, ", on_unsorted: error, sort_order: id", None, ""),
        (3, ", log: [{ level: info, when: on_error, message: m, fields: [id] }]", "W027", "fields"),
        (3, ", analytic_window: { group_by: [id], sort_by: [{ field: id, null_order: drop }] }", "E007", "drop"),
        (4, ", include_header: false", "W027", "include_header"),
        (4, ", include_header: true", None, ""),
        (4, ", preserve_nulls: true", None, ""),
        (4, ", unique_suffix_width: 3", "W027", "unique_suffix_width"),
        (4, ", split: { max_records: 5, repeat_header: false }", "W027", "repeat_header"),
        (4, ", split: { max_records: 5, oversize_group: error }", "W027", "oversize_group"),
        (4, ", schema: [{ name: id, type: int, width: 5 }]", "W027", "width"),
        (5, "error_handling: { dlq: { path: x.csv } }", "W027", "path"),
        (5, "error_handling: { strategy: continue, dlq: { path: x.csv } }", None, ""),
        (5, "error_handling: { strategy: best_effort, dlq: { path: x.csv } }", None, ""),
    ],
)
def test_what_has_no_effect_is_said_at_the_key(place: int, text: str, code: str | None, key: str) -> None:
    parts = [""] * 6
    parts[place] = text
    given = PIPELINE % tuple(parts)
    found = findings_in(given, "pipeline.yaml")
    assert [d.code for d in found] == ([] if code is None else [code])
    for d in found:
        assert d.span is not None and given[d.span.start : d.span.end] == key
        assert d.help


def test_best_effort_is_continue() -> None:
    text = PIPELINE % (("",) * 5 + ("error_handling: { strategy: best_effort }",))
    assert parse_pipeline(Source("p.yaml", text), Path("p.yaml")).error_handling.strategy == "continue"


def test_models_say_nothing_of_themselves_by_default() -> None:
    for model in (pipeline.Memory, pipeline.Concurrency, workspace.WorkspaceConfig, pipeline.ErrorHandling):
        assert list(findings(model())) == []


def test_the_guide_names_every_key() -> None:
    guide = "".join(
        (DOCS / name).read_text(encoding="utf-8")
        for name in ("pipelines.md", "correlation.md", "streams.md", "connectors.md")
    )
    words = set(re.findall(r"[A-Za-z_]+", guide))
    # Of storage, channels and groups the guide names the tables alone.
    tables = {name for model in models(Model) if model.__module__.endswith(".workspace") for name in own_keys(model)}
    missing = [
        f"{model.__name__}.{name}"
        for model in MODELS
        for name, info in own_keys(model).items()
        if (info.alias or name) not in words and name not in tables
    ]
    assert missing == []


def test_defaults_in_the_guide_are_those_of_the_models() -> None:
    """Rows such as | `mode` | `concat` | ...: where a key has a default in the guide, it is the one in the code."""
    guide = (DOCS / "pipelines.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([a-z_.]+)` \| `?([A-Za-z0-9_]+)`? \|", guide, flags=re.MULTILINE)
    defaults: dict[str, set[str]] = {}
    for model in MODELS:
        for name, info in model.model_fields.items():
            if not info.is_required():
                default = default_of(model, name)
                text = str(default).lower() if isinstance(default, bool) else str(default)
                defaults.setdefault(info.alias or name, set()).add(text)
    compared = 0
    for key, said in rows:
        known = defaults.get(key.rpartition(".")[2])
        if known is not None and said not in ("none", "a", "an"):
            assert said in known, (key, said, known)
            compared += 1
    assert compared >= 10
