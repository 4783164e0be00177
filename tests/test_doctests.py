"""The examples in docstrings of the pure layers are tests."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import clinker_spark.core
import clinker_spark.cxl

MODULES = sorted(
    info.name
    for package in (clinker_spark.core, clinker_spark.cxl)
    for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
)


@pytest.mark.parametrize("name", MODULES)
def test_doctests(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert result.failed == 0
