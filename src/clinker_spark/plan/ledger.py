"""The books of a pass over the data: how many records each stream has, and the laws that these numbers keep.

Not every stream is counted: where a node gives one record for each that it takes, what it passes is what it took. So
the size of a stream is a sum of counts (`Flow`), and wherever somebody counts, a law says that what was counted is
what must have come. A count that nobody took is an unknown. A law with one unknown gives its value; a law with none
is checked. No Spark here: counts are names, and their values come from the run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Flow:
    """A number of records, as a sum of counts: pairs of a name and how often it is added."""

    terms: tuple[tuple[str, int], ...] = ()

    def __add__(self, other: Flow) -> Flow:
        return self._with(other, 1)

    def __sub__(self, other: Flow) -> Flow:
        return self._with(other, -1)

    def _with(self, other: Flow, sign: int) -> Flow:
        terms = dict(self.terms)
        for name, times in other.terms:
            terms[name] = terms.get(name, 0) + sign * times
        return Flow(tuple((name, times) for name, times in terms.items() if times))

    def value(self, known: Mapping[str, int]) -> int | None:
        """The number, if all its counts are known.

        >>> (count("a: read") - count("a: dropped")).value({"a: read": 5, "a: dropped": 2})
        3
        """
        if any(name not in known for name, _ in self.terms):
            return None
        return sum(times * known[name] for name, times in self.terms)


NONE = Flow()
WITHHELD_FROM = "correlation"
"""Why a record is left out that belongs to a group with a failure. It is a dead letter."""


def count(name: str) -> Flow:
    """What is counted under a name."""
    return Flow(((name, 1),))


@dataclass(frozen=True)
class Law:
    """Two numbers of records that are the same."""

    node: str
    what: str
    """A sentence with both numbers: `takes {left} records, and {right} were counted`."""
    left: Flow
    right: Flow


@dataclass(frozen=True)
class Difference:
    """A law that does not hold."""

    node: str
    message: str


@dataclass(frozen=True)
class End:
    """One side of a node: so many records, some of which may have failed at the nodes in `carried` and only wait to be
    diverted."""

    flow: Flow
    carried: tuple[str, ...] = ()


@dataclass
class Entry:
    """What is written down about a node."""

    took: dict[str, End] = field(default_factory=dict)
    """By input."""
    passed: dict[str | None, End] = field(default_factory=dict)
    """By port."""
    dropped: dict[tuple[str, int], Flow] = field(default_factory=dict)
    """By reason, and the place of the reason in the node."""
    failed: dict[str, Flow] = field(default_factory=dict)
    """What was diverted here, by place."""


@dataclass
class Ledger:
    """What the nodes of a pass say while they are built."""

    entries: dict[str, Entry] = field(default_factory=dict)
    laws: dict[tuple[str, str], Law] = field(default_factory=dict)
    free: set[str] = field(default_factory=set)
    """Counts that nobody takes: they follow from others, or stay unknown."""

    def unknown(self, name: str) -> Flow:
        """A number of records that nobody counts."""
        self.free.add(name)
        return count(name)

    def is_counted(self, flow: Flow) -> bool:
        return not any(name in self.free for name, _ in flow.terms)

    def entry(self, node: str) -> Entry:
        return self.entries.setdefault(node, Entry())

    def law(self, node: str, what: str, left: Flow, right: Flow) -> None:
        """Both numbers must be the same. Said again, when a node is built again, it is the same law."""
        self.laws[node, what] = Law(node, what, left, right)

    @property
    def failed(self) -> Flow:
        """All records that were diverted."""
        return total(flow for entry in self.entries.values() for flow in entry.failed.values())


def total(flows: Iterable[Flow]) -> Flow:
    """All of them together."""
    result = NONE
    for flow in flows:
        result = result + flow
    return result


def solve(laws: Iterable[Law], known: Mapping[str, int]) -> tuple[dict[str, int], list[Difference]]:
    """All counts that follow from those that are known, and the laws that do not hold.

    >>> law = Law("t", "takes {left}, counted {right}", count("s: read"), count("t: kept") + count("t: dropped"))
    >>> solve([law], {"s: read": 5, "t: kept": 3})
    ({'s: read': 5, 't: kept': 3, 't: dropped': 2}, [])
    >>> solve([law], {"s: read": 5, "t: kept": 3, "t: dropped": 1})[1]
    [Difference(node='t', message='takes 5, counted 4')]
    """
    values = dict(known)
    open_laws = list(laws)
    differences: list[Difference] = []
    while True:
        waiting: list[Law] = []
        for law in open_laws:
            terms = (law.left - law.right).terms
            unknown = [(name, times) for name, times in terms if name not in values]
            if not unknown:
                left, right = _value(law.left, values), _value(law.right, values)
                if left != right:
                    message = law.what.replace("{left}", f"{left:,}").replace("{right}", f"{right:,}")
                    differences.append(Difference(law.node, message))
            elif len(unknown) == 1:
                [(name, times)] = unknown
                rest = sum(t * values[n] for n, t in terms if n != name)
                found, remainder = divmod(-rest, times)
                if remainder or found < 0:
                    message = f"the numbers before and after it do not fit: {name} would be {-rest / times:,.0f}"
                    differences.append(Difference(law.node, message))
                else:
                    values[name] = found
            else:
                waiting.append(law)
        if len(waiting) == len(open_laws):
            return values, differences
        open_laws = waiting


def _value(flow: Flow, values: Mapping[str, int]) -> int:
    """Counts that stand on both sides of a law need not be known."""
    return sum(times * values.get(name, 0) for name, times in flow.terms)
