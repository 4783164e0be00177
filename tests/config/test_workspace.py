"""clinker.toml: where it is found, what it says, and places in TOML."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clinker_spark.config.errors import ConfigError
from clinker_spark.config.tree.toml import parse_toml
from clinker_spark.config.workspace import find_workspace, parse_workspace
from clinker_spark.core.span import Source

FULL = """\
# the workspace
[workspace]

[storage.spill]
dir = "/var/tmp"          # fast disk
disk_cap_bytes = "100GB"
compress = "on"

[storage.staging]
enabled = true
dir = "/var/stage"
patterns = [
  "data/*.csv", # all of them
  'literal',
]
verify = "none"

[storage.publication]
mode = "local_then_publish"
local_spool_dir = "/var/spool"
failed_retention_seconds = 3600
max_attempt_bytes = 1_000_000

[channel]
root = "tenants"
shard = "first-char"

[catalog]
rules_root = "cxl"
schemas = { orders = "schemas/orders.schema.yaml", "with.dot" = "x" }
[catalog.resources.shared]
kind = "file"
path = "data/shared.csv"

[spark]
master = "local[2]"
conf."spark.sql.shuffle.partitions" = 4
conf."spark.ui.enabled" = false
"""

SUPPORTED = """\
[storage.spill]
compress = "auto"

[storage.staging]
enabled = true
dir = "stage"
disk_cap_bytes = "10GB"
verify = "none"
on_existing = "reuse"
cleanup = "never"
patterns = ["*.csv", "/mnt/share/**"]

[catalog]
rules_root = "cxl"

[spark]
master = "local[2]"
conf."spark.sql.shuffle.partitions" = 4
conf."spark.ui.enabled" = false
"""


def read(text: str) -> object:
    return parse_workspace(Source("clinker.toml", text), Path("/w/clinker.toml"))


def test_everything_at_once() -> None:
    found = parse_workspace(Source("clinker.toml", SUPPORTED), Path("/w/clinker.toml"))
    assert found.warnings == () and found.root == Path("/w")
    config = found.config
    assert (config.storage.spill.compress, config.group.root) == ("auto", "group")
    staging = config.storage.staging
    assert (staging.enabled, staging.dir, staging.disk_cap_bytes) == (True, "stage", 10 * 1000**3)
    assert (staging.verify, staging.on_existing, staging.cleanup) == ("none", "reuse", "never")
    assert staging.patterns == ("*.csv", "/mnt/share/**")
    assert config.catalog.rules_root == "cxl"
    assert (config.spark.master, config.spark.conf) == (
        "local[2]",
        {"spark.sql.shuffle.partitions": "4", "spark.ui.enabled": "false"},
    )


def test_what_nothing_acts_on_is_refused_at_its_key() -> None:
    with pytest.raises(ConfigError) as caught:
        read(FULL)
    found = caught.value.diagnostics
    assert {d.code for d in found} == {"E009"}
    keys = [FULL[d.span.start : d.span.end] for d in found if d.span is not None]
    assert keys == [
        "mode", "local_spool_dir",
        "failed_retention_seconds", "max_attempt_bytes", "root", "shard", "schemas",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "code", "key"),
    [
        ('enabled = true\npatterns = ["*"]', "E006", "enabled"),
        ('enabled = true\ndir = "x"', "E006", "enabled"),
        ('enabled = true\ndir = "x"\npatterns = []', "E006", "enabled"),
        ('patterns = ["*.csv", "[a"]', "E212", '"[a"'),
        ('format = "parquet"', "E009", "format"),
        ("patterns = 5", "E007", "5"),
        ('verify = "sha256"', "E007", '"sha256"'),
        ('on_existing = "keep"', "E007", '"keep"'),
        ('cleanup = "sometimes"', "E007", '"sometimes"'),
        ('disk_cap_bytes = "10 parsecs"', "E215", '"10 parsecs"'),
        ('enabled = "yes please"', "E007", '"yes please"'),
        ('form = "parquet"', "E005", "form"),
        ("[storage.staging.more]", "E005", "more"),
    ],
)
def test_what_is_wrong_with_staging_is_said_at_its_key(text: str, code: str, key: str) -> None:
    given = f"[storage.staging]\n{text}\n"
    with pytest.raises(ConfigError) as caught:
        read(given)
    [found] = caught.value.diagnostics
    assert found.code == code and found.span is not None and found.help
    assert given[found.span.start : found.span.end] == key


@pytest.mark.parametrize(
    ("path", "key", "value"),
    [
        (("storage", "spill", "dir"), "dir", '"/var/tmp"'),
        (("storage", "staging", "patterns", 1), "'literal'", "'literal'"),
        (("storage", "publication", "max_attempt_bytes"), "max_attempt_bytes", "1_000_000"),
        (("catalog", "schemas", "with.dot"), '"with.dot"', '"x"'),
        (("catalog", "resources", "shared", "kind"), "kind", '"file"'),
        (("spark", "conf", "spark.ui.enabled"), '"spark.ui.enabled"', "false"),
        (("channel",), "channel", "channel"),
    ],
)
def test_places_in_toml(path: tuple[str | int, ...], key: str, value: str) -> None:
    doc = parse_toml(Source("clinker.toml", FULL))
    spans = doc.key_span(path), doc.span_of(path)
    assert [FULL[s.start : s.end] for s in spans] == [key, value]


def test_lists_of_tables_and_long_strings_have_places() -> None:
    text = '[[a.b]]\nx = 1\n[[a.b]]\nx = """two\nlines"""\ny = {z = [1, {w = 2}]}\n[a.b.c]\nd = 3\n'
    doc = parse_toml(Source("t.toml", text))
    assert [
        text[s.start : s.end] for s in (doc.span_of(("a", "b", 0, "x")), doc.span_of(("a", "b", 1, "y", "z", 1, "w")))
    ] == [
        "1",
        "2",
    ]
    assert text[doc.span_of(("a", "b", 1, "x")).start :].startswith('"""two')
    assert text[doc.span_of(("a", "b", 1, "c", "d")).start :].startswith("3")


