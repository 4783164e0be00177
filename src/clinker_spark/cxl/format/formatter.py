"""The canonical form of CXL text.

One statement per line, two spaces of indentation, 100 columns, double quotes; all comments and single blank
lines stay. Formatting does not change what a program means, and formatting twice changes nothing more.

>>> print(format_source(Source("t.cxl", "let  x=(a+b)*2   # sum\\nemit y = ((x))")), end="")
let x = (a + b) * 2  # sum
emit y = x
"""

from __future__ import annotations

import bisect
import sys
from collections.abc import Sequence
from typing import Final, TypeAlias

from clinker_spark.core.span import Source, Span
from clinker_spark.cxl.format.comments import CommentPlaces, comments_within, line_breaks
from clinker_spark.cxl.format.expressions import ExpressionPrinter
from clinker_spark.cxl.format.layout import INDENT, Doc, render, sequence
from clinker_spark.cxl.format.shape import LOOSEST
from clinker_spark.cxl.limits import MAX_SOURCE_BYTES
from clinker_spark.cxl.syntax import ast
from clinker_spark.cxl.syntax.expressions import COALESCE, POSTFIX
from clinker_spark.cxl.syntax.lexer import tokenize
from clinker_spark.cxl.syntax.parser import parse

WIDTH: Final = 100
_ALWAYS_PARENTHESES: Final = POSTFIX + 1


def format_source(source: Source) -> str:
    """The canonical text of a program or module that parses without errors.

    >>> format_source(Source("t.cxl", "emit a = 'x'  emit b = #2024-03-15#"))
    'emit a = "x"\\nemit b = #2024-03-15#\\n'
    """
    # A module may be larger than a program; which of the two this is makes no difference here.
    kind = "module" if len(source.text) * 4 > MAX_SOURCE_BYTES else "program"
    program, _ = parse(source, kind=kind)
    return _Formatter(source, program).text()


def format_expression(node: ast.Expr) -> str:
    """An expression on one line, for messages and plans.

    >>> from clinker_spark.cxl.syntax.parser import parse_expression
    >>> format_expression(parse_expression(Source("e", "(a)+ b.f( 'x' )"))[0])
    'a + b.f("x")'
    """
    return render(ExpressionPrinter().print(node), width=2**31)


Comments: TypeAlias = Sequence[ast.Comment]


def _in_order(statements: Sequence[ast.Statement], comments: Comments) -> list[ast.Statement | ast.Comment]:
    """The statements and the comments that are not inside one of them."""
    entries: list[ast.Statement | ast.Comment] = []
    start = 0
    for statement in statements:
        entries += comments_within(comments, Span(start, statement.span.start))
        entries.append(statement)
        start = statement.span.end
    entries += comments_within(comments, Span(start, sys.maxsize))
    return entries


