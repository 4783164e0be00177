"""When to act on memory that runs short, and how: decided by numbers alone, without Spark and without a clock.

Above 80 % of the limit (*soft*) the policy of the pipeline is applied; it is applied once more each time that use has
grown by another twentieth of the limit, and begins anew when use has fallen below `resume_threshold`. What waits is let
go when that is reached, as soon as waiting frees nothing, and in any case after a while: those who wait may be the ones
who hold the memory. Above the limit everything is tried at once; a run that stays there, or goes far beyond it, is
ended.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from clinker_spark.plan.passes.scheduling import SOFT

STEP = 0.05
"""By this share of the limit use must have grown before the policy is applied again."""
PATIENCE = 3.0
"""Seconds after which readers go on although nobody has given anything back."""
HOPE = 1.0
"""Seconds after which they go on if use has not become less at all."""
LESS = 0.01
"""The share of the limit by which use must have fallen to count as less."""
GRACE = 5.0
"""Seconds that a run may be above its limit while everything is tried to get it below; they begin when garbage is
collected for that."""
LOOKS = 5
"""And so often at least it must have been seen there: on a busy machine seconds are short."""
FAR = 1.10
"""Above this share of the limit nothing is waited for but a second look."""
_COLLECT_EVERY = 8.0
"""Seconds between two collections of garbage that are asked for: each stops all tasks for a moment."""


class Action(Enum):
    """What is done about it."""

    PAUSE = "readers wait"
    RESUME = "readers go on"
    SPILL = "kept results go to disk"
    COLLECT = "garbage is collected"
    STOP = "the run is ended"


@dataclass(frozen=True)
class Policy:
    """What the pipeline asks for."""

    limit: int
    backpressure: str = "pause"
    resume_threshold: float = 0.70

    @property
    def soft(self) -> int:
        return int(self.limit * SOFT)

    @property
    def resume(self) -> int:
        return int(self.limit * self.resume_threshold)

    @property
    def pauses(self) -> bool:
        return self.backpressure in ("pause", "both")


@dataclass
class Regulator:
    """Looks at numbers, one after another, and says what to do.

    >>> watch = Regulator(Policy(100))
    >>> [[a.name for a in watch.look(at, use, kept=0)] for at, use in enumerate((70, 82, 84, 60))]
    [[], ['COLLECT', 'PAUSE'], [], ['RESUME']]
    """

    policy: Policy
    paused_since: float | None = None
    _paused_at: int = 0
    """The use at which readers were made to wait."""
    _acted_at: int | None = None
    """The use at which the policy was applied the last time."""
    _over_since: float | None = None
    _over: int = 0
    """How many looks in a row found use above the limit."""
    _far: int = 0
    """And far beyond it."""
    _collected: float = field(default=float("-inf"))

    def look(self, now: float, used: int, kept: int) -> list[Action]:
        """What to do when `used` bytes are in use, of which results that could be on disk are `kept`."""
        policy = self.policy
        found: list[Action] = []
        if used <= policy.resume:
            self._acted_at = None
            found += self._let_go()
        elif self._waited_enough(now, used):
            found += self._let_go()
            found += [Action.SPILL] if kept else []
        if used > policy.limit:
            self._over += 1
            self._far = self._far + 1 if used > FAR * policy.limit else 0
            if self._far > 1:
                return [*found, Action.STOP]
            if self._over_since is None:
                self._over_since, self._collected = now, now
                found.append(Action.COLLECT)
            elif now - self._over_since >= GRACE and self._over >= LOOKS:
                return [*found, Action.STOP]
        else:
            self._over_since, self._over, self._far = None, 0, 0
        grown = self._acted_at is None or used >= self._acted_at + STEP * policy.limit
        if used >= policy.soft and grown:
            self._acted_at = used
            found += self._relief(now, used, kept)
        elif used > policy.limit:
            found += self._everything(now, kept)
        return found

    def job_begins(self, now: float) -> list[Action]:
        """A job waits because memory is short: what is no longer needed by those before it is garbage."""
        return self._collect(now)

    def _waited_enough(self, now: float, used: int) -> bool:
        if self.paused_since is None:
            return False
        helps = used <= self._paused_at - LESS * self.policy.limit
        return now - self.paused_since >= (PATIENCE if helps else HOPE)

    def _relief(self, now: float, used: int, kept: int) -> list[Action]:
        found = self._collect(now)
        if self.policy.pauses:
            found += self._pause(now, used)
        if kept and self.policy.backpressure in ("spill", "both"):
            found.append(Action.SPILL)
        return found

    def _everything(self, now: float, kept: int) -> list[Action]:
        return [*self._collect(now), *([Action.SPILL] if kept else [])]

    def _collect(self, now: float) -> list[Action]:
        if now - self._collected < _COLLECT_EVERY:
            return []
        self._collected = now
        return [Action.COLLECT]

    def _pause(self, now: float, used: int) -> list[Action]:
        if self.paused_since is not None:
            return []
        self.paused_since, self._paused_at = now, used
        return [Action.PAUSE]

    def _let_go(self) -> list[Action]:
        if self.paused_since is None:
            return []
        self.paused_since = None
        return [Action.RESUME]
