"""The short form of a stream join, in Python and in TOML."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from clinker_spark.cli.clinker.main import clinker
from clinker_spark.core.errors import InputError
from clinker_spark.streaming import short_form
from clinker_spark.streaming.api import Join, Source, StateStore, run_streaming_pipeline
from clinker_spark.streaming.short_form import form_warnings, pipeline_text

EXAMPLE = (short_form.__doc__ or "").split("```toml\n")[1].split("```")[0]


def form(**changes: Any) -> dict[str, Any]:
    schema = {"id": "string", "_event_ts": "date_time"}
    join = {"left_source": "a", "right_source": "b", "left_keys": ["id"], "right_keys": ["id"], "time_window_ms": 5}
    sources = [{"name": n, "query": f"{n}.csv", "connection": {"type": "csv"}, "schema": schema} for n in "ab"]
    found = {"name": "p", "sources": sources, "transform": {"join": join}, "target": {"type": "csv", "path": "out/"}}
    for path, value in changes.items():
        place: Any = found
        *parts, last = path.split("__")
        for part in parts:
            place = place[int(part) if part.isdigit() else part]
        place[last] = value
    return found


def test_the_form_of_the_documentation_is_explained(tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    path.write_text(EXAMPLE)
    result = CliRunner().invoke(clinker, ["stream", str(path), "--explain"])
    assert result.exit_code == 0, result.output
    assert "-5m <= right._event_ts - left._event_ts <= 5m" in result.output
    assert "checkpoint: state/" in result.output


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"transform__join__left_keys": []}, "'left_keys' is missing"),
        ({"transform__join__right_source": "c"}, "'right_source' names no source"),
        ({"transform__join__right_source": "a"}, "joined with itself"),
        ({"transform__join__time_window_ms": 0}, "must be above 0"),
        ({"transform__join__min_delta_ms": 1}, "stands alone"),
        ({"transform__join__kind": "cross"}, "no join of kind 'cross'"),
        ({"transform__join__keys": ["id"]}, "no key 'transform.join.keys'"),
        ({"transform__window": {}}, "exclude each other"),
        ({"sources__0__connection": {"path": "x"}}, "has no 'type'"),
        ({"sources__1__schema": {}}, "'sources.1.schema' is missing"),
        ({"target": {}}, "'target' is missing"),
        ({"sources__1__schema": None}, "'sources.1.schema' is missing"),
        ({"sinks": {}}, "no key 'sinks'"),
        ({"state_store": {"folder": "x"}}, "no key 'state_store.folder'"),
        ({"state_store": {"kind": "redis"}}, "no state store of kind 'redis'"),
        ({"watermark": {"lateness": 5}}, "no key 'watermark.lateness'"),
        ({"watermark": {"lateness_ms": "5s"}}, "'watermark.lateness_ms' must be a whole number"),
        ({"watermark": {"lateness_ms": -5}}, "'watermark.lateness_ms' must be a whole number"),
        ({"watermark": {"source_idle_ms": 5, "source_idleness_ms": 6}}, "two names of the same"),
        ({"watermark": 5}, "'watermark' must be a table"),
        ({"state_store": "x"}, "'state_store' must be a table"),
        ({"transform": "x"}, "'transform' must be a table"),
        ({"sources": ["a"]}, "'sources' must be a list of tables"),
        ({"sources__0__schema": "x"}, "'sources.0.schema' must be a table"),
        ({"transform__join": "x"}, "'transform.join' must be a table"),
        ({"transform__join__time_window_ms": "5s"}, "'transform.join.time_window_ms' must be a whole number"),
    ],
)
def test_what_is_wrong_is_said(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        pipeline_text(form(**changes))
    assert all(found.code == "E511" and found.help for found in caught.value.diagnostics)
    assert any(message in found.message for found in caught.value.diagnostics)


def test_deltas_and_lateness_become_keys_of_the_join() -> None:
    text = pipeline_text(
        form(
            transform__join__min_delta_ms=0,
            transform__join__max_delta_ms=7,
            transform__join__kind="left_outer",
            transform__join__late_data="reopen",
            transform__join__allowed_lateness_ms=9,
        )
    )
    assert '"min": "0ms"' in text and '"max": "7ms"' in text and '"allowed_lateness": "9ms"' in text
    assert '"kind": "left"' in text


@pytest.mark.parametrize("idle", ["source_idle_ms", "source_idleness_ms"])
def test_marks_become_those_of_the_sources(idle: str) -> None:
    text = pipeline_text(form(watermark={"lateness_ms": 7, idle: 9}))
    assert text.count('"delay": "7ms"') == 2 and text.count('"idle_timeout": "9ms"') == 2


def test_a_store_in_a_database_is_kept_in_the_checkpoint_and_that_is_said(tmp_path: Path) -> None:
    store = {"kind": "postgres", "url": "postgresql://u:swordfish@h/d"}
    given = form(state_store=store)
    assert "swordfish" not in pipeline_text(given)
    [warning] = form_warnings(given)
    assert warning.code == "W027" and "kept in RocksDB" in warning.message and "swordfish" not in str(warning)
    assert form_warnings(form(state_store={"kind": "rocksdb", "path": "x"})) == []

    path = tmp_path / "p.toml"
    path.write_text(EXAMPLE.replace('path = "state/"', 'path = "state/"\nkind = "postgres"'))
    result = CliRunner().invoke(clinker, ["stream", str(path), "--explain"])
    assert result.exit_code == 0 and "W027" in result.output and "checkpoint: state/" in result.output


def test_what_python_gives_is_refused_with_a_code() -> None:
    sources = [Source(name=name, connection={"type": "csv"}, query="x.csv") for name in ("a", "b")]
    join = Join(left_source="a", right_source="b", left_keys=["k"], right_keys=["k"], time_window_ms=5)
    with pytest.raises(InputError) as caught:
        run_streaming_pipeline(name="p", sources=sources, join=join, target={"type": "csv", "path": "out/"})
    assert [found.code for found in caught.value.diagnostics] == ["E511", "E511"]
    assert "swordfish" not in repr(StateStore(kind="postgres", url="swordfish"))
