"""What a source asks for before its texts are read: blanks around them are trimmed, and some words mean null.

>>> cleaned, null = Cleaning(trim=True, null_words=("", "NA")).clean(pa.array([" 7 ", "NA ", "x", ""]))
>>> cleaned.to_pylist(), null.to_pylist()
(['7', '', 'x', ''], [False, True, False, True])
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


@dataclass(frozen=True)
class Cleaning:
    """How texts are cleaned. Words are compared after trimming, letter by letter."""

    trim: bool = False
    null_words: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.trim or bool(self.null_words)

    def clean(self, text: pa.Array) -> tuple[pa.Array, pa.Array | None]:
        """The texts, with an empty one in place of each null word, and where these were; None if they were nowhere."""
        if self.trim:
            text = pc.utf8_trim_whitespace(text)
        if not self.null_words:
            return text, None
        words = pc.is_in(text, value_set=pa.array(self.null_words, pa.string()))
        if not pc.any(words).as_py():
            return text, None
        return pc.if_else(words, pa.scalar("", pa.string()), text), words

    def clean_text(self, text: str) -> str | None:
        """One text; None for a null word."""
        if self.trim:
            text = text.strip()
        return None if text in self.null_words else text

    def clean_value(self, value: Any) -> Any:
        """A value of JSON: only texts are cleaned, also those in arrays and objects."""
        if isinstance(value, str):
            return self.clean_text(value)
        if isinstance(value, list):
            return [self.clean_value(item) for item in value]
        if isinstance(value, dict):
            return {key: self.clean_value(item) for key, item in value.items()}
        return value


NO_CLEANING = Cleaning()
