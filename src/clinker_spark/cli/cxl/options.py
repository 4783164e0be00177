"""Options that several `cxl` commands share."""

from __future__ import annotations

import os

import click

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.errors import InputError

DEFAULT_RULES = "rules"

schema_option = click.option(
    "--schema",
    metavar="FILE|TEXT",
    help="The columns and their types: a YAML or JSON file, or the text itself: 'price: float, qty: int'.",
)
rules_option = click.option(
    "--rules", metavar="DIR", help=f"The folder of the modules that `use` names.  [default: {DEFAULT_RULES}]"
)


def rules_folder(given: str | None) -> str:
    """The folder to look for modules in. The default need not exist: most programs use no module."""
    if given is not None and not os.path.isdir(given):
        reason = "not a folder" if os.path.exists(given) else "no such folder"
        raise InputError([Diagnostic("E224", f"cannot read the rules in '{given}': {reason}")])
    return given or DEFAULT_RULES
