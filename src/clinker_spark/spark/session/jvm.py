"""The life of the JVM: what stops it from starting, how it is known to be gone, and how Python forgets it.

PySpark starts one JVM for each Python process and keeps its handles in half a dozen places. When that JVM is gone (it
ran out of memory, somebody killed it), every later call would fail in its own way; here is what makes the next run
start a new one.
"""

from __future__ import annotations

import logging
import os
import re
import signal
import socketserver
import sys
import tempfile
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import psutil
from py4j.protocol import Py4JError
from pyspark import SparkContext, accumulators
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.errors import ClinkerError

_NEEDED_FILES = 512
"""Spark alone opens its three hundred jars."""
_WANTED_FILES = 4096
_LAST_WORDS = 64 << 10
_ENDING = 10.0
_BECOMING = 2.0
"""So many seconds, at most, until a process that was made is what it shall be."""
_OUT_OF_MEMORY = 52
"""With this exit code Spark ends a JVM in which memory ran out (SparkExitCode)."""

MEMORY = re.compile(
    r"OutOfMemoryError|Cannot allocate memory|unable to acquire|insufficient memory|unable to create native thread|"
    r"Could not (?:allocate|reserve)|GC overhead limit|Not enough memory|errno=12\b",
    re.IGNORECASE,
)
FILES = re.compile(r"Too many open files|Error loading java.security file|EMFILE", re.IGNORECASE)
_NO_JAVA = re.compile(
    r"JAVA_HOME is not set|java: (?:command )?not found|java: No such file or directory", re.IGNORECASE
)
_OLD_JAVA = re.compile(r"UnsupportedClassVersionError|Unrecognized (?:VM )?option|has been compiled by a more recent")

_GREETINGS = ("WARNING", "at ", "Picked up", "OpenJDK", "Setting default log", "To adjust logging", "Using Spark's")

_output: IO[bytes] | None = None
"""What the JVM writes to its standard output and error."""


class StartError(ClinkerError):
    """Spark cannot start."""

    exit_code = 4


# ------------------------------------------------------------------------ starting


@contextmanager
def starting(quiet: bool) -> Iterator[None]:
    """Around the start of a JVM: what it says goes to a file unless it shall be seen, and what stops it becomes a
    coded error. Whoever reads our output does not wait for a JVM that has still something to do when we are done."""
    _allow_files()
    _check_folder()
    before = {child.pid for child in psutil.Process().children()}
    try:
        with _names_in_utf8(), _modules_that_are_compiled():
            if not quiet:
                yield
                return
            with _to_file():
                yield
    except ClinkerError:
        raise
    except KeyboardInterrupt:
        _end_half_started(before)
        raise
    except Exception as error:
        if os.environ.get("CLINKER_DEBUG"):
            raise
        problem = farewell() if is_gone() else _start_problem(error, last_words())
        raise StartError([problem]) from error


def _end_half_started(before: Collection[int]) -> None:
    """End the JVM that we started and have no connection to yet: it would wait for ever for somebody who knows it.
    Processes that were there `before` are others."""
    if SparkContext._gateway is not None:  # it ends with us
        return
    for child in psutil.Process().children():
        with suppress(psutil.Error):
            if child.pid not in before and "pyspark-shell" in _words_of(child):  # the script that starts Java, or Java
                for process in [child, *child.children(recursive=True)]:
                    process.kill()
                child.wait(_ENDING)


def _words_of(child: psutil.Process) -> list[str]:
    """The command of a child. One that has just been made is a copy of ourselves at first."""
    until = time.monotonic() + _BECOMING
    while (words := child.cmdline()) == psutil.Process().cmdline() and time.monotonic() < until:
        time.sleep(0.005)
    return words


def _allow_files() -> None:
    """Raise the limit of open files as far as that is allowed; too few of them are an error before Java starts."""
    try:
        import resource
    except ImportError:  # not on this system
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= _WANTED_FILES:
        return
    most = _WANTED_FILES if hard == resource.RLIM_INFINITY else min(hard, _WANTED_FILES)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        soft = most
    if soft < _NEEDED_FILES:
        raise StartError([_too_few_files(f"only {soft} files may be open at once; Spark needs {_NEEDED_FILES}")])


def _too_few_files(message: str) -> Diagnostic:
    return Diagnostic("E025", message, help=f"raise the limit: ulimit -n {_WANTED_FILES}")