class _Formatter:
    def __init__(self, source: Source, program: ast.ProgramSyntax) -> None:
        self._source = source.text
        self._program = program
        self._braces = [token.start for token in tokenize(source.text)[0] if token.kind == "{"]
        self._lines: list[str] = []

    def text(self) -> str:
        whole = Span(0, len(self._source))
        self._block(self._program.statements, self._program.comments, whole, 0)
        return "".join(line.rstrip() + "\n" for line in self._lines)

    # -------------------------------------------------------------- blocks

    def _block(self, statements: Sequence[ast.Statement], comments: Comments, inside: Span, column: int) -> None:
        """Statements and the comments between them; the line before `inside` may get a comment at its end."""
        end = inside.start
        for number, entry in enumerate(_in_order(statements, comments)):
            breaks = line_breaks(self._source, end, entry.span.start)
            if isinstance(entry, ast.Comment) and not breaks and end > 0:
                self._lines[-1] += "  " + entry.text.rstrip()
            else:
                if number and breaks > 1:
                    self._lines.append("")
                self._entry(entry, comments, column)
            end = entry.span.end

    def _entry(self, entry: ast.Statement | ast.Comment, comments: Comments, column: int) -> None:
        margin = " " * column
        if isinstance(entry, ast.Comment):
            self._lines.append(margin + entry.text.rstrip())
            return
        within = comments_within(comments, entry.span)
        if isinstance(entry, ast.EmitEach):
            self._emit_each(entry, within, column)
            return
        doc = self._with_comments(entry, within, margin)
        self._lines.extend((margin + render(doc, width=WIDTH, column=column)).split("\n"))

    def _emit_each(self, node: ast.EmitEach, comments: Comments, column: int) -> None:
        margin = " " * column
        opener = self._braces[bisect.bisect_left(self._braces, node.source.span.end)]
        body = Span(opener + 1, node.span.end)
        header = self._with_comments(node, comments_within(comments, Span(node.span.start, opener)), margin)
        self._lines.extend((margin + render(header, width=WIDTH, column=column)).split("\n"))
        self._block(node.body, comments_within(comments, body), body, column + INDENT)
        self._lines.append(margin + "}")

    def _with_comments(self, node: ast.Statement, comments: Comments, margin: str) -> Doc:
        """The statement's document; comments that have no place in its expressions go above it."""
        places = CommentPlaces(self._source)
        roots = _expressions(node) if comments else ()
        for comment in comments:
            stripped = ast.Comment(comment.span, comment.text.rstrip())
            if not any(places.place(stripped, root) for root in roots):
                self._lines.append(margin + stripped.text)
        return _statement(node, ExpressionPrinter(self._source, places.lists))


def _expressions(node: ast.Statement) -> tuple[ast.Expr, ...]:
    if isinstance(node, ast.Let | ast.Emit | ast.Bare):
        return (node.value,)
    if isinstance(node, ast.Filter):
        return (node.predicate,)
    if isinstance(node, ast.EmitEach):
        return (node.source,)
    if isinstance(node, ast.FunctionDef):
        return (node.body,)
    if isinstance(node, ast.Trace):
        return (node.message,) if node.condition is None else (node.condition, node.message)
    return ()


def _statement(node: ast.Statement, printer: ExpressionPrinter) -> Doc:
    """A statement without its body."""
    if isinstance(node, ast.Let):
        return sequence([f"let {node.name} = ", printer.print(node.value)])
    if isinstance(node, ast.Emit):
        scope = f"${node.scope}." if node.scope else ""
        return sequence([f"emit {scope}{node.name} = ", printer.print(node.value)])
    if isinstance(node, ast.EmitEach):
        end = " outer {" if node.outer else " {"
        return sequence([f"emit each {node.binding} in ", printer.print(node.source, COALESCE), end])
    if isinstance(node, ast.Filter):
        return sequence(["filter ", printer.print(node.predicate)])
    if isinstance(node, ast.Distinct):
        return "distinct" if node.by is None else f"distinct by {node.by}"
    if isinstance(node, ast.Trace):
        return _trace(node, printer)
    if isinstance(node, ast.Use):
        return f"use {'.'.join(node.path)}" + (f" as {node.alias}" if node.alias else "")
    if isinstance(node, ast.FunctionDef):
        return sequence([f"fn {node.name}({', '.join(node.params)}) = ", printer.print(node.body)])
    assert isinstance(node, ast.Bare)
    # A line that starts with a minus would continue the statement above.
    minus = format_expression(node.value).startswith("-")
    return printer.print(node.value, _ALWAYS_PARENTHESES if minus else LOOSEST)


def _trace(node: ast.Trace, printer: ExpressionPrinter) -> Doc:
    """The level always stands there: without it a message that starts with a level's name would be read as one."""
    if node.condition is None:
        return sequence([f"trace {node.level} ", printer.print(node.message, COALESCE)])
    # Condition and message stand side by side: neither may look like the other's continuation.
    first = format_expression(node.message)[0]
    needs = first in "[-"
    message = printer.print(node.message, _ALWAYS_PARENTHESES if needs else COALESCE)
    if isinstance(node.message, ast.If):
        first = "("
    loosest = _ALWAYS_PARENTHESES if needs or first == "(" else COALESCE
    return sequence([f"trace {node.level} if ", printer.print(node.condition, loosest), " ", message])
