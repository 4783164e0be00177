"""What goes wrong outside, as coded errors that also get out of a task."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from typing import Any

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.diagnostics.registry import lookup
from clinker_spark.core.errors import InputError


def failure(code: str, message: str, help_text: str | None = None) -> InputError:
    """An error of a connector. The code is part of the text: tasks can only send text."""
    known = lookup(code)
    advice = help_text or (known.action if known is not None else None)
    found = InputError([Diagnostic(code, " ".join(message.split()), help=advice)])
    found.args = (f"{code}: {found.diagnostics[0].message}",)
    return found


def package(name: str, extra: str) -> Any:
    """A client library, which only those need who use it."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        message = f"the Python package '{name.replace('_', '-')}' is missing: {error}"
        raise failure("E520", message, f"pip install 'clinker-spark[{extra}]'") from None


def resolved(values: Mapping[str, Any]) -> dict[str, Any]:
    """Settings with what `{env: NAME}` stands for. Only the driver calls it: tasks get what it found."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            variable = str(value["env"])
            if variable not in os.environ:
                message = f"the environment has no variable '{variable}', which '{name}' is to be read from"
                raise failure("E522", message, f"set it before the stream is started: export {variable}=...")
            value = os.environ[variable]
        found[name] = value
    return found
