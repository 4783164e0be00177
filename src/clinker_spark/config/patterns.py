"""Are the patterns that select files well formed?

>>> glob_problem("data/[a-z.csv")
"a '[' is not closed"
>>> glob_problem("data/**/*.csv") is None
True
"""

from __future__ import annotations


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
    return "a '{' is not closed" if depth else None


def regex_problem(pattern: str) -> str | None:
    """What is wrong with a regular expression, or None. The dialect is that of CXL."""
    from clinker_spark.cxl.regexes import RegexError, compile_regex  # few pipelines select files this way

    try:
        compile_regex(pattern)
    except RegexError as error:
        return str(error)
    return None
