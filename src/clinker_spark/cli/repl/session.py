"""The REPL without a terminal: text in, text out.

What a session keeps is a program: every `let`, `emit` and `use` that was accepted, in order. A new input is
compiled and run as the end of that program, so a session means exactly what the saved file will mean.

>>> session = Session()
>>> session.handle("let x = 1 + 2")
'x = 3 : Int'
>>> session.handle("x / 2.0")
'1.5 : Float'
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from clinker_spark.cli.cxl.debug_calls import with_debug
from clinker_spark.cli.cxl.failures import eval_diagnostic
from clinker_spark.cli.cxl.jsontext import dump
from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.diagnostics.render import render_text
from clinker_spark.core.errors import ClinkerError
from clinker_spark.core.span import Source, Span
from clinker_spark.core.types import Type
from clinker_spark.cxl import ir
from clinker_spark.cxl.errors import CxlError, EvalError
from clinker_spark.cxl.interpret.statements import Execution
from clinker_spark.cxl.program import compile
from clinker_spark.cxl.syntax import ast
from clinker_spark.cxl.syntax.parser import parse
from clinker_spark.cxl.system import default_context

NAME = "<repl>"
_KEPT = (ast.Let, ast.Emit)


@dataclass
class Field:
    """A field of the session's record. `declared`: its type was given, so a new value must fit it."""

    type: Type
    value: Any = None
    declared: bool = False


@dataclass(frozen=True)
class Checked:
    """An input that compiled, at the end of the session's program."""

    text: str
    syntax: ast.ProgramSyntax
    typed: ir.TypedProgram
    own: Source
    place: Callable[[Span], Span | None]

    @property
    def new(self) -> list[ir.TStatement]:
        return [s for s in self.typed.statements if self.place(s.span) is not None]

    @property
    def fans_out(self) -> bool:
        return any(isinstance(s, ir.TEach) for s in self.new)


class Session:
    """Fields, and the statements accepted so far. `done` is true after `:quit`."""

    def __init__(
        self,
        fields: Mapping[str, Field] | None = None,
        *,
        rules: str = "rules",
        vars: Mapping[str, Any] | None = None,
        color: bool = False,
    ) -> None:
        self.given = dict(fields or {})
        self.fields = {name: replace(field) for name, field in self.given.items()}
        self.rules = rules
        self.vars = dict(vars or {})
        self.color = color
        self.uses: list[str] = []
        self.kept: list[str] = []
        self.names: dict[str, Type] = {}
        self.done = False

    def handle(self, text: str) -> str:
        """What to print for one input: a value with its type, the answer of a command, or rendered errors."""
        if not text.strip():
            return ""
        try:
            if text.lstrip().startswith(":"):
                from clinker_spark.cli.repl.commands import run_command

                return run_command(self, text.strip())
            return self.run(text)
        except ClinkerError as error:
            return self.render(error.diagnostics)

    def render(self, found: Sequence[Diagnostic]) -> str:
        return "\n\n".join(render_text(diagnostic, color=self.color, hint=False) for diagnostic in found)

    # ------------------------------------------------------------ statements

    def run(self, text: str) -> str:
        """Statements: evaluated, shown, and kept if they define something. Raises `CxlError` on any error."""
        checked = self.check(text)
        lines = self._evaluate(checked)
        statements = checked.syntax.statements
        self.uses += [_slice(text, s) for s in statements if isinstance(s, ast.Use)]
        self.kept += [_slice(text, s) for s in statements if isinstance(s, _KEPT)]
        self._learn_names(checked.typed)
        return "\n".join(lines)

    def check(self, text: str) -> Checked:
        """Compile an input after what the session knows. Raises `CxlError` with places in the input."""
        own = Source(NAME, text)
        syntax, found = parse(own)
        if found:
            raise CxlError("parse", found)
        full, place = self._assemble(text, syntax)
        schema = {name: field.type for name, field in self.fields.items()}
        try:
            program = compile(full, schema, modules=self.rules, vars=self.vars)
        except CxlError as error:
            moved = [_move(diagnostic, full, own, place) for diagnostic in error.diagnostics]
            raise CxlError(error.phase, moved) from None
        return Checked(text, syntax, program.typed, own, place)

    def _assemble(self, text: str, syntax: ast.ProgramSyntax) -> tuple[Source, Callable[[Span], Span | None]]:
        """The whole program with `text` at its end, its imports moved to the top, and the way back to places in it."""
        uses = [s.span for s in syntax.statements if isinstance(s, ast.Use)]
        rest = text
        for span in uses:  # blanks keep every later place where it is
            rest = rest[: span.start] + " " * (span.end - span.start) + rest[span.end :]
        parts = [*self.uses, *(text[s.start : s.end] for s in uses), *self.kept, rest]
        origins = [*[None] * len(self.uses), *(s.start for s in uses), *[None] * len(self.kept), 0]
        starts = [0]
        for part in parts[:-1]:
            starts.append(starts[-1] + len(part) + 1)

        def place(span: Span) -> Span | None:
            for start, part, origin in zip(starts, parts, origins, strict=True):
                if start <= span.start and span.end <= start + len(part) and origin is not None:
                    return Span(span.start - start + origin, span.end - start + origin)
            return None

        return Source(NAME, "\n".join(parts)), place

    def _evaluate(self, checked: Checked) -> list[str]:
        lines: list[str] = []
        rows = self._outcome(checked, lines)
        if checked.fans_out:
            return [*lines, f"{len(rows)} row{'s' * (len(rows) != 1)}", *map(dump, rows)]
        shown = (_show(s, rows[0].get(_column(i))) for i, s in enumerate(checked.new))
        return [*lines, *(line for line in shown if line is not None)]

    def _outcome(self, checked: Checked, lines: list[str]) -> list[dict[str, Any]]:
        """The rows of the program, with the value of each new statement as a column; traces are added to `lines`."""
        columns = {} if checked.fans_out else {id(s): _column(i) for i, s in enumerate(checked.new)}
        new = {id(s) for s in checked.new}
        statements = [_showing(s, columns.get(id(s))) for s in checked.typed.statements]
        heard = [
            with_debug(shown, lines.append) if id(s) in new else shown  # what was kept has spoken already
            for s, shown in zip(checked.typed.statements, statements, strict=True)
            if shown is not None
        ]
        program = replace(checked.typed, statements=tuple(heard))
        context = replace(default_context(NAME), vars=self.vars)
        execution = Execution(program, context, lambda level, message: lines.append(f"trace[{level}]: {message}"))
        try:
            return execution.run({name: field.value for name, field in self.fields.items()}).rows
        except EvalError as error:
            if error.field and error.field.startswith(" "):
                error.field = None  # our own column
            found = eval_diagnostic(error, checked.typed.source, None)
            raise CxlError("eval", [_move(found, checked.typed.source, checked.own, checked.place)]) from None

    def _learn_names(self, typed: ir.TypedProgram) -> None:
        self.names = {**typed.output, **typed.let_types}

    # ---------------------------------------------------------------- looking

    def expression(self, text: str) -> ir.TExpr | None:
        """The typed form of an expression, or None when the text is not one."""
        try:
            new = self.check(text).new
        except CxlError:
            return None
        last = new[-1] if len(new) == 1 else None
        return last.value if isinstance(last, ir.TBare) else None

    def value(self, text: str) -> Any:
        """The value of an expression; None also when it fails."""
        try:
            checked = self.check(text)
            return self._outcome(checked, [])[0].get(_column(0))
        except CxlError:
            return None

    def program(self) -> str:
        """Everything kept, as a program."""
        return "".join(line + "\n" for line in [*self.uses, *self.kept])

    def reset(self) -> None:
        self.uses, self.kept, self.names = [], [], {}
        self.fields = {name: replace(field) for name, field in self.given.items()}


