"""Expressions as documents: canonical spelling, and parentheses only where the tree needs them."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from clinker_spark.cxl.format.comments import Placed
from clinker_spark.cxl.format.layout import HARD, LINE, SOFT, Break, Doc, Suffix, WhenBroken, group, indent, sequence
from clinker_spark.cxl.format.shape import (
    LOOSEST,
    Step,
    binding,
    if_chain,
    operator_chain,
    postfix_chain,
    segments,
)
from clinker_spark.cxl.syntax import ast
from clinker_spark.cxl.syntax.expressions import BINDING, COALESCE, COMPARISON, NOT, OR, POSTFIX, UNARY

_PLAIN_KEY = re.compile(r"(?!_\Z)[A-Za-z_][A-Za-z0-9_]*\Z")
_STRING_ESCAPES = {'"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}
_NO_COMMENTS = Placed()


def quote_string(value: str) -> str:
    r"""A string literal for `value`, with as few backslashes as it takes.

    >>> print(quote_string('say "\\d"'))
    "say \"\d\""
    """
    out = ['"']
    for index, char in enumerate(value):
        if char == "\\":
            following = value[index + 1 : index + 2]
            # A lone backslash is fine unless it would form an escape with what comes next.
            out.append("\\\\" if not following or following in "\\'nrt" or following in _STRING_ESCAPES else "\\")
        else:
            out.append(_STRING_ESCAPES.get(char, char))
    return "".join([*out, '"'])


def _literal(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return quote_string(value)
    if isinstance(value, float):
        text = format(Decimal(repr(value)), "f")
        return text if "." in text else text + ".0"
    if isinstance(value, datetime.date):
        return f"#{value.isoformat()}#"
    return str(value)


def _key(value: str) -> str:
    if _PLAIN_KEY.match(value):
        return value
    return quote_string("\\" + value if value.startswith("\\") else value)


def leftmost(node: ast.Expr) -> ast.Expr:
    """The operand an expression's text starts with."""
    while True:
        if isinstance(node, ast.Binary):
            node = node.left
        elif isinstance(node, Step):
            node = postfix_chain(node)[0]
        else:
            return node


