"""`clinker schema`: current, strict, described, and of one mind with the loader."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from clinker_spark.config.model.documents.pipeline import Memory
from clinker_spark.config.reference.json_schema import DIALECT, field_docs, json_schema, json_schema_text
from clinker_spark.config.tree.scalars import resolve
from clinker_spark.config.tree.yaml import parse_yaml
from clinker_spark.core.span import Source
from tests.config.golden_cases import cases, findings, kind, split

CHECKED_IN = Path(__file__).parents[2] / "schema" / "pipeline.schema.json"
DATA = Path(__file__).parent / "data"
EXAMPLES = sorted((Path(__file__).parents[2] / "examples").rglob("*.yaml"))


def content(text: str) -> Any:
    return resolve(parse_yaml(Source("t.yaml", text)).data())


@cache
def validator(document: str = "pipeline") -> Draft202012Validator:
    schema = json_schema(document)
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def accepts(value: Any, document: str = "pipeline") -> bool:
    return bool(validator(document).is_valid(value))


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
    assert field_docs(Memory)["limit"].startswith("The memory of the run")


def test_node_types_and_formats_are_told_apart_by_type() -> None:
    schema = json_schema()
    nodes = schema["properties"]["nodes"]["items"]
    assert {case["if"]["properties"]["type"]["const"] for case in nodes["allOf"]} == {
        "source", "transform", "aggregate", "route", "merge", "combine", "reshape", "cull", "stream_join", "query",
        "composition", "envelope",
        "output", "sink",
    }  # fmt: skip
    assert schema["$defs"]["OutputNode"]["properties"]["type"]["enum"] == ["output", "sink"]


# ---------------------------------------------------------------- the same as the loader


def test_a_full_pipeline_is_valid() -> None:
    assert accepts(content((DATA / "full.yaml").read_text(encoding="utf-8")))


def test_a_composition_is_valid() -> None:
    assert accepts(content((DATA / "score.comp.yaml").read_text(encoding="utf-8")), "composition")


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_example_is_valid(path: Path) -> None:
    given = content(path.read_text(encoding="utf-8"))
    kind = "pipeline" if "pipeline" in given else "composition" if "_compose" in given else None
    if kind is not None:  # the others are schemas of columns
        error = best_match(validator(kind).iter_errors(given))
        assert error is None, error


# ---------------------------------------------------------------- a misspelt key is underlined, and nothing else

WRONG = "zzz_wrong"


def mappings(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The ways to all mappings of a file."""
    if isinstance(value, dict):
        yield path
    for key, item in value.items() if isinstance(value, dict) else enumerate(value if isinstance(value, list) else ()):
        yield from mappings(item, (*path, key))


def _shape(given: Any, path: tuple[Any, ...]) -> tuple[Any, ...]:
    """Mappings of which one stands for all: the columns of a schema, the items of a list in nodes of one type."""
    kinds = []
    if path[:1] == ("nodes",) and len(path) > 1:
        node = given["nodes"][path[1]]
        kinds = [node["type"], node.get("config", {}).get("type")]
    return (*kinds, *("*" if isinstance(step, int) else step for step in path))


@pytest.mark.parametrize("name", ["full.yaml", "score.comp.yaml"])
def test_a_misspelt_key_is_blamed_where_it_stands(name: str) -> None:
    text = (DATA / name).read_text(encoding="utf-8")
    document = "composition" if name.endswith(".comp.yaml") else "pipeline"
    blamed: list[tuple[Any, ...]] = []
    alike = {_shape(content(text), path): path for path in mappings(content(text))}
    for path in alike.values():
        given = content(text)
        here = given
        for step in path:
            here = here[step]
        here[WRONG] = 1
        said = [d for d in findings(yaml.safe_dump(given), name) if d.code == "E005" and WRONG in d.message]
        if not said:  # names of columns, branches, variables: any key will do there
            continue
        error = best_match(validator(document).iter_errors(given))
        assert error is not None and tuple(error.absolute_path) == path, (path, error)
        assert f"'{WRONG}' was unexpected" in error.message
        blamed.append(path)
    if document == "pipeline":  # every type of node, its config, and what stands deeper
        nodes = content(text)["nodes"]
        kinds = {nodes[path[1]]["type"] for path in blamed if path[0:1] == ("nodes",) and path[2:] == ("config",)}
        assert kinds == {"source", "merge", "transform", "combine", "route", "aggregate", "output", "sink"}
        assert len(blamed) > 50


def test_a_wrong_type_of_node_or_format_is_blamed_alone() -> None:
    for change, path in (
        (("nodes", 0, "type"), ("nodes", 0)),
        (("nodes", 0, "config", "type"), ("nodes", 0, "config")),
    ):
        given = content((DATA / "full.yaml").read_text(encoding="utf-8"))
        here: Any = given
        for step in change[:-1]:
            here = here[step]
        here["type"] = "csw"
        error = best_match(validator().iter_errors(given))
        assert error is not None and tuple(error.absolute_path) == change and tuple(error.absolute_path)[:-1] == path
        assert "'csw' is not one of" in error.message


def test_refused_keys_are_refused() -> None:
    given = content((DATA / "full.yaml").read_text(encoding="utf-8"))
    given["pipeline"]["concurrency"] = {"chunk_size": 5}
    error = best_match(validator().iter_errors(given))
    assert error is not None and "'chunk_size' was unexpected" in error.message


PLAIN = [path for path in cases() if not path.stem.startswith(("yaml-", "toml-", "comp-"))]


@pytest.mark.parametrize("path", PLAIN, ids=lambda path: path.stem)
def test_broken_files_are_refused_where_a_schema_can_tell(path: Path) -> None:
    given, _ = split(path)
    codes = {found.code for found in findings(given, kind(path))}
    valid = accepts(content(given))
    if codes & {"E005", "E006", "E008", "E009", "E201"}:  # keys and types; what values mean is not its business
        assert not valid
    if not any(code.startswith("E") for code in codes):
        assert valid
