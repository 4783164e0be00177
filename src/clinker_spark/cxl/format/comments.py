"""Where the comments inside an expression go.

A comment between two parts of a list (arguments, items, arms, operands, calls in a chain) stays with the part
before it when it stands on that part's line, and else with the part after it. The others move above the
statement. The place depends on the tree and on line ends only, so formatting twice changes nothing.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from clinker_spark.core.span import Span
from clinker_spark.cxl.format.shape import Shape, Step, arguments_shape, postfix_chain, shape
from clinker_spark.cxl.syntax import ast

_NEWLINE = re.compile(r"\r\n?|\n")


def line_breaks(text: str, start: int, end: int) -> int:
    """How many lines end between two offsets."""
    return len(_NEWLINE.findall(text, start, end))


@dataclass
class Placed:
    """Comments of one list: above an item, behind an item, or before the closing bracket (index = item count)."""

    above: dict[int, list[str]] = field(default_factory=dict)
    behind: dict[int, str] = field(default_factory=dict)


class CommentPlaces:
    """Finds a place for the comments inside a statement; `lists` is keyed by node identity."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.lists: dict[tuple[int, str], Placed] = {}

    def place(self, comment: ast.Comment, node: ast.Expr) -> bool:
        """Hangs the comment on a part of `node`; False when there is no place in it."""
        at = comment.span.start
        if not node.span.start <= at < node.span.end:
            return False
        outline = shape(node)
        for child in outline.children:
            if child.span.start <= at < child.span.end and self.place(comment, child):
                return True
        if isinstance(node, Step):
            for step in postfix_chain(node)[1]:
                if isinstance(step, ast.MethodCall) and self._put(comment, arguments_shape(step), step, "arguments"):
                    return True
        return self._put(comment, outline, node, "items")

    def _put(self, comment: ast.Comment, outline: Shape, node: ast.Expr, which: str) -> bool:
        """Tries the gaps of one list."""
        at = comment.span.start
        inside, items = outline.inside, outline.items
        if inside is not None and not inside.start <= at < inside.end:
            return False
        before = [i for i, item in enumerate(items) if item.start <= at]
        last = before[-1] if before else -1
        if inside is None and (last < 0 or (last == len(items) - 1 and at >= items[last].end)):
            return False
        key = (id(node), which)
        if last >= 0 and at < items[last].end:
            # Inside an item that has no place for it: above that item, if that is a line of its own.
            if inside is None and last == 0:
                return False
            self._list(key).above.setdefault(last, []).append(comment.text)
        elif last >= 0 and not line_breaks(self._text, items[last].end, at):
            self._list(key).behind[last] = comment.text
        else:
            self._list(key).above.setdefault(last + 1, []).append(comment.text)
        return True

    def _list(self, key: tuple[int, str]) -> Placed:
        return self.lists.setdefault(key, Placed())


def comments_within(comments: Sequence[ast.Comment], span: Span) -> Sequence[ast.Comment]:
    """Those of the comments, which are in order, that start in `span`."""
    first = bisect.bisect_left(comments, span.start, key=lambda comment: comment.span.start)
    last = bisect.bisect_left(comments, span.end, key=lambda comment: comment.span.start)
    return comments[first:last]
