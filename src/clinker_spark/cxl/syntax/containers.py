"""CXL's bracketed expressions: match, array and map literals, comprehensions."""

from __future__ import annotations

from clinker_spark.core.diagnostics import Label
from clinker_spark.core.span import Span
from clinker_spark.cxl.limits import MAX_CONTAINER_DEPTH
from clinker_spark.cxl.syntax import ast
from clinker_spark.cxl.syntax.cursor import Cursor
from clinker_spark.cxl.syntax.lexer import KEYWORDS, Token
from clinker_spark.cxl.syntax.messages import STATEMENT_WORDS

_ARM_HELP = "an arm is 'pattern => result'; arms are separated by ',' or a new line"
_LOOP_HELP = "write '[x * 2 for x in xs if x > 0]'"


class ContainerParser(Cursor):
    """Reads match, `[ ]` and `{ }`; each method starts at its first token."""

    def expression(self, minimum: int = 0) -> ast.Expr:
        raise NotImplementedError  # the operators are in ExpressionParser

    def parse_match(self, token: Token) -> ast.Expr:
        self.advance()
        subject = None
        if self.token.kind != "{":
            subject = self.expression()
        opener = self.expect("{", "write 'match value { pattern => result, _ => result }'")
        # Arms need no commas, so between them a line that starts with '(' or '[' is a new pattern.
        saved, self.bracketed = self.bracketed, False
        self.depth += 2
        arms: list[ast.MatchArm] = []
        while self.token.kind != "}":
            arms.append(self._arm(opener))
            if self.token.kind == ",":
                self.advance()
        if not arms:
            self.fail(opener.span.to(self.token.span), "this match has no arms", _ARM_HELP)
        self.advance()
        self.bracketed = saved
        self.depth -= 2
        return ast.Match(Span(token.start, self.end), subject, tuple(arms))

    def _arm(self, opener: Token) -> ast.MatchArm:
        first = self.token
        if first.kind == "end" or first.kind in STATEMENT_WORDS:
            self.close(opener)
        if first.kind == "=>":
            help_line = "put a ',' after the arm before: a line that starts with an operator continues the one above"
            self.fail(first.span, "unexpected '=>' after the result of an arm", help_line)
        pattern = None
        if first.kind == "_":
            self.advance()
        else:
            pattern = self.expression()
        if self.token.kind != "=>":
            self.expected("'=>'", _ARM_HELP, Label(opener.span, "in the match that starts here"))
        self.advance()
        value = self.expression()
        return ast.MatchArm(Span(first.start, self.end), pattern, value)

    # ------------------------------------------------- arrays and their loops

    def _open_container(self) -> bool:
        """Consumes the opening bracket; returns what `_close_container` needs back."""
        if self.containers >= MAX_CONTAINER_DEPTH:
            message = f"more than {MAX_CONTAINER_DEPTH} array and map literals inside one another"
            self.fail(self.token.span, message, "build the inner parts with let")
        self.containers += 1
        self.depth += 1
        self.advance()
        saved, self.bracketed = self.bracketed, True
        return saved

    def _close_container(self, opener: Token, saved: bool) -> Span:
        what = "']'" if opener.kind == "[" else "'}'"
        self.close(opener, f"',' or {what}", f"separate the parts with ',' and close them with {what}")
        self.bracketed = saved
        self.containers -= 1
        self.depth -= 1
        return Span(opener.start, self.end)

    def parse_array(self, opener: Token) -> ast.Expr:
        saved = self._open_container()
        items: list[ast.Expr] = []
        while self.token.kind != "]":
            items.append(self.expression())
            if self.token.kind == "for" and len(items) == 1:
                return self._comprehension(opener, saved, items[0])
            if self.token.kind != ",":
                break
            self.advance()
        span = self._close_container(opener, saved)
        return ast.ArrayLiteral(span, tuple(items))

    def _comprehension(self, opener: Token, saved: bool, value: ast.Expr) -> ast.Expr:
        self.advance()
        binding = self.name("the loop variable", _LOOP_HELP)
        self.expect("in", _LOOP_HELP)
        source = self.expression()
        condition = None
        if self.token.kind == "if":
            self.advance()
            condition = self.expression()
        span = self._close_container(opener, saved)
        return ast.Comprehension(span, value, binding.text, binding.span, source, condition)

    # --------------------------------------------------------------- maps

    def parse_map(self, opener: Token) -> ast.Expr:
        saved = self._open_container()
        entries: list[ast.MapEntry] = []
        seen: dict[str, Span] = {}
        while self.token.kind != "}":
            entries.append(self._entry(seen))
            if self.token.kind != ",":
                break
            self.advance()
        span = self._close_container(opener, saved)
        return ast.MapLiteral(span, tuple(entries))

    def _entry(self, seen: dict[str, Span]) -> ast.MapEntry:
        first = self.token
        key = self._key(first)
        computed = first.kind == "["
        if not computed and isinstance(key, ast.Literal):
            if key.value in seen:
                label = Label(seen[key.value], "first given here")
                self.fail(key.span, f"the key '{key.value}' is given twice", "remove one of the two entries", label)
            seen[key.value] = key.span
        self.expect(":", "write '{name: value}', '{\"any text\": value}' or '{[expression]: value}'")
        value = self.expression()
        return ast.MapEntry(Span(first.start, self.end), key, value, computed)

    def _key(self, token: Token) -> ast.Expr:
        if token.kind == "[":
            self.advance()
            key = self.expression()
            self.close(token)
            return key
        if token.kind == "string":
            key_text = self._decode_key(token)
            self.advance()
            return ast.Literal(token.span, key_text)
        if token.kind == "name" or token.kind in KEYWORDS:
            self.advance()
            return ast.Literal(token.span, token.text)
        help_line = "a key is a name, a text in quotes or an expression in '[ ]'"
        if token.kind in ("int", "float", "date"):
            help_line = f'write "{token.text}": keys are texts'
        self.expected("a key", help_line)

    def _decode_key(self, token: Token) -> str:
        """A backslash in front keeps `@` and `#text` from their special meaning in nested formats."""
        key: str = token.value
        if not key.startswith("\\"):
            return key
        if key[1:2] in ("@", "\\") or key == "\\#text":
            return key[1:]
        help_line = r"a key may start with '\@' or two backslashes, or be '\#text'; remove the backslash otherwise"
        self.fail(token.span, "this key must not start with a backslash", help_line)
