"""From query text to a syntax tree, with all mistakes of a program reported in one go.

>>> program, problems = parse(Source("q", "from p in people where p.age >= 18 select p.name"))
>>> type(program[0].value).__name__, problems
('Query', [])
>>> _, problems = parse(Source("q", "let a = from p in people where\\nlet b = 1 +"))
>>> [p.message for p in problems]
["expected an expression, but found 'let'", 'expected an expression, but the text ends']
"""

from __future__ import annotations

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.span import Source, Span
from clinker_spark.query.syntax.ast import Statement
from clinker_spark.query.syntax.lexer import tokenize
from clinker_spark.query.syntax.statements import StatementParser

MAX_CHARACTERS = 4_000_000


def parse(source: Source) -> tuple[tuple[Statement, ...], list[Diagnostic]]:
    """The statements that could be read, and what is wrong with the others."""
    if len(source.text) > MAX_CHARACTERS:
        message = f"the program has {len(source.text):,} characters; the limit is {MAX_CHARACTERS:,}"
        return (), [
            Diagnostic("E700", message, source, Span(0, 0), "put the data into a file and load it", phase="parse")
        ]
    parser = StatementParser(source, tokenize(source.text))
    return parser.program(), parser.diagnostics
