"""Expressions: a Pratt parser over CXL's operators, in both spellings. A broken expression raises `Bail`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from clinker_spark.core.span import Source
from clinker_spark.cxl.syntax import ast as cxl
from clinker_spark.cxl.syntax.lexer import Token
from clinker_spark.query.syntax import ast
from clinker_spark.query.syntax.types import TypeParser

SET, COALESCE, OR, AND, NOT, EQUALITY, ORDER, SUM, PRODUCT, UNARY = range(1, 11)
"""How tightly operators bind, loosest first."""

BINDING: Final = {
    "??": COALESCE,
    "or": OR,
    "and": AND,
    **dict.fromkeys(("==", "!=", "in"), EQUALITY),
    **dict.fromkeys((">", "<", ">=", "<="), ORDER),
    **dict.fromkeys("+-", SUM),
    **dict.fromkeys("*/%", PRODUCT),
}
SET_OPERATORS: Final = ("union", "except", "intersect")
_WORDS: Final = {"true": True, "false": False, "null": None}


class ExpressionParser(TypeParser):
    """Reads expressions. `types` are the declared type names: `Name {` starts a record only after one of them."""

    def __init__(self, source: Source, tokens: list[Token]) -> None:
        super().__init__(source, tokens)
        self.types = _declared(tokens)
        self._prefix: dict[str, Callable[[Token], cxl.Expr]] = {
            **dict.fromkeys(("int", "float", "string", "date"), self._literal),
            **dict.fromkeys(_WORDS, self._word),
            "name": self._name,
            "(": self._group,
            "[": self._list,
            "{": self._map,
            "-": self._minus,
            "not": self._not,
            "!": self._not,
            "if": self._if,
            "match": self._match,
            "fun": self._lambda,
            "load": self._load,
        }

    # ------------------------------------------------ what the other parsers add

    def query(self) -> cxl.Expr:
        raise NotImplementedError

    def block(self) -> tuple[ast.Statement, ...]:
        raise NotImplementedError

    # ------------------------------------------------------------- operators

    def expression(self, minimum: int = 0) -> cxl.Expr:
        """An expression of operators that bind at least as tightly as `minimum`."""
        start = self.token.start
        prefix = self._prefix.get(self.token.kind)
        if prefix is None:
            self.expected("an expression")
        self.deeper()
        left = self._postfix(prefix(self.token), start)
        while True:
            operator = self.token
            if self.at_word(*SET_OPERATORS):
                if minimum > SET:
                    break
                left = self._set_operator(left, start)
                continue
            binding = BINDING.get(operator.kind)
            if binding is None or binding < minimum:
                break
            if binding == COALESCE:
                left = self._coalesce(left, start)
                continue
            self.advance()
            right = self.expression(binding + 1)
            left = cxl.Binary(self.span_from(start), operator.kind, left, right, operator.span)
        self.depth -= 1
        return left

    def _coalesce(self, left: cxl.Expr, start: int) -> cxl.Expr:
        """`a ?? b ?? c` groups to the right; it is read in a loop, so that its length is not depth."""
        parts = [(start, left)]
        operators: list[Token] = []
        while BINDING.get(self.token.kind) == COALESCE:
            operators.append(self.advance())
            start = self.token.start
            parts.append((start, self.expression(COALESCE + 1)))
        _, value = parts.pop()
        while parts:
            start, first = parts.pop()
            operator = operators.pop()
            value = cxl.Binary(self.span_from(start), operator.kind, first, value, operator.span)
        return value

    def _set_operator(self, left: cxl.Expr, start: int) -> cxl.Expr:
        operator = self.advance()
        name = operator.text
        if self.at_word("all"):
            if name != "union":
                self.fail(self.token.span, f"'{name} all' does not exist", "only union has an 'all'")
            self.advance()
            name = "union all"
        right = self.expression(SET + 1)
        return cxl.Binary(self.span_from(start), name, left, right, operator.span)

    def _postfix(self, left: cxl.Expr, start: int) -> cxl.Expr:
        while True:
            token = self.token
            if token.kind == "?" and self.peek().kind == "[":  # an element of a list that may be null: as without '?'
                self.advance()
            elif token.kind in (".", "?."):
                self.advance()
                left = self._member(left, start)
            elif token.kind == "[" and not token.line_start:
                left = self._index(left, start)
            elif token.kind == "(" and not token.line_start:
                args = self.arguments()
                left = ast.Apply(self.span_from(start), left, args)
            elif token.kind == "as":
                self.advance()
                to = self.type_name()
                left = ast.Cast(self.span_from(start), left, to)
            else:
                return left

    def _member(self, left: cxl.Expr, start: int) -> cxl.Expr:
        token = self.token
        name = self.member_name()
        if self.at("(") and not self.token.line_start:
            args = self.arguments(closures=True)
            return cxl.MethodCall(self.span_from(start), left, name, args, token.span)
        return cxl.Member(self.span_from(start), left, name, token.span)

    def _index(self, left: cxl.Expr, start: int) -> cxl.Expr:
        opener = self.advance()
        first = None if self.at(":") else self.expression()
        if self.take(":"):
            last = None if self.at("]") else self.expression()
            self.close("]", opener)
            return ast.Slice(self.span_from(start), left, first, last)
        self.close("]", opener)
        assert first is not None
        return cxl.Index(self.span_from(start), left, first)

    def arguments(self, closures: bool = False) -> tuple[cxl.Expr, ...]:
        """`(a, b)`; with `closures`, `it => e` may be one of them."""
        opener = self.expect("(")
        args: list[cxl.Expr] = []
        while not self.at(")"):
            if closures and self.at("name") and self.peek().kind == "=>":
                args.append(self._closure())
            else:
                args.append(self.expression())
            if not self.take(","):
                break
        self.close(")", opener)
        return tuple(args)

    def _closure(self) -> cxl.Expr:
        parameter = self.advance()
        self.advance()
        body = self.expression()
        return ast.Lambda(
            self.span_from(parameter.start), (ast.Param(parameter.span, parameter.text, None),), None, body
        )

    # -------------------------------------------------------------- operands

    def _literal(self, token: Token) -> cxl.Expr:
        self.advance()
        return cxl.Literal(token.span, token.value)

    def _word(self, token: Token) -> cxl.Expr:
        self.advance()
        return cxl.Literal(token.span, _WORDS[token.kind])

    def _name(self, token: Token) -> cxl.Expr:
        if token.text == "from" and self.peek().kind == "name" and self.peek(2).kind == "in":
            return self.query()
        if token.text in ("select", "where") and self.peek().kind in ("name", "int", "float", "string", "{"):
            self.expected("an expression", f"something is missing before '{token.text}'")
        self.advance()
        if self.at("{") and token.text in self.types:
            entries = self.entries()
            return ast.RecordLiteral(self.span_from(token.start), token.text, token.span, entries)
        if self.at("(") and not self.token.line_start:
            if self.peek().kind == "*" and self.peek(2).kind == ")":
                self.fail(self.peek().span, f"{token.text}(*) needs a list", f"write {token.text}(g) for a group g")
            args = self.arguments()
            return cxl.Call(self.span_from(token.start), token.text, args, False, token.span)
        return cxl.Name(token.span, token.text)

    def _group(self, token: Token) -> cxl.Expr:
        self.advance()
        inner = self.expression()
        self.close(")", token)
        return inner

    def _list(self, opener: Token) -> cxl.Expr:
        self.advance()
        items: list[cxl.Expr] = []
        while not self.at("]"):
            items.append(self.expression())
            if len(items) == 1 and self.at("for"):
                return self._comprehension(items[0], opener)
            if not self.take(","):
                break
        self.close("]", opener)
        return cxl.ArrayLiteral(self.span_from(opener.start), tuple(items))

    def _comprehension(self, value: cxl.Expr, opener: Token) -> cxl.Expr:
        self.advance()
        name = self.expect("name")
        self.expect("in")
        source = self.expression()
        condition = self.expression() if self.take("if") else None
        self.close("]", opener)
        span = self.span_from(opener.start)
        return cxl.Comprehension(span, value, name.text, name.span, source, condition)

    def _map(self, token: Token) -> cxl.Expr:
        entries = self.entries()
        return cxl.MapLiteral(self.span_from(token.start), entries)

    def entries(self) -> tuple[cxl.MapEntry, ...]:
        """`{a: 1, "b": 2, [k]: 3}`; a bare word is the name itself."""
        opener = self.expect("{")
        made: list[cxl.MapEntry] = []
        while not self.at("}"):
            start = self.token
            computed = False
            if self.token.kind != "string" and self.token.text[:1].isidentifier() and self.peek().kind == ":":
                key: cxl.Expr = cxl.Literal(start.span, self.advance().text)
            elif self.at("["):
                self.advance()
                key, computed = self.expression(), True
                self.close("]", start)
            else:
                key = self.expression()
                computed = not (isinstance(key, cxl.Literal) and isinstance(key.value, str))
            self.expect(":", "write name: value")
            value = self.expression()
            made.append(cxl.MapEntry(self.span_from(start.start), key, value, computed))
            if not self.take(","):
                break
        self.close("}", opener)
        return tuple(made)

    def _minus(self, token: Token) -> cxl.Expr:
        self.advance()
        operand = self.expression(UNARY)
        if isinstance(operand, cxl.Literal) and type(operand.value) in (int, float):
            return cxl.Literal(self.span_from(token.start), -operand.value)
        return cxl.Unary(self.span_from(token.start), "-", operand)

    def _not(self, token: Token) -> cxl.Expr:
        self.advance()
        # `!` binds as tightly as a minus sign, the word `not` more loosely than a comparison.
        operand = self.expression(UNARY if token.kind == "!" else NOT)
        return cxl.Unary(self.span_from(token.start), "not", operand)

    def _if(self, token: Token) -> cxl.Expr:
        """A chain of `else if` is read in a loop: its length is not depth."""
        branches: list[tuple[int, cxl.Expr, cxl.Expr]] = []
        otherwise = None
        more = True
        while more:
            start = self.advance().start
            condition = self.expression()
            braces = not self.take("then")
            then = self._braced() if braces else self.expression()
            branches.append((start, condition, then))
            more = False
            if self.take("else"):
                more = self.at("if")
                otherwise = None if more else self._braced() if braces else self.expression()
        for start, condition, then in reversed(branches):
            otherwise = cxl.If(self.span_from(start), condition, then, otherwise)
        assert otherwise is not None
        return otherwise

    def _braced(self) -> cxl.Expr:
        opener = self.expect("{", "write 'if condition then value else value'")
        value = self.expression()
        self.close("}", opener)
        return value

    def _match(self, token: Token) -> cxl.Expr:
        self.advance()
        subject = None if self.at("{") else self.expression()
        opener = self.expect("{", "write match value { pattern => result }")
        arms: list[cxl.MatchArm] = []
        while not self.at("}", "end"):
            start = self.token.start
            if self.at_word("_") and self.peek().kind == "=>":
                self.advance()
                pattern = None
            else:
                pattern = self.expression()
            self.expect("=>", "write pattern => result")
            value = self.expression()
            arms.append(cxl.MatchArm(self.span_from(start), pattern, value))
            self.take(",")
        self.close("}", opener)
        return cxl.Match(self.span_from(token.start), subject, tuple(arms))

    def _lambda(self, token: Token) -> cxl.Expr:
        self.advance()
        return self.function(token.start)

    def function(self, start: int) -> ast.Lambda:
        """`(a: T, b): R { ... }` or `(a) => e`."""
        opener = self.expect("(", "write the parameters in parentheses")
        params: list[ast.Param] = []
        while not self.at(")"):
            name = self.expect("name")
            params.append(ast.Param(name.span, name.text, self.type_name() if self.take(":") else None))
            if not self.take(","):
                break
        self.close(")", opener)
        result = self.type_name() if self.take(":") else None
        if self.take("=>") or self.take("="):
            body: cxl.Expr | tuple[ast.Statement, ...] = self.expression()
        else:
            body = self.block()
        return ast.Lambda(self.span_from(start), tuple(params), result, body)

    def _load(self, token: Token) -> cxl.Expr:
        self.advance()
        path: cxl.Expr | None = self.expression(UNARY) if self.at("string", "(") else None
        type_name: ast.TypeName | None = None
        if isinstance(path, ast.Cast):  # `as` was read as a cast of the path
            type_name = path.type
            path = path.value
        elif self.take("as"):
            type_name = self.type_name()
        options = self.options()
        return ast.Load(self.span_from(token.start), path, type_name, options)

    def options(self) -> cxl.Expr | None:
        """`with {format: "csv"}`, or the short form `format=csv`."""
        start = self.token
        if self.take_word("with"):
            return self._map(self.token)
        entries: list[cxl.MapEntry] = []
        while self.token.kind == "name" and self.peek().kind == "=" and not self.token.line_start:
            key = self.advance()
            self.advance()
            value = self.advance()
            if value.kind not in ("name", "string", "true", "false"):
                self.fail(value.span, "expected the value of an option", "write format=json")
            written = value.value if value.kind == "string" else _WORDS.get(value.kind, value.text)
            literal = cxl.Literal(value.span, written)
            entries.append(cxl.MapEntry(key.span.to(value.span), cxl.Literal(key.span, key.text), literal, False))
        return cxl.MapLiteral(self.span_from(start.start), tuple(entries)) if entries else None


def _declared(tokens: list[Token]) -> frozenset[str]:
    """The names after `type`, and those of the cases of union types."""
    found = set()
    for i, token in enumerate(tokens[:-2]):
        if token.kind == "type" and tokens[i + 1].kind == "name":
            found.add(tokens[i + 1].text)
        if token.kind in ("|", "=") and tokens[i + 1].kind == "name" and tokens[i + 2].kind == "{":
            found.add(tokens[i + 1].text)
    return frozenset(found)
