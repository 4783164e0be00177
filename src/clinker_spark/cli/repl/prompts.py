"""The REPL's prompt with prompt_toolkit: completion, suggestions from the history, inputs of several lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prompt_toolkit import PromptSession
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import completion_is_selected
from prompt_toolkit.history import FileHistory, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from clinker_spark.cli.repl.completion import complete, needs_more
from clinker_spark.cli.repl.session import Session


def prompt_reader(session: Session, prompt: str, continued: str, history: str | None) -> Callable[[], str]:
    """Reads inputs, each as many lines as it takes."""
    reader: PromptSession[str] = PromptSession(
        prompt,
        multiline=True,
        prompt_continuation=continued,
        history=InMemoryHistory() if history is None else FileHistory(history),
        auto_suggest=AutoSuggestFromHistory(),
        completer=_Words(session),
        key_bindings=_bindings(),
        complete_while_typing=False,
    )
    return reader.prompt


class _Words(Completer):
    def __init__(self, session: Session) -> None:
        self.session = session

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        for item in complete(self.session, document.text_before_cursor):
            yield Completion(item.text, start_position=-item.typed, display_meta=item.meta)


def _bindings() -> KeyBindings:
    """Enter ends the input when it is complete, and starts a new line when it is not."""
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