def typed_value(value: Any, t: Type) -> str:
    """`3 : Int`."""
    return f"{dump(value)} : {t}"


def _slice(text: str, node: ast.Node) -> str:
    return text[node.span.start : node.span.end]


def _column(index: int) -> str:
    return f" {index}"  # no emit can have this name


def _showing(s: ir.TStatement, column: str | None) -> ir.TStatement | None:
    """A statement changed so that its value comes out as a column; without a column it stays as it is."""
    if column is None:
        return s
    match s:
        case ir.TLet() | ir.TEmit():
            return ir.TEmit(s.span, None, column, s.slot, s.value)
        case ir.TBare():
            return ir.TEmit(s.span, None, column, column, s.value)
        case ir.TFilter():
            return ir.TEmit(s.span, None, column, column, s.predicate)
        case ir.TDistinct():
            return None
    return s


def _show(s: ir.TStatement, value: Any) -> str | None:
    match s:
        case ir.TLet():
            return f"{s.name} = {typed_value(value, s.value.type)}"
        case ir.TEmit():
            name = f"${s.scope}.{s.name}" if s.scope else s.name
            return f"{name} = {typed_value(value, s.value.type)}"
        case ir.TBare():
            return typed_value(value, s.value.type)
        case ir.TFilter():
            fate = "stays" if value is True else "would be dropped"
            return f"{typed_value(value, s.predicate.type)}  (the record {fate})"
        case ir.TDistinct():
            return "the record stays: it is the first one"
    return None


def _move(found: Diagnostic, full: Source, own: Source, place: Callable[[Span], Span | None]) -> Diagnostic:
    """A finding with its place in the input instead of the whole program, if all its places are there."""
    if found.source is not full or found.span is None:
        return found
    span = place(found.span)
    labels = [(label, place(label.span)) for label in found.labels]
    if span is None or any(moved is None for _, moved in labels):
        return found
    return replace(
        found, source=own, span=span, labels=tuple(replace(label, span=moved) for label, moved in labels if moved)
    )
