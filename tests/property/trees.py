"""Generated programs as trees of text, so that a failing one can be cut down piece by piece."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Node:
    """A piece of program text of one wanted type; `parts` are texts and the pieces between them."""

    type: str
    parts: tuple[str | Node, ...]

    @property
    def text(self) -> str:
        return "".join(p if isinstance(p, str) else p.text for p in self.parts)

    @property
    def children(self) -> tuple[Node, ...]:
        return tuple(p for p in self.parts if isinstance(p, Node))

    def size(self) -> int:
        return 1 + sum(c.size() for c in self.children)

    def walk(self) -> Iterator[Node]:
        yield self
        for child in self.children:
            yield from child.walk()

    def smaller(self) -> Iterator[Node]:
        """This tree with one of its pieces replaced by a piece of that piece, or by something trivial. Big cuts first."""  # noqa: E501
        yield from self.children
        for child in self.children:
            yield from (n for n in child.walk() if n is not child and n.type == self.type)
        if self.children:
            yield from (leaf(self.type, text) for text in TRIVIAL.get(self.type, ()))
        for i, part in enumerate(self.parts):
            if isinstance(part, Node):
                for other in part.smaller():
                    yield replace(self, parts=(*self.parts[:i], other, *self.parts[i + 1 :]))


def leaf(type_: str, text: str) -> Node:
    return Node(type_, (text,))


TRIVIAL = {
    "bool": ("true", "b"),
    "int": ("1", "i"),
    "float": ("1.5", "f"),
    "decimal": ("d",),
    "string": ('"a"', "s"),
    "date": ("day",),
    "date_time": ("at",),
    "array(int)": ("[1]", "ai"),
    "array(string)": ('["a"]', "texts"),
    "array": ("aa",),
    "map": ("m",),
    "any": ("x",),
}


@dataclass(frozen=True)
class Statement:
    """`head` is all before the expression: `let a = `, `emit b = `, `filter `, ..."""

    head: str
    value: Node

    @property
    def text(self) -> str:
        return self.head + self.value.text


@dataclass(frozen=True)
class Candidate:
    """A whole generated program."""

    statements: tuple[Statement, ...]

    @property
    def text(self) -> str:
        return "\n".join(s.text for s in self.statements)

    def size(self) -> int:
        return sum(1 + s.value.size() for s in self.statements)

    def smaller(self) -> Iterator[Candidate]:
        """Programs with a statement less, or with a smaller expression in one of them."""
        for i in range(len(self.statements)):
            if len(self.statements) > 1:
                yield Candidate((*self.statements[:i], *self.statements[i + 1 :]))
        for i, s in enumerate(self.statements):
            if not s.head.startswith("emit v = "):
                yield Candidate((*self.statements[:i], Statement("emit v = ", s.value)))
        for i, s in enumerate(self.statements):
            for value in s.value.smaller():
                yield Candidate((*self.statements[:i], replace(s, value=value), *self.statements[i + 1 :]))