def _check_folder() -> None:
    """Java does not start in a folder that is not there."""
    try:
        os.getcwd()
    except FileNotFoundError:
        message = "Spark cannot start: the folder that this command was started in is gone"
        raise StartError([Diagnostic("E025", message, help="change to a folder that is there: cd")]) from None


@contextmanager
def _names_in_utf8() -> Iterator[None]:
    """Java reads the names of files as its locale says: in the locale C it could neither open `ü.csv` nor start in a
    folder of that name. Python reads them as UTF-8 there, and so shall Java."""
    before = os.environ.get("LC_ALL")
    chosen = next((value for name in ("LC_ALL", "LC_CTYPE", "LANG") if (value := os.environ.get(name))), "")
    if re.search(r"utf-?8", chosen, re.IGNORECASE) or sys.platform != "linux":
        yield
        return
    os.environ["LC_ALL"] = "C.UTF-8"
    try:
        yield
    finally:
        if before is None:
            del os.environ["LC_ALL"]
        else:
            os.environ["LC_ALL"] = before


@contextmanager
def _modules_that_are_compiled() -> Iterator[None]:
    """Java hands on to its Python processes where they find modules: first `worker_path`, which puts that in order."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).with_name("worker_path")), *filter(None, [before])])
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before


@contextmanager
def _to_file() -> Iterator[None]:
    global _output
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            with suppress(OSError, ValueError):
                stream.flush()
    saved = {}
    for number in (1, 2):
        with suppress(OSError):  # a service may have closed them
            saved[number] = os.dup(number)
    _output = tempfile.TemporaryFile()  # noqa: SIM115  (it is read when the JVM is gone)
    try:
        for number in saved:
            os.dup2(_output.fileno(), number)
        yield
    finally:
        for number, original in saved.items():
            os.dup2(original, number)
            os.close(original)


def last_words() -> str:
    """The end of what the JVM wrote."""
    if _output is None:
        return ""
    try:
        size = os.fstat(_output.fileno()).st_size
        return os.pread(_output.fileno(), _LAST_WORDS, max(0, size - _LAST_WORDS)).decode("utf-8", "replace")
    except OSError:
        return ""


def _start_problem(error: Exception, words: str) -> Diagnostic:
    said = f"{words}\n{error}"
    if FILES.search(said) or getattr(error, "errno", None) == 24:
        return _too_few_files("Spark cannot start: too many files would be open at once")
    if MEMORY.search(said) or getattr(error, "errno", None) == 12:
        help_text = "free some memory, raise the limit (ulimit -v), or ask for less: --conf spark.driver.memory=1g"
        return Diagnostic("E410", f"there is not enough memory to start Spark{_detail(words)}", help=help_text)
    if _NO_JAVA.search(said):
        return Diagnostic(
            "E025", "Spark cannot start: there is no Java", help="install Java 17, or set JAVA_HOME to it"
        )
    if _OLD_JAVA.search(said):
        return Diagnostic("E025", f"Spark cannot start with this Java{_detail(words)}", help="use Java 17 or later")
    if isinstance(error, OSError):
        place = f" '{error.filename}'" if error.filename else ""
        reason = (error.strerror or str(error)).lower()
        help_text = "Spark needs a folder for temporary files: set TMPDIR, or spark.local.dir"
        return Diagnostic("E025", f"Spark cannot start:{place} {reason}"[:300], help=help_text)
    detail = _detail(words) or f": {_first_line(str(error))}"
    return Diagnostic("E025", f"Spark cannot start{detail}", help="run with --verbose to see all that Spark says")


def _detail(words: str) -> str:
    """The line that says most: what is short, the cause of an exception, or the first line that is no greeting."""
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    causes = [line for line in lines if re.match(r"(Caused by: |Exception in thread|Error: |error: )", line)]
    plain = [line for line in lines if MEMORY.search(line) or line.startswith("Invalid ")]
    told = plain or causes[-1:] or [line for line in lines if not line.startswith(_GREETINGS)]
    return f": {told[0].removeprefix('Caused by: ')[:200]}" if told else ""


def _first_line(text: str) -> str:
    return text.strip().split("\n", 1)[0][:200]


# ---------------------------------------------------------------------- being gone


def _process() -> Any:
    gateway = SparkContext._gateway
    return None if gateway is None else getattr(gateway, "proc", None)


def is_gone(patience: float = 0.0) -> bool:
    """Did the JVM that we started end? Its connections break a moment before it does: `patience` waits for that."""
    process = _process()
    if process is None:
        return False
    if patience and process.poll() is None:
        with suppress(Exception):  # still there
            process.wait(patience)
    return process.poll() is not None


def runs_tasks() -> bool:
    """Do the tasks run in the JVM that we started? On a cluster they run in others."""
    master = getattr(SparkContext._active_spark_context, "master", None) or ""
    return _process() is not None and re.match(r"local(\[|$)", master) is not None


def words_of(error: Exception) -> str | None:
    """What an error says. None: Py4J asks the JVM for the words of what that threw, and it is gone by now."""
    try:
        return str(error)
    except Exception:
        return None


@contextmanager
def while_it_lives() -> Iterator[None]:
    """Around what matters only while the JVM is there, as progress and cleaning up do. If it is not, or its context was
    stopped, the run tells that in its own words, and this says nothing."""
    try:
        with suppress(Py4JError, PySparkException, OSError):
            yield
    except AttributeError as error:
        if error.obj is not None:  # PySpark has None in place of what was stopped
            raise


def farewell() -> Diagnostic:
    """Why the JVM is gone, as far as anybody knows."""
    process = _process()
    code = None if process is None else process.poll()
    words = last_words()
    nothing = "nothing was published"
    if code == _OUT_OF_MEMORY or MEMORY.search(words):
        return out_of_memory(next((m[0] for m in MEMORY.finditer(words)), ""))
    if code is not None and code < 0:
        name = signal.Signals(-code).name if -code in set(signal.Signals) else str(-code)
        help_text = "the system kills the largest process when memory runs out: see `dmesg`, or give Spark less"
        return Diagnostic(
            "E410", f"the JVM of Spark was killed ({name}); {nothing}", help=help_text if -code == 9 else None
        )
    ended = "" if code is None else f" with exit code {code}"
    help_text = "run again; with --verbose to see what Spark says"
    return Diagnostic("E410", f"the JVM of Spark ended{ended}{_detail(words)}; {nothing}", help=help_text)


_NO_MEMORY = "Spark ran out of memory"


def out_of_memory(detail: str = "") -> Diagnostic:
    help_text = "give it more (--conf spark.driver.memory=4g, or pipeline.memory.limit), or use fewer tasks at once"
    return Diagnostic("E410", f"{_NO_MEMORY}{f' ({detail})' if detail else ''}", help=help_text)


def is_out_of_memory(found: Diagnostic) -> bool:
    """Is it what `out_of_memory` says?"""
    return found.code == "E410" and found.message.startswith(_NO_MEMORY)


def quiet() -> None:
    """A JVM that is gone is told once, by the run: Py4J would tell of every message and object that it cannot get rid
    of, and some of it does not even say who it is."""
    logging.getLogger("py4j").setLevel(logging.CRITICAL + 1)
    logging.getLogger().addFilter(_not_of_py4j)
    for server in (accumulators.AccumulatorTCPServer, accumulators.AccumulatorUnixServer):
        server.handle_error = _unless_it_ended  # type: ignore[assignment, method-assign]


def _unless_it_ended(server: Any, request: Any, address: Any) -> None:
    """PySpark listens to what tasks count, and would print a traceback when the JVM is gone."""
    if not isinstance(sys.exc_info()[1], (EOFError, ConnectionError)):
        socketserver.BaseServer.handle_error(server, request, address)


def _not_of_py4j(record: logging.LogRecord) -> bool:
    return f"{os.sep}py4j{os.sep}" not in record.pathname


def forget() -> None:
    """Forget a JVM that is gone, so that the next session starts a new one."""
    gateway, context = SparkContext._gateway, SparkContext._active_spark_context
    quiet()
    with suppress(Exception):
        server = getattr(context, "_accumulatorServer", None)
        if server is not None:
            server.shutdown()
    with suppress(Exception):
        if gateway is not None:
            gateway.close()
    SparkContext._gateway = None
    SparkContext._jvm = None
    SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = None
    for name in ("_activeSession", "_defaultSession"):
        if hasattr(SparkSession, name):
            setattr(SparkSession, name, None)
