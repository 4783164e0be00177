"""The REPL's terminal: prompt_toolkit if it is installed, else `input()` and readline; plain lines from a pipe."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress

import click

from clinker_spark import __version__
from clinker_spark.cli.repl.commands import respond
from clinker_spark.cli.repl.completion import complete, needs_more
from clinker_spark.cli.repl.session import Session

PROMPT, CONTINUED = "cxl> ", "...> "
Reader = Callable[[], str]
"""Returns one input; raises EOFError at the end and KeyboardInterrupt on Ctrl-C."""


def converse(session: Session) -> None:
    """Read and answer until the input ends. Errors are shown and never end the session."""
    terminal = sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()
    if terminal:
        click.echo(f"CXL {__version__}. :help for help, Ctrl-D to leave.")
    read = _reader(session) if terminal else _piped()
    while not session.done:
        try:
            if answer := _answer(session, read()):
                _print(answer)
        except KeyboardInterrupt:  # clears the line, or ends an evaluation
            continue
        except EOFError:
            break


def _print(text: str) -> None:
    try:
        click.echo(text)
    except UnicodeEncodeError:  # a terminal that is not Unicode still gets an answer
        click.echo(text.encode("ascii", "backslashreplace"))


def _answer(session: Session, text: str) -> str:
    try:
        return respond(session, text)
    except Exception as error:
        if os.environ.get("CLINKER_DEBUG"):
            raise
        return f"internal error: {type(error).__name__}: {error}\nThis is a mistake in clinker; please report it."


def _reader(session: Session) -> Reader:
    try:
        from clinker_spark.cli.repl.prompts import prompt_reader  # needs an extra, prompt_toolkit
    except ImportError:
        return _plain_reader(session)
    return prompt_reader(session, PROMPT, CONTINUED, state_file("cxl_history"))


def state_file(name: str) -> str | None:
    """A file in the user's state folder, which is made if need be; None where that is not possible."""
    home = os.environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(home):  # the standard says to ignore a relative one
        home = os.path.expanduser("~/.local/state")
    folder = os.path.join(home, "clinker")
    path = os.path.join(folder, name)
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        with open(path, "ab"):
            return path
    except OSError:
        return None


# -------------------------------------------------------------------- lines


def _until_complete(lines: Iterator[str]) -> str:
    text = next(lines)
    while needs_more(text):
        try:
            text += "\n" + next(lines)
        except StopIteration:
            break
    return text


def _piped() -> Reader:
    # As bytes: programs are UTF-8 whatever the terminal is, and what is no text becomes an error with a place.
    raw = sys.stdin.buffer if sys.stdin is not None else ()
    lines = (line.decode("utf-8", "replace").rstrip("\r\n") for line in raw)

    def read() -> str:
        try:
            return _until_complete(lines)
        except StopIteration:
            raise EOFError from None

    return read


def _plain_reader(session: Session) -> Reader:
    _use_readline(session)

    def prompts() -> Iterator[str]:
        yield input(PROMPT)
        while True:
            yield input(CONTINUED)

    def read() -> str:
        try:
            return _until_complete(prompts())
        except (KeyboardInterrupt, EOFError):
            click.echo()  # the next prompt, ours or the shell's, begins a line
            raise

    return read


def _use_readline(session: Session) -> None:
    """History and completion of the standard library, where Python was built with them."""
    try:
        import readline  # not every Python has it, and it takes over the terminal when it loads
    except ImportError:
        return

    history = state_file("cxl_history.txt")
    if history is not None:
        with suppress(OSError):
            readline.read_history_file(history)
        readline.set_history_length(2000)
        atexit.register(_quietly, readline.write_history_file, history)
    readline.set_completer_delims(" \t\n()[]{},=+-*/%<>.$:")
    readline.set_completer(lambda _, state: _nth_completion(session, readline.get_line_buffer(), state))
    readline.parse_and_bind("tab: complete")


def _quietly(action: Callable[[str], None], path: str) -> None:
    with suppress(OSError):
        action(path)


def _nth_completion(session: Session, line: str, state: int) -> str | None:
    found = complete(session, line)
    return found[state].text if state < len(found) else None
