"""Types as they are written: `int`, `list<Person>`, `map<string, int>`, `{a: int}`, `fun(int): int`, `T?`."""

from __future__ import annotations

from clinker_spark.query.syntax import ast
from clinker_spark.query.syntax.cursor import Cursor


class TypeParser(Cursor):
    def type_name(self) -> ast.TypeName:
        token = self.token
        if self.take("fun"):
            made = self._function_type(token.start)
        elif self.at("{"):
            made = ast.TypeName(token.span, "record", fields=self.typed_fields())
        else:
            name = self.expect("name", "write a type such as int, string or list<int>")
            args: list[ast.TypeName] = []
            if self.take("<"):
                args.append(self.type_name())
                while self.take(","):
                    args.append(self.type_name())
                self.expect(">", "close the type's parameters with '>'")
            made = ast.TypeName(self.span_from(token.start), name.text, tuple(args))
        if self.take("?"):
            made = ast.TypeName(self.span_from(token.start), made.name, made.args, made.fields, True)
        return made

    def _function_type(self, start: int) -> ast.TypeName:
        self.expect("(")
        args: list[ast.TypeName] = []
        while not self.at(")"):
            if self.at("name") and self.peek().kind == ":":
                self.advance()
                self.advance()
            args.append(self.type_name())
            if not self.take(","):
                break
        self.expect(")")
        result = self.type_name() if self.take(":") else ast.TypeName(self.span_from(start), "any")
        return ast.TypeName(self.span_from(start), "fun", (*args, result))

    def typed_fields(self) -> tuple[tuple[str, ast.TypeName], ...]:
        """`{name: type, ...}`; commas and line ends both separate."""
        opener = self.expect("{")
        fields: list[tuple[str, ast.TypeName]] = []
        while not self.at("}", "end"):
            name = self.member_name()
            self.expect(":", "write name: type")
            fields.append((name, self.type_name()))
            self.take(",")
        self.close("}", opener)
        return tuple(fields)

    def member_name(self) -> str:
        """The name of a field: any word, keyword or not."""
        if not (self.token.text[:1].isidentifier()):
            self.expected("a name")
        return self.advance().text
