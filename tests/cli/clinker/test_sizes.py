"""Sizes on the command line."""

from __future__ import annotations

import click
import pytest

from clinker_spark.cli.clinker.size_option import SizeType


@pytest.mark.parametrize(("text", "size"), [("512M", 512 << 20), ("1GB", 10**9), ("64", 64), ("", None), (" ", None)])
def test_sizes(text: str, size: int | None) -> None:
    assert SizeType().convert(text, None, None) == size


@pytest.mark.parametrize("text", ["1.5G", "-1", "much", "99999999999999999999G"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is no size"):
        SizeType().convert(text, None, None)
