"""CXL: a small typed expression language, checked before any data is read, compiled to native Spark expressions.

>>> from clinker_spark import cxl
>>> cxl.compile("emit x = 1 + 2", schema={}).evaluate({})
[{'x': 3}]

A part imports only from those before it: values, builtins and the typed program < syntax < check < interpret, lower,
format < program.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clinker_spark.cxl.errors import CxlError, EvalError
    from clinker_spark.cxl.program import Program, compile

__all__ = ["CxlError", "EvalError", "Program", "compile"]

_HOME = {"CxlError": "errors", "EvalError": "errors", "Program": "program", "compile": "program"}


def __getattr__(name: str) -> Any:
    # Loaded on first use, so that `clinker --help` does not pay for the compiler.
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
