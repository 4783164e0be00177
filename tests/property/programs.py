"""A generator of typed CXL programs: it makes an expression of a wanted type out of columns, literals, every operator,
every builtin of the table, the lazy constructs, closures, comprehensions and containers.

What it makes is usually well typed; where it is not (a dynamic column used as two types, decimals next to floats),
the program does not compile and another one is made. Types are named by their schema spelling.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from functools import cache

from clinker_spark.core.types import ANY, Kind, Type, decimal, parse_type
from clinker_spark.cxl.builtins import all_builtins
from clinker_spark.cxl.builtins.table import Builtin, Overload
from tests.property.records import COLUMNS
from tests.property.trees import Candidate, Node, Statement, leaf
from tests.support.type_keywords import type_keyword

SCALARS = ("bool", "int", "float", "decimal", "string", "date", "date_time")
ARRAYS = ("array(int)", "array(float)", "array(string)", "array(array(int))", "array")
MAPS = ("map", "map(int)")
TYPES = (*SCALARS, *ARRAYS, *MAPS, "any")
WEIGHTS = (12, 14, 10, 8, 18, 6, 6, 5, 3, 5, 2, 5, 5, 4, 8)
NUMBERS = ("int", "float", "decimal")
_ELEMENT = {"array(int)": "int", "array(float)": "float", "array(string)": "string", "array(array(int))": "array(int)",
            "array": "any", "map": "any", "map(int)": "int"}  # fmt: skip
_ARRAY_OF = {"int": "array(int)", "float": "array(float)", "string": "array(string)", "array(int)": "array(array(int))",
             "any": "array"}  # fmt: skip

LITERALS: Mapping[str, Sequence[str]] = {
    "bool": ("true", "false"),
    "int": ("0", "1", "2", "3", "10", "(-1)", "(-7)", "100", "9223372036854775807", "(-9223372036854775807)", "9007199254740993"),  # noqa: E501
    "float": ("0.0", "1.0", "0.5", "2.5", "(-0.0)", "(-1.5)", "0.1", "100.0", "1000000000000000000000.0", "0.0000001"),
    "decimal": ('"1.50".to_decimal()', '"0.125".to_decimal()', "2.to_decimal()", '"-3.7".to_decimal()', "0.5.to_decimal()"),  # noqa: E501
    "string": (
        '""', '"a"', '"abc"', '" "', '"é"', '"😀"', '"b,c"', '"k1"', "'it\\'s'", '"1"', '"2024-02-29"', '"\\n"', '"Straße"',  # noqa: E501
        '"${x} \\\\ %s _%"', '"3.25"', '"/a/b.txt"',
    ),
    "date": ("#2024-02-29#", "#2024-03-15#", "#0001-01-01#", "#9999-12-31#", "#1970-01-01#", "#2023-12-31#"),
    "date_time": ("now", '"2024-02-29T23:59:59".to_datetime()', '"2000-01-01T00:00:00".to_datetime()'),
    "array(int)": ("[1, 2, 3]", "[0]", "[5, null]"),
    "array(float)": ("[1.5, 2.0]", "[0.0]", "[null, (-0.5)]"),
    "array(string)": ('["a", "b"]', '[""]', '["é", null]'),
    "array(array(int))": ("[[1], [2, 3]]", "[[0], null]"),
    "array": ("[]", '[1, "a", null]', "[[1], {k1: 2}]", "[1.5, true]", "[null]"),
    "map": ("{}", '{k1: 1, k2: "b"}', '{k1: {k2: [1, null]}, "a b": 1.5}', "{k2: null, k1: true}"),
    "map(int)": ("{k1: 1}", "{k2: 5, k1: null}"),
    "any": ("null", "1", '"a"', "[1]", "{k1: 1}"),
}  # fmt: skip

REGEXES = (
    r'"a"', r'"^a.*"', r'"[a-z]+"', r'"\\d+"', r'"(\\w+) (\\w+)"', r'"^$"', r'"[^,]*"', r'"(?i)hello"', r'"é|ß"', r'"."',  # noqa: E501
    r'"a{2,}"', r'"\\s"', r'"(a)|(b)"', r'"\\bx\\b"', r'"\\p{Lu}"', r'"(?P<n>[0-9])"', r'"[[:alpha:]]+"', r'"a$"', r'"\\W"',  # noqa: E501
)  # fmt: skip
DATE_FORMATS = (
    '"%Y-%m-%d"',
    '"%d/%m/%Y"',
    '"%Y"',
    '"%B %d, %Y"',
    '"%j"',
    '"%a %b %e"',
    '"%y%m%d"',
    '"%V-%u"',
    '"%%"',
    '"%d/%m/%Y"',
)
TIME_FORMATS = (
    '"%Y-%m-%dT%H:%M:%S"',
    '"%H:%M"',
    '"%I:%M %p"',
    '"%Y-%m-%d %H:%M:%S%.f"',
    '"%Y-%m-%d"',
    '"%d/%m/%Y %H:%M"',
)
PATHS = (
    '"k1"',
    '"k1.k2"',
    '"k3[0]"',
    '"k1.k1"',
    '"a"',
    '"k1[0].k1"',
    '"["',
    '""',
    '"k1..k2"',
    '"new"',
    '"k1.k3[1]"',
    '"é"',
)
KEYS = ("k1", "k2", "k3", "a", "b", "zz")

# Arguments that are not any value of their type: (method, position) -> texts. Others are expressions of the type.
SPECIAL: Mapping[tuple[str, int], Sequence[str]] = {
    ("matches", 1): REGEXES,
    ("find", 1): REGEXES,
    ("capture", 1): REGEXES,
    ("capture", 2): ("0", "1", "2", "9", "(-1)"),
    ("format_date", 1): (*DATE_FORMATS, *TIME_FORMATS),
    ("to_date", 1): DATE_FORMATS,
    ("try_date", 1): DATE_FORMATS,
    ("to_datetime", 1): TIME_FORMATS,
    ("try_datetime", 1): TIME_FORMATS,
    ("set", 1): PATHS,
    ("unset", 1): PATHS,
    ("debug", 1): ('"label"',),
    ("split", 1): ('","', '""', '" "', '"a"', '"aa"', '"."', "t"),
}
# Counts: mostly small, so that strings stay strings that can be looked at.
COUNTS = ("0", "1", "2", "3", "5", "8", "20", "(-1)", "2.7", "(-0.5)", "11000000", "4294967297")
COUNTED = {
    ("substring", 1), ("substring", 2), ("left", 1), ("right", 1), ("pad_left", 1), ("pad_right", 1), ("repeat", 1),
    ("round", 1), ("round_to", 1), ("remove", 1), ("add_days", 1), ("add_months", 1), ("add_years", 1),
}  # fmt: skip


def keyword(t: Type) -> str:
    """The generator's name for a type: decimals of all scales are one."""
    t = t.unwrap().as_static()
    if t.kind is Kind.DECIMAL:
        return "decimal"
    if t.kind in (Kind.NUMERIC, Kind.NULL):
        return "any"
    if t.kind in (Kind.ARRAY, Kind.MAP):
        name = type_keyword(t).replace("nullable(int)", "int")
        return name if name in TYPES else t.kind.value.lower()
    return type_keyword(t)


