"""CXL modules: files of constants and single-expression functions that programs `use`.

`use shared.money as m` reads `<rules>/shared/money.cxl`; its members are `m.RATE` and `m.gross(x)`. Imports
are private to the file that makes them; constants, functions and imports must not go in circles.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.span import Source, Span
from clinker_spark.cxl import limits
from clinker_spark.cxl.syntax import ast
from clinker_spark.cxl.syntax.parser import parse

Loader = Callable[[tuple[str, ...]], Source | None]


@dataclass(frozen=True)
class Module:
    name: str
    source: Source
    constants: Mapping[str, ast.Expr]
    functions: Mapping[str, ast.FunctionDef]
    imports: Mapping[str, Module]

    @property
    def members(self) -> tuple[str, ...]:
        return (*self.constants, *self.functions)


def directory_loader(root: Path) -> Loader:
    """Reads modules from files below `root`."""

    def load(path: tuple[str, ...]) -> Source | None:
        file = root.joinpath(*path).with_suffix(".cxl")
        try:
            return Source(str(file), file.read_text(encoding="utf-8"))
        except (FileNotFoundError, NotADirectoryError):
            return None

    return load


def mapping_loader(texts: Mapping[str, str]) -> Loader:
    """Reads modules from a mapping of dotted name to text."""

    def load(path: tuple[str, ...]) -> Source | None:
        text = texts.get(".".join(path))
        return None if text is None else Source(".".join(path) + ".cxl", text)

    return load


class ModuleError(Exception):
    """A module that cannot be used; `diagnostics` say why."""

    def __init__(self, diagnostics: list[Diagnostic]) -> None:
        self.diagnostics = diagnostics
        super().__init__(diagnostics[0].message)


class ModuleTable:
    """Loads each module once and keeps the limits on their number, depth and total size."""

    def __init__(self, loader: Loader | None) -> None:
        self._loader = loader
        self._loaded: dict[tuple[str, ...], Module] = {}
        self._total = 0

    def imports(self, statements: tuple[ast.Statement, ...], source: Source) -> dict[str, Module]:
        """The modules that a file's `use` statements bring in, by alias. Raises `ModuleError`."""
        return self._imports(statements, source, ())

    def _imports(
        self, statements: tuple[ast.Statement, ...], source: Source, chain: tuple[tuple[str, ...], ...]
    ) -> dict[str, Module]:
        result: dict[str, Module] = {}
        for statement in statements:
            if isinstance(statement, ast.Use):
                result[statement.alias or statement.path[-1]] = self._load(statement, source, chain)
        return result

    def _load(self, use: ast.Use, user: Source, chain: tuple[tuple[str, ...], ...]) -> Module:
        name = ".".join(use.path)
        if use.path in chain:
            circle = " -> ".join(".".join(p) for p in (*chain[chain.index(use.path) :], use.path))
            raise _error(f"modules import each other in a circle: {circle}", user, use.span, "break the circle")
        if use.path in self._loaded:
            return self._loaded[use.path]
        try:
            source = self._loader(use.path) if self._loader else None
        except OSError as error:
            raise _error(f"module '{name}' cannot be read: {error.strerror}", user, use.span, "") from None
        except UnicodeDecodeError:
            raise _error(f"module '{name}' is not UTF-8 text", user, use.span, "save the file as UTF-8") from None
        if source is None:
            expected = "/".join(use.path) + ".cxl"
            raise _error(f"module '{name}' not found", user, use.span, f"create {expected} below the rules folder")
        self._total += len(source.text.encode())
        if len(self._loaded) >= limits.MAX_MODULES or len(chain) >= limits.MAX_MODULE_DEPTH:
            raise _error("too many modules", user, use.span, f"at most {limits.MAX_MODULES} modules may be used")
        if self._total > limits.MAX_MODULE_BYTES_TOTAL:
            raise _error("the modules are too large", user, use.span, "split the rules between programs")
        module = self._build(name, source, use.path, chain)
        self._loaded[use.path] = module
        return module

    def _build(self, name: str, source: Source, path: tuple[str, ...], chain: tuple[tuple[str, ...], ...]) -> Module:
        syntax, found = parse(source, kind="module")
        if found:
            raise ModuleError(found)
        imports = self._imports(syntax.statements, source, (*chain, path))
        constants = {s.name: s.value for s in syntax.statements if isinstance(s, ast.Let)}
        functions = {s.name: s for s in syntax.statements if isinstance(s, ast.FunctionDef)}
        module = Module(name, source, constants, functions, imports)
        _reject_circles(module)
        return module


def _error(message: str, source: Source, span: Span, help_text: str) -> ModuleError:
    return ModuleError([Diagnostic("E227", message, source, span, help_text, phase="resolve")])


def _reject_circles(module: Module) -> None:
    bodies: dict[str, ast.Expr] = {**module.constants, **{n: f.body for n, f in module.functions.items()}}
    uses = {name: _mentioned(body) & bodies.keys() for name, body in bodies.items()}
    done: set[str] = set()

    def visit(name: str, chain: tuple[str, ...]) -> None:
        if name in chain:
            circle = " -> ".join((*chain[chain.index(name) :], name))
            raise _error(f"declarations use each other in a circle: {circle}", module.source, bodies[name].span, "")
        if name not in done:
            for other in sorted(uses[name]):
                visit(other, (*chain, name))
            done.add(name)

    for name in bodies:
        visit(name, ())


def _mentioned(node: ast.Expr) -> set[str]:
    return {
        n.name if isinstance(n, ast.Name) else n.function for n in node.walk() if isinstance(n, ast.Name | ast.Call)
    }
