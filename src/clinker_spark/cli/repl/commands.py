"""The REPL's commands: what starts with a colon."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from clinker_spark.cli.cxl.jsontext import dump
from clinker_spark.cli.cxl.sources import given_text, read_text
from clinker_spark.cli.cxl.typed_text import Guessed, Unfit, fit_value
from clinker_spark.core.diagnostics.suggest import nearest
from clinker_spark.core.types import ANY, Type
from clinker_spark.cxl.errors import CxlError
from clinker_spark.cxl.syntax.lexer import KEYWORDS

if TYPE_CHECKING:
    from clinker_spark.cli.repl.session import Session


class Command(NamedTuple):
    usage: str
    doc: str
    run: Callable[[Session, str], str]


def run_command(session: Session, text: str) -> str:
    """The answer to `:name argument`."""
    name, _, argument = text[1:].partition(" ")
    command = COMMANDS.get(_SHORT.get(name, name))
    if command is None:
        close = nearest(name, COMMANDS)
        return f"no command ':{name}'; " + (f"did you mean ':{close}'?" if close else ":help lists them all")
    return command.run(session, argument.strip())


def _help(session: Session, argument: str) -> str:
    from clinker_spark.cli.repl.help import topic

    if argument:
        return topic(argument)
    width = max(len(command.usage) for command in COMMANDS.values())
    lines = [
        "Type an expression to see its value and its type. `let` and `emit` are kept.",
        "A line goes on while a bracket is open or after an operator; an empty line ends it.",
        "",
        *(f"  {command.usage.ljust(width)}  {command.doc}" for command in COMMANDS.values()),
    ]
    return "\n".join(lines)


def _type(session: Session, argument: str) -> str:
    if not argument:
        return _usage("type")
    typed = session.expression(argument)
    if typed is not None:
        return f"{typed.type}{'  (can fail)' if typed.fallible else ''}"
    session.check(argument)  # raises, with the reason
    return "that is a statement; :type takes an expression"


def _fields(session: Session, argument: str) -> str:
    rows = [(name, str(field.type), dump(field.value)) for name, field in session.fields.items()]
    rows += [(name, str(t), "") for name, t in session.names.items()]
    if not rows:
        return "no fields; :set name=value makes one"
    widths = [max(len(row[i]) for row in rows) for i in range(2)]
    return "\n".join(f"{row[0].ljust(widths[0])} : {row[1].ljust(widths[1])}  {row[2]}".rstrip() for row in rows)


def _set(session: Session, argument: str) -> str:
    from clinker_spark.cli.repl.session import Field, typed_value

    name, equals, text = (part.strip() for part in argument.partition("="))
    if not equals or not name.isidentifier() or not name.isascii():
        return _usage("set")
    if name in KEYWORDS:
        return f"'{name}' is a keyword and cannot name a field"
    old = session.fields.get(name)
    try:
        field = Field(*_value(text, old.type if old and old.declared else None), declared=bool(old and old.declared))
    except Unfit as error:
        return f"not set: {error}" + (f"; {error.help}" if error.help else "")
    session.fields[name] = field
    try:
        session.check("null")  # do the kept statements still hold?
    except CxlError as error:
        if old is None:
            del session.fields[name]
        else:
            session.fields[name] = old
        reason = "not set: a statement of this session would no longer hold (:reset forgets them)"
        return f"{reason}\n{session.render(error.diagnostics)}"
    return f"{name} = {typed_value(field.value, field.type)}"


def _value(text: str, declared: Type | None) -> tuple[Type, Any]:
    """A field's value: an expression of constants, or else plain text, as with --field."""
    from clinker_spark.cli.cxl.records import type_of
    from clinker_spark.cli.repl.session import Session

    constants = Session()
    typed = constants.expression(text)
    if declared is not None and (typed is None or typed.type.unwrap() != declared.unwrap()):
        return declared, fit_value(Guessed(text), declared)
    if typed is None:
        guess = Guessed(text)
        return type_of(guess) or ANY, guess.value
    value = constants.value(text)
    return (ANY if value is None else typed.type.unwrap()), value


def _load(session: Session, argument: str) -> str:
    return session.run(read_text(argument)) if argument else _usage("load")


def _save(session: Session, argument: str, force: bool = False) -> str:
    from clinker_spark.core.span import Source
    from clinker_spark.cxl.format.formatter import format_source
    from clinker_spark.runtime.commit.small_files import replace_file

    if not argument:
        return _usage("save")
    if os.path.exists(argument) and not force:
        return f"'{argument}' is already there; :save! {argument} replaces it"
    try:
        text = format_source(Source(argument, session.program()))
        replace_file(Path(given_text(argument, ":save")), text.encode("utf-8"))
    except (OSError, ValueError) as error:  # ValueError: a NUL character in the path
        return f"cannot write '{argument}': {(getattr(error, 'strerror', None) or str(error)).lower()}"
    count = len(session.kept) + len(session.uses)
    return f"saved {count} statement{'s' * (count != 1)} to {argument}"


def _reset(session: Session, argument: str) -> str:
    session.reset()
    return "forgotten"


def _quit(session: Session, argument: str) -> str:
    session.done = True
    return ""


def _usage(name: str) -> str:
    return f"usage: {COMMANDS[name].usage}"


COMMANDS = {
    "help": Command(":help [NAME]", "this list, or a method, function or keyword with examples", _help),
    "type": Command(":type EXPR", "the type of an expression, without running it", _type),
    "fields": Command(":fields", "the record's fields and the names defined so far", _fields),
    "set": Command(":set NAME=VALUE", "give the record a field", _set),
    "load": Command(":load FILE", "run the statements of a file", _load),
    "save": Command(":save FILE", "write what was kept as a program (:save! replaces a file)", _save),
    "save!": Command(":save! FILE", "the same, and replace the file", lambda s, a: _save(s, a, force=True)),
    "reset": Command(":reset", "forget what was kept, and every :set", _reset),
    "quit": Command(":quit", "leave (so does Ctrl-D)", _quit),
}
_SHORT = {"h": "help", "?": "help", "t": "type", "q": "quit", "exit": "quit"}
