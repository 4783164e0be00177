"""The REPL's terminal: prompt_toolkit if it is installed, else `input()` and readline; plain lines from a pipe."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

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
        import prompt_toolkit  # noqa: F401
    except ImportError:
        return _plain_reader(session)
    return _prompt_reader(session)


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
        import readline
    except ImportError:
        return
    import atexit

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


# ----------------------------------------------------------- prompt_toolkit


def _prompt_reader(session: Session) -> Reader:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
    from prompt_toolkit.history import FileHistory, InMemoryHistory

    history = state_file("cxl_history")
    prompt: PromptSession[str] = PromptSession(
        PROMPT,
        multiline=True,
        prompt_continuation=CONTINUED,
        history=InMemoryHistory() if history is None else FileHistory(history),
        auto_suggest=AutoSuggestFromHistory(),
        completer=_completer(session),
        key_bindings=_bindings(),
        complete_while_typing=False,
    )
    return prompt.prompt


def _completer(session: Session) -> Any:
    from prompt_toolkit.completion import CompleteEvent, Completer, Completion
    from prompt_toolkit.document import Document

    class Words(Completer):
        def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
            for item in complete(session, document.text_before_cursor):
                yield Completion(item.text, start_position=-item.typed, display_meta=item.meta)

    return Words()


def _bindings() -> Any:
    """Enter ends the input when it is complete, and starts a new line when it is not."""
    from prompt_toolkit.filters import completion_is_selected
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

    bindings = KeyBindings()

    @bindings.add("enter", filter=completion_is_selected)
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.complete_state = None

    @bindings.add("enter", filter=~completion_is_selected)
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.document.is_cursor_at_the_end and needs_more(buffer.text):
            buffer.insert_text("\n")
        else:
            buffer.validate_and_handle()

    return bindings
