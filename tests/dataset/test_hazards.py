"""The pressures under which a byte budget stands still, one test for each; what horizon and worker promise."""

from __future__ import annotations

import random
import threading
from pathlib import Path
from typing import Any

import pytest

from clinker_spark.dataset import constants
from clinker_spark.dataset.constants import MIB, budget_bytes
from clinker_spark.dataset.errors import DatasetDamaged
from clinker_spark.dataset.files.manifest import Dataset
from clinker_spark.dataset.flow import io_loop
from clinker_spark.dataset.flow.budget import PipelineBudget, Reservation
from clinker_spark.dataset.flow.worker import Message, Worker
from clinker_spark.dataset.query import run
from clinker_spark.dataset.rows.horizon import EVERYTHING, Expected
from clinker_spark.dataset.rows.pieces import Loaded, Moments, Piece
from clinker_spark.dataset.selection import Query, Selection, select
from clinker_spark.runtime.dataset import writer
from tests.dataset.model import Event, answer, recorded
from tests.dataset.schedules import Deadlock, recording, run_schedule

EVENTS = [
    *(Event("s1", "/a", {"frame": t}, {"v": t}) for t in range(0, 60)),
    *(Event("s1", "/b", {"frame": t}, {"v": -t}) for t in range(0, 60, 7)),
    *(Event(f"s{n}", "/a", {"frame": t}, {"v": t * n}) for n in range(2, 7) for t in range(5)),
]
ASKED = Query("frame", fill=True)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writer, "CHUNK_ROWS", 4)
        return recorded(tmp_path_factory.mktemp("hazards"), EVENTS, ("frame",))


def rows(dataset: Dataset, budget: PipelineBudget, selection: Selection | None = None) -> list[dict[str, Any]]:
    selection = selection or select(dataset, ASKED)
    found = run(dataset.store, selection.layout, selection.parts, budget)
    return [row for batch in found for row in batch.to_pylist()]


def threads() -> int:
    return sum(thread.name.startswith("fetch-") for thread in threading.enumerate())


def nothing() -> None:
    pass


# ----------------------------------------------------------------------- the hazards


def test_hazard_a_sizing_trips_on_small_datasets(dataset: Dataset) -> None:
    """A share below the least budget is raised to it; and a budget far below the working set still gives all rows."""
    assert budget_bytes(1000, 8, {}) == constants.MIN_BUDGET_PER_PARTITION
    assert budget_bytes(100 << 30, 1, {}) == constants.MAX_BUDGET_PER_PARTITION
    budget = PipelineBudget(1)
    assert rows(dataset, budget) == answer(EVENTS, ("frame",), ASKED)
    assert (budget.current, budget.active_segments) == (0, set())


