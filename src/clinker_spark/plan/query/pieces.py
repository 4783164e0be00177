"""SQL while it is put together: text with marks for what is decided at the end, and the one place that decides it.

A literal or a name of the program may hold anything, so text that is finished must never be searched or changed: two
blanks, a line end or the name of a view may belong to a value. What is not known yet, and what the layout adds, is
therefore a mark that no literal and no quoted name can contain: a literal has neither control characters nor quotes
(see `sql_string`), and in a quoted name a backtick never stands alone. `render` replaces the marks, once.
"""

from __future__ import annotations

import re
from collections.abc import Callable

_MARK = re.compile("\x02'`([^`]+)`'\x02")


def _mark(content: str) -> str:
    return f"\x02'`{content}`'\x02"


BREAK = _mark("break")
STEP = f"{BREAK}|> "
"""What stands between two pipe steps."""
_OPEN = _mark("open")
_CLOSE = _mark("close")


def nested(text: str) -> str:
    """A query inside of another text, in parentheses and on lines of its own.

    >>> print(render(f"EXISTS {nested(f'FROM t{STEP}WHERE a')}", str))
    EXISTS (
      FROM t
      |> WHERE a
    )
    """
    return f"({_OPEN}{text}{_CLOSE})"


def has_query(text: str) -> bool:
    """Does the text ask another query?"""
    return _OPEN in text


def view(number: int, ordered: bool) -> str:
    """The view of a source of the program: its name is known when the query runs."""
    return _mark(f"view {number}{'+' if ordered else ''}")


def render(text: str, name: Callable[[int, bool], str]) -> str:
    """The finished SQL. `name` gives the quoted name of the view of a source, without or with its order."""
    depth = 0

    def piece(match: re.Match[str]) -> str:
        nonlocal depth
        content = match[1]
        if content.startswith("view "):
            return name(int(content[5:].rstrip("+")), content.endswith("+"))
        depth += {"open": 1, "close": -1}.get(content, 0)
        return "\n" + "  " * depth

    return _MARK.sub(piece, text)