_SAMPLE = {Kind.DECIMAL: decimal(2), Kind.ARRAY: parse_type("array(int)"), Kind.MAP: parse_type("map(int)")}


def _sample(param: Type) -> Type:
    if param.kind is Kind.ANY:
        return parse_type("int") or ANY
    if param.kind in (Kind.ARRAY, Kind.MAP) and param.element is not None and param.element.kind is not Kind.ANY:
        return param
    return _SAMPLE.get(param.kind) or param


@cache
def methods_by_result() -> dict[str, list[tuple[Builtin, Overload]]]:
    """The table's methods under the type they give (for a sample of arguments)."""
    found: dict[str, list[tuple[Builtin, Overload]]] = {t: [] for t in TYPES}
    for builtin in all_builtins():
        if builtin.family == "operator":
            continue
        for overload in builtin.overloads:
            result = keyword(overload.result_type([_sample(p) for p in overload.params]))
            found[result].append((builtin, overload))
            if overload.params[0].kind is Kind.ANY or result == "array(int)":
                found["any" if overload.params[0].kind is Kind.ANY else "array"].append((builtin, overload))
    return found


class Generator:
    """Makes programs from one random source. `names` are the visible lets, emits and bindings with their types."""

    def __init__(self, rng: random.Random, columns: Mapping[str, str] = COLUMNS) -> None:
        self.rng = rng
        self.columns = columns
        self.names: dict[str, str] = {}
        self.budget = 0
        self._count = 0

    # ------------------------------------------------------------ programs

    def program(self) -> Candidate:
        """One to four statements, the last of them an emit."""
        self.names = {}
        self._count = 0
        self.budget = self.rng.choice((8, 15, 25, 40))
        statements = [self._statement() for _ in range(self.rng.choice((0, 0, 0, 1, 1, 2, 3)))]
        self.budget = max(self.budget, 12)
        statements.append(self._emit("v", self._type(), depth=self.rng.randint(1, 5)))
        return Candidate(tuple(statements))

    def _type(self) -> str:
        return self.rng.choices(TYPES, WEIGHTS)[0]

    def _fresh(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}{self._count}"

    def _statement(self) -> Statement:
        kind = self.rng.choices(
            ("let", "emit", "overwrite", "filter", "scoped", "trace", "bare"), (6, 5, 4, 3, 2, 1, 1)
        )[0]
        t = self._type()
        depth = self.rng.randint(1, 3)
        if kind == "let":
            name = self._fresh("let_")
            statement = Statement(f"let {name} = ", self.expression(t, depth))
            self.names[name] = t
            return statement
        if kind == "emit":
            return self._emit(self._fresh("out"), t, depth)
        if kind == "overwrite":
            name = self.rng.choice(list(self.columns))
            # Mostly with its own type, so that what follows still compiles.
            return self._emit(name, _bare(self.columns[name]) if self.rng.random() < 0.7 else t, depth)
        if kind == "scoped":
            t = self.rng.choice(SCALARS[:3] + SCALARS[4:])
            name = f"${self.rng.choice(('record', 'pipeline', 'source'))}.{self._fresh('var')}"
            statement = Statement(f"emit {name} = ", self.expression(t, depth))
            self.names[name] = t
            return statement
        if kind == "filter":
            return Statement("filter ", self.expression("bool", depth))
        if kind == "trace":
            return Statement(self.rng.choice(("trace ", "trace warn ")), self.expression("string", depth))
        return Statement("", Node(t, ("(", self.expression(t, depth), ")")))

    def _emit(self, name: str, t: str, depth: int) -> Statement:
        statement = Statement(f"emit {name} = ", self.expression(t, depth))
        self.names[name] = t
        return statement

    # --------------------------------------------------------- expressions

    def expression(self, t: str, depth: int) -> Node:
        """An expression of type `t`, with at most `depth` levels below it."""
        self.budget -= 1
        if depth <= 0 or self.budget <= 0 or self.rng.random() < 0.08:
            return self.leaf(t)
        return self.rng.choices(*self._ways(t))[0](t, depth - 1)

    def argument(self, t: str, depth: int) -> Node:
        """An expression where `t` is wanted: now and then a dynamic one, whose type only the record shows."""
        return self.dynamic(depth) if t != "any" and self.rng.random() < 0.12 else self.expression(t, depth)

    def dynamic(self, depth: int) -> Node:
        """An expression whose static type is not known."""
        self.budget -= 1
        if depth <= 0 or self.budget <= 0 or self.rng.random() < 0.5:
            return leaf(
                "any",
                self.rng.choice([n for n, t in self.columns.items() if t == "any" and n not in self.names] or ["null"]),
            )
        return self.rng.choice((self._step, self._index, self._clash, self._dynamic_arithmetic))("any", depth - 1)

    def leaf(self, t: str) -> Node:
        names = [n for n, u in self.names.items() if u == t]
        roll = self.rng.random()
        if names and roll < 0.45:
            return leaf(t, self.rng.choice(names))
        columns = [n for n, u in self.columns.items() if _bare(u) == t and n not in self.names]
        if columns and roll < 0.8:
            return leaf(t, self.rng.choice(columns))
        if roll > 0.985:
            return leaf(t, "null")
        return leaf(t, self.rng.choice(LITERALS[t]))

    def _ways(self, t: str) -> tuple[list[Callable[[str, int], Node]], list[int]]:
        ways: list[tuple[Callable[[str, int], Node], int]] = [
            (self._if, 6), (self._match, 3), (self._coalesce, 4), (self._index, 3), (self._find, 2),
        ]  # fmt: skip
        if methods_by_result()[t]:
            ways.append((self._method, {"string": 34, "int": 14}.get(t, 20)))
        if t == "bool":
            ways += [(self._compare, 18), (self._logic, 8), (self._not, 3), (self._any, 3)]
        elif t in NUMBERS:
            ways += [(self._arithmetic, 20), (self._negate, 2)]
        elif t == "string":
            ways.append((self._concat, 4))
        elif t in ARRAYS:
            ways += [(self._array, 5), (self._filter, 5), (self._map, 5), (self._flat_map, 4), (self._comprehension, 6)]
        elif t in MAPS:
            ways += [(self._map_literal, 8)]
        elif t == "any":
            ways += [(self._anything, 16), (self._dynamic_arithmetic, 8), (self._clash, 4), (self._step, 8)]
        return [w for w, _ in ways], [n for _, n in ways]

    # ------------------------------------------------------ lazy constructs

    def _if(self, t: str, depth: int) -> Node:
        condition, then = self.argument("bool", depth), self.expression(t, depth)
        if self.rng.random() < 0.2:
            return Node(t, ("(if ", _closed(condition), " then ", then, ")"))
        return Node(t, ("(if ", _closed(condition), " then ", then, " else ", self.expression(t, depth), ")"))

    def _match(self, t: str, depth: int) -> Node:
        parts: list[str | Node] = ["(match "]
        if self.rng.random() < 0.6:
            subject = self.rng.choice(("int", "string", "any", "date", "float", "decimal", "bool"))
            parts += [_closed(self.expression(subject, depth)), " "]
        else:
            subject = ""
        parts.append("{ ")
        for _ in range(self.rng.randint(1, 2)):
            pattern = self.argument("bool", depth - 1) if not subject else self.expression(subject, depth - 2)
            if self.rng.random() < 0.1 and subject:
                pattern = leaf(subject, "null")
            parts += [_closed(pattern), " => ", self.expression(t, depth - 1), ", "]
        return Node(t, (*parts, "_ => ", self.expression(t, depth - 1), " })"))

    def _coalesce(self, t: str, depth: int) -> Node:
        left, right = self.expression(t, depth), self.expression(t, depth)
        if self.rng.random() < 0.25:
            return Node(t, (_receiver(left), ".catch(", right, ")"))
        return Node(t, ("(", left, " ?? ", right, ")"))

    # ------------------------------------------------------------ operators

    def _compare(self, t: str, depth: int) -> Node:
        op = self.rng.choice(("==", "!=", ">", "<", ">=", "<="))
        kinds = ("int", "float", "decimal", "string", "date", "date_time", "any")
        kind = self.rng.choice((*kinds, "bool", "array(int)", "map") if op in ("==", "!=") else kinds)
        other = kind
        if kind in ("int", "float") and self.rng.random() < 0.25:
            other = "float" if kind == "int" else "int"
        elif kind == "decimal" and self.rng.random() < 0.25:
            other = "int"
        right = leaf(kind, "null") if self.rng.random() < 0.06 else self.argument(other, depth)
        return Node(t, ("(", self.argument(kind, depth), f" {op} ", right, ")"))

    def _logic(self, t: str, depth: int) -> Node:
        return Node(
            t,
            ("(", self.argument("bool", depth), self.rng.choice((" and ", " or ")), self.argument("bool", depth), ")"),
        )

    def _not(self, t: str, depth: int) -> Node:
        return Node(t, ("(not ", self.argument("bool", depth), ")"))

    def _arithmetic(self, t: str, depth: int) -> Node:
        op = self.rng.choice("+-*/%")
        types = [t, t]
        if t != "int" and self.rng.random() < 0.25:
            types[self.rng.randrange(2)] = "int"
        left, right = (self.argument(each, depth) for each in types)
        return Node(t, ("(", left, f" {op} ", right, ")"))

    def _negate(self, t: str, depth: int) -> Node:
        return Node(t, ("(-", _receiver(self.expression(t, depth)), ")"))

    def _concat(self, t: str, depth: int) -> Node:
        return Node(t, ("(", self.argument(t, depth), " + ", self.argument(t, depth), ")"))

    def _dynamic_arithmetic(self, t: str, depth: int) -> Node:
        op = self.rng.choice("+-*/%+")
        other = self.rng.choice(("any", "any", "int", "float", "string", "decimal"))
        pair = [self.dynamic(depth), self.dynamic(depth) if other == "any" else self.expression(other, depth)]
        self.rng.shuffle(pair)
        if self.rng.random() < 0.15:
            return Node(t, ("(-", _receiver(pair[0]), ")"))
        return Node(t, ("(", pair[0], f" {op} ", pair[1], ")"))

    # ------------------------------------------------------------ containers

    def _index(self, t: str, depth: int) -> Node:
        if t in _ARRAY_OF and self.rng.random() < 0.6:
            return Node(t, (_receiver(self.expression(_ARRAY_OF[t], depth)), "[", self.argument("int", depth - 2), "]"))
        if t in ("int", "any"):
            target = _receiver(self.expression("map(int)" if t == "int" else "map", depth))
            if self.rng.random() < 0.5:
                return Node(t, (target, f".{self.rng.choice(KEYS)}"))
            return Node(t, (target, "[", self.argument("string", depth - 2), "]"))
        if self.rng.random() < 0.5:
            items = [self.expression(t, depth - 1) for _ in range(2)]
            return Node(t, ("[", items[0], ", ", items[1], "]", "[", self.expression("int", 0), "]"))
        return Node(t, ("{k1: ", self.expression(t, depth - 1), "}", self.rng.choice((".k1", '["k1"]', ".k2"))))

    def _step(self, t: str, depth: int) -> Node:
        """A path into a dynamic value."""
        target = _receiver(self.dynamic(depth))
        step = self.rng.choice(
            ('["k1"]', "[0]", "[1]", "[2.5]", ".k1", ".k2", ".k1.k2", '["é"]', "[(-1)]", '["q\'"]', "i", "s")
        )
        if step in ("i", "s"):
            return Node(t, (target, "[", self.argument("int" if step == "i" else "string", depth - 1), "]"))
        return Node(t, (target, step))

    def _array(self, t: str, depth: int) -> Node:
        parts: list[str | Node] = ["["]
        for n in range(self.rng.randint(1, 3)):
            parts += [", "] * bool(n) + [self.expression(_ELEMENT[t], depth)]
        return Node(t, (*parts, "]"))

    def _map_literal(self, t: str, depth: int) -> Node:
        parts: list[str | Node] = ["{"]
        keys = self.rng.sample(KEYS, 3)
        for n in range(self.rng.randint(1, 3)):
            parts += [", "] * bool(n)
            if self.rng.random() < 0.25:
                parts += ["[", self.argument("string", depth - 1), "]: "]
            else:
                parts.append(f"{keys[n]}: ")
            parts.append(self.expression(_ELEMENT[t], depth - 1))
        return Node(t, (*parts, "}"))

    def _anything(self, t: str, depth: int) -> Node:
        """A static expression where any type will do."""
        other = self._type()
        return Node(t, self.expression(other, depth).parts)

    def _clash(self, t: str, depth: int) -> Node:
        """Branches of two types: the result is dynamic."""
        a, b = self._type(), self._type()
        return Node(t, ("(if ", _closed(self.expression("bool", depth - 1)), " then ", self.expression(a, depth), " else ",  # noqa: E501
                        self.expression(b, depth), ")"))  # fmt: skip

    # --------------------------------------------------------------- closures

    def _bound(self, name: str, t: str, make: Callable[[], Node]) -> Node:
        old = self.names.get(name)
        self.names[name] = t
        node = make()
        if old is None:
            del self.names[name]
        else:
            self.names[name] = old
        return node

    def _source(self, depth: int, t: str | None = None) -> tuple[Node, str]:
        t = t or self.rng.choice(ARRAYS)
        source = self.dynamic(depth) if self.rng.random() < 0.08 else self.expression(t, depth)
        return _receiver(source), _ELEMENT[t] if source.type != "any" else "any"

    def _closure(self, method: str, source: Node, element: str, wanted: str, depth: int) -> tuple[str | Node, ...]:
        body = self._bound("it", element, lambda: self._body(wanted, element, depth))
        return (source, f".{method}(it => ", body, ")")

    def _body(self, wanted: str, element: str, depth: int) -> Node:
        """Bodies that look at the element more often than chance would have it."""
        if wanted == "bool" and element in ("int", "float", "string") and self.rng.random() < 0.5:
            op = self.rng.choice(("==", ">", "<=", "!="))
            return Node("bool", ("it", f" {op} ", self.expression(element, depth - 1)))
        return self.expression(wanted, depth)

    def _filter(self, t: str, depth: int) -> Node:
        source, element = self._source(depth, t)
        return Node(t, self._closure("filter", source, element, "bool", depth))

    def _find(self, t: str, depth: int) -> Node:
        if t not in _ARRAY_OF:
            return self._if(t, depth)
        source, element = self._source(depth, _ARRAY_OF[t])
        return Node(t, self._closure("find", source, element, "bool", depth))

    def _any(self, t: str, depth: int) -> Node:
        source, element = self._source(depth)
        return Node(t, self._closure("any", source, element, "bool", depth))

    def _map(self, t: str, depth: int) -> Node:
        source, element = self._source(depth)
        return Node(t, self._closure("map", source, element, _ELEMENT[t], depth))

    def _flat_map(self, t: str, depth: int) -> Node:
        source, element = self._source(depth)
        wanted = t if self.rng.random() < 0.6 else _ELEMENT[t]
        return Node(t, self._closure("flat_map", source, element, wanted, depth))

    def _comprehension(self, t: str, depth: int) -> Node:
        name = self._fresh("each")
        source, element = self._source(depth)
        value = self._bound(name, element, lambda: self.expression(_ELEMENT[t], depth))
        if self.rng.random() < 0.5:
            return Node(t, ("[", value, f" for {name} in ", source, "]"))
        condition = self._bound(name, element, lambda: self.expression("bool", depth - 1))
        return Node(t, ("[", value, f" for {name} in ", source, " if ", _closed(condition), "]"))

    # ---------------------------------------------------------------- methods

    def _method(self, t: str, depth: int) -> Node:
        builtin, overload = self.rng.choice(methods_by_result()[t])
        given = len(overload.params) - self.rng.randint(0, overload.optional)
        kinds = [overload.params[i] for i in range(given)]
        if overload.variadic:
            kinds += [overload.params[-1]] * self.rng.randint(0, 1)
        parts: list[str | Node] = []
        for position, param in enumerate(kinds):
            if position == 0:
                wanted = self._wanted(param, t)
                receiver = (
                    self.argument(wanted, depth)
                    if wanted != "string" or not self._reads_codes(builtin)
                    else leaf("string", "u")
                )
                parts += [_receiver(receiver), f".{builtin.name}("]
                continue
            parts += [", "] * (position > 1) + [self._parameter(builtin, overload, position, param, depth - 1)]
        return Node(t, (*parts, ")"))

    def _reads_codes(self, builtin: Builtin) -> bool:
        """Conversions and paths see text made for them half of the time."""
        return (
            builtin.family in ("conversion", "path") or builtin.name.startswith(("to_", "try_"))
        ) and self.rng.random() < 0.5

    def _wanted(self, param: Type, result: str) -> str:
        if param.kind is Kind.ANY:
            return result if result != "any" and self.rng.random() < 0.4 else self._type()
        name = keyword(param)
        if name in ("array", "map"):
            family = ARRAYS if name == "array" else MAPS
            return result if result in family and self.rng.random() < 0.7 else self.rng.choice(family)
        return name

    def _parameter(self, builtin: Builtin, overload: Overload, position: int, param: Type, depth: int) -> Node:
        at = (builtin.name, position)
        wanted = self._wanted(param, "any")
        if at in SPECIAL and (position in overload.literal or self.rng.random() < 0.8):
            return leaf(wanted, self.rng.choice(SPECIAL[at]))
        if position in overload.literal:
            return leaf(wanted, self.rng.choice(LITERALS[wanted]))
        if at in COUNTED and self.rng.random() < 0.85:
            return leaf(wanted, self.rng.choice(COUNTS))
        return self.argument(wanted, depth)


def _bare(t: str) -> str:
    """A column's type as the generator names it."""
    t = t.removeprefix("nullable(").removesuffix(")") if t.startswith("nullable(") else t
    return "decimal" if t.startswith("decimal") else t


def _receiver(node: Node) -> Node:
    """A piece that a method or an index can follow."""
    text = node.text
    closed = text[0] in "([{\"'" and text[-1] in ")]}\"'" and _one_group(text)
    if closed or text.replace("_", "").replace("$", "").replace(".", "").isalnum():
        return node
    return Node(node.type, ("(", node, ")"))


def _one_group(text: str) -> bool:
    if text[0] in "\"'":
        return text[0] not in text[1:-1]
    depth = 0
    for i, c in enumerate(text):
        depth += (c in "([{") - (c in ")]}")
        if depth == 0:
            return i == len(text) - 1 and '"' not in text and "'" not in text
    return False


def _closed(node: Node) -> Node:
    """A piece that stands where a brace or a keyword follows."""
    return node if node.text[0] == "(" and node.text[-1] == ")" else Node(node.type, ("(", node, ")"))
