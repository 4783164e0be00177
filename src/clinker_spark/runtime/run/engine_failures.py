"""Failures of Spark and of the system in words: no traceback for a full disk."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.diagnostics.registry import lookup
from clinker_spark.core.errors import ClinkerError, InputError
from clinker_spark.plan.graph import Plan
from clinker_spark.runtime.errors import DataError, IoError
from clinker_spark.runtime.query.failures import node_failure
from clinker_spark.spark.session import jvm

_NO_SPACE = re.compile(r"No space left on device|ENOSPC|Disk quota exceeded", re.IGNORECASE)
_SPILLS = re.compile(
    r"\.(?:UnsafeSorterSpillWriter|UnsafeExternalSorter|ShuffleExternalSorter|ExternalSorter|ExternalAppendOnlyMap|"
    r"DiskBlockObjectWriter|DiskStore|IndexShuffleBlockResolver|\w*ShuffleWriter|TimeTrackingOutputStream)\b"
)
"""Parts of Spark that write shuffles and spills."""
_WORKER = re.compile(r"Python worker exited unexpectedly")
_NO_WORKER = re.compile(r"Python worker failed to connect back")
_ANSWER = re.compile(
    r"Answer from Java side is empty|Error while (?:sending|receiving)|network problem|"
    # A JVM that ends stops its context first, and whatever asks for it then falls over that.
    r"SparkContext was shut down|stopped SparkContext|SparkContext has been shutdown|DAGScheduler\.\w+\(.*is null|"
    r"because the return value of .*SparkContext\.\w+\(\).* is null|Shutdown in progress",
    re.IGNORECASE,
)
_DOOMED = re.compile(r"(?:stage failure|Lost task)[\s\S]*\bjava\.lang\.OutOfMemoryError\b")
"""Memory ran out in a task. A local Spark tells the driver first, and ends its JVM then; what Spark itself refuses to a
sort or a table (SparkOutOfMemoryError) does not end it."""
_ENDING = 60.0
"""Seconds that a JVM may take to end: on a machine that is busy, its last work takes a while."""
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
    except ClinkerError:
        raise
    except Exception as error:
        explanation = _explanation(error, plan)
        if explanation is error:
            raise
        raise explanation from error


def engine_failure(error: Exception) -> Diagnostic | None:
    """What happened to the engine itself: memory ran out, or its JVM is gone. None: something else is the matter.

    A JVM that is gone is forgotten, so that the next run starts a new one."""
    text = jvm.words_of(error)
    doomed = _from_spark(error) and _DOOMED.search(text or "") is not None and jvm.runs_tasks()
    lost = isinstance(error, ConnectionError | EOFError) or (_from_spark(error) and _lost_answer(error, text))
    if jvm.is_gone(patience=_ENDING if lost or doomed else 0.0):
        found = jvm.out_of_memory(_memory_words(text or "")) if doomed else jvm.farewell()
        jvm.forget()
        return found
    if isinstance(error, MemoryError):
        return jvm.out_of_memory(_memory_words(text or ""))
    return _told_by_spark(text or "") if _from_spark(error) else None


def _told_by_spark(text: str) -> Diagnostic | None:
    """What Spark itself, which goes on, says of its processes and their memory and files."""
    if _WORKER.search(text):
        help_text = "most often memory ran out: give the machine more, or use fewer tasks at once (--master local[1])"
        return Diagnostic("E410", "a Python process of Spark ended unexpectedly", help=help_text)
    if _NO_WORKER.search(text):
        message = "a Python process of Spark did not come up within ten seconds"
        help_text = "the machine is very busy, or short of memory: run less at once, and run it again"
        return Diagnostic("E410", message, help=help_text)
    if jvm.FILES.search(text):
        return Diagnostic("E025", "too many files were open at once", help="raise the limit: ulimit -n 4096")
    return jvm.out_of_memory(_memory_words(text)) if jvm.MEMORY.search(text) else None


def is_spill_failure(error: Exception) -> bool:
    """Did Spark find no room for what it shuffles or spills? Its error does not name the file, but who wrote it."""
    text = jvm.words_of(error) or ""
    return _from_spark(error) and _NO_SPACE.search(text) is not None and _SPILLS.search(text) is not None


def _lost_answer(error: Exception, text: str | None) -> bool:
    """Was there no answer? What Java threw is a Py4JJavaError; the other errors of Py4J say that nothing came back,
    and which of them depends on whether the connection broke before, in or after the question."""
    return type(error).__name__ in ("Py4JNetworkError", "Py4JError") or text is None or _ANSWER.search(text) is not None


def _memory_words(text: str) -> str:
    found = re.search(r"OutOfMemoryError: ([^\n]{1,80})", text)
    return "" if found is None else found[1].strip()


@contextmanager
def spark_explained() -> Iterator[None]:
    """What Spark throws while nothing of a plan runs, as when a state is looked at, as coded errors."""
    try:
        yield
    except Exception as error:
        if os.environ.get("CLINKER_DEBUG") or not _from_spark(error):
            raise
        raise IoError([engine_failure(error) or _diagnostic(jvm.words_of(error) or "")]) from error


def _explanation(error: Exception, plan: Plan) -> Exception:
    engine = engine_failure(error)
    if engine is not None:
        return IoError([engine])
    if isinstance(error, OSError):
        reason = (error.strerror or str(error)).lower()
        place = f" '{error.filename}'" if error.filename else ""
        code = "E405" if error.errno == 28 else "E401"
        if error.errno == 24:
            return IoError([Diagnostic("E025", f"{reason}{place}", help="raise the limit: ulimit -n 4096")])
        return IoError([Diagnostic(code, f"cannot write{place}: {reason}", help=_advice(str(error)))])
    if os.environ.get("CLINKER_DEBUG") or not _from_spark(error):
        return error
    of_query = node_failure(error, plan)
    if of_query is not None:
        return DataError([of_query])
    return IoError([_diagnostic(jvm.words_of(error) or "")])


def _from_spark(error: Exception) -> bool:
    return type(error).__module__.startswith(("pyspark", "py4j"))


def _diagnostic(text: str) -> Diagnostic:
    if _NO_SPACE.search(text):
        return Diagnostic("E405", "no space left on the disk", help=_advice(text))
    carried = re.search(r"\w+Error: (E\d{3}): (.+)", text)  # from a reader, which is another process
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