def test_the_nearest_file_above_the_pipeline_counts(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    assert find_workspace(inner / "p.yaml").root == inner
    (tmp_path / "clinker.toml").write_text('[catalog]\nrules_root = "cxl"\n')
    found = find_workspace(inner / "p.yaml")
    assert found.root == tmp_path and found.path == tmp_path / "clinker.toml"
    assert found.rules_folder(None, None, inner) == tmp_path / "cxl"
    assert found.rules_folder(None, "mine", inner) == inner / "mine"
    assert found.rules_folder("given", "mine", inner) == Path("given")
    (inner / "clinker.toml").write_text("")
    assert find_workspace(inner).root == inner
    assert find_workspace(inner).rules_folder(None, None, inner) == inner / "rules"


def test_a_broken_file_says_where(tmp_path: Path) -> None:
    (tmp_path / "clinker.toml").write_text("[spark]\nmaster = local[2]\n")
    with pytest.raises(ConfigError) as caught:
        find_workspace(tmp_path / "p.yaml")
    (found,) = caught.value.diagnostics
    assert found.code == "E013" and found.source is not None and found.span is not None
    assert found.source.position(found.span.start)[0] == 2


@settings(max_examples=300, deadline=None)
@given(st.integers(0, len(FULL)), st.integers(0, 20), st.text(alphabet="ab=\"[]{}.,#\n1 '", max_size=6))
def test_mutations_never_give_a_traceback(at: int, cut: int, insert: str) -> None:
    text = FULL[:at] + insert + FULL[at + cut :]
    try:
        found = parse_workspace(Source("clinker.toml", text), Path("/w/clinker.toml")).warnings
    except ConfigError as error:
        found = error.diagnostics
    for d in found:
        assert d.span is not None and 0 <= d.span.start <= d.span.end <= len(text)
        assert d.help
