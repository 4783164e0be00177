"""What is no checkpoint is not made one, and a damaged one is not gone on from."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from clinker_spark.plan.errors import PlanError
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.prepare import prepare
from clinker_spark.plan.streams import StreamQuery, operators, queries
from clinker_spark.runtime.errors import IoError
from clinker_spark.streaming.checkpoint import Checkpoint
from clinker_spark.streaming.shape import check_shape, shape_of, shapes
from tests.streaming.test_beats import query

MADE = {"partitions": 1, "shape": {}}
OFFSETS = "v1\n{}\n" + "".join(json.dumps({"source": name, "at": 2, "beat": None}) + "\n" for name in "ab")


def refusal(call: Callable[[], object]) -> str:
    with pytest.raises(IoError) as caught:
        call()
    [found] = caught.value.diagnostics
    assert found.code == "E512" and found.help
    return found.message


def test_a_checkpoint_is_made_in_a_folder_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    assert "is no folder" in refusal(lambda: Checkpoint(tmp_path / "file").begin(MADE))
    assert "holds other files" in refusal(lambda: Checkpoint(tmp_path).begin(MADE))
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "lock").touch()
    made = Checkpoint(tmp_path / "empty").begin(MADE)
    assert Checkpoint(tmp_path / "empty").begin({"partitions": 2, "shape": {}}) == made


@pytest.mark.parametrize("text", ["", '{"vers', "[]", "{}", '{"version": 1, "id": 5, "partitions": 1, "shape": {}}'])
def test_what_is_known_about_the_stream_is_damaged(tmp_path: Path, text: str) -> None:
    (tmp_path / "clinker.json").write_text(text)
    assert "clinker.json' is damaged" in refusal(lambda: Checkpoint(tmp_path).begin(MADE))


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("spark/metadata", None, "metadata' is missing"),
        ("spark/offsets/1", "v1\ngarbage", "offsets/1' is damaged"),
        ("spark/offsets/1", "", "offsets/1' is damaged"),
        ("spark/offsets/0", "v1\n{}\n{}\n", "offsets/0' is damaged"),
        ("sources/a/files", None, "names 0 file(s), and 2 were read"),
        ("sources/b/files", "[]\n", "names 1 file(s), and 2 were read"),
    ],
)
def test_a_damaged_checkpoint(tmp_path: Path, name: str, text: str | None, words: str) -> None:
    found, checkpoint = query(tmp_path), Checkpoint(tmp_path / "state")
    files = {"spark/metadata": "{}", "spark/offsets/0": OFFSETS, "spark/offsets/1": OFFSETS}
    files |= {f"sources/{source}/files": "[]\n[]\n" for source in "ab"}
    for place, content in files.items():
        path = checkpoint.query(found) / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    checkpoint.check(found)
    path = checkpoint.query(found) / name
    if text is None:
        path.unlink()
    else:
        path.write_text(text)
    assert words in refusal(lambda: checkpoint.check(found))


THREE = """\
pipeline: { name: p }
nodes:
  - { type: source, name: a, config: { type: csv, glob: a.csv, watermark: { column: at },
      schema: { k: string, at: date_time } } }
  - { type: source, name: b, config: { type: csv, glob: b.csv, watermark: { column: at },
      schema: { k: string, at: date_time } } }
  - { type: merge, name: both, inputs: [a, b] }
  - { type: stream_join, name: one, input: { left: both, right: a },
      config: { left_keys: k, right_keys: k, time_window: 5s } }
  - { type: stream_join, name: two, input: { left: b, right: a },
      config: { left_keys: k, right_keys: k, time_window: 5s } }
  - { type: merge, name: all, inputs: [one, two] }
  - { type: output, name: out, input: all, config: { type: csv, path: out/ } }
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [("[a, b]", "[b, a]"), ("left: b, right: a", "left: a, right: b"), ("[one, two]", "[two, one]")],
)
def test_what_spark_knows_by_its_place_must_stay_there(tmp_path: Path, old: str, new: str) -> None:
    """Both sides have the same columns, so that Spark would take the state and the positions of one for the other's."""
    checkpoint = Checkpoint(tmp_path / "state")
    assert old in THREE
    plans = []
    for text in (THREE, THREE.replace(old, new)):
        (tmp_path / "p.yaml").write_text(text)
        plans.append(prepare(tmp_path / "p.yaml"))
    before, now = ([*queries(plan)] for plan in plans)
    assert operators(plans[0], before[0].root) == ("one", "two")
    about = checkpoint.begin({"partitions": 1, "shape": shape_of(plans[0], before)})
    check_shape(plans[0], before, checkpoint, about)
    with pytest.raises(PlanError) as caught:
        check_shape(plans[1], now, checkpoint, about)
    [found] = caught.value.diagnostics
    assert found.code == "E505" and "(one((a, b), a), two(b, a))" in found.message


