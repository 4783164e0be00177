"""The public face of the language: `compile` a text, then `evaluate` records or `apply` it to a DataFrame.

>>> program = compile("emit total = price * qty", schema={"price": "float", "qty": "int"})
>>> program.evaluate({"price": 2.5, "qty": 4})
[{'total': 10.0}]
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clinker_spark.core.diagnostics import Diagnostic, Severity
from clinker_spark.core.recursion import deep_recursion
from clinker_spark.core.span import Source
from clinker_spark.core.types import Type, parse_type
from clinker_spark.cxl.check.environment import Environment
from clinker_spark.cxl.check.modules import Loader, ModuleError, ModuleTable, directory_loader, mapping_loader
from clinker_spark.cxl.check.resolve import resolve
from clinker_spark.cxl.check.typecheck import typecheck
from clinker_spark.cxl.errors import CxlError
from clinker_spark.cxl.ir import TypedProgram
from clinker_spark.cxl.syntax.parser import parse
from clinker_spark.cxl.system import Context, default_context

if TYPE_CHECKING:  # `cxl check` does not need the interpreter
    from clinker_spark.cxl.interpret.execution import Execution
    from clinker_spark.cxl.interpret.statements import Outcome, Tracer

SchemaLike = Mapping[str, str | Type]


@dataclass(frozen=True)
class Program:
    """A checked program. `warnings` are findings that did not stop it."""

    typed: TypedProgram
    warnings: tuple[Diagnostic, ...] = field(default=())

    @property
    def output(self) -> Mapping[str, Type]:
        """The emitted columns and their types, in order."""
        return self.typed.output

    @property
    def fallible(self) -> bool:
        """Can any record fail?"""
        return self.typed.fallible

    def evaluate(self, record: Mapping[str, Any], context: Context | None = None) -> list[dict[str, Any]]:
        """The rows one record becomes: none when it is filtered, several after emit each. Raises `EvalError`."""
        return self.outcome(record, context).rows

    def outcome(
        self, record: Mapping[str, Any], context: Context | None = None, trace: Tracer | None = None
    ) -> Outcome:
        """Like `evaluate`, with the reason of a skip and the scoped variables."""
        return self.execution(context, trace).run(self.read_record(record))

    def read_record(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """A record as the program's schema types it. Raises `EvalError` when a value is of another type."""
        from clinker_spark.cxl.interpret.coerce import coerce_record  # as below

        return coerce_record(record, self.typed.schema)

    def execution(self, context: Context | None = None, trace: Tracer | None = None) -> Execution:
        """For many records in a row: it remembers what `distinct` has seen."""
        from clinker_spark.cxl.interpret.execution import Execution  # `cxl check` does not need it

        return Execution(self.typed, context or default_context(self.typed.source.name), trace)

    def aggregate(self, records: Iterable[Mapping[str, Any]], context: Context | None = None) -> list[dict[str, Any]]:
        """An aggregate program over records: one row per group, in order of first appearance."""
        return self.execution(context).run_groups(self.read_record(r) for r in records)

    def apply(self, df: Any, **options: Any) -> Any:
        """The program over a Spark DataFrame, as native expressions: its columns, the emitted ones, and `$error`, which
        is null where the record is fine. See `clinker_spark.spark.columns.programs.apply_with_errors`."""
        # The one place where the language hands over to the engine above it; pyspark loads only now.
        return importlib.import_module("clinker_spark.spark.columns.programs").apply_with_errors(self, df, **options)


def compile(
    source: str | Source,
    schema: SchemaLike | None = None,
    *,
    name: str = "<inline>",
    mode: str = "row",
    group_by: Sequence[str] = (),
    vars: Mapping[str, Any] | None = None,
    config: Mapping[str, Any] | None = None,
    declares: Mapping[str, Mapping[str, Type]] | None = None,
    modules: Mapping[str, str] | Path | str | None = None,
    max_expansion: int = 10_000,
    window_schema: SchemaLike | None = None,
    least_of_documents: bool = False,
) -> Program:
    """Parse, resolve and typecheck a program. Raises `CxlError` with the phase and all its diagnostics.

    `schema` maps column names to types (`int`, `decimal(2)`, `array(string)`, ...); None assumes that every
    bare name is a column of any type. `modules` is the rules folder, or a mapping of module names to texts.
    `window_schema` are the columns of the records that `$window` looks into, if these are others. With
    `least_of_documents`, conditions on groups may read `$doc` outside of aggregate functions.
    """
    text = source if isinstance(source, Source) else Source(name, source)
    syntax, found = parse(text)
    if found:
        raise CxlError("parse", found)
    try:
        imports = ModuleTable(_loader(modules)).imports(syntax.statements, text)
    except ModuleError as error:
        raise CxlError(error.diagnostics[0].phase or "resolve", error.diagnostics) from None
    env = Environment(
        text,
        read_schema(schema),
        mode,
        tuple(group_by),
        vars or {},
        config,
        declares,
        imports,
        max_expansion,
        read_schema(window_schema),
        least_of_documents,
    )
    with deep_recursion():
        found = resolve(syntax, env)
        if found:
            raise CxlError("resolve", found)
        typed, found = typecheck(syntax, env)
    if any(d.severity is Severity.ERROR for d in found):
        raise CxlError("typecheck", found)
    return Program(typed, tuple(found))


def _loader(modules: Mapping[str, str] | Path | str | None) -> Loader | None:
    if modules is None:
        return None
    if isinstance(modules, Mapping):
        return mapping_loader(modules)
    return directory_loader(Path(modules))


def read_schema(schema: SchemaLike | None) -> dict[str, Type] | None:
    """Schema types from their spelling. A wrong type word is a `ValueError`: schemas are checked by their reader."""
    if schema is None:
        return None
    result: dict[str, Type] = {}
    for name, spelled in schema.items():
        t = spelled if isinstance(spelled, Type) else parse_type(spelled)
        if t is None:
            raise ValueError(f"column '{name}' has an unknown type '{spelled}'")
        result[name] = t
    return result
