"""What the functions of the interpreter work on: one record being evaluated, and the failure that ends it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from clinker_spark.core.span import Span
from clinker_spark.cxl import ir
from clinker_spark.cxl.builtins.text import to_text
from clinker_spark.cxl.construction import TOO_LARGE, size_of
from clinker_spark.cxl.errors import ErrorKind, EvalError
from clinker_spark.cxl.limits import MAX_CONSTRUCTED_BYTES
from clinker_spark.cxl.system import Context


@dataclass
class Frame:
    """One record being evaluated: its fields, the slots filled so far, and its window if it has one."""

    record: Mapping[str, Any]
    context: Context
    slots: dict[str, Any] = field(default_factory=dict)
    partition: list[Frame] | None = None
    sort_key: Any = None
    group: list[Frame] | None = None
    constructed: int = 0
    """Bytes of arrays and maps built so far."""
    inside: int = 0
    """Closures, comprehensions and blocks being evaluated: what they build is measured piece by piece."""

    def charge(self, value: Any, e: ir.TExpr) -> None:
        """Count what `e` built; too much is a failure."""
        size = size_of(value, e.type)
        total = size if self.inside else self.constructed + size
        if total > MAX_CONSTRUCTED_BYTES:
            raise failure(ErrorKind.CONSTRUCTION_LIMIT_EXCEEDED, TOO_LARGE, e.span)
        if not self.inside:
            self.constructed = total

    @contextmanager
    def loop(self) -> Iterator[None]:
        """Around the evaluation of something that a record may evaluate many times."""
        self.inside += 1
        try:
            yield
        finally:
            self.inside -= 1


Evaluator = Callable[[Frame], Any]
"""An expression made ready: the value it has on a record. It raises `EvalError` when the record fails."""

Compiler = Callable[[ir.TExpr], Evaluator]
"""Makes an expression ready. Statements are given it, because some expressions hold statements."""


def failure(kind: ErrorKind, message: str, span: Span, value: Any = None) -> EvalError:
    text = None if value is None else to_text(value)
    return EvalError(kind.value, message, value=text, span=span)
