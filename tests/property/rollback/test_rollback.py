"""Generated pipelines against the model, and what must stay the same whatever the model says.

A dozen graphs in the plain suite; all of them with CLINKER_CASES=all. `python -m tests.property.rollback` runs as many
as one likes, sorts differences by kind and makes them small.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from clinker_spark.spark.scan.csv import source as csv_source
from clinker_spark.spark.session.small_inputs import SETTING
from tests.property.rollback.check import compare, execute, report
from tests.property.rollback.graph import Graph
from tests.property.rollback.graphs import MORE, WIDE, generated
from tests.property.rollback.metamorphic import (
    can_do_without_letters,
    can_replay,
    everything_of,
    is_new,
    may_refuse,
    replayed,
    with_clean_group,
    without,
)
from tests.property.rollback.model import Model, Result
from tests.support.sessions import quick

EVERYTHING = os.environ.get("CLINKER_CASES") == "all"
TIMES = int(os.environ.get("CLINKER_TIMES", "1"))
"""So many times as many changed graphs as the plain suite has: all of them take hours."""
GRAPHS = 320
SHAPES = {
    "build rows written",
    "collect",
    "combine",
    "cull",
    "diamond",
    "distinct",
    "exclusive route",
    "filter",
    "group scope",
    "inclusive route",
    "joined total",
    "max_group_buffer",
    "merge concat",
    "merge interleave",
    "named",
    "output all",
    "output any",
    "output primary",
    "plain total",
    "policy all",
    "policy any",
    "policy primary",
    "relaxed total",
    "reshape",
    "rewritten key",
    "self-join",
    "side branch",
    "strict total",
    "total of relaxed totals",
    "validation",
    "window",
    "window after totals",
}


Fits = Callable[[Graph, Result], bool]


def chosen(fits: Fits, plain: int) -> list[int]:
    """The seeds of graphs with letters that fit; the first few, or all."""
    found = []
    for seed in range(GRAPHS):
        graph = generated(seed)
        result = Model(graph).run()
        if result.exit == "2" and not result.doubtful and fits(graph, result):
            found.append(seed)
            if len(found) == plain * TIMES and not EVERYTHING:
                break
    return found


def test_every_shape_comes_with_failures() -> None:
    """What is generated would be of no use if nothing failed in it, or if everything did."""
    failing: Counter[str] = Counter()
    written = letters = 0
    levels: Counter[int] = Counter()
    exits: Counter[str] = Counter()
    for seed in range(GRAPHS):
        result = Model(generated(seed)).run()
        exits[result.exit] += 1
        if result.exit == "2":
            failing.update(generated(seed).shapes)
            levels.update(result.levels)
            written += any(len(lines) > 1 for lines in result.outputs.values())
            letters += any(not letter[2] for letter in result.letters)
    assert {shape: count for shape, count in failing.items() if count >= 8}.keys() >= SHAPES, failing
    assert written > 0.8 * GRAPHS * 0.8 and letters > 0.5 * GRAPHS
    assert levels[1] > 60 and levels[2] > 5
    assert 5 <= exits["E319"] < 40 and exits["0"] >= 10


def test_the_model_is_its_own_inverse_where_the_rules_allow() -> None:
    """The rules themselves have the properties that runs are asked for below, in more graphs than could be run."""
    asked = 0
    for seed in range(1400):
        graph = generated(seed)
        result = Model(graph).run()
        if result.exit == "2" and can_do_without_letters(graph, result.letters):
            asked += 1
            again = Model(without(graph, {letter[:2] for letter in result.letters})).run()
            assert (again.outputs, again.letters) == (result.outputs, Counter()), seed
    assert asked > 10


PLAIN = (26, 36, 79, 86, 103, 118, 130, 136, 145, 322, 2298)
"""Together they have every shape, key and level; in 103 a record is written at one output of records and sent away from
another by a cull; 322 has a combine that several nodes read, and the last one JSON, Parquet, several files, `emit each`
and a combine of three inputs."""


@pytest.mark.parametrize("seed", [*range(GRAPHS), *WIDE[:80], *MORE[:80]] if EVERYTHING else PLAIN)
def test_a_run_gives_what_the_model_says(spark: Any, tmp_path: Path, seed: int) -> None:
    compared = compare(generated(seed), tmp_path, spark)
    if compared.result.doubtful:
        pytest.skip("the specification does not say what must come out")
    assert not compared.said, report(compared)


def needs_no_letters(graph: Graph, result: Result) -> bool:
    again = Model(without(graph, {letter[:2] for letter in result.letters})).run()
    return (again.outputs, again.letters) == (result.outputs, Counter())


@pytest.mark.parametrize("seed", chosen(needs_no_letters, 1))
def test_the_input_without_its_letters_gives_the_same(spark: Any, tmp_path: Path, seed: int) -> None:
    graph = generated(seed)
    before, after = tmp_path / "before", tmp_path / "after"
    before.mkdir()
    after.mkdir()
    found = execute(graph, before, spark)
    again = execute(without(graph, {letter[:2] for letter in found.letters}), after, spark)
    assert found.letters and not again.letters
    assert again.outputs == found.outputs, graph.yaml()


@pytest.mark.parametrize("seed", chosen(lambda graph, _: with_clean_group(graph) is not None, 1))
def test_one_more_clean_group_changes_nothing_else(spark: Any, tmp_path: Path, seed: int) -> None:
    graph = generated(seed)
    before, after = tmp_path / "before", tmp_path / "after"
    before.mkdir()
    after.mkdir()
    found = execute(graph, before, spark)
    larger = with_clean_group(graph)
    assert larger is not None
    again = execute(larger, after, spark)
    assert again.letters == found.letters
    for node in graph.outputs:
        kept = [line for line in again.outputs[node.name] if not is_new(node.options["columns"], line)]
        assert kept == found.outputs[node.name], graph.yaml()


@pytest.mark.parametrize("seed", chosen(lambda _, result: len(result.levels) > 1, 1))
def test_partitions_change_no_byte(spark: Any, tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = generated(seed)
    found = []
    for count in (1, 3, 7):
        folder = tmp_path / str(count)
        folder.mkdir()
        session = quick(spark)
        session.conf.set("spark.sql.adaptive.enabled", "false")
        session.conf.set("spark.sql.shuffle.partitions", str(count))
        session.conf.set(SETTING, "0")
        defaults: Any = csv_source.read_csv.__kwdefaults__
        monkeypatch.setitem(defaults, "smallest", 1 if count > 1 else 1 << 20)
        monkeypatch.setitem(defaults, "target", 150 // count)
        execute(graph, folder, session)
        found.append(everything_of(folder, graph))
    assert found[0] == found[1] == found[2], graph.yaml()


def is_replayed(graph: Graph, result: Result) -> bool:
    return can_replay(graph, result.letters) and (EVERYTHING or not may_refuse(graph))


@pytest.mark.parametrize("seed", chosen(is_replayed, 1))
def test_unedited_letters_fail_again(spark: Any, tmp_path: Path, seed: int) -> None:
    graph = generated(seed)
    found = execute(graph, tmp_path, spark)
    again = replayed(tmp_path, spark)
    assert again == found.letters or (again == "E458" and may_refuse(graph)), graph.yaml()
