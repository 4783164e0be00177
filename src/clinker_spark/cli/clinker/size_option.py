"""Sizes on the command line, as pipelines write them."""

from __future__ import annotations

from typing import Any

import click


class SizeType(click.ParamType):
    """`512M` and `2G` are binary, `512MB` is decimal; a number alone is bytes. A blank one is none: scripts pass
    variables on that are not set."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | None:
        from clinker_spark.config.values import read_size  # models: a tenth of a second, which --help does not need

        if not str(value).strip():
            return None
        try:
            return read_size(value)
        except ValueError:
            self.fail(f"{value!r} is no size: write 512M or 2G", param, ctx)
