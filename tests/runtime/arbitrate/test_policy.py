"""When something is done about memory that runs short, and what."""

from __future__ import annotations

import itertools

import pytest

from clinker_spark.runtime.arbitrate.policy import GRACE, HOPE, LOOKS, PATIENCE, Action, Policy, Regulator

ALL = ("pause", "spill", "both")


def looks(policy: Policy, used: list[int], *, kept: int = 0, every: float = 0.5) -> list[tuple[Action, ...]]:
    regulator = Regulator(policy)
    return [tuple(regulator.look(i * every, use, kept)) for i, use in enumerate(used)]


@pytest.mark.parametrize("backpressure", ALL)
def test_below_the_soft_threshold_nothing_happens(backpressure: str) -> None:
    assert set(looks(Policy(1000, backpressure), [0, 100, 799, 500, 799], kept=100)) == {()}


def test_each_policy_does_its_own() -> None:
    found = {name: looks(Policy(1000, name), [800], kept=100)[0] for name in ALL}
    assert found == {
        "pause": (Action.COLLECT, Action.PAUSE),
        "spill": (Action.COLLECT, Action.SPILL),
        "both": (Action.COLLECT, Action.PAUSE, Action.SPILL),
    }
    assert looks(Policy(1000, "spill"), [800])[0] == (Action.COLLECT,)  # nothing is kept


def test_readers_go_on_below_the_threshold_of_the_pipeline() -> None:
    found = looks(Policy(1000, "pause", 0.5), [850, 700, 501, 500, 400])
    assert found[1:] == [(), (), (Action.RESUME,), ()]


def test_it_begins_anew_when_use_has_grown_or_fallen() -> None:
    policy = Policy(1000)
    often = Regulator(policy)
    assert Action.PAUSE in often.look(0, 810, 0)
    assert often.look(0.9, 830, 0) == []
    assert Action.RESUME in often.look(HOPE, 830, 0)  # nobody gave anything back
    assert often.look(PATIENCE + 1, 850, 0) == []  # to wait once more at the same place would help as little
    assert Action.PAUSE in often.look(PATIENCE + 2, 865, 0)  # a twentieth more
    assert often.look(PATIENCE + 3, 700, 0) == [Action.RESUME]
    assert Action.PAUSE in often.look(PATIENCE + 4, 800, 0)


def test_as_long_as_it_helps_readers_wait_longer() -> None:
    regulator = Regulator(Policy(1000, "pause"))
    regulator.look(0, 900, 0)
    assert regulator.look(HOPE, 880, 0) == []
    assert regulator.look(PATIENCE, 870, 0) == [Action.RESUME]


def test_what_is_kept_gives_way_when_waiting_did_not_help() -> None:
    regulator = Regulator(Policy(1000, "pause"))
    regulator.look(0, 900, 300)
    assert regulator.look(PATIENCE, 900, 300) == [Action.RESUME, Action.SPILL]


@pytest.mark.parametrize("backpressure", ALL)
def test_no_run_stands_still(backpressure: str) -> None:
    """Whatever use does, readers never wait longer than a moment, in the end they go on, or the run ends."""
    for pattern in itertools.product((600, 780, 810, 870, 930, 1000), repeat=4):
        regulator = Regulator(Policy(1000, backpressure))
        since: float | None = None
        for i in range(120):
            now = i * 0.5
            actions = regulator.look(now, pattern[i % 4], 50)
            assert Action.STOP not in actions  # use is never above the limit
            if Action.RESUME in actions:
                since = None
            if Action.PAUSE in actions:
                since = now
            assert since is None or now - since <= PATIENCE, pattern
            assert regulator.paused_since == since


def test_above_the_limit_there_is_some_time_to_get_below() -> None:
    regulator = Regulator(Policy(1000))
    assert regulator.look(0, 1001, 50) == [Action.COLLECT, Action.PAUSE]
    assert regulator.look(0.5, 1001, 50) == [Action.SPILL]  # whatever the policy
    assert all(Action.STOP not in regulator.look(i, 1001, 0) for i in range(1, LOOKS))
    assert Action.STOP in regulator.look(GRACE, 1001, 0)
    spike = Regulator(Policy(1000))
    spike.look(0, 1050, 0)
    spike.look(GRACE - 0.5, 990, 0)
    assert Action.STOP not in spike.look(GRACE, 1050, 0)  # it was below in between


def test_nobody_is_ended_for_garbage() -> None:
    """However short ago it was collected: it is once more when the limit is passed, and there is time to see it."""
    regulator = Regulator(Policy(1000))
    assert Action.COLLECT in regulator.look(0, 960, 0)
    assert regulator.look(1, 1001, 0) == [Action.RESUME, Action.COLLECT]
    assert regulator.look(1 + GRACE, 1001, 0) == []  # a machine so busy that nobody looked meanwhile
    busy = [regulator.look(2 + GRACE + i, 1001, 0) for i in range(LOOKS)]
    assert [Action.STOP in found for found in busy] == [False] * (LOOKS - 3) + [True] * 3


def test_far_above_the_limit_a_second_look_decides() -> None:
    regulator = Regulator(Policy(1000))
    assert Action.STOP not in regulator.look(0, 1101, 0)
    assert Action.STOP in regulator.look(0.5, 1101, 0)
    spike = Regulator(Policy(1000))
    spike.look(0, 1500, 0)
    spike.look(0.5, 900, 0)
    assert Action.STOP not in spike.look(1.0, 1500, 0)
