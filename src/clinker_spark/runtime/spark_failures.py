"""Failures of Spark and of the system in words: no traceback for a full disk."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.errors import ClinkerError, InputError
from clinker_spark.core.registry import lookup
from clinker_spark.plan.nodes import Plan
from clinker_spark.runtime.errors import DataError, IoError
from clinker_spark.runtime.query_failures import node_failure

_NO_SPACE = re.compile(r"No space left on device|ENOSPC|Disk quota exceeded", re.IGNORECASE)
_MEMORY = re.compile(r"OutOfMemoryError|Cannot allocate memory|unable to acquire", re.IGNORECASE)
_LOST = re.compile(r"FileNotFoundException|No such file or directory|FileNotFoundError")


@contextmanager
def explained(plan: Plan, published: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """Turn what Spark and the system throw into coded errors. What they say about outputs holds until these are
    published."""
    try:
        with _explained(plan):
            yield
    except IoError as error:
        if not published():
            raise
        help_text = "the outputs of this run were published before that"
        raise IoError([replace(found, help=help_text) for found in error.diagnostics]) from error


@contextmanager
def _explained(plan: Plan) -> Iterator[None]:
    try:
        yield
    except InputError as error:  # found while a source was opened: part of the run, not of the command line
        raise IoError(error.diagnostics) from error
    except (ClinkerError, KeyboardInterrupt):
        raise
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        place = f" '{error.filename}'" if error.filename else ""
        code = "E405" if error.errno == 28 else "E401"
        raise IoError([Diagnostic(code, f"cannot write{place}: {reason}", help=_advice(str(error)))]) from error
    except Exception as error:
        if os.environ.get("CLINKER_DEBUG") or not _from_spark(error):
            raise
        of_query = node_failure(error, plan)
        if of_query is not None:
            raise DataError([of_query]) from error
        raise IoError([_diagnostic(str(error))]) from error


def _from_spark(error: Exception) -> bool:
    return type(error).__module__.startswith(("pyspark", "py4j"))


def _diagnostic(text: str) -> Diagnostic:
    if _NO_SPACE.search(text):
        return Diagnostic("E405", "no space left on the disk", help=_advice(text))
    if _MEMORY.search(text):
        return Diagnostic("E410", "Spark ran out of memory", help="give it more: --conf spark.driver.memory=4g")
    carried = re.search(r"InputError: (E\d{3}): (.+)", text)  # from a reader inside a task
    if carried is not None:
        known = lookup(carried[1])
        return Diagnostic(carried[1], carried[2].strip(), help=None if known is None else known.action)
    return Diagnostic("E402", f"Spark failed: {_cause(text)}", help="run with CLINKER_DEBUG=1 for the whole story")


def _cause(text: str) -> str:
    """The line of a stack trace that says what happened."""
    causes = re.findall(r"(?:Caused by: |^)([\w.$]+(?:Exception|Error)): (.+)", text, re.MULTILINE)
    if causes:
        name, message = causes[-1]
        return f"{name.rpartition('.')[2]}: {message}"[:300]
    return text.strip().split("\n", 1)[0][:300]


def _advice(text: str) -> str:
    if _NO_SPACE.search(text):
        return "free some space; nothing was published, the previous outputs are as they were"
    if _LOST.search(text):
        return "the file was removed while the pipeline ran"
    return "nothing was published, the previous outputs are as they were"
