"""What a run shows while it goes on: a live line on a terminal, nothing in a pipe, events for programs."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO

from clinker_spark.core.errors import ClinkerError
from clinker_spark.report.summary import print_summary, size

Listener = Callable[[str, dict[str, Any]], None]
_Says = Callable[..., None]
_BAR = 10

began: float | None = None
"""When the command was started, if that was not this process: it works for another."""


@contextmanager
def reporter(pipeline: str, options: Any, *, machine: str | None, quiet: bool) -> Iterator[Listener]:
    """A listener for a run of a pipeline file. What it says is for whoever listens: when nobody does any more, because
    the reader of a pipe has gone or a disk is full, the run goes on, and ends as it would have ended."""
    if machine is not None:
        with _events(pipeline, options, sys.stdout) as listener:
            yield listener
    elif quiet:
        yield lambda event, details: None
    else:
        with _terminal() as listener:
            yield listener


@contextmanager
def _terminal() -> Iterator[Listener]:
    from rich.console import Console  # rich is for terminals; a run without one starts without it
    from rich.text import Text

    console = Console(stderr=True, highlight=False)
    status = console.status("starting Spark ...") if console.is_terminal else None

    @_as_long_as_it_can("stderr")
    def listener(event: str, details: dict[str, Any]) -> None:
        if event == "log":
            fields = ", ".join(f"{name}={value}" for name, value in details.get("fields", {}).items())
            shown = f" ({fields})" if fields else ""
            text = f"{details['level']}: {details['name']}: {details['message']}{shown}"
            console.print(text, markup=False, soft_wrap=True)
        elif event == "finished":
            if status is not None:
                status.stop()
            print_summary(details["report"], console, since_start())
        elif status is not None:
            # No markup: names of nodes may have brackets.
            status.update(Text.assemble(_line(event, details), (f"  {since_start():.0f} s", "dim")))

    if status is not None:
        status.start()
    try:
        yield listener
    finally:
        if status is not None:
            status.stop()


def _as_long_as_it_can(name: str) -> Callable[[_Says], _Says]:
    """Falls silent, and so does its stream, when that can no longer be written."""

    def around(say: _Says) -> _Says:
        silent = False

        def said(*args: Any, **kwargs: Any) -> None:
            nonlocal silent
            if silent:
                return
            try:
                say(*args, **kwargs)
            except OSError:
                silent = True
                silence(name)

        return said

    return around


def silence(name: str) -> None:
    """What is written to a standard stream from here on goes nowhere; also what it still holds back."""
    stream = getattr(sys, name)
    with suppress(OSError, ValueError, AttributeError):
        number = stream.fileno()
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, number)
        os.close(nowhere)


def _line(event: str, details: dict[str, Any]) -> str:
    match event:
        case "files_found":
            return f"reading {sum(map(len, details.values()))} file(s)"
        case "staging":
            return f"copying {details['file']}: {size(details['bytes'])} of {size(details['bytes_total'])}"
        case "staged":
            return f"{details['action']} the copy of {details['file']}"
        case "staging_purged":
            return f"removed {len(details['files'])} file(s) of interrupted copies"
        case "output_started":
            return f"writing {details['output']} ..."
        case "progress":
            return progress_line(details)
        case "output_written":
            return f"wrote {details['output']}: {details['records']:,} records"
        case "dead_letters_started":
            return "finding out why records failed ..."
        case "balanced":
            return "the numbers agree"
        case "waiting":
            return f"waiting for {details['holder']} ..."
        case "publishing":
            return "publishing ..."
    return event


def progress_line(details: dict[str, Any]) -> str:
    """Where a run is, in one line. The percentage is of bytes over all passes, and never falls.

    >>> print(progress_line({"pass": "writing report", "pass_number": 2, "passes": 3, "percent": 40.0,
    ...     "bytes_read": 800_000, "bytes_total": 2_000_000, "bytes_per_second": 50_000, "seconds_left": 75.2}))
    ━━━━        40 % of 1.9 MB · pass 2/3: writing report · 48.8 KB/s · 1 min 15 s left
    """
    filled = int(_BAR * details["percent"] / 100)
    parts = [f"{'━' * filled}{' ' * (_BAR - filled)} {details['percent']:3.0f} % of {size(details['bytes_total'])}"]
    parts.append(f"pass {details['pass_number']}/{details['passes']}: {details['pass']}")
    if details["bytes_per_second"]:
        parts.append(f"{size(details['bytes_per_second'])}/s")
    left = details["seconds_left"]
    if left is None and details["percent"] >= 99:
        parts.append("all is read, the rest is computed and written")
    if left is not None:
        minutes, seconds = divmod(round(left), 60)
        parts.append(f"{minutes} min {seconds} s left" if minutes else f"{seconds} s left")
    return " · ".join(parts)


def since_start() -> float:
    """The seconds since the command was started: Python, imports and Java are part of what people wait for."""
    return max(time.time() - command_began(), 0.0)


def command_began() -> float:
    """When the command was started, which is before any of this code was loaded."""
    import psutil  # takes a while to load, and few ask

    return began or psutil.Process().create_time()


@contextmanager
def _events(pipeline: str, options: Any, out: TextIO) -> Iterator[Listener]:
    """One JSON object per line; exactly one of completed, failed and cancelled is the last."""
    began = time.monotonic()
    number = 0

    @_as_long_as_it_can("stdout")
    def put(event: str, **details: Any) -> None:
        nonlocal number
        record = {
            "protocol": "clinker.run",
            "schema": 1,
            "event": event,
            "seq": number,
            "batch_id": options.batch_id or options.execution_id,
            "execution_id": options.execution_id,
            "elapsed_ms": int((time.monotonic() - began) * 1000),
            **details,
        }
        number += 1
        text = json.dumps(record, ensure_ascii=False, default=str)
        try:
            print(text, file=out, flush=True)
        except UnicodeEncodeError:  # a terminal of another encoding, or a name that is no text
            print(json.dumps(record, default=str), file=out, flush=True)

    def listener(event: str, details: dict[str, Any]) -> None:
        if event == "planned":
            put("plan_resolved", **details)
        elif event == "finished":
            report = details["report"]
            result = "completed_with_dlq" if report.dead_letters else "success"
            for output in report.outputs:
                put("publication_artifacts", kind="output", name=output.name, paths=output.paths, state="published")
            put("completed", result=result, exit=report.exit_code, report=report.as_dict())
        else:
            phase = {"publishing": "publishing", "published": "publishing", "files_found": "planning"}.get(
                event, "executing"
            )
            put(
                "progress",
                phase=phase,
                kind="periodic" if event in ("progress", "staging") else "transition",
                step=event,
                **details,
            )

    put("started", pipeline=pipeline)
    try:
        yield listener
    except KeyboardInterrupt:
        put("cancelled", exit=130)
        raise
    except ClinkerError as error:
        first = error.diagnostics[0]
        put("failed", code=first.code, message=first.message, exit=error.exit_code)
        raise
    except Exception as error:
        put("failed", code="internal", message=f"{type(error).__name__}: {error}"[:300], exit=1)
        raise
