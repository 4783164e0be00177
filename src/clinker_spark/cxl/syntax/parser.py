"""From CXL text to a syntax tree, with all mistakes of a file reported in one go.

>>> program, problems = parse(Source("t.cxl", "emit total = price * 2"))
>>> program.statements[0].name, problems
('total', [])
"""

from __future__ import annotations

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.span import Source, Span
from clinker_spark.cxl.limits import MAX_MODULE_BYTES, MAX_SOURCE_BYTES
from clinker_spark.cxl.syntax.ast import Expr, ProgramSyntax
from clinker_spark.cxl.syntax.lexer import tokenize
from clinker_spark.cxl.syntax.messages import parse_diagnostic
from clinker_spark.cxl.syntax.statements import StatementParser


def parse(source: Source, *, kind: str = "program") -> tuple[ProgramSyntax, list[Diagnostic]]:
    """The statements and comments of a program or of a module, and what is wrong with them.

    `kind` is "program" or "module" (a file of use, let and fn only). Statements that could be read are in
    the tree even when there are diagnostics.

    >>> _, problems = parse(Source("t.cxl", "emit a = 1 +\\nfilter b && c\\nemit d = 2"))
    >>> [(p.code, p.message) for p in problems]
    [('E202', "expected an expression after '+'"), ('E202', "'&&' is not an operator")]
    """
    limit = MAX_MODULE_BYTES if kind == "module" else MAX_SOURCE_BYTES
    oversize = _check_size(source, limit)
    if oversize is not None:
        return ProgramSyntax(()), [oversize]
    tokens, comments = tokenize(source.text)
    parser = StatementParser(source, tokens, module=kind == "module")
    statements = parser.program()
    return ProgramSyntax(statements, tuple(comments)), parser.diagnostics


def parse_expression(source: Source) -> tuple[Expr | None, list[Diagnostic]]:
    """A text that is one expression, or None and the reason why not.

    >>> tree, problems = parse_expression(Source("where", "orders.id == lines.order_id"))
    >>> tree.op, problems
    ('==', [])
    """
    oversize = _check_size(source, MAX_SOURCE_BYTES)
    if oversize is not None:
        return None, [oversize]
    parser = StatementParser(source, tokenize(source.text)[0], module=False)
    return parser.single_expression(), parser.diagnostics


def _check_size(source: Source, limit: int) -> Diagnostic | None:
    text = source.text
    if len(text) * 4 <= limit:
        return None
    encoded = text.encode("utf-8", "surrogatepass")
    if len(encoded) <= limit:
        return None
    start = len(encoded[:limit].decode("utf-8", "ignore"))
    message = f"the text has {len(encoded):,} bytes; the limit is {limit // 1024:,} KiB"
    return parse_diagnostic(source, Span(start, len(text)), message, "split it up, or move parts of it into modules")
