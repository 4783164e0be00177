"""The examples in the docstrings of this layer are tests."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import clinker_spark.config

PARTS = pkgutil.walk_packages(clinker_spark.config.__path__, "clinker_spark.config.")
MODULES = ["clinker_spark.config", *sorted(info.name for info in PARTS)]


@pytest.mark.parametrize("name", MODULES)
def test_doctests(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS).failed == 0
