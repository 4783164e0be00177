"""Keys that are understood but that nothing acts on. They are refused, because a pipeline that does less than it says
is worse than one that does not start.

A key that is refused may be written with its default value, which is what happens anyway. A test compares these tables
with the code: a key of a model is read by someone, or it stands here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from clinker_spark.config.model.base import Finding, Model
from clinker_spark.config.model.combine import CombineConfig
from clinker_spark.config.model.composition import Interface, Parameter, Port, ResourceSlot
from clinker_spark.config.model.documents.files import CompositionDocument, PipelineDocument
from clinker_spark.config.model.documents.pipeline import Concurrency, Settings
from clinker_spark.config.model.documents.variable import VarDecl
from clinker_spark.config.model.documents.workspace import Catalog, Channel, Group, Publication, Resource, Staging
from clinker_spark.config.model.node import NodeModel
from clinker_spark.config.model.schema import Described, FieldPlace
from clinker_spark.config.model.sources.record_kinds import RecordKind
from clinker_spark.config.model.transform import TransformConfig

_BATCHES = "Spark decides how many records are handled together"
_CATALOG = "names for files of the workspace"
_CHANNELS = "channels and groups"
_PUBLICATION = "another way to publish than a rename beside the output"

REFUSED: dict[type[Model], dict[str, str]] = {
    Concurrency: {"chunk_size": _BATCHES},
    TransformConfig: {"batch_size": _BATCHES},
    CombineConfig: {"correlation_fanout_policy": "a policy of its own; that of an output or of the pipeline counts"},
    Publication: dict.fromkeys(Publication.model_fields, _PUBLICATION),
    Staging: {"format": "copies have the bytes of their originals; to parse them is a tenth or less of a pass"},
    Channel: dict.fromkeys(Channel.model_fields, _CHANNELS),
    Group: dict.fromkeys(Group.model_fields, _CHANNELS),
    Catalog: {
        "rules": "names for modules; 'rules_root' is the folder they are in",
        **dict.fromkeys(("schemas", "compositions", "pipelines", "channels"), _CATALOG),
    },
}
"""By model: the keys that are refused, and what they are about."""

FOR_PEOPLE: dict[type[Model], tuple[str, ...]] = {
    NodeModel: ("description", "notes"),
    Settings: ("description",),
    VarDecl: ("description",),
    Interface: ("name", "description"),
    Parameter: ("description",),
    Port: ("description",),
    PipelineDocument: ("notes",),
    CompositionDocument: ("notes",),
    Described: ("long_unique",),
    FieldPlace: ("type",),
    RecordKind: ("description",),
    ResourceSlot: ("kind",),
    Resource: ("kind",),
}
"""By model: the keys that change nothing by their very meaning: descriptions, remarks, hints."""


def refused_keys(value: Model) -> Iterator[Finding]:
    """What there is to say about keys of a model (not of those inside it) that nothing acts on."""
    for model, names in REFUSED.items():
        for name, about in names.items() if isinstance(value, model) else ():
            if name in value.model_fields_set and getattr(value, name) != default_of(type(value), name):
                key = type(value).model_fields[name].alias or name
                help_text = "remove the key, or write its default"
                yield Finding("E009", f"'{key}' is not supported yet: {about}", (key,), help_text, on_key=True)


def default_of(model: type[Model], name: str) -> Any:
    """What a key is when it is not given."""
    return model.model_fields[name].get_default(call_default_factory=True)
