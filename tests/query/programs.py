"""Queries over two small tables with their answers: run on lists, and again as rows on Spark."""

from __future__ import annotations

from typing import Any

PEOPLE: list[dict[str, Any]] = [
    {"name": "Ada", "age": 36, "city": "London", "boss": None},
    {"name": "Bob", "age": 17, "city": "Paris", "boss": "Ada"},
    {"name": "Eve", "age": 50, "city": "London", "boss": "Ada"},
    {"name": "Zoe", "age": 17, "city": None, "boss": None},
]
ORDERS: list[dict[str, Any]] = [
    {"id": 1, "who": "Ada", "total": 10.5},
    {"id": 2, "who": "Zoe", "total": 2.5},
    {"id": 3, "who": "Ada", "total": 7.0},
    {"id": 4, "who": None, "total": 1.0},
    {"id": 5, "who": "Nemo", "total": 4.0},
]

CASES: dict[str, tuple[str, Any]] = {
    "where and select": (
        "from p in people where p.age >= 18 select {name: p.name, next: p.age + 1}",
        [{"name": "Ada", "next": 37}, {"name": "Eve", "next": 51}],
    ),
    "other spellings": (
        'from p in people where not (p.age < 18) and p.city == "London" order by p.age desc limit 1 select p.name',
        ["Eve"],
    ),
    "null compares as false, and equals null": (
        "from p in people where p.city == null || p.city < 'M' select p.name",
        ["Ada", "Eve", "Zoe"],
    ),
    "not of a comparison with null is true": (
        "from p in people where !(p.city < 'M') select p.name",
        ["Bob", "Zoe"],
    ),
    "stable sort keeps ties in order": ("from p in people sort by p.age select p.name", ["Bob", "Zoe", "Ada", "Eve"]),
    "nulls last, up and down": (
        "(from p in people sort by p.city select p.name) + (from p in people sort by p.city desc select p.name)",
        ["Ada", "Eve", "Bob", "Zoe", "Bob", "Ada", "Eve", "Zoe"],
    ),
    "list as sort key": ("from p in people sort by [-p.age, p.name] select p.name", ["Eve", "Ada", "Bob", "Zoe"]),
    "offset then limit": ("from p in people limit 2 offset 1 select p.name", ["Bob", "Eve"]),
    "distinct before skip": ("from p in people skip 1 take 1 select distinct p.age", [17]),
    "distinct by first appearance, null too": (
        "from p in people select distinct p.city",
        ["London", "Paris", None],
    ),
    "records beside each other, their fields in another order": (
        "from p in people where p.age == 17 select {l: [{a: 1, b: {c: p.age, d: 2}}, {b: {d: 3, c: 4}, a: p.age}], "
        "r: if p.city == null then {x: 1, y: p.name} else {y: p.city, x: p.age}, "
        "m: match p.name { 'Bob' => {k: 1, v: 'b'} _ => {v: p.name, k: 2} }}",
        [
            {
                "l": [{"a": 1, "b": {"c": 17, "d": 2}}, {"a": 17, "b": {"c": 4, "d": 3}}],
                "r": {"x": 17, "y": "Paris"},
                "m": {"k": 1, "v": "b"},
            },
            {
                "l": [{"a": 1, "b": {"c": 17, "d": 2}}, {"a": 17, "b": {"c": 4, "d": 3}}],
                "r": {"x": 1, "y": "Zoe"},
                "m": {"k": 2, "v": "Zoe"},
            },
        ],
    ),
    "cross join, left-major": (
        "from p in people from n in [1, 2] where p.age == 17 select {p: p.name, n: n}",
        [{"p": "Bob", "n": 1}, {"p": "Bob", "n": 2}, {"p": "Zoe", "n": 1}, {"p": "Zoe", "n": 2}],
    ),
    "inner join": (
        "from p in people join o in orders on p.name == o.who select {name: p.name, id: o.id}",
        [{"name": "Ada", "id": 1}, {"name": "Ada", "id": 3}, {"name": "Zoe", "id": 2}],
    ),
    "null keys match": (
        "from p in people join o in orders on p.boss == o.who select {name: p.name, id: o.id}",
        [
            {"name": "Ada", "id": 4},
            {"name": "Bob", "id": 1},
            {"name": "Bob", "id": 3},
            {"name": "Eve", "id": 1},
            {"name": "Eve", "id": 3},
            {"name": "Zoe", "id": 4},
        ],
    ),
    "left join, unmatched in place": (
        "from p in people left join o in orders on p.name == o.who"
        " select {name: p.name, id: o.id, known: if o then true else false}",
        [
            {"name": "Ada", "id": 1, "known": True},
            {"name": "Ada", "id": 3, "known": True},
            {"name": "Bob", "id": None, "known": False},
            {"name": "Eve", "id": None, "known": False},
            {"name": "Zoe", "id": 2, "known": True},
        ],
    ),
    "left join on more than equality": (
        "from p in people left join o in orders on p.name == o.who && o.total > 8.0 select {name: p.name, id: o.id}",
        [
            {"name": "Ada", "id": 1},
            {"name": "Bob", "id": None},
            {"name": "Eve", "id": None},
            {"name": "Zoe", "id": None},
        ],
    ),
    "right join, right-major": (
        "from p in people right join o in orders on p.name == o.who select {id: o.id, name: p.name}",
        [
            {"id": 1, "name": "Ada"},
            {"id": 2, "name": "Zoe"},
            {"id": 3, "name": "Ada"},
            {"id": 4, "name": None},
            {"id": 5, "name": None},
        ],
    ),
    "outer join, then the unmatched of the right": (
        "from p in people outer join o in orders on p.name == o.who select {name: p.name, id: o.id}",
        [
            {"name": "Ada", "id": 1},
            {"name": "Ada", "id": 3},
            {"name": "Bob", "id": None},
            {"name": "Eve", "id": None},
            {"name": "Zoe", "id": 2},
            {"name": None, "id": 4},
            {"name": None, "id": 5},
        ],
    ),
    "right join after a join": (
        "from p in people join o in orders on p.name == o.who right join c in people on c.city == p.city"
        " select {c: c.name, id: o.id}",
        [
            {"c": "Ada", "id": 1},
            {"c": "Ada", "id": 3},
            {"c": "Bob", "id": None},
            {"c": "Eve", "id": 1},
            {"c": "Eve", "id": 3},
            {"c": "Zoe", "id": 2},
        ],
    ),
    "a whole row that may be missing": (
        "from p in people left join o in orders on p.name == o.who where p.age < 18 select {n: p.name, o: o}",
        [{"n": "Bob", "o": None}, {"n": "Zoe", "o": {"id": 2, "who": "Zoe", "total": 2.5}}],
    ),
    "groups by first appearance": (
        "from p in people group by p.city into g"
        " select {city: g.key, n: count(g), oldest: max(from x in g select x.age)}",
        [
            {"city": "London", "n": 2, "oldest": 50},
            {"city": "Paris", "n": 1, "oldest": 17},
            {"city": None, "n": 1, "oldest": 17},
        ],
    ),
    "having that fails first": (
        "from p in people group by p.age into g having count(g) > 1 select {age: g.key, n: g.count}",
        [{"age": 17, "n": 2}],
    ),
    "two keys": (
        "from p in people group by p.age, p.city into g sort by g.age, g.key.city select {a: g.age, c: g.key.city}",
        [
            {"a": 17, "c": "Paris"},
            {"a": 17, "c": None},
            {"a": 36, "c": "London"},
            {"a": 50, "c": "London"},
        ],
    ),
    "conditional aggregates": (
        "from p in people group by true into g select {young: count(from x in g where x.age < 18 select x),"
        " sum: sum(from x in g where x.age > 90 select x.age), avg: avg(from x in g select x.age),"
        " any: exists(from x in g where x.age == 50 select x), ages: count(distinct(from x in g select x.age))}",
        [{"young": 2, "sum": 0, "avg": 30.0, "any": True, "ages": 3}],
    ),
    "groups of joined rows": (
        "from p in people join o in orders on p.name == o.who group by p.name into g"
        " sort by -sum(from x in g select x.o.total) select {name: g.key, total: sum(from x in g select x.total)}",
        [{"name": "Ada", "total": 17.5}, {"name": "Zoe", "total": 2.5}],
    ),
    "rows of a group": (
        "from p in people group by p.age into g select {age: g.key, names: (from x in g select x.name),"
        " first: first(from x in g select x.name)}",
        [
            {"age": 36, "names": ["Ada"], "first": "Ada"},
            {"age": 17, "names": ["Bob", "Zoe"], "first": "Bob"},
            {"age": 50, "names": ["Eve"], "first": "Eve"},
        ],
    ),
    "group of groups": (
        "from x in (from p in people group by p.city into g select {city: g.key, n: count(g)})"
        " group by x.n into h select {n: h.key, cities: count(h)}",
        [{"n": 2, "cities": 1}, {"n": 1, "cities": 2}],
    ),
    "exists, correlated": (
        "from p in people where exists(from o in orders where o.who == p.name && o.total > 3.0 select o) select p.name",
        ["Ada"],
    ),
    "in and not in": (
        "from p in people where p.name in (from o in orders select o.who)"
        " && !(p.name in (from o in orders where o.total < 3.0 select o.who)) select p.name",
        ["Ada"],
    ),
    "correlated aggregates, empty ones too": (
        "from p in people select {name: p.name, n: count(from o in orders where o.who == p.name select o),"
        " total: sum(from o in orders where o.who == p.name select o.total)}",
        [
            {"name": "Ada", "n": 2, "total": 17.5},
            {"name": "Bob", "n": 0, "total": 0.0},
            {"name": "Eve", "n": 0, "total": 0.0},
            {"name": "Zoe", "n": 1, "total": 2.5},
        ],
    ),
    "nested list": (
        "from p in people where p.age > 30"
        " select {n: p.name, ids: (from o in orders where o.who == p.name select o.id)}",
        [{"n": "Ada", "ids": [1, 3]}, {"n": "Eve", "ids": []}],
    ),
    "compared with an aggregate of all": (
        "from p in people where p.age > avg(from q in people select q.age) select p.name",
        ["Ada", "Eve"],
    ),
    "one value": ("from o in orders where o.total > 2.5 select sum(o.total)", 21.5),
    "aggregates of a list": ("count(people) + min(from p in people select p.age)", 21),
    "union keeps first occurrences": (
        "(from p in people select p.age) union (from o in orders select o.id)",
        [36, 17, 50, 1, 2, 3, 4, 5],
    ),
    "union all keeps everything, in order": (
        "(from p in people sort by p.name desc select p.name) union all (from o in orders where o.id < 3 select o.who)",
        ["Zoe", "Eve", "Bob", "Ada", "Ada", "Zoe"],
    ),
    "except keeps duplicates of the left": (
        "(from p in people select p.age) except (from o in orders select 36)",
        [17, 50, 17],
    ),
    "intersect in the order of the left": (
        '(from p in people select p.name) intersect ["Zoe", "Ada", "Ada"]',
        ["Ada", "Zoe"],
    ),
    "records through set operators, null fields": (
        "(from p in people select {c: p.city, b: p.boss})"
        " intersect (from p in people where p.age < 20 select {c: p.city, b: p.boss})",
        [{"c": "Paris", "b": "Ada"}, {"c": None, "b": None}],
    ),
    "arithmetic": (
        "from p in people take 1 select {a: p.age / 5, b: -p.age % 5, c: 1.0 * p.age / 8, d: p.age * 2 - 1, e: 7 / 2}",
        [{"a": 7, "b": -1, "c": 4.5, "d": 71, "e": 3}],
    ),
    "texts and CXL's methods": (
        "from p in people take 2 select {u: p.name.upper(), s: substring(p.name, 0, 2), l: len(p.name),"
        ' i: "d" in p.name, w: p.name.starts_with("A"), x: str(p.age) + "!", c: p.boss ?? "nobody"}',
        [
            {"u": "ADA", "s": "Ad", "l": 3, "i": True, "w": True, "x": "36!", "c": "nobody"},
            {"u": "BOB", "s": "Bo", "l": 3, "i": False, "w": False, "x": "17!", "c": "Ada"},
        ],
    ),
    "choices": (
        'from p in people select if p.age < 18 then "young" else match p.city { "London" => "l", _ => "other" }',
        ["l", "young", "l", "young"],
    ),
    "functions": (
        "fun double(x: int): int { return x * 2 }\nlet limit = 5\nlet plus = fun(x: int) => x + limit\n"
        "from p in people where p.age > 20 select plus(double(p.age))",
        [77, 105],
    ),
    "let inside a query": (
        "from p in people let next = p.age + 1 where next > 18 select next",
        [37, 51],
    ),
    "groups and lists of sorted rows": (
        "from x in (from p in people sort by p.city desc, p.age select p) group by x.age into g"
        " select {age: g.key, names: (from y in g select y.name), last: last(from y in g select y.name)}",
        [
            {"age": 17, "names": ["Bob", "Zoe"], "last": "Zoe"},
            {"age": 36, "names": ["Ada"], "last": "Ada"},
            {"age": 50, "names": ["Eve"], "last": "Eve"},
        ],
    ),
    "lists of groups after an outer join": (
        "from p in people left join o in orders on o.who == p.name group by p.age into g"
        " select {age: g.key, ids: (from x in g select x.o.id)}",
        [{"age": 36, "ids": [1, 3]}, {"age": 17, "ids": [None, 2]}, {"age": 50, "ids": [None]}],
    ),
    "distinct of rows sorted by something else": (
        "from o in orders sort by o.total desc select distinct o.who",
        ["Ada", "Nemo", "Zoe", None],
    ),
    "distinct of rows sorted by what is selected": (
        "from p in people sort by p.city desc select distinct p.city",
        ["Paris", "London", None],
    ),
    "distinct of rows sorted by a list": (
        "from p in people sort by (from o in orders where o.who == p.name select o.id) desc select distinct p.name",
        ["Zoe", "Ada", "Bob", "Eve"],
    ),
    "unions of what is ordered in different ways": (
        "(from p in people sort by p.name desc select p.name) union all"
        ' (from o in orders right join p in people on p.name == o.who where p.age < 18 select p.name) union all ["x"]'
        " union all (from p in people group by p.age into g sort by count(g) desc take 1 select str(g.key))",
        ["Zoe", "Eve", "Bob", "Ada", "Bob", "Zoe", "x", "17"],
    ),
    "a constant key makes one group, or none": (
        "(from p in people group by true into g select {n: count(g), k: g.key}) union all"
        ' (from p in people where p.age > 99 group by "x" into g select {n: count(g), k: true})',
        [{"n": 4, "k": True}],
    ),
    "in over a query": (
        "from o in orders where o.id in (from p in people select p.age / 17) && !(o.id in (from p in people select 2))"
        " select o.id",
        [1],
    ),
    "unordered keeps what sort by says": (
        "from p in people sort by p.name desc unordered select p.name",
        ["Zoe", "Eve", "Bob", "Ada"],
    ),
    "unordered still has all rows": ("count(from p in people unordered select p)", 4),
    "written numbers have 64 bits": (
        "from p in people group by p.city into g select "
        "{a: avg(from x in g select 1), b: avg(from x in g select if x.age > 20 then 1 else 3)}",
        [{"a": 1.0, "b": 1.0}, {"a": 1.0, "b": 3.0}, {"a": 1.0, "b": 3.0}],
    ),
    "a sum of chosen numbers has 64 bits": (
        "from p in people where p.name == 'Ada' "
        "select (if p.age > 1 then 2000000000 else 0) + (if p.age > 2 then 2000000000 else 1)",
        [4000000000],
    ),
    "totals of nothing": (
        "from p in people where p.name == 'Ada' select {t: max(from o in orders where o.id > 9 select o.who), "
        "n: sum(from o in orders where o.id > 9 select o.total)}",
        [{"t": None, "n": 0.0}],
    ),
    "a right join of no rows": (
        "from p in (from q in people where q.age > 99 select q) right join o in orders on o.who == p.name "
        "where o.id == 5 select {n: p.name, id: o.id}",
        [{"n": None, "id": 5}],
    ),
    "a list of each row, when there is none": (
        "from p in (from q in people where q.age > 99 select {a: [q.age]}) from e in p.a select e",
        [],
    ),
}
