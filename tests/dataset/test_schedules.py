"""2,000 schedules: all finish, give every byte back, and emit exactly the rows of the model."""

from __future__ import annotations

import random

import pytest

from tests.dataset.schedules import facts, recording, run_schedule

RECORDINGS, SCHEDULES = 80, 25


@pytest.mark.parametrize("group", range(4))
def test_random_schedules(group: int) -> None:
    ended = {"finished": 0, "cancelled": 0, "failed": 0}
    overcommits = 0
    for number in range(group, RECORDINGS, 4):
        made = recording(random.Random(number))
        for schedule in range(SCHEDULES):
            chance = random.Random(number * 1000 + schedule)
            size = chance.choice([1, 200, 1000, 100_000])
            found = run_schedule(made, chance, size, trouble=schedule % 3 == 0)
            ended[found.ended] += 1
            where = f"recording {number}, schedule {schedule}, budget {size}: {found.ended}"
            assert facts(found) == {"bytes": 0, "segments": set(), "waiting": 0}, where
            if found.ended == "finished":
                assert found.rows == made.expected, where
                assert found.worker is not None and not found.worker.warnings, where
            else:
                assert found.rows == made.expected[: len(found.rows)], where
            assert found.budget is not None
            overcommits += found.budget.stalls.overcommits
    assert sum(ended.values()) == RECORDINGS * SCHEDULES // 4
    # The schedules are worth something only if they come to the edge.
    assert ended["cancelled"] and ended["failed"] and overcommits > 50
