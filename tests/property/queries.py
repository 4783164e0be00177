"""Generated query programs: clauses as data, so that a program that fails can be made smaller; typed expressions."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

XS: list[dict[str, Any]] = [
    {"i": 1, "n": 3, "f": 0.5, "s": "a", "b": True, "l": [1, 2]},
    {"i": 2, "n": None, "f": -1.25, "s": "B", "b": None, "l": [4]},
    {"i": 3, "n": 0, "f": None, "s": "", "b": False, "l": [3, None, 1]},
    {"i": 2, "n": 3, "f": 0.1, "s": None, "b": True, "l": [2, 2]},
    {"i": 0, "n": -7, "f": 100.0, "s": "ä b", "b": False, "l": []},
    {"i": 5, "n": None, "f": None, "s": "12", "b": None, "l": [5, 4, 3]},
    {"i": 1, "n": 3, "f": 0.5, "s": "a", "b": True, "l": [1, 2]},
]
YS: list[dict[str, Any]] = [
    {"j": 2, "m": 3, "t": "B", "g": 0.1},
    {"j": 1, "m": None, "t": "a", "g": 2.0},
    {"j": 2, "m": -7, "t": None, "g": 0.5},
    {"j": 4, "m": 0, "t": "zz", "g": -3.75},
]
LISTS: dict[str, list[Any]] = {"xs": XS, "ys": YS}

Fields = Mapping[str, str]
"""The fields of a row by name, with their kinds: int, float, str, bool, list (of int)."""
ROWS: dict[str, Fields] = {
    "xs": {"i": "int", "n": "int", "f": "float", "s": "str", "b": "bool", "l": "list"},
    "ys": {"j": "int", "m": "int", "t": "str", "g": "float"},
}
_SCALARS = ("int", "float", "str", "bool")


@dataclass(frozen=True)
class Query:
    """The clauses of a query as texts."""

    sources: tuple[str, ...]
    joins: tuple[str, ...] = ()
    lets: tuple[str, ...] = ()
    wheres: tuple[str, ...] = ()
    group: str = ""
    having: str = ""
    orders: tuple[str, ...] = ()
    skip: str = ""
    take: str = ""
    select: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)
    distinct: bool = False

    def __str__(self) -> str:
        parts = [*self.sources, *self.joins, *self.lets, *(f"where {w}" for w in self.wheres)]
        parts += [self.group] if self.group else []
        parts += [f"having {self.having}"] if self.having else []
        parts += [f"sort by {', '.join(self.orders)}"] if self.orders else []
        parts += [f"skip {self.skip}"] if self.skip else []
        parts += [f"take {self.take}"] if self.take else []
        made = f"{{{', '.join(f'{n}: {e}' for n, e in self.fields.items())}}}" if self.fields else self.select
        return " ".join([*parts, f"select {'distinct ' if self.distinct else ''}{made}"])

    def smaller(self) -> Iterator[Query]:
        """The query without one of its parts. Not all of them mean something."""
        for name in ("joins", "lets", "wheres", "orders"):
            values = getattr(self, name)
            yield from (replace(self, **{name: values[:i] + values[i + 1 :]}) for i in range(len(values)))
        for name in ("having", "skip", "take"):
            if getattr(self, name):
                yield replace(self, **{name: ""})
        if self.distinct:
            yield replace(self, distinct=False)
        if len(self.fields) > 1:
            yield from (replace(self, fields={k: v for k, v in self.fields.items() if k != n}) for n in self.fields)
        if len(self.sources) > 1:
            yield replace(self, sources=self.sources[:-1])


@dataclass(frozen=True)
class Program:
    """Queries in a frame: alone (`{0}`), in an aggregate (`count({0})`), or put together (`({0}) union ({1})`)."""

    frame: str
    queries: tuple[Query, ...]

    def __str__(self) -> str:
        return self.frame.format(*self.queries)

    def smaller(self) -> Iterator[Program]:
        if self.frame != "{0}":
            yield from (Program("{0}", (q,)) for q in self.queries)
        for i, q in enumerate(self.queries):
            for less in q.smaller():
                yield replace(self, queries=(*self.queries[:i], less, *self.queries[i + 1 :]))


class Generator:
    """Programs at random. `risky` expressions may fail for some rows. They stand in `select` only: a condition that
    fails for a row is not computed where Spark knows from another one that the row is left out."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.names = 0
        self.risky = False

    def _chance(self, p: float) -> bool:
        return self.rng.random() < p

    def _fresh(self, prefix: str) -> str:
        self.names += 1
        return f"{prefix}{self.names}"

    # ------------------------------------------------------------ programs

    def program(self) -> Program:
        self.names, self.risky = 0, self._chance(0.4)
        kind = self.rng.random()
        if kind < 0.70:
            return Program("{0}", (self.query()[0],))
        if kind < 0.85:
            op = self.rng.choice(["union", "union all", "intersect", "except"])
            fields = {"a": self.rng.choice(_SCALARS), "b": self.rng.choice(_SCALARS)}
            return Program("({0}) " + op + " ({1})", (self.query(shape=fields)[0], self.query(shape=fields)[0]))
        function = self.rng.choice(["count", "sum", "avg", "min", "max", "exists", "first"])
        kind_of = self.rng.choice(["int", "float"]) if function in ("sum", "avg") else self.rng.choice(_SCALARS)
        return Program(function + "({0})", (self.query(shape=kind_of)[0],))

    def query(self, depth: int = 0, shape: Fields | str | None = None) -> tuple[Query, Fields]:
        """A query, and the fields of its rows (none when they are no records)."""
        risky, self.risky = self.risky and shape is None and not depth, False
        sources, rows = [], {}
        name, text, row = self._source(depth)
        sources.append(f"from {name} in {text}")
        rows[name] = row
        joins = []
        if self._chance(0.2):
            other, more = self._second(depth, rows)
            sources.append(more)
            rows |= other
        elif self._chance(0.35):
            other_name, text, row = self._source(depth + 1)
            kind = self.rng.choice(["", "", "left ", "right ", "outer "])
            on = self._join_condition(rows, {other_name: row})
            joins.append(f"{kind}join {other_name} in {text} on {on}")
            rows[other_name] = row
        variables = {f"{n}.{f}": kind for n, row in rows.items() for f, kind in row.items()}
        lets = []
        if self._chance(0.25):
            let_name, kind = self._fresh("v"), self.rng.choice(_SCALARS)
            lets.append(f"let {let_name} = {self.expression(kind, variables)}")
            variables[let_name] = kind
        wheres = [self.condition(variables) for _ in range(self.rng.choice([0, 0, 1, 1, 2]))]
        if self._chance(0.1):
            wheres.append(self._nested_condition(variables))
        q = Query(tuple(sources), tuple(joins), tuple(lets), tuple(wheres))
        if self._chance(0.3):
            q, variables = self._grouped(q, rows, variables)
        if self._chance(0.45):
            keys = [self.expression(self.rng.choice(_SCALARS), variables) for _ in range(self.rng.choice([1, 1, 2]))]
            q = replace(q, orders=tuple(k + self.rng.choice(["", "", " desc"]) for k in keys))
        if self._chance(0.25):
            q = replace(q, take=str(self.rng.randint(0, 4)))
        if self._chance(0.15):
            q = replace(q, skip=str(self.rng.randint(0, 3)))
        q = replace(q, distinct=self._chance(0.15))
        self.risky = risky and not q.take and not q.skip
        return self._selected(q, variables, shape)

    def _selected(self, q: Query, variables: Mapping[str, str], shape: Fields | str | None) -> tuple[Query, Fields]:
        if isinstance(shape, str) or (shape is None and self._chance(0.15)):
            kind = shape if isinstance(shape, str) else self.rng.choice(_SCALARS)
            return replace(q, select=self.expression(kind, variables, sure=True)), {}
        fields: Fields = shape if isinstance(shape, Mapping) else self._shape()
        return replace(q, fields={n: self.expression(k, variables) for n, k in fields.items()}), fields

    def _shape(self) -> Fields:
        return {self._fresh("c"): self.rng.choice((*_SCALARS, "int", "list")) for _ in range(self.rng.randint(1, 3))}

    def _source(self, depth: int) -> tuple[str, str, Fields]:
        if depth < 2 and self._chance(0.15):
            q, fields = self.query(depth + 2, self._shape())
            return self._fresh("q"), f"({q})", fields
        source = self.rng.choice(["xs", "xs", "ys"])
        return self._fresh("x"), source, ROWS[source]

    def _second(self, depth: int, rows: Mapping[str, Fields]) -> tuple[dict[str, Fields], str]:
        """Another `from`: rows, or the elements of a list of the first row."""
        lists = [f"{n}.{f}" for n, row in rows.items() for f, kind in row.items() if kind == "list"]
        if lists and self._chance(0.5):
            name = self._fresh("e")
            return {}, f"from {name} in {self.rng.choice(lists)}"
        name, text, row = self._source(depth + 1)
        return {name: row}, f"from {name} in {text}"

    def _join_condition(self, left: Mapping[str, Fields], right: Mapping[str, Fields]) -> str:
        a = {f"{n}.{f}": k for n, row in left.items() for f, k in row.items()}
        b = {f"{n}.{f}": k for n, row in right.items() for f, k in row.items()}
        pairs = [(x, y) for x, k in a.items() for y, other in b.items() if k == other and k != "list"]
        if not pairs:
            return "true"
        x, y = self.rng.choice(pairs)
        made = f"{x} == {y}"
        return f"{made} and {self.condition({**a, **b})}" if self._chance(0.25) else made

    def _nested_condition(self, variables: Mapping[str, str]) -> str:
        """A query over other rows that uses this one."""
        name = self._fresh("z")
        outer = self._of("int", variables) or "1"
        own = self.rng.choice(["j", "m"])
        inner = f"from {name} in ys where {name}.{own} {self.rng.choice(['==', '<'])} {outer} select {name}"
        match self.rng.randrange(3):
            case 0:
                return f"exists({inner})"
            case 1:
                return f"count({inner}) {self.rng.choice(['>', '=='])} {self.rng.randint(0, 2)}"
        return f"{outer} in (from {name} in ys select {name}.{own})"

    def _grouped(
        self, q: Query, rows: Mapping[str, Fields], variables: Mapping[str, str]
    ) -> tuple[Query, dict[str, str]]:
        g = self._fresh("g")
        kinds = [self.rng.choice(_SCALARS) for _ in range(self.rng.choice([1, 1, 2]))]
        keys = [self.expression(kind, variables, sure=True) for kind in kinds]
        names = [f"{g}.key"] if len(keys) == 1 else []
        after = dict(zip(names, kinds, strict=False))
        row = self._fresh("y")
        many = len(q.sources) + len(q.joins) > 1
        inner = {f"{row}.{v}" if many else f"{row}.{v.split('.', 1)[1]}": k for v, k in variables.items() if "." in v}
        for _ in range(self.rng.randint(1, 3)):
            function = self.rng.choice(["count", "sum", "avg", "min", "max", "first"])
            kind = self.rng.choice(["int", "float"]) if function in ("sum", "avg") else self.rng.choice(_SCALARS)
            where = f"where {self.condition(inner)} " if self._chance(0.3) else ""
            value = self.expression(kind, inner, sure=True)
            result = {"count": "int", "avg": "float"}.get(function, kind)
            after[f"{function}(from {row} in {g} {where}select {value})"] = result
        after[f"count({g})"] = "int"
        if self._chance(0.4):
            after[f"(from {row} in {g} select {self.expression('int', inner, sure=True)})"] = "list"
        q = replace(q, group=f"group by {', '.join(keys)} into {g}")
        return (replace(q, having=self.condition(after)) if self._chance(0.3) else q), after

    # --------------------------------------------------------- expressions

    def condition(self, variables: Mapping[str, str]) -> str:
        return self.expression("bool", variables)

    def _of(self, kind: str, variables: Mapping[str, str]) -> str | None:
        found = [v for v, k in variables.items() if k == kind]
        return self.rng.choice(found) if found else None

    def expression(self, kind: str, variables: Mapping[str, str], depth: int = 0, *, sure: bool = False) -> str:
        """An expression of a kind. `sure` ones read a variable if there is one of the kind."""
        found = self._of(kind, variables)
        deep = depth > self.rng.choice([0, 1, 1])
        if found is not None and (deep or self._chance(0.45 if depth else 0.25) or (sure and depth == 0)):
            return found
        if deep or self._chance(0.15):
            return self._literal(kind)
        if kind == "list":
            return self._list(found)
        make = {"int": self._int, "float": self._float, "str": self._str, "bool": self._bool}[kind]
        return make(lambda k: self.expression(k, variables, depth + 1), variables)

    def _list(self, elements: str | None) -> str:
        """A query over a list inside a row."""
        name, sort = (
            self._fresh("d"),
            self.rng.choice(["", "", "sort by {0} ", "sort by {0} desc ", "skip 1 ", "take 2 "]),
        )
        where = self.rng.choice(["", "where {0} > 1 ", "where {0} != null "])
        made = f"from {{0}} in {elements or '[2, 1, 3]'} {where}{sort}select {self.rng.choice(['{0}', '{0} * 2'])}"
        return f"({made.format(name)})"

    def _literal(self, kind: str) -> str:
        match kind:
            case "list":
                return self.rng.choice(["[1, 2]", "[3, null, 1]"])
            case "int":
                return str(self.rng.choice([0, 1, 2, 3, 7]))
            case "float":
                return self.rng.choice(["0.5", "2.0", "0.1", "1e3"])
            case "str":
                return self.rng.choice(['"a"', '"B"', '""', '"12"', '"ä b"', '"it\'s"'])
        return self.rng.choice(["true", "false"])

    def _int(self, e: Any, variables: Mapping[str, str]) -> str:
        elements = self._of("list", variables)
        forms = [
            lambda: f"({e('int')} {self.rng.choice('+-*')} {e('int')})",
            lambda: f"({e('int')} {self.rng.choice('/%')} {self.rng.choice([2, 3])})",
            lambda: f"(-{e('int')})",
            lambda: f"({e('int')} ?? {e('int')})",
            lambda: f"{e('str')}.length()",
            lambda: f"{e('int')}.abs()",
            lambda: f"(if {e('bool')} then {e('int')} else {e('int')})",
            lambda: f"(match {e('int')} {{ 1 => {e('int')}, 3 => 0, _ => {e('int')} }})",
        ]
        if elements is not None:
            name = self._fresh("d")
            forms += [
                lambda: f"{self.rng.choice(['sum', 'count', 'min', 'max'])}({elements})",
                lambda: f"count(from {name} in {elements} where {name} > {self._literal('int')} select {name})",
            ]
        if self.risky and self._chance(0.5):
            forms = [lambda: f"({e('int')} {self.rng.choice('/%')} {e('int')})", lambda: f"{e('str')}.to_int()"]
        return str(self.rng.choice(forms)())

    def _float(self, e: Any, variables: Mapping[str, str]) -> str:
        forms = [
            lambda: f"({e('float')} {self.rng.choice('+-*')} {e(self.rng.choice(['int', 'float']))})",
            lambda: f"({e('float')} / 4.0)",
            lambda: f"({e('float')} ?? {e('float')})",
            lambda: f"{e('float')}.abs()",
            lambda: f"{e('float')}.round(1)",
            lambda: f"(if {e('bool')} then {e('float')} else {e('float')})",
        ]
        if self.risky and self._chance(0.5):
            forms = [lambda: f"({e('float')} / {e('float')})", lambda: f"{e('str')}.to_float()"]
        return str(self.rng.choice(forms)())

    def _str(self, e: Any, variables: Mapping[str, str]) -> str:
        forms = [
            lambda: f"({e('str')} + {e('str')})",
            lambda: f"{e('str')}.{self.rng.choice(['upper', 'lower', 'trim', 'reverse'])}()",
            lambda: f"{e('str')}.left({self.rng.randint(0, 2)})",
            lambda: f"substring({e('str')}, 0, {self.rng.randint(0, 2)})",
            lambda: f"({e('str')} ?? {e('str')})",
            lambda: f"(if {e('bool')} then {e('str')} else {e('str')})",
            lambda: f"str({e('int')})",
        ]
        return str(self.rng.choice(forms)())

    def _bool(self, e: Any, variables: Mapping[str, str]) -> str:
        elements = self._of("list", variables)
        same = self.rng.choice(_SCALARS)
        forms = [
            lambda: f"({e('int')} {self.rng.choice(['<', '<=', '>', '>=', '==', '!='])} {e('int')})",
            lambda: f"({e('float')} {self.rng.choice(['<', '>='])} {e('float')})",
            lambda: f"({e('str')} {self.rng.choice(['<', '>=', '==', '!='])} {e('str')})",
            lambda: f"({e(same)} {self.rng.choice(['==', '!='])} {e(same)})",
            lambda: f"({e('bool')} {self.rng.choice(['and', 'or'])} {e('bool')})",
            lambda: f"(not {e('bool')})",
            lambda: f"({e('int')} in [{', '.join(self._literal('int') for _ in range(2))}])",
            lambda: f"({e('str')} in [{self._literal('str')}, null])",
            lambda: f"({e(same)} {self.rng.choice(['==', '!='])} null)",
            lambda: f"{e('str')}.contains({self._literal('str')})",
        ]
        if elements is not None:
            forms.append(lambda: f"({self._literal('int')} in {elements})")
        return str(self.rng.choice(forms)())


def programs(seed: int) -> Iterator[Program]:
    generator = Generator(random.Random(seed))
    while True:
        yield generator.program()
