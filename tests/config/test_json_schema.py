"""`clinker schema`: current, strict, described, and of one mind with the loader."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from clinker_spark.config.json_schema import DIALECT, field_docs, json_schema, json_schema_text
from clinker_spark.config.model.pipeline import Memory
from clinker_spark.config.scalars import resolve
from clinker_spark.config.yaml_tree import parse_yaml
from clinker_spark.core.span import Source
from tests.config.golden_cases import cases, findings, kind, split
from tests.config.json_schema_check import accepts

CHECKED_IN = Path(__file__).parents[2] / "schema" / "pipeline.schema.json"
DATA = Path(__file__).parent / "data"


def content(text: str) -> Any:
    return resolve(parse_yaml(Source("t.yaml", text)).data())


def parts(schema: Any) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        yield schema
        for value in schema.values():
            yield from parts(value)
    elif isinstance(schema, list):
        for item in schema:
            yield from parts(item)


def test_the_file_in_the_repository_is_current() -> None:
    assert CHECKED_IN.read_text(encoding="utf-8") == json_schema_text(), (
        "run clinker schema > schema/pipeline.schema.json"
    )


def test_the_command_prints_it() -> None:
    command = [sys.executable, "-m", "clinker_spark", "schema"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == json_schema()
    done = subprocess.run([*command, "--for", "composition"], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["title"] == "Clinker composition"


@pytest.mark.parametrize("document", ["pipeline", "composition"])
def test_strict_and_described(document: str) -> None:
    schema = json_schema(document)
    assert schema["$schema"] == DIALECT
    for name, definition in schema["$defs"].items():
        assert definition["additionalProperties"] is False, name
        assert definition["description"], name
    for part in parts(schema):
        if "$ref" in part:
            assert part["$ref"].removeprefix("#/$defs/") in schema["$defs"]


def test_keys_have_descriptions() -> None:
    schema = json_schema()
    without = [
        f"{name}.{key}"
        for name, definition in schema["$defs"].items()
        for key, described in definition.get("properties", {}).items()
        if "description" not in described and "$ref" not in described and key not in ("type", "description")
    ]
    assert without == []
    assert field_docs(Memory)["limit"].startswith("The most memory")


def test_node_types_and_formats_are_told_apart_by_type() -> None:
    schema = json_schema()
    nodes = schema["properties"]["nodes"]["items"]
    assert set(nodes["discriminator"]["mapping"]) == {
        "source", "transform", "aggregate", "route", "merge", "combine", "query", "composition", "output", "sink",
    }  # fmt: skip
    assert schema["$defs"]["OutputNode"]["properties"]["type"]["enum"] == ["output", "sink"]


# ---------------------------------------------------------------- the same as the loader


def test_a_full_pipeline_is_valid() -> None:
    schema = json_schema()
    assert accepts(schema, content((DATA / "full.yaml").read_text(encoding="utf-8")), schema)


def test_a_composition_is_valid() -> None:
    schema = json_schema("composition")
    assert accepts(schema, content((DATA / "score.comp.yaml").read_text(encoding="utf-8")), schema)


PLAIN = [path for path in cases() if not path.stem.startswith(("yaml-", "toml-", "comp-"))]


@pytest.mark.parametrize("path", PLAIN, ids=lambda path: path.stem)
def test_broken_files_are_refused_where_a_schema_can_tell(path: Path) -> None:
    given, _ = split(path)
    codes = {found.code for found in findings(given, kind(path))}
    schema = json_schema()
    valid = accepts(schema, content(given), schema)
    if codes & {"E005", "E006", "E008", "E009", "E201"}:  # keys and types; what values mean is not its business
        assert not valid
    if not any(code.startswith("E") for code in codes):
        assert valid
