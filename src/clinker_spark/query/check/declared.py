"""Declared types: what `type` statements define, and what a written type stands for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.diagnostics.suggest import did_you_mean
from clinker_spark.core.span import Source
from clinker_spark.core.types import BOOL, DATE, DATETIME, DECIMAL, FLOAT, INT, STRING
from clinker_spark.query.syntax import ast
from clinker_spark.query.types import ANY, NULL, FunctionType, ListType, MapType, QType, RecordType

_WORDS: dict[str, QType] = {
    "int": INT,
    "int64": INT,
    "bigint": INT,
    "float": FLOAT,
    "string": STRING,
    "bool": BOOL,
    "any": ANY,
    "date": DATE,
    "datetime": DATETIME,
    "date_time": DATETIME,
    "decimal": DECIMAL,
    "void": NULL,
    "unit": NULL,
}


@dataclass
class TypeTable:
    """The types of one program: `records` by name, `variants` by the name of the case."""

    source: Source
    records: dict[str, QType] = field(default_factory=dict)
    variants: dict[str, ast.Variant] = field(default_factory=dict)
    problems: list[Diagnostic] = field(default_factory=list)

    def declare(self, statements: Iterable[ast.Statement]) -> None:
        """All type statements; a type may be used before it is declared."""
        found = [s for s in statements if isinstance(s, ast.TypeDef)]
        for definition in found:
            self.records[definition.name] = ANY  # so that a type may mention itself
            for variant in definition.variants or ():
                self.variants[variant.name] = variant
        for definition in found:
            if definition.fields is not None:
                fields = tuple((name, self.resolve(t)) for name, t in definition.fields)
                self.records[definition.name] = RecordType(fields, name=definition.name)
            elif definition.alias is not None:
                self.records[definition.name] = self.resolve(definition.alias)

    def resolve(self, written: ast.TypeName) -> QType:
        """The type that was written; an unknown one is noted and taken as anything."""
        made = self._resolve(written)
        return made.as_nullable() if written.nullable else made

    def _resolve(self, written: ast.TypeName) -> QType:
        args = [self.resolve(a) for a in written.args]
        match written.name:
            case "list":
                return ListType(args[0] if args else ANY)
            case "map":
                return MapType(args[0], args[1]) if len(args) == 2 else MapType(ANY, ANY)
            case "option":
                return (args[0] if args else ANY).as_nullable()
            case "record":
                return RecordType(tuple((n, self.resolve(t)) for n, t in written.fields))
            case "fun":
                return FunctionType(tuple(args[:-1]), args[-1])
        known = _WORDS.get(written.name) or self.records.get(written.name)
        if known is not None:
            return known
        if written.name in self.variants or (len(written.name) == 1 and written.name.isupper()):
            return ANY  # a case of a union, or a type parameter
        help_text = did_you_mean(written.name, [*_WORDS, "list", "map", *self.records])
        message = f"unknown type '{written.name}'"
        self.problems.append(Diagnostic("E701", message, self.source, written.span, help_text, phase="resolve"))
        return ANY