class ExpressionPrinter:
    """Builds documents; `comments` are those that hang on parts of the expression, `text` its source if known."""

    def __init__(self, text: str | None = None, comments: dict[tuple[int, str], Placed] | None = None) -> None:
        self._text = text
        self._comments = comments or {}

    def print(self, node: ast.Expr, minimum: int = LOOSEST) -> Doc:
        """The document of an expression where operators looser than `minimum` need parentheses."""
        doc = self._bare(node)
        return sequence(["(", doc, ")"]) if binding(node) < minimum else doc

    def _bare(self, node: ast.Expr) -> Doc:
        if isinstance(node, ast.Literal):
            return self._literal(node)
        if isinstance(node, ast.Name):
            return node.name
        if isinstance(node, ast.Binary):
            return self._operators(node)
        if isinstance(node, Step):
            return self._postfix(node)
        if isinstance(node, ast.Unary):
            sign, level = ("not ", NOT) if node.op == "not" else ("-", UNARY)
            return sequence([sign, self.print(node.operand, level)])
        if isinstance(node, ast.If):
            return self._if(node)
        if isinstance(node, ast.Match):
            return self._match(node)
        return self._other(node)

    def _other(self, node: ast.Expr) -> Doc:
        if isinstance(node, ast.Call):
            return sequence([node.function, "(*)" if node.star else self._arguments(node, node.args, "items")])
        if isinstance(node, ast.WindowCall):
            return sequence([f"$window.{node.function}", self._arguments(node, node.args, "items")])
        if isinstance(node, ast.SystemVar):
            return f"${node.namespace}.{'.'.join(node.path)}"
        if isinstance(node, ast.Closure):
            return sequence(["it => ", self.print(node.body)])
        if isinstance(node, ast.ArrayLiteral):
            return self._brackets("[", [self.print(item) for item in node.items], "]", self._placed(node))
        if isinstance(node, ast.MapLiteral):
            return self._brackets("{", [self._entry(entry) for entry in node.entries], "}", self._placed(node))
        if isinstance(node, ast.Comprehension):
            return self._comprehension(node)
        return "now"

    def _placed(self, node: ast.Expr, which: str = "items") -> Placed:
        return self._comments.get((id(node), which), _NO_COMMENTS)

    def _literal(self, node: ast.Literal) -> Doc:
        if isinstance(node.value, float) and self._text is not None:
            return self._text[node.span.start : node.span.end]  # 1.50 stays 1.50
        return _literal(node.value)

    # -------------------------------------------------------------- chains

    def _operators(self, node: ast.Binary) -> Doc:
        level = BINDING[node.op]
        operands, operators = operator_chain(node)
        # The side on which the same operator needs no parentheses was taken apart into the chain.
        last = len(operands) - 1
        tight = level + 1
        docs: list[Doc] = []
        for index, operand in enumerate(operands):
            loose = index == last if level == COALESCE else index == 0 and level != COMPARISON
            docs.append(self.print(operand, level if loose else tight))
        return self._lines(node, docs, [f"{op} " for op in operators], LINE)

    def _lines(self, node: ast.Expr, items: Sequence[Doc], prefixes: Sequence[str], separator: Break) -> Doc:
        """Items, all but the first with a prefix and on a line of their own when the list is broken."""
        placed = self._placed(node)
        first: list[Doc] = [items[0], *self._behind(placed, 0)]
        rest: list[Doc] = []
        for index, (prefix, item) in enumerate(zip(prefixes, items[1:], strict=True), 1):
            above = [part for text in placed.above.get(index, ()) for part in (text, HARD)]
            rest.append(indent([separator, *above, prefix, item, *self._behind(placed, index)]))
        return group([*first, *rest])

    @staticmethod
    def _behind(placed: Placed, index: int) -> list[Doc]:
        text = placed.behind.get(index)
        return [] if text is None else [Suffix("  " + text)]

    def _postfix(self, node: Step) -> Doc:
        base, steps = postfix_chain(node)
        # `$vars.a.b` would be one system variable.
        swallowed = isinstance(base, ast.SystemVar) and isinstance(steps[0], ast.Member)
        first, *rest = segments(steps)
        start = sequence(["(", self.print(base), ")"]) if swallowed else self.print(base, POSTFIX)
        items = [sequence([start, *map(self._step, first)])]
        items += [sequence(map(self._step, segment)) for segment in rest]
        placed = self._placed(node)
        if placed.above or placed.behind or sum(isinstance(s, ast.MethodCall) for s in steps) > 1:
            return self._lines(node, items, [""] * len(rest), SOFT)
        return sequence(items)

    def _step(self, step: Step) -> Doc:
        if isinstance(step, ast.Index):
            return sequence(["[", self.print(step.index), "]"])
        if isinstance(step, ast.MethodCall):
            return sequence([f".{step.method}", self._arguments(step, step.args, "arguments")])
        return f".{step.name}"

    def _if(self, node: ast.If) -> Doc:
        branches, last = if_chain(node)
        docs: list[Doc] = []
        for branch in branches:
            # An `if` right after `then` would take the `else` that is meant for the outer one.
            then = indent([LINE, "then ", self.print(branch.then, COALESCE)])
            docs.append(group(["if ", self.print(branch.condition, OR), then]))
        if last is not None:
            docs.append(self.print(last))
        return self._lines(node, docs, ["else "] * (len(docs) - 1), LINE)

    # ------------------------------------------------------------ brackets

    def _arguments(self, node: ast.Expr, args: Sequence[ast.Expr], which: str) -> Doc:
        placed = self._placed(node, which)
        return self._brackets("(", [self.print(arg) for arg in args], ")", placed, last_comma="")

    def _brackets(
        self,
        opener: str,
        items: Sequence[Doc],
        closer: str,
        placed: Placed,
        *,
        edge: Break = SOFT,
        comma: str = ",",
        last_comma: str = ",",
    ) -> Doc:
        """A bracketed list, one item per line when it is broken."""
        lines: list[Doc] = []
        for index, item in enumerate(items):
            last = index == len(items) - 1
            above = [part for text in placed.above.get(index, ()) for part in (text, HARD)]
            end: Doc = WhenBroken(last_comma) if last else comma
            lines.append(sequence([LINE if index else edge, *above, item, end, *self._behind(placed, index)]))
        for text in placed.above.get(len(items), ()):
            lines += [HARD, text]
        if not lines:
            return opener + closer
        return group([opener, indent(lines), edge, closer])

    def _entry(self, entry: ast.MapEntry) -> Doc:
        value = self.print(entry.value)
        if entry.computed or not isinstance(entry.key, ast.Literal):
            return sequence(["[", self.print(entry.key), "]: ", value])
        return sequence([_key(entry.key.value), ": ", value])

    def _comprehension(self, node: ast.Comprehension) -> Doc:
        parts: list[Doc] = [
            self.print(node.value, COALESCE),
            sequence([f"for {node.binding} in ", self.print(node.source, COALESCE)]),
        ]
        if node.condition is not None:
            parts.append(sequence(["if ", self.print(node.condition, COALESCE)]))
        return self._brackets("[", parts, "]", self._placed(node), comma="", last_comma="")

    def _match(self, node: ast.Match) -> Doc:
        head: Doc = "match "
        if node.subject is not None:
            # After `match` a `{` opens the arms.
            is_map = isinstance(leftmost(node.subject), ast.MapLiteral)
            subject = self.print(node.subject, POSTFIX + 1 if is_map else COALESCE)
            head = sequence(["match ", subject, " "])
        arms = [self._arm(arm) for arm in node.arms]
        return sequence([head, self._brackets("{", arms, "}", self._placed(node), edge=LINE)])

    def _arm(self, arm: ast.MatchArm) -> Doc:
        pattern = "_" if arm.pattern is None else self.print(arm.pattern, COALESCE)
        return sequence([pattern, " => ", self.print(arm.value)])
