"""What goes wrong outside, as coded errors that also get out of a task."""

from __future__ import annotations

import importlib
import re
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


_CARRIED = re.compile(r"\w+Error: (E\d{3}): (.+)")


def carried(error: Exception) -> Exception:
    """The coded error that a task died of; the error itself, if it was another one."""
    found = _CARRIED.search(str(error))
    return error if found is None else failure(found[1], found[2].strip())
