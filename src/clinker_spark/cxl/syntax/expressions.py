"""CXL expressions: a Pratt parser. A broken expression raises `Bail`; the statement parser recovers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NoReturn

from clinker_spark.core.span import Source, Span
from clinker_spark.cxl.limits import I64_MAX, I64_MIN, MAX_EXPRESSION_DEPTH
from clinker_spark.cxl.syntax import ast
from clinker_spark.cxl.syntax.containers import ContainerParser
from clinker_spark.cxl.syntax.lexer import Token, too_wide
from clinker_spark.cxl.syntax.messages import CLOSURE_HELP, help_for_missing_expression, help_for_unexpected

COALESCE, OR, AND, NOT, COMPARISON, SUM, PRODUCT, UNARY, POSTFIX = range(1, 10)
"""How tightly operators bind, loosest first."""

BINDING: Final = {
    "??": COALESCE,
    "or": OR,
    "and": AND,
    **dict.fromkeys(("==", "!=", ">", "<", ">=", "<="), COMPARISON),
    **dict.fromkeys("+-", SUM),
    **dict.fromkeys("*/%", PRODUCT),
    **dict.fromkeys(".[", POSTFIX),
}
_WORDS: Final = {"true": True, "false": False, "null": None}


class ExpressionParser(ContainerParser):
    """Reads expressions from a list of tokens."""

    def __init__(self, source: Source, tokens: list[Token]) -> None:
        super().__init__(source, tokens)
        self._prefix: dict[str, Callable[[Token], ast.Expr]] = {
            **dict.fromkeys(("float", "string", "date"), self._literal),
            **dict.fromkeys(_WORDS, self._word_literal),
            "int": self._int,
            "now": self._now,
            "it": self._it,
            "name": self._name,
            "system": self._system,
            "(": self._group,
            "[": self.parse_array,
            "{": self.parse_map,
            "-": self._minus,
            "not": self._not,
            "if": self._if,
            "match": self.parse_match,
        }

    def expression(self, minimum: int = 0) -> ast.Expr:
        """An expression of operators that bind at least as tightly as `minimum`."""
        token = self.token
        if self.depth > MAX_EXPRESSION_DEPTH:
            self.too_deep()
        self.depth += 1
        prefix = self._prefix.get(token.kind)
        if prefix is None:
            self.expected("an expression", help_for_missing_expression(self.previous, token, self.peek()))
        left = prefix(token)
        compared = False
        start = token.start
        coalesced: list[tuple[int, ast.Expr, Token]] = []  # `a ?? b ?? c` groups to the right
        while True:
            operator = self.token
            binding = BINDING.get(operator.kind)
            if binding is None or binding < minimum:
                break
            if binding == POSTFIX:
                if operator.kind == "[" and not self.same_line(operator):
                    break
                left = self._postfix(left, start)
                continue
            if binding == COALESCE:
                coalesced.append((start, left, operator))
                self.advance()
                start = self.token.start
                left = self.expression(OR)
                continue
            if compared and binding == COMPARISON:
                self._chained(operator)
            compared = binding == COMPARISON
            self.advance()
            right = self.expression(binding + 1)
            left = ast.Binary(Span(start, self.end), operator.kind, left, right, operator.span)
        for start, value, operator in reversed(coalesced):
            left = ast.Binary(Span(start, self.end), operator.kind, value, left, operator.span)
        self.depth -= 1
        return left

    def _chained(self, operator: Token) -> NoReturn:
        self.fail(
            operator.span,
            f"unexpected '{operator.text}': comparisons do not chain",
            "write 'a < b and b < c', or put one comparison in parentheses",
        )

    # ------------------------------------------------------------ operands

    def _literal(self, token: Token) -> ast.Expr:
        self.advance()
        return ast.Literal(token.span, token.value)

    def _word_literal(self, token: Token) -> ast.Expr:
        self.advance()
        return ast.Literal(token.span, _WORDS[token.kind])

    def _int(self, token: Token) -> ast.Expr:
        if token.value > I64_MAX:
            problem = too_wide(token.text)
            self.fail(token.span, problem.message, problem.help)
        return self._literal(token)

    def _now(self, token: Token) -> ast.Expr:
        self.advance()
        if self.continues("("):
            self.fail(token.span.to(self.token.span), "'now' is a value, not a function", "write 'now' without '()'")
        return ast.Now(token.span)

    def _it(self, token: Token) -> ast.Expr:
        self.advance()
        return ast.Name(token.span, "it")

    def _name(self, token: Token) -> ast.Expr:
        self.advance()
        if not self.continues("("):
            return ast.Name(token.span, token.text)
        star = self._star(token)
        args = () if star else self._arguments(None)
        return ast.Call(Span(token.start, self.end), token.text, args, star, token.span)

    def _star(self, name: Token) -> bool:
        """Consumes `(*)`, if that is what comes next."""
        star = self.peek()
        if star.kind != "*" or self.peek(2).kind != ")":
            return False
        if name.text != "count":
            self.fail(star.span, f"{name.text}(*) does not exist", "only count(*) takes a '*'")
        self.jump(self.index + 2)
        self.advance()
        return True

    def _group(self, opener: Token) -> ast.Expr:
        self.advance()
        saved, self.bracketed = self.bracketed, True
        inner = self.expression()
        self.close(opener)
        self.bracketed = saved
        return inner

    def _minus(self, token: Token) -> ast.Expr:
        self.advance()
        number, after = self.token, self.peek()
        postfix = after.kind == "." or (after.kind == "[" and self.same_line(after))
        if number.kind == "int" and number.value > I64_MAX and not postfix:
            self.advance()
            return ast.Literal(Span(token.start, self.end), I64_MIN)
        operand = self.expression(UNARY)
        return ast.Unary(Span(token.start, self.end), "-", operand)

    def _not(self, token: Token) -> ast.Expr:
        self.advance()
        operand = self.expression(NOT)
        return ast.Unary(Span(token.start, self.end), "not", operand)

    def _if(self, token: Token) -> ast.Expr:
        """A chain of `else if` is read in a loop: its length is not depth."""
        branches: list[tuple[int, ast.Expr, ast.Expr]] = []
        otherwise = None
        more = True
        while more:
            start = self.advance().start
            condition = self.expression(OR)
            self._then()
            branches.append((start, condition, self.expression()))
            more = False
            if self.token.kind == "else":
                self.advance()
                more = self.token.kind == "if"
                otherwise = None if more else self.expression()
        for start, condition, then in reversed(branches):
            otherwise = ast.If(Span(start, self.end), condition, then, otherwise)
        assert otherwise is not None
        return otherwise

    def _then(self) -> None:
        if self.token.kind == "??":
            help_line = "write 'if (a ?? b) then …'"
            self.fail(self.token.span, "'??' in the condition of an 'if' needs parentheses", help_line)
        usual = help_for_unexpected(self.token) if self.token.kind == "=" else None
        self.expect("then", usual or "write 'if condition then value else value'")

    # ----------------------------------------------- calls and what follows

    def _arguments(self, method: Token | None) -> tuple[ast.Expr, ...]:
        """`(a, b)`; closures only for a method."""
        opener = self.advance()
        saved, self.bracketed = self.bracketed, True
        self.depth += 1
        args: list[ast.Expr] = []
        while self.token.kind != ")":
            closure = self.token.kind in ("it", "name") and self.peek().kind == "=>"
            args.append(self._closure(method) if closure else self.expression())
            if self.token.kind != ",":
                break
            self.advance()
            if self.token.kind == ")":
                self.expected("another argument", "write the argument, or remove the ','")
        self.close(opener, "',' or ')'", "separate arguments with ',' and close them with ')'")
        self.bracketed = saved
        self.depth -= 1
        return tuple(args)

    def _closure(self, method: Token | None) -> ast.Expr:
        parameter = self.advance()
        if method is None:
            self.fail(parameter.span.to(self.token.span), "a closure is not allowed here", CLOSURE_HELP)
        if parameter.kind != "it":
            self.fail(
                parameter.span,
                f"a closure cannot name its parameter '{parameter.text}'",
                f"the closure parameter is always 'it': write .{method.text}(it => …)",
            )
        self.advance()
        self.depth += 1
        body = self.expression()
        self.depth -= 1
        return ast.Closure(Span(parameter.start, self.end), body)

    def _postfix(self, left: ast.Expr, start: int) -> ast.Expr:
        token = self.advance()
        if token.kind == "[":
            saved, self.bracketed = self.bracketed, True
            index = self.expression()
            self.close(token)
            self.bracketed = saved
            return ast.Index(Span(start, self.end), left, index)
        name = self.member_name()
        if self.continues("("):
            args = self._arguments(name)
            return ast.MethodCall(Span(start, self.end), left, name.text, args, name.span)
        return ast.Member(Span(start, self.end), left, name.text, name.span)

    # ---------------------------------------------------- system variables

    def _system(self, token: Token) -> ast.Expr:
        self.advance()
        if self.token.kind != ".":
            self.expected("'.' and a name", f"write {token.text}.name")
        if token.value == "window":
            name = self._window_name()
            args = self._arguments(None)
            return ast.WindowCall(Span(token.start, self.end), name.text, args, name.span)
        path: list[str] = []
        while self.token.kind == "." and not (path and self._calls_next()):
            self.advance()
            path.append(self.member_name().text)
        if self.continues("("):
            help_line = f"remove the '( )'; only $window has functions, as in $window.{path[-1]}(…)"
            self.fail(self.token.span, f"{token.text}.{path[-1]} is a variable, not a function", help_line)
        return ast.SystemVar(Span(token.start, self.end), token.value, tuple(path))

    def _calls_next(self) -> bool:
        """Whether the current dot starts a method call."""
        after = self.peek(2)
        return after.kind == "(" and self.same_line(after)

    def _window_name(self) -> Token:
        self.advance()
        name = self.member_name()
        if not self.continues("("):
            self.expected("'('", f"write $window.{name.text}(…): everything in $window is a function")
        return name
