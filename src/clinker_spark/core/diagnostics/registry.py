"""Every diagnostic code: one file each in `codes/`, with the row of the code on top and its page below.

`E` codes are errors found before or around a run, `W` codes are warnings, and `X` codes stand for the kinds of
errors a single record can have. An `X` code also answers to the name that dead letters carry.

>>> lookup("e200").title, lookup("division_by_zero").code, lookup("E999")
('type error', 'X002', None)
>>> suggest("divide_by_zero"), suggest("E20O")
('division_by_zero', 'E200')
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from clinker_spark.core.diagnostics import Severity
from clinker_spark.core.diagnostics.suggest import nearest

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable


@dataclass(frozen=True, slots=True)
class Entry:
    """One code: what it is called, what it means and what to do about it in one sentence each, and its Markdown page.

    `kind` is the name of a record error in the error channel and in dead letters; other codes have none.
    """

    code: str
    title: str
    page: str
    meaning: str
    action: str
    kind: str | None = None

    @property
    def severity(self) -> Severity:
        return Severity.WARNING if self.code.startswith("W") else Severity.ERROR


def parse_entry(code: str, text: str) -> Entry:
    """The content of a code's file: lines `key: "value"` between two `---`, then the page. Its heading has the title.

    >>> parse_entry("E299", '---\\nmeaning: "It is odd."\\naction: "Even it."\\n---\\n# E299: odd\\n').title
    'odd'
    """
    _, head, page = text.split("---\n", 2)
    pairs = (line.partition(": ") for line in head.splitlines())
    row: dict[str, str] = {key: json.loads(value) for key, _, value in pairs}
    title = page.partition("\n")[0].removeprefix(f"# {code}: ")
    return Entry(code, title, page, **row)


def entries() -> list[Entry]:
    """All of them, in the order of `codes()`. This reads every file."""
    return [_entry(code) for code in codes()]


@cache
def codes() -> tuple[str, ...]:
    """The names of all codes, in order; in each hundred, those with a letter (`E15Y`) come after the numbers."""
    found = [file.name.removesuffix(".md") for file in _folder().iterdir()]
    return tuple(sorted(found, key=lambda code: (code[:2], not code[1:].isdigit(), code)))


def lookup(name: str) -> Entry | None:
    """What is known about a code (in any case) or about a record error's kind."""
    name = name.strip()
    if name.upper() in codes():
        return _entry(name.upper())
    return _by_kind().get(name.lower())


def suggest(name: str) -> str | None:
    """The code or kind that looks most like `name`."""
    return nearest(name.strip(), [*codes(), *_by_kind()], limit=5)


@cache
def _by_kind() -> dict[str, Entry]:
    record_errors = (_entry(code) for code in codes() if code.startswith("X"))
    return {entry.kind: entry for entry in record_errors if entry.kind}


@cache
def _entry(code: str) -> Entry:
    return parse_entry(code, _folder().joinpath(f"{code}.md").read_text(encoding="utf-8"))


def _folder() -> Traversable:
    from importlib.resources import files  # 10 ms, and most commands never ask for a code

    return files("clinker_spark.core.diagnostics").joinpath("codes")
