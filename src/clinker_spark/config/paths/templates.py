"""Output paths with `{tokens}` in them, and the names of split files.

>>> parse_template("out/{source_name:orders}.csv")
('out/', Token(name='source_name', args=('orders',), start=4, end=24), '.csv')
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from clinker_spark.core.diagnostics.suggest import did_you_mean

TOKENS = (
    "source_name",
    "channel",
    "pipeline_hash",
    "timestamp",
    "execution_id",
    "batch_id",
    "n",
    "source_file",
    "source_path",
)
PER_FILE = ("source_file", "source_path")
"""Tokens that make one output file of each input file."""
_DIGITS = frozenset(str(number) for number in range(1, 65))
_PIECE = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]|[^{}]+")
_NAMING = re.compile(r"\{\{|\}\}|\{(\w+)(?::(0?[1-9]|[1-9][0-9]))?\}|[{}]|[^{}]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Token:
    """`{name:arg:arg}` with its place in the template."""

    name: str
    args: tuple[str, ...]
    start: int
    end: int


class TemplateError(ValueError):
    """A template that cannot be read; `start` and `end` mark the place in its text."""

    def __init__(self, message: str, help_text: str, start: int, end: int) -> None:
        super().__init__(message)
        self.help = help_text
        self.start = start
        self.end = end


def parse_template(text: str) -> tuple[str | Token, ...]:
    """The texts and tokens of a path. Raises `TemplateError`."""
    parts: list[str | Token] = []
    for match in _PIECE.finditer(text):
        piece = match[0]
        if match[1] is not None:
            name, *args = match[1].split(":")
            if name not in TOKENS:
                known = ", ".join(TOKENS)
                help_text = did_you_mean(name, TOKENS) or f"the tokens are {known}; write {{{{ for a brace"
                raise TemplateError(f"there is no token '{{{name}}}'", help_text, match.start(), match.end())
            if (reason := _wrong_args(name, args)) is not None:
                raise TemplateError(f"'{piece}' cannot be read", reason, match.start(), match.end())
            parts.append(Token(name, tuple(args), match.start(), match.end()))
        elif piece in ("{", "}"):
            message = f"a '{piece}' stands alone"
            raise TemplateError(message, "write {{ or }} for a brace", match.start(), match.end())
        else:
            parts.append({"{{": "{", "}}": "}"}.get(piece, piece))
    return tuple(parts)


def _wrong_args(name: str, args: list[str]) -> str | None:
    """What to write instead, or None."""
    if name == "source_name":
        return None if not args or (len(args) == 1 and args[0]) else "write {source_name}, or {source_name:node}"
    if name == "pipeline_hash":
        known = not args or (len(args) == 1 and (args[0] == "full" or args[0] in _DIGITS))
        return None if known else "write {pipeline_hash}, {pipeline_hash:full}, or the number of its digits, up to 64"
    if name in PER_FILE:
        return None if not args else f"write {{{name}}}"
    return None if len(args) in (0, 2) else f"write {{{name}}}, or {{{name}:before:after}}"


def naming_problem(text: str) -> str | None:
    """What is wrong with the name of split files, or None. It needs exactly one `{seq:NN}`."""
    sequences = 0
    if "/" in text:
        return "it is a name, and not a path"
    for match in _NAMING.finditer(text):
        if match[0] in ("{", "}"):
            return f"a '{match[0]}' stands alone"
        if match[1] == "seq":
            sequences += 1
            if match[2] is None:
                return "'{seq}' does not say how many digits it has"
        elif match[1] is not None and (match[1] not in ("stem", "ext") or match[2] is not None):
            return f"there is no token '{match[0]}'"
    return None if sequences == 1 else "it must have exactly one '{seq:04}'"
