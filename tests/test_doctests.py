"""The examples in docstrings of the layers that need no Spark are tests."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

PURE = ("core", "cxl", "config", "query", "plan", "cli")
MODULES = [
    name
    for layer in PURE
    for package in [importlib.import_module(f"clinker_spark.{layer}")]
    for name in [package.__name__, *(m.name for m in pkgutil.walk_packages(package.__path__, f"{package.__name__}."))]
]


@pytest.mark.parametrize("name", MODULES)
def test_doctests(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert result.failed == 0