def test_two_streams_that_begin_a_checkpoint_at_once(tmp_path: Path) -> None:
    """Each would go on with an id of its own, and the outputs of one would be strange to the other."""
    one, two = Checkpoint(tmp_path / "state"), Checkpoint(tmp_path / "state")
    one.folder.mkdir()
    with one.locked(), pytest.raises(IoError) as caught:
        two.begin(MADE)
    assert caught.value.diagnostics[0].code == "E510" and not one.about.exists()
    made = two.begin(MADE)
    with one.locked():
        assert two.begin(MADE) == made


def named(folder: Path, joins: Sequence[str]) -> tuple[Plan, list[StreamQuery]]:
    """A stream with a query for each of some joins."""
    head, _, rest = THREE.partition("  - { type: stream_join, name: one")
    assert rest
    nodes = [
        f"  - {{ type: stream_join, name: {name}, input: {{ left: both, right: a }},\n"
        "      config: { left_keys: k, right_keys: k, time_window: 5s } }\n"
        f"  - {{ type: output, name: out_{name}, input: {name}, config: {{ type: csv, path: {name}/ }} }}\n"
        for name in joins
    ]
    (folder / "p.yaml").write_text(head + "".join(nodes))
    plan = prepare(folder / "p.yaml")
    return plan, [*queries(plan)]


@pytest.mark.parametrize("joins", [("join_format",), ("queries",), ("one", "join_format", "queries")])
def test_a_node_may_be_called_as_what_a_checkpoint_says(tmp_path: Path, joins: Sequence[str]) -> None:
    checkpoint = Checkpoint(tmp_path / "state")
    plan, found = named(tmp_path, joins)
    about = checkpoint.begin({"partitions": 1, "shape": shape_of(plan, found)})
    assert list(shapes(about)) == list(joins)
    check_shape(plan, found, checkpoint, about)

    older = {**about, "version": 1, "shape": shapes(about) | {"join_format": about["shape"]["join_format"]}}
    if "join_format" in joins:  # what it said of it is lost
        with pytest.raises(PlanError) as caught:
            check_shape(plan, found, checkpoint, older)
        [one] = caught.value.diagnostics
        assert one.code == "E505" and "was made without 'join_format'" in one.message
    else:
        check_shape(plan, found, checkpoint, older)
    with pytest.raises(PlanError) as caught:
        check_shape(plan, found, checkpoint, {**about, "version": 3})
    assert caught.value.diagnostics[0].code == "E505"


def test_what_a_batch_has_read_may_be_known_no_more(tmp_path: Path) -> None:
    found, checkpoint = query(tmp_path), Checkpoint(tmp_path / "state")
    offsets = checkpoint.spark(found) / "offsets"
    offsets.mkdir(parents=True)
    for batch in (3, 4):
        (offsets / str(batch)).write_text(OFFSETS)
    starts, ends = checkpoint.positions(found, 4)
    assert starts == ends and ends["a"] == {"source": "a", "at": 2, "beat": None}
    for batch, last in ((1, 3), (3, 3), (5, 5)):
        with pytest.raises(IoError) as caught:
            checkpoint.positions(found, batch)
        [one] = caught.value.diagnostics
        assert one.code == "E512" and f"what batch {batch} of 'j'" in one.message
        assert one.help is not None and f"{{\"batch\": {last}}} to '{checkpoint.letters(found)}'" in one.help
    (offsets / "0").write_text(OFFSETS)
    assert checkpoint.positions(found, 0)[0] == {}
    (offsets / "0").write_text("v1\n{}\ngarbage")
    assert "batch 0" in refusal(lambda: checkpoint.positions(found, 0))
