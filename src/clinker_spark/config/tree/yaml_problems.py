"""What is wrong with a text that is not YAML, in words that help: the parser's own speak of tokens and contexts."""

from __future__ import annotations

import re
from typing import Any

import yaml

from clinker_spark.core.diagnostics import Diagnostic, Label
from clinker_spark.core.span import Source, Span

_FORBIDDEN = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")

_VALUES = "mapping values are not allowed"
# Part of the parser's message -> our message and help. libyaml and the parser in Python word some differently.
_PROBLEMS: tuple[tuple[str, str, str], ...] = (
    (
        _VALUES,
        "a ': ' is not expected here",
        "check the indentation of this line and the one above; a text with ': ' in it must stand in quotes",
    ),
    (
        "did not find expected key",
        "this line does not fit the lines above it",
        "give all keys of one mapping the same indentation",
    ),
    (
        "expected <block end>",
        "this line does not fit the lines above it",
        "give all parts of one block one indentation",
    ),
    (
        "did not find expected '-' indicator",
        "an item of the list is expected here",
        "start the line with '- ', or give the list more indentation than its key",
    ),
    ("could not find expected ':'", "a key is not followed by ':'", "write 'key: value'; close the quotes above"),
    ("did not find expected ',' or ']'", "a list in '[' is not closed", "add the missing ',' or ']'"),
    ("expected ',' or ']'", "a list in '[' is not closed", "add the missing ',' or ']'"),
    ("did not find expected ',' or '}'", "a mapping in '{' is not closed", "add the missing ',' or '}'"),
    ("expected ',' or '}'", "a mapping in '{' is not closed", "add the missing ',' or '}'"),
    ("found unexpected end of stream", "a text in quotes is not closed", "add the closing quote"),
    ("found unexpected document indicator", "a text in quotes is not closed", "add the closing quote"),
    ("unknown escape character", "this escape does not exist in double quotes", "write '\\\\' for a backslash"),
    ("did not find expected hexdecimal", "this escape needs hexadecimal digits", "write '\\\\' for a backslash"),
    ("expected escape sequence of", "this escape needs hexadecimal digits", "write '\\\\' for a backslash"),
    ("did not find expected node content", "a value is expected here", "write the value, or remove what precedes it"),
    ("expected the node content", "a value is expected here", "write the value, or remove what precedes it"),
    ("block sequence entries are not allowed", "a list item is not expected here", "start the list on its own line"),
    ("undefined tag handle", "tags have no meaning in this file", "remove the word that starts with '!'"),
    ("did not find expected <document start>", "something stands after the end", "check the indentation of this line"),
    ("expected '<document start>'", "something stands after the end", "check the indentation of this line"),
    (
        "found a tab character",
        "a tab cannot indent YAML",
        "replace the tab by blanks",
    ),
    ("leading empty lines", "the first lines of this block are indented more than its text", "remove blanks from them"),
    ("found unknown directive", "a line that starts with '%' is a directive", "put the text in quotes"),
)


def forbidden_character(source: Source) -> Diagnostic | None:
    """YAML allows no control characters, and the parser cannot say exactly where one stands."""
    found = _FORBIDDEN.search(source.text)
    if found is None:
        return None
    name = f"U+{ord(found[0]):04X}"
    span = Span(found.start(), found.end())
    return Diagnostic("E000", f"the character {name} is not allowed in YAML", source, span, "remove it")


def syntax_problem(error: yaml.YAMLError, source: Source) -> Diagnostic:
    """The parser's first error as a diagnostic."""
    if not isinstance(error, yaml.MarkedYAMLError):
        reason = str(error).split("\n", 1)[0]
        return Diagnostic("E000", f"this is not YAML: {reason}", source, Span(0, min(1, len(source.text))))
    mark = error.problem_mark or error.context_mark
    at = min(mark.index, len(source.text)) if mark is not None else 0
    message, help_text = _words(error.problem or error.context or "", source, at)
    labels = _labels(error, source, at)
    return Diagnostic("E000", message, source, _span(source, at), help_text, labels=labels)


def _words(problem: str, source: Source, at: int) -> tuple[str, str]:
    line_start = source.text.rfind("\n", 0, at) + 1
    before = source.text[line_start:at]
    here = source.text[at : at + 1]
    if "\t" in before + here and not (before + here).strip():
        return "a tab cannot indent YAML", "replace the tab by blanks"
    if "cannot start any token" in problem:
        if here == "\t":
            return "a tab cannot stand here", "replace the tab by blanks"
        return f"a value cannot start with '{here}'", "put the value in quotes"
    for part, message, help_text in _PROBLEMS:
        if part in problem:
            return message, (_line_above(source, line_start) or help_text) if part == _VALUES else help_text
    return f"this is not YAML: {problem}", "check the indentation, the quotes and the brackets around this place"


def _line_above(source: Source, line_start: int) -> str | None:
    """Why a key is not expected: often the line above is the one to blame."""
    above = source.text[:line_start].rstrip().rpartition("\n")[2]
    here = source.text[line_start:].partition("\n")[0]
    content = above.strip().removeprefix("- ")
    if not content or content.startswith("#") or len(here) - len(here.lstrip()) <= len(above) - len(above.lstrip()):
        return None
    if ":" not in content:
        return f"the line above has no ':'; write '{content[:40]}:'"
    has_value = not content.endswith(":") and ": " in content
    return "this line is indented more than the one above, which has a value already" if has_value else None


def _labels(error: yaml.MarkedYAMLError, source: Source, at: int) -> tuple[Label, ...]:
    """Where the thing began that has no end."""
    mark: Any = error.context_mark
    context = error.context or ""
    opened = "quoted" in context or "flow" in context
    if mark is None or not opened or mark.index == at or mark.index >= len(source.text):
        return ()
    return (Label(Span(mark.index, mark.index + 1), "opened here"),)


def _span(source: Source, at: int) -> Span:
    """A character that can be seen: at the end of the file, the last one."""
    text = source.text
    if at < len(text) and text[at] not in "\r\n":
        return Span(at, at + 1)
    end = len(text[:at].rstrip())
    return Span(max(end - 1, 0), end) if at >= len(text) and end else Span(at, at)
