"""A generator of whole programs: filters, distinct, scoped emits, nested blocks, windows and aggregates around the
expressions of `programs.py`."""

from __future__ import annotations

import random
from collections.abc import Iterator

from clinker_spark.cxl.builtins.families.aggregates import AGGREGATES
from clinker_spark.cxl.builtins.families.windows import WINDOWS
from clinker_spark.cxl.errors import CxlError
from clinker_spark.cxl.program import compile
from clinker_spark.spark.columns.programs import Window
from tests.property import statements as st
from tests.property.programs import Generator
from tests.property.trees import Node

KEYS = ("k", "n", "f", "d", "day", "flag", "x", "g", "m")
SORTED = ("k", "n", "f", "d", "day", "flag", "g")  # x: Spark has no order for it; m: it is sorted as text
_BLOCK_SOURCES = (
    ("items", "int"),
    ("items", "int"),
    ("rows", "array(int)"),
    ("bag", "any"),
    ("x", "any"),
    ("", "int"),
)
_ORDERED = ("int", "float", "string", "date", "decimal")
# Sums of floats only of the column whose sums are exact: others depend on the order of the additions.
_AGGREGATE_ARGUMENTS = {
    "sum": ("int", "int", "decimal", "f"),
    "avg": ("int", "decimal", "f"),
    "min": (*_ORDERED, "g"),
    "max": (*_ORDERED, "g"),
    "count": ("string", "int", "float", "decimal", "date", "bool"),
    "collect": ("int", "string", "any", "array(int)"),
    "weighted_avg": ("int",),
}
_WINDOW_ARGUMENTS = {
    **dict.fromkeys(("sum", "cumulative_sum", "avg"), ("f", "f * 2.0", "n % 7", "d")),
    **dict.fromkeys(("min", "max"), ("g", "g", "int", "string", "date", "d")),
    **dict.fromkeys(("first_value", "last_value", "collect"), ("int", "string", "x", "array(int)", "g")),
    "distinct": ("g", "g", "int", "string", "d"),
}


class StatementGenerator(Generator):
    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng, st.COLUMNS)

    def row_program(self) -> str:
        self.names, self.budget, self._count = {}, 25, 0
        lines = [self._line() for _ in range(self.rng.randint(0, 2))]
        if self.rng.random() < 0.4:
            lines.append(f"distinct by {self.rng.choice(KEYS)}")
        if self.rng.random() < 0.75:
            lines += [self._block(0) for _ in range(self.rng.choice((1, 1, 1, 2)))]
        else:
            lines.append(self._emit("v", self._type(), 2).text)
        return "\n".join(lines)

    def _line(self) -> str:
        self.budget = max(self.budget, 6)
        return self._statement().text

    def _block(self, depth: int) -> str:
        self.budget = max(self.budget, 8)
        source, element = self.rng.choice(_BLOCK_SOURCES)
        if not source:
            source = self.expression("array(int)", 2).text
        name = self._fresh("e")
        outer = " outer" if self.rng.random() < 0.3 else ""
        saved = dict(self.names)
        body = Node("any", (self._bound(name, element, lambda: self._body_of_block(depth, name, element)),))
        self.names = saved
        return f"emit each {name} in {source}{outer} {{\n{body.text}\n}}"

    def _body_of_block(self, depth: int, name: str, element: str) -> Node:
        lines = []
        for _ in range(self.rng.randint(1, 2)):
            self.budget = max(self.budget, 6)
            t = element if self.rng.random() < 0.4 else self._type()
            if self.rng.random() < 0.3:
                let = self._fresh("let_")
                lines.append(f"  let {let} = {self.expression(t, 2).text}")
                self.names[let] = t
            else:
                lines.append("  " + self._emit(self.rng.choice(("v", "w", "u")), t, 2).text)
        if depth < 2 and self.rng.random() < 0.4:
            inner = self._block(depth + 1).replace("\n", "\n  ")
            lines.append("  " + (inner if element != "array(int)" else inner.replace(" in items", f" in {name}", 1)))
        else:
            lines.append(f"  emit v = {self.expression(element, 1).text}")
        return Node("any", ("\n".join(lines),))

    def window_program(self) -> tuple[str, Window]:
        self.names, self._count = {}, 0
        lines = []
        if self.rng.random() < 0.3:
            self.budget = 8
            lines.append(f"filter {self.expression('bool', 2).text}")
        for i in range(self.rng.randint(1, 3)):
            lines.append(f"emit v{i} = {self._window_call()}")
        partition = self.rng.sample(KEYS, self.rng.choice((0, 1, 1, 2)))
        order = self.rng.sample(SORTED, self.rng.choice((0, 1, 2)))
        return "\n".join(lines), Window(tuple(partition), tuple(order))

    def _window_call(self) -> str:
        self.budget = 6
        function = self.rng.choice(tuple(WINDOWS))
        kind = WINDOWS[function].argument
        if kind == "none":
            return f"$window.{function}()"
        if kind in ("row", "offset"):
            offset = self.rng.choice("0123") if kind == "offset" else ""
            return f"$window.{function}({offset}).{self.rng.choice(tuple(st.COLUMNS))}"
        if kind == "predicate":
            return f"$window.{function}({self.expression('bool', 2).text})"
        return f"$window.{function}({self._argument(self.rng.choice(_WINDOW_ARGUMENTS[function]))})"

    def group_program(self) -> tuple[str, tuple[str, ...]]:
        self.names, self._count = {}, 0
        lines = []
        if self.rng.random() < 0.3:
            self.budget = 8
            lines.append(f"filter {self.expression('bool', 2).text}")
        for i in range(self.rng.randint(1, 3)):
            function = self.rng.choice(tuple(AGGREGATES))
            t = self.rng.choice(_AGGREGATE_ARGUMENTS[function])
            weight = ", n" if function == "weighted_avg" else ""
            lines.append(f"emit a{i} = {function}({self._argument(t)}{weight})")
            if function in ("sum", "count") and t == "int" and self.rng.random() < 0.5:
                other = self.rng.choice(("count(*)", "sum(n)", "3", "a0"))
                lines.append(f"emit b{i} = (a{i} ?? 0) {self.rng.choice('+-*/%')} {other}")
        keys = self.rng.sample(KEYS, self.rng.choice((0, 1, 1, 2)))
        return "\n".join(lines), tuple(keys)

    def _argument(self, wanted: str) -> str:
        """An expression of this type; what is no type is the argument itself."""
        self.budget = 8
        return self.expression(wanted, 2).text if wanted in ("any", "array(int)", "bool", *_ORDERED) else wanted


def row_cases(rng: random.Random) -> Iterator[st.RowCase]:
    generator = StatementGenerator(rng)
    while True:
        text, limit = generator.row_program(), rng.choice((3, 10_000, 10_000))
        try:
            yield st.RowCase(compile(text, st.COLUMNS, max_expansion=limit))
        except CxlError:
            continue


def window_cases(rng: random.Random) -> Iterator[st.RowCase]:
    generator = StatementGenerator(rng)
    while True:
        text, window = generator.window_program()
        try:
            yield st.RowCase(compile(text, st.COLUMNS), window)
        except CxlError:
            continue


def group_cases(rng: random.Random) -> Iterator[st.GroupCase]:
    generator = StatementGenerator(rng)
    while True:
        text, keys = generator.group_program()
        try:
            yield st.GroupCase(compile(text, st.COLUMNS, mode="aggregate", group_by=keys))
        except CxlError:
            continue
