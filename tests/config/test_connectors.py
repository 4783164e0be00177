"""What pipelines say about topics and tables: secrets stay out of them, and what cannot work is told at its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from clinker_spark.core.errors import ClinkerError
from clinker_spark.plan.prepare import prepare
from clinker_spark.plan.streams import check_finite

PIPELINE = """\
pipeline: {{ name: p }}
error_handling: {{ strategy: continue{dlq} }}
nodes:
  - type: source
    name: s
    config: {{ type: kafka, brokers: "b:1", topic: t{source},
              schema: {{ id: string, n: nullable(int), m: map(string) }} }}
  - {{ type: output, name: o, input: s, config: {{ {output} }} }}
"""
KAFKA = 'type: kafka, brokers: "b:1", topic: u'
POSTGRES = 'type: postgres, url: "postgresql://u@h/d", table: t'


def _codes(tmp_path: Path, source: str = "", output: str = POSTGRES, dlq: str = "") -> list[tuple[str, str]]:
    path = tmp_path / "p.yaml"
    path.write_text(PIPELINE.format(source=source, output=output, dlq=dlq))
    try:
        plan = prepare(path)
    except ClinkerError as error:
        assert all(found.span is not None and found.help for found in error.diagnostics)
        return [(found.code, found.message) for found in error.diagnostics]
    return [(found.code, found.message) for found in plan.warnings]


@pytest.mark.parametrize(
    ("source", "code", "words"),
    [
        (", client: { sasl.password: swordfish }", "E528", "'sasl.password' is a secret"),
        (", client: { ssl.key.pem: x }", "E528", "'ssl.key.pem' is a secret"),
        (", client: { isolation.level: x }", "E007", "'isolation.level' is set by clinker"),
        (", client: { sasl.password: { file: x } }", "E007", "'sasl.password' must be a text or"),
        (", client: [a]", "E007", "'client' must be a mapping"),
        (", path: x", "E007", "a topic is no file, and has no 'path'"),
        (", start: middle", "E007", "cannot start at 'middle'"),
        (", start: { 0: -3 }", "E007", "offsets begin at 0"),
        (", start: { x: 3 }", "E007", "'x' is no number of a partition"),
        (", metadata: { offset: o }", "E529", "the schema has no column 'o'"),
        (", metadata: { offset: id }", "E529", "'id' is String, which cannot hold the offset"),
        (", format: raw", "E529", "the text of a raw message is one column, and the schema has 3"),
        (", connector: jvm", "E009", "'connector: jvm' is not supported yet"),
        (", connector: java", "E007", "'connector'"),
        (', options: { delimiter: ";" }', "W027", "'delimiter' has no effect"),
    ],
)
def test_topics_that_cannot_be_read(tmp_path: Path, source: str, code: str, words: str) -> None:
    found = _codes(tmp_path, source)
    assert any(c == code and words in message for c, message in found), found
    assert not any("swordfish" in message for _, message in found)


@pytest.mark.parametrize("connector", ["auto", "python"])
def test_the_connector_that_there_is_can_be_named(tmp_path: Path, connector: str) -> None:
    assert _codes(tmp_path, f", connector: {connector}") == _codes(tmp_path, "")


@pytest.mark.parametrize(
    ("output", "code", "words"),
    [
        (f"{KAFKA}, key: x", "E529", "there is no column 'x'"),
        (f"{KAFKA}, key: m", "E529", "which is no key"),
        (f"{KAFKA}, headers: id", "E529", "headers are a map(string)"),
        (f"{KAFKA}, format: raw", "E529", "there are 3: id, n, m"),
        (f"{KAFKA}, sort_order: [{{ field: id }}]", "W027", "'sort_order' has no effect"),
        (f"{KAFKA}, client: {{ sasl.password: x }}", "E528", "is a secret"),
        ('type: postgres, url: "postgresql://u:swordfish@h/d", table: t', "E528", "the password of the database"),
        ('type: postgres, url: "postgresql://h/d?password=swordfish", table: t', "E528", "the password"),
        ('type: postgres, url: "mysql://h/d", table: t', "E007", "no address of a database"),
        (f"{POSTGRES}, settings: {{ sslpassword: x }}", "E528", "is a secret"),
        (f"{POSTGRES}, mode: upsert", "E529", "an upsert needs keys"),
        (f"{POSTGRES}, mode: upsert, keys: [n]", "E529", "the key 'n' may be null"),
        (f"{POSTGRES}, mode: upsert, keys: [x]", "E529", "there is no column 'x'"),
        (f"{POSTGRES}, mode: upsert, keys: [m]", "E529", "which is no key"),
        (f"{POSTGRES}, mode: upsert, keys: [id], latest_by: m", "E529", "have no order"),
        (f"{POSTGRES}, keys: [id]", "W027", "'keys' has no effect"),
        ('type: postgres, url: "postgresql://h/d", table: a.b.c', "E007", "no name of a table"),
        (f"{POSTGRES}, path: x", "E007", "path"),
    ],
)
def test_outputs_that_cannot_be_written(tmp_path: Path, output: str, code: str, words: str) -> None:
    found = _codes(tmp_path, output=output)
    assert any(c == code and words in message for c, message in found), found
    assert not any("swordfish" in message for _, message in found)


def test_what_is_right_is_taken(tmp_path: Path) -> None:
    source = ", start: { 0: 3 }, client: { sasl.username: me, sasl.password: { env: X }, security.protocol: ssl }"
    output = (
        f"{POSTGRES}, mode: upsert, keys: id, latest_by: n, password: {{ env: X }}, settings: {{ sslmode: require }}"
    )
    assert _codes(tmp_path, source, output, ', dlq: { topic: { brokers: "b:1", topic: d } }') == []
    with pytest.raises(ClinkerError) as error:
        check_finite(prepare(tmp_path / "p.yaml"))
    assert [found.code for found in error.value.diagnostics] == ["E504", "E504", "E504"]


def test_letters_go_to_one_place(tmp_path: Path) -> None:
    found = _codes(tmp_path, dlq=', dlq: { path: d.csv, topic: { brokers: "b:1", topic: d } }')
    assert [code for code, _ in found] == ["E007"]
