"""Column types in pipeline files: `core.type_words`, with its refusals as errors of the model."""

from __future__ import annotations

from clinker_spark.config.values import problem, shown
from clinker_spark.core import type_words
from clinker_spark.core.types import Type


def read_type(text: str) -> Type:
    """A type from its spelling. Raises a pydantic error with code E226.

    >>> str(read_type("array(string)"))
    'Array(String)'
    """
    found = type_words.read_type(text)
    if isinstance(found, Type):
        return found
    help_text = found.help
    if text.count("(") > text.count(")"):
        help_text = "put the type in quotes: a comma ends a value between { and }"
    raise problem(found.code, found.reason.format(shown=shown(text)), help_text)
