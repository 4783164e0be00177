"""Any text at all: never a traceback, and every finding points into the file."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clinker_spark.config.errors import ConfigError
from clinker_spark.config.load import parse_composition, parse_pipeline
from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.diagnostics.registry import lookup
from clinker_spark.core.diagnostics.render import render_all, render_json
from clinker_spark.core.span import Source

DATA = Path(__file__).parent / "data"
FULL = (DATA / "full.yaml").read_text(encoding="utf-8")
PART = (DATA / "score.comp.yaml").read_text(encoding="utf-8")
TREES = {"pipeline": yaml.safe_load(FULL), "composition": yaml.safe_load(PART)}

# fmt: off
PIECES = st.sampled_from([
    "\t", "  ", "- ", "{", "}", "[", "]", ":", ": ", "'", '"', "|", ">", "&a ", "*a", "<<: ", "null", "~", "yes",
    "true", "0", "-1", "1e9", "e5", "9" * 40, "2026-01-01", "é", "日本", "\r\n", "\n", "#", "!", "!!str ", "@", "%",
    "\\", "\x85", "\u2028", "? ", "---\n", "...\n", "$x", "a.b", "\x00", "\x1b", "\ufeff",
])
VALUES: st.SearchStrategy[Any] = st.sampled_from([
    None, True, False, 0, -1, 5, 1.5, "", "x", "a.b", "orders", "5m", "10KB", "yes", [], {}, [1, 2], {"a": 1}, ["x"],
    {"name": "x", "type": "int"}, "decimal(2)", "decimal(2, 50)", "2026-01-31", "*.csv", "{timestamp}", "{x}", "[",
    "é", 10**25, 1e300, {"type": "csv"}, "csv", "source", [[]], {"": ""}, "e5", ".5.", "score.comp.yaml",
])
KEYS = st.sampled_from(["x", "nam", "type", "config", "input", "inputs", "schema", "path", "_notes", "options", "a.b"])
# fmt: on


def check(load: Callable[[Source, Path], Any], text: str) -> None:
    try:
        found: tuple[Diagnostic, ...] = load(Source("t.yaml", text), DATA / "t.yaml").warnings
    except ConfigError as error:
        found = error.diagnostics
        assert found
    for d in found:
        assert lookup(d.code) is not None
        assert d.message and d.help
        assert d.source is not None and d.span is not None
        assert 0 <= d.span.start <= d.span.end <= len(d.source.text)
        assert all(0 <= label.span.start <= label.span.end <= len(d.source.text) for label in d.labels)
    render_all(found, color=False)
    render_json(found)


@st.composite
def mutated_text(draw: st.DrawFn, text: str) -> str:
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        cut = draw(st.sampled_from([0, 0, 1, 2, 10, 80]))
        text = text[:start] + draw(st.one_of(st.just(""), PIECES)) + text[start + cut :]
    return text


@st.composite
def mutated_lines(draw: st.DrawFn, text: str) -> str:
    lines = text.split("\n")
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(lines) - 1))
        how = draw(st.integers(0, 3))
        if how == 0:
            del lines[at : at + draw(st.integers(1, 6))]
        elif how == 1:
            lines.insert(draw(st.integers(0, len(lines))), lines[at])
        elif how == 2:
            lines[at] = " " * draw(st.integers(0, 6)) + lines[at].lstrip()
        else:
            lines[at] = lines[at].partition(":")[0] + ": " + draw(PIECES)
        lines = lines or [""]
    return "\n".join(lines)


@st.composite
def mutated_tree(draw: st.DrawFn, name: str) -> str:
    tree = copy.deepcopy(TREES[name])
    for _ in range(draw(st.integers(1, 3))):
        box: Any = tree
        while box:  # walk down to some place
            steps: list[Any] = list(box) if isinstance(box, dict) else list(range(len(box)))
            step = draw(st.sampled_from(steps))
            if not isinstance(box[step], dict | list) or not box[step] or draw(st.integers(0, 3)) == 0:
                break
            box = box[step]
        if not box:
            break
        how = draw(st.integers(0, 2))
        if how == 0:
            box[step] = copy.deepcopy(draw(VALUES))
        elif how == 1:
            del box[step]
        elif isinstance(box, dict):
            box[draw(KEYS)] = copy.deepcopy(draw(VALUES))
        else:
            box.append(copy.deepcopy(draw(VALUES)))
    text: str = yaml.dump(
        tree, sort_keys=False, default_flow_style=draw(st.sampled_from([None, False])), allow_unicode=True
    )
    return text


SLOW = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@SLOW
@given(st.one_of(mutated_text(FULL), mutated_lines(FULL), mutated_tree("pipeline")))
def test_mutated_pipelines(text: str) -> None:
    check(parse_pipeline, text)


@SLOW
@given(st.one_of(mutated_text(PART), mutated_lines(PART), mutated_tree("composition")))
def test_mutated_compositions(text: str) -> None:
    check(parse_composition, text)


@settings(max_examples=200, deadline=None)
@given(st.one_of(st.text(max_size=60), st.lists(PIECES, max_size=20).map("".join)))
def test_any_text(text: str) -> None:
    check(parse_pipeline, text)
    check(parse_composition, text)


def test_every_beginning_of_a_file() -> None:
    for end in range(0, len(FULL), 37):
        check(parse_pipeline, FULL[:end])
