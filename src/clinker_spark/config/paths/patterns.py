"""The patterns that select files: are they well formed, and what do they match?

>>> glob_problem("data/[a-z.csv")
"a '[' is not closed"
>>> glob_problem("data/**/*.csv") is None
True
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache


def glob_problem(pattern: str) -> str | None:
    """What is wrong with a glob, or None."""
    if "***" in pattern:
        return "'***' has no meaning"
    for part in pattern.split("/"):
        if "**" in part and part != "**":
            return "'**' must stand alone between two slashes"
    depth, at = 0, 0
    while at < len(pattern):
        char = pattern[at]
        if char == "[":
            close = pattern.find("]", at + 2 + (pattern[at + 1 : at + 2] == "!"))
            if close < 0:
                return "a '[' is not closed"
            at = close
        elif char == "{":
            depth += 1
        elif char == "}":
            depth -= 1
            if depth < 0:
                return "a '}' has no '{'"
        at += 1
    if depth:
        return "a '{' is not closed"
    try:
        re.compile(glob_regex(pattern))
    except re.error:
        return "a range in brackets ends before it begins"
    return None


def glob_regex(pattern: str) -> str:
    """A well-formed glob as a regular expression: *, **, ?, [a-z], {a,b}.

    >>> glob_regex("in/{a,b}-[!0-9]?.csv")
    'in/(?:a|b)\\\\-[^0-9][^/]\\\\.csv'
    """
    out: list[str] = []
    depth = at = 0
    while at < len(pattern):
        char = pattern[at]
        if pattern.startswith("**", at):
            folders = pattern.startswith("**/", at)
            out.append("(?:.*/)?" if folders else ".*")
            at += 3 if folders else 2
            continue
        if char == "*":
            out.append("[^/]*")
        elif char == "?":
            out.append("[^/]")
        elif char == "[":
            end = pattern.index("]", at + 2 + (pattern[at + 1 : at + 2] == "!"))
            inner = pattern[at + 1 : end]
            negated, inner = inner.startswith("!"), inner.removeprefix("!")
            out.append("[" + "^" * negated + re.sub(r"([\\\[\]^&~|])", r"\\\1", inner) + "]")
            at = end
        elif char == "{":
            out.append("(?:")
            depth += 1
        elif char == "}":
            out.append(")")
            depth -= 1
        elif char == "," and depth:
            out.append("|")
        else:
            out.append(re.escape(char))
        at += 1
    return "".join(out)


@cache
def _compiled(pattern: str) -> Callable[[str], object]:
    """RE2 takes no longer for a pattern such as `*a*a*a*a*`."""
    import re2  # few pipelines need it

    matcher: Callable[[str], object] = re2.compile(glob_regex(pattern)).fullmatch
    return matcher


def glob_matches(pattern: str, name: str) -> bool:
    """Does a name match a well-formed glob?

    >>> glob_matches("in/*.csv", "in/a.csv"), glob_matches("in/*.csv", "in/old/a.csv")
    (True, False)
    """
    # A name that is no text has no characters that a pattern could name, but a * means it all the same.
    return _compiled(pattern)(name.encode("utf-8", "replace").decode()) is not None


def regex_problem(pattern: str) -> str | None:
    """What is wrong with a regular expression, or None. The dialect is that of CXL."""
    from clinker_spark.cxl.regex.patterns import RegexError, compile_regex  # few pipelines select files this way

    try:
        compile_regex(pattern)
    except RegexError as error:
        return str(error)
    return None
