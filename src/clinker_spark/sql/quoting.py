"""Names and texts as Spark's parser reads them.

Text of a user must come out of Spark's parser as it went in, whatever the session's settings. Three things
stand in the way: a backslash is an escape unless `spark.sql.parser.escapedStringLiterals` is set, a doubled
quote is one quote only while it is not, and `${name}` is replaced by a setting or an environment variable.
"""

from __future__ import annotations

import re

# Control characters are kept out of SQL text too; tab and line ends are harmless there.
_SPECIAL = re.compile(r"['\\\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_STAND_INS = "~^`@#|!%&;" + "".join(map(chr, range(0xE000, 0xE040)))


def identifier(name: str) -> str:
    """A name as an SQL identifier.

    >>> print(identifier("total"), identifier("a`b"))
    `total` `a``b`
    """
    return "`" + name.replace("`", "``") + "`"


def string(text: str) -> str:
    r"""A string as a Spark SQL literal. Characters that a literal cannot hold are put in by `translate`.

    >>> print(string("plain text"), string(r"\d+"), string("it's"), string("${HOME}"))
    'plain text' translate('~d+', '~', chr(92)) translate('it~s', '~', chr(39)) '$' '{HOME}'
    """
    special = sorted(set(_SPECIAL.findall(text)))
    if not special and "\u27e6" not in text and "\u27e7" not in text:
        return _quoted(text)
    free = [c for c in _STAND_INS if c not in text]
    if len(free) < len(special) or "\u27e6" in text or "\u27e7" in text:
        # The brackets U+27E6 and U+27E7 mark parts of a builtin's SQL, and chr() does not reach them.
        return f"decode(X'{text.encode().hex()}', 'UTF-8')"
    used = "".join(free[: len(special)])
    plain = text.translate(dict(zip(map(ord, special), used, strict=True)))
    codes = " || ".join(f"chr({ord(c)})" for c in special)
    return f"translate({_quoted(plain)}, '{used}', {codes})"


def _quoted(text: str) -> str:
    # Adjacent literals are one literal, so the halves of `${` can stand in two.
    return "'" + text.replace("${", "$' '{") + "'"