def test_hazard_b_operator_sets_the_cap_too_low(dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLINKER_DATASET_BUDGET_MIN", "1")
    monkeypatch.setenv("CLINKER_DATASET_BUDGET_MAX", "0.25K")
    assert budget_bytes(1 << 30, 1) == 256
    assert rows(dataset, PipelineBudget(budget_bytes(1 << 30, 1))) == answer(EVENTS, ("frame",), ASKED)
    monkeypatch.setenv("CLINKER_DATASET_BUDGET_MAX", "lots")
    with pytest.raises(Exception, match="'lots', which is no size"):
        budget_bytes(1, 1)


def test_hazard_c_wide_datasets_hold_chunks_not_segments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory that is held depends on the chunks of one time, not on the length of the segment."""
    monkeypatch.setattr(writer, "CHUNK_ROWS", 10)
    monkeypatch.setattr(io_loop, "FETCH_TARGET_BYTES", 1)
    peaks = []
    for length in (100, 1000):
        events = [
            Event("s", f"/e{i}", {"frame": t}, {f"c{j}": t for j in range(5)}) for t in range(length) for i in range(4)
        ]
        selection = select(recorded(tmp_path / str(length), events, ("frame",)), ASKED)
        worker = Worker(selection.layout, selection.parts, budget := PipelineBudget(64 * MIB))
        for order in io_loop.fetches(selection.parts, 1):
            reservation = budget.request(order.parts, order.estimate, order.key, nothing)
            chunks = io_loop.fetch(recorded_store(tmp_path / str(length)), selection.layout, order.needs)
            reservation.commit(sum(loaded.size for _, loaded in chunks))
            list(worker.receive(Message(reservation, chunks)))
        peaks.append(budget.peak)
        assert worker.emitted == length and budget.current == 0
    assert peaks[1] < peaks[0] * 1.5


def recorded_store(folder: Path) -> Any:
    return Dataset.open(str(folder / "dataset")).store


def test_hazard_d_out_of_order_arrival_is_broken_by_the_stall_breaker() -> None:
    budget = PipelineBudget(100)
    budget.estimates.multiplier = 1.0
    woken: list[int] = []
    held = budget.request([0], 96, (0, 50), nothing)
    for time in (40, 10, 30):
        budget.request([0], 60, (0, time), lambda time=time: woken.append(time))  # type: ignore[misc]
    held.commit(96)
    held.hand_over()
    for _ in range(constants.STALL_EMPTY_EMIT_THRESHOLD - 1):
        budget.notify_empty_emit()
    assert woken == []
    budget.notify_empty_emit()
    assert woken == [10], "the earliest passes, over the limit, and no other"
    assert budget.current == 156 and not budget.stalls.force_overcommit


def test_hazard_d_a_budget_that_is_not_full_is_no_stall() -> None:
    budget = PipelineBudget(1000)
    budget.estimates.multiplier = 1.0
    budget.request([0], 500, (0, 1), nothing).commit(500)
    budget.request([0], 600, (0, 2), nothing)
    for _ in range(100):
        budget.notify_empty_emit()
    assert (budget.waiting, budget.stalls.overcommits) == (1, 0)


@pytest.mark.parametrize("progress", ["release", "notify_row_emitted"])
def test_hazard_d_progress_resets_the_breaker(progress: str) -> None:
    budget = PipelineBudget(100)
    budget.estimates.multiplier = 1.0
    budget.request([0], 100, (0, 1), nothing)
    budget.request([0], 100, (0, 2), nothing)
    for _ in range(constants.STALL_EMPTY_EMIT_THRESHOLD - 1):
        budget.notify_empty_emit()
    budget.release(1) if progress == "release" else budget.notify_row_emitted()
    budget.notify_empty_emit()
    assert budget.stalls.overcommits == 0


def test_hazard_d_without_the_exact_breaker_schedules_do_stand_still(monkeypatch: pytest.MonkeyPatch) -> None:
    """So it is needed: the counter alone waits for arrivals that never come."""
    monkeypatch.setattr(PipelineBudget, "_break_standstill", lambda self: None)
    stuck = 0
    for number in range(30):
        try:
            run_schedule(recording(random.Random(number)), random.Random(number), 200, trouble=False)
        except Deadlock:
            stuck += 1
    assert stuck > 0


def test_hazard_e_an_error_in_the_worker_refunds_everything(dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: Any) -> Any:
        raise RuntimeError("no rows today")

    monkeypatch.setattr("clinker_spark.dataset.rows.segment_store.Window", broken)
    budget = PipelineBudget(64 * MIB)
    with pytest.raises(RuntimeError, match="no rows today"):
        rows(dataset, budget)
    assert (budget.current, budget.active_segments, budget.waiting, threads()) == (0, set(), 0, 0)


def test_hazard_e_an_error_in_a_fetch_refunds_everything(dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    real, calls = io_loop.load, []

    def failing(*args: Any) -> Loaded:
        calls.append(1)
        if len(calls) > 3:
            raise OSError("the disk is gone")
        return real(*args)

    monkeypatch.setattr(io_loop, "load", failing)
    budget = PipelineBudget(2000)
    with pytest.raises(OSError, match="the disk is gone"):
        rows(dataset, budget)
    assert (budget.current, budget.active_segments, budget.waiting, threads()) == (0, set(), 0, 0)


@pytest.mark.parametrize("size", [1, 1000, 64 * MIB])
def test_hazard_f_a_consumer_that_stops_refunds_everything(dataset: Dataset, size: int) -> None:
    selection = select(dataset, ASKED)
    for wanted in (0, 1, 3):
        budget = PipelineBudget(size)
        found = run(dataset.store, selection.layout, selection.parts, budget, batch_rows=2)
        for _ in range(wanted):
            next(found)
        found.close()  # type: ignore[attr-defined]
        assert (budget.current, budget.active_segments, budget.waiting, threads()) == (0, set(), 0, 0)


def test_hazard_g_the_multiplier_is_bounded_and_forgets() -> None:
    budget = PipelineBudget(10**9)
    assert budget.estimates.multiplier == constants.INITIAL_ESTIMATE_MULTIPLIER

    def fetch(actual: int) -> Reservation:
        found = budget.request([0], 100, (0, 0), nothing)
        found.commit(actual)
        return found

    for _ in range(50):
        fetch(10_000)
    assert budget.estimates.multiplier == constants.MAX_ESTIMATE_MULTIPLIER
    for _ in range(20):
        fetch(100)
    assert budget.estimates.multiplier == pytest.approx(1.0, abs=0.05)
    assert fetch(100).reserved == 100
    for _ in range(20):
        fetch(0)
    assert budget.estimates.multiplier == constants.MIN_ESTIMATE_MULTIPLIER


def test_hazard_h_a_fetch_larger_than_the_budget_passes_alone() -> None:
    budget = PipelineBudget(100)
    budget.estimates.multiplier = 1.0
    small = budget.request([0], 50, (0, 1), nothing)
    large = budget.request([0], 1000, (0, 2), nothing)
    later = budget.request([0], 10, (0, 3), nothing)
    assert (small.is_admitted, large.is_admitted, later.is_admitted) == (True, False, False)
    small.refund()
    assert (large.is_admitted, later.is_admitted, budget.current) == (True, False, 1000)
    large.refund()
    assert later.is_admitted


# ----------------------------------------------------------------------- admission


def test_bytes_and_segments_are_admitted_together_or_not_at_all() -> None:
    budget = PipelineBudget(100)
    budget.estimates.multiplier = 1.0
    for part in range(constants.MAX_CONCURRENT_SEGMENTS):
        assert budget.request([part], 10, (part, 0), nothing).is_admitted
    fourth = budget.request([3], 10, (3, 0), nothing)
    assert not fourth.is_admitted and budget.current == 30 and 3 not in budget.active_segments
    known = budget.request([0], 10, (0, 5), nothing)
    assert known.is_admitted, "an open segment needs no slot, and comes first"
    budget.publish_segment_finalized(1)
    assert fourth.is_admitted and budget.active_segments == {0, 2, 3}


def test_nobody_overtakes_an_earlier_fetch_that_waits() -> None:
    budget = PipelineBudget(100)
    budget.estimates.multiplier = 1.0
    first = budget.request([0], 90, (0, 0), nothing)
    early = budget.request([0], 50, (0, 1), nothing)
    late = budget.request([0], 5, (0, 2), nothing)
    assert not late.is_admitted, "there is room for it, but it would take what the earlier one waits for"
    first.refund()
    assert early.is_admitted and late.is_admitted


# ----------------------------------------------------------------------- horizon, divergence, incomplete segments


def test_the_horizon_moves_forward_only_and_waits_for_static_values() -> None:
    chance = random.Random(1)
    times = [("/" + chance.choice("abc"), chance.randint(0, 20)) for _ in range(60)]
    expected = Expected(times, static=1)
    assert expected.horizon is None
    expected.record_static()
    left, last = list(times), -1
    chance.shuffle(left)
    while left:
        assert expected.horizon == min(time for _, time in left) - 1 >= last
        last = expected.horizon or 0
        assert expected.record_arrival(*left.pop())
    assert expected.horizon == EVERYTHING and expected.left == 0


def test_carried_values_survive_the_chunks_they_came_in(dataset: Dataset) -> None:
    """/b has one value in the range, and rows of /a go on: they have it, though its chunk has gone."""
    selection = select(dataset, Query("frame", ("/b", "/a"), ("s1",), range=(56, None), fill=True))
    [part] = selection.parts
    assert len(part.needs) == 4, "only chunks of the range, and those with the newest values before it"
    found = rows(dataset, PipelineBudget(MIB), selection)
    assert [(row["frame"], row["/a:v"], row["/b:v"]) for row in found] == [
        (56, 56, -56), (57, 57, -56), (58, 58, -56), (59, 59, -56),
    ]  # fmt: skip


def shifted(loaded: Loaded, by: int) -> Loaded:
    pieces = {
        c: Piece(Moments(p.times + by, p.moments.ids, p.moments.others), p.values) for c, p in loaded.pieces.items()
    }
    return Loaded(loaded.need, pieces, loaded.size, loaded.time_min + by, loaded.time_max + by)


def deliver(
    dataset: Dataset, order: list[int], shift: dict[int, int]
) -> tuple[Worker, list[dict[str, Any]], PipelineBudget]:
    selection = select(dataset, Query("frame", ("/b",), ("s1",)))
    budget = PipelineBudget(MIB)
    worker = Worker(selection.layout, selection.parts, budget)
    needs = [(0, need) for need in selection.parts[0].needs]
    found: list[dict[str, Any]] = []
    try:
        for i in order:
            [(number, loaded)] = io_loop.fetch(dataset.store, selection.layout, [needs[i]])
            reservation = budget.request([0], loaded.size, (0, 0), nothing)
            reservation.commit(loaded.size)
            message = Message(reservation, ((number, shifted(loaded, shift.get(i, 0))),))
            found += [row for batch in worker.receive(message) for row in batch.to_pylist()]
        worker.finish()
    finally:
        worker.close()
    assert budget.current == 0
    return worker, found, budget


def test_a_chunk_that_contradicts_its_manifest_in_time_is_reported_and_kept(dataset: Dataset) -> None:
    worker, found, _ = deliver(dataset, [0, 1, 2], {1: 1})
    assert [warning.code for warning in worker.warnings] == ["W850"]
    assert [row["frame"] for row in found] == [0, 7, 14, 21, 29, 36, 43, 50, 56]


def test_a_chunk_that_contradicts_its_manifest_too_late_is_an_error(dataset: Dataset) -> None:
    with pytest.raises(DatasetDamaged, match="begins at 8, and its manifest says 28"):
        deliver(dataset, [0, 1, 2], {1: -20})


def test_an_incomplete_segment_is_dropped_with_a_warning(dataset: Dataset) -> None:
    worker, found, _ = deliver(dataset, [0, 2], {})
    assert [warning.code for warning in worker.warnings] == ["W851"]
    assert [row["frame"] for row in found] == [0, 7, 14, 21], "nothing after the gap, though a chunk of it came"


# ----------------------------------------------------------------------- threads


@pytest.mark.parametrize("size", [1, 500, 3000, 64 * MIB])
def test_threads_and_budgets_make_no_difference(dataset: Dataset, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = answer(EVENTS, ("frame",), ASKED)
    real = io_loop.load
    chance = random.Random(size)

    def slow(*args: Any) -> Loaded:
        threading.Event().wait(chance.random() / 2000)
        return real(*args)

    monkeypatch.setattr(io_loop, "load", slow)
    monkeypatch.setattr(io_loop, "LOCAL_FETCHES", 4)
    for target in (1, 300):
        monkeypatch.setattr(io_loop.fetches, "__defaults__", (target,))
        budget = PipelineBudget(size)
        assert rows(dataset, budget) == expected
        assert (budget.current, budget.active_segments, threads()) == (0, set(), 0)


def test_given_values_keep_memory_bounded(dataset: Dataset) -> None:
    """The original holds whole segments then."""
    selection = select(dataset, Query("frame", segments=("s1",), values=[3, 30, 59], fill=True))
    worker = Worker(selection.layout, selection.parts, budget := PipelineBudget(MIB))
    largest = 0
    for order in io_loop.fetches(selection.parts, 1):
        chunks = io_loop.fetch(dataset.store, selection.layout, order.needs)
        reservation = budget.request(order.parts, order.estimate, order.key, nothing)
        reservation.commit(sum(loaded.size for _, loaded in chunks))
        largest = max(largest, sum(loaded.size for _, loaded in chunks))
        list(worker.receive(Message(reservation, chunks)))
    assert worker.emitted == 3 and budget.peak <= 4 * largest
    assert budget.current == 0
