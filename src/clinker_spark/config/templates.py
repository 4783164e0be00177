"""Output paths with `{tokens}` in them, and the names of split files.

>>> parse_template("out/{source_name:orders}.csv")
('out/', Token(name='source_name', args=('orders',), start=4, end=24), '.csv')
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from clinker_spark.core.suggest import did_you_mean

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
_PIECE = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]|[^{}]+")
_DIGITS = re.compile(r"[1-9]|[1-5][0-9]|6[0-4]", re.ASCII)
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
            if name == "pipeline_hash" and args and args[0] != "full" and not _DIGITS.fullmatch(args[0]):
                message = f"'{piece}' does not say how many digits it has"
                raise TemplateError(message, "write 1 to 64, or full", match.start(), match.end())
            parts.append(Token(name, tuple(args), match.start(), match.end()))
        elif piece in ("{", "}"):
            message = f"a '{piece}' stands alone"
            raise TemplateError(message, "write {{ or }} for a brace", match.start(), match.end())
        else:
            parts.append({"{{": "{", "}}": "}"}.get(piece, piece))
    return tuple(parts)


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
