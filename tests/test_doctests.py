"""The examples in docstrings of the layers that need no Spark are tests."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

import clinker_spark

PURE = ("core", "sql", "dataset", "cxl", "config", "query", "plan", "report", "cli")
ROOT = Path(clinker_spark.__file__).parents[1]
FILES = [
    ROOT / "clinker_spark" / "__init__.py",
    *(f for layer in PURE for f in ROOT.rglob(f"clinker_spark/{layer}/**/*.py")),
]
MODULES = sorted(
    ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for file in FILES
    if ">>> " in file.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("name", MODULES)
def test_doctests(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert result.failed == 0
