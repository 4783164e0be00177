"""Dead-letter files as they are read back: for `clinker dlq inspect` and for replays."""

from __future__ import annotations

import csv
import dataclasses
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.errors import InputError
from clinker_spark.runtime.run.files.assemble import ends_with
from clinker_spark.spark.rejects.letter_marks import PREFIX, REQUIRED, source_hash
from clinker_spark.spark.scan.lines import line_bytes

_SAMPLES = 3


@dataclass(frozen=True)
class Letter:
    """One dead letter: what the engine says, and the record as it was read."""

    engine: dict[str, str]
    record: dict[str, str]
    number: int = 0
    """Its place in the file, from 1."""

    @property
    def line(self) -> bytes | None:
        """The bytes of the record; None when the letter does not have them. Raises ValueError for a damaged letter."""
        encoding = self.engine.get("source_line_encoding", "")
        return line_bytes(self.engine["source_line"], encoding) if encoding else None

    @cached_property
    def edited(self) -> tuple[bool, bool]:
        """Have the cells been edited since the letter was written, and the line? A letter without a hash, of an
        earlier version, has only cells."""
        written = self.engine.get("source_hash", "")
        if not written:
            return True, False
        now = source_hash(list(self.record.values()), self.engine.get("source_line", ""))
        cells, line = (a != b for a, b in zip(now.split("-"), written.split("-"), strict=False))
        return cells, line

    def says(self, other: Letter) -> bool:
        """Have both letters the same cells, and the same line?"""
        return (self.record, self.engine.get("source_line")) == (other.record, other.engine.get("source_line"))


@dataclass
class Reason:
    """Letters that failed for one reason at one place."""

    category: str
    stage: str
    field: str
    count: int = 0
    details: Counter[str] = dataclasses.field(default_factory=Counter)
    samples: list[Letter] = dataclasses.field(default_factory=list)
    sources: Counter[str] = dataclasses.field(default_factory=Counter)


def read_letters(path: str | Path) -> Iterator[Letter]:
    """The letters of a file, one by one. Raises `InputError` when it is none."""
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:  # a program that edited it may have put a mark there
            rows = csv.reader(file)
            header = next(rows, [])
            _check(path, header)
            for number, row in enumerate((row for row in rows if row), 1):  # editors leave blank lines
                if len(row) != len(header):
                    message = f"dead letter {number} of '{path}' has {len(row)} values, and the header {len(header)}"
                    help_text = "the file is damaged, or was cut off: take the one that the run wrote"
                    raise InputError([Diagnostic("E019", message, help=help_text)])
                cells = dict(zip(header, row, strict=True))
                engine = {k.removeprefix(PREFIX): v for k, v in cells.items() if k.startswith(PREFIX)}
                yield Letter(engine, {k: v for k, v in cells.items() if not k.startswith(PREFIX)}, number)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise InputError([Diagnostic("E224", f"cannot read '{path}': {reason}", help="check the path")]) from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError([Diagnostic("E019", f"'{path}' is no dead-letter file: {error}")]) from None


def _check(path: str | Path, header: list[str]) -> None:
    missing = [name for name in REQUIRED if PREFIX + name not in header]
    if missing:
        message = f"'{path}' is no dead-letter file: it has no column '{PREFIX + missing[0]}'"
        help_text = "name a file that a pipeline wrote to error_handling.dlq.path"
        raise InputError([Diagnostic("E019", message, help=help_text)])


def reasons(letters: Iterator[Letter]) -> list[Reason]:
    """The letters grouped by category, stage and field; the most frequent first."""
    found: dict[tuple[str, str, str], Reason] = {}
    for letter in letters:
        engine = letter.engine
        key = (engine.get("error_category", ""), engine["stage"], engine.get("triggering_field", ""))
        reason = found.setdefault(key, Reason(*key))
        reason.count += 1
        reason.sources[engine["source_name"]] += 1
        if len(reason.details) < 1000:
            reason.details[engine.get("error_detail", "")] += 1
        if len(reason.samples) < _SAMPLES:
            reason.samples.append(letter)
    return sorted(found.values(), key=lambda r: (-r.count, r.stage, r.field))


def with_earlier(place: Path, made: Path, both: Path) -> Path:
    """The letters of earlier runs, and those of this one behind them. Gives the file with all of them.

    Sources that had no letters before may bring columns: then all lines are written anew, and with them the hash of
    each letter that nobody has edited."""
    if not place.exists() or not place.stat().st_size:
        return made
    old, new = _header(place), _header(made)
    if old == new:
        with open(both, "wb") as out, open(place, "rb") as first, open(made, "rb") as second:
            shutil.copyfileobj(first, out, 1 << 20)
            if not ends_with(place, b"\n"):
                out.write(b"\n")
            second.seek(len(_first_record(made)))
            shutil.copyfileobj(second, out, 1 << 20)
        return both
    engine = list(dict.fromkeys(name for name in (*new, *old) if name.startswith(PREFIX)))
    columns = sorted({name for name in (*new, *old) if not name.startswith(PREFIX)})
    with open(both, "w", encoding="utf-8", newline="") as out_text:
        writer = csv.writer(out_text, lineterminator="\n")
        writer.writerow([*engine, *columns])
        for letter in (*read_letters(place), *read_letters(made)):
            cells = [letter.record.get(name, "") for name in columns]
            known = {PREFIX + name: value for name, value in letter.engine.items()}
            if known.get(f"{PREFIX}source_hash") and not any(letter.edited):
                known[f"{PREFIX}source_hash"] = source_hash(cells, letter.engine.get("source_line", ""))
            writer.writerow([*(known.get(name, "") for name in engine), *cells])
    return both


def _header(path: Path) -> list[str]:
    with open(path, encoding="utf-8-sig", newline="") as file:
        return next(csv.reader(file), [])


def _first_record(path: Path) -> bytes:
    """The bytes of the header. Names of columns may have line ends in them."""
    with open(path, encoding="utf-8", newline="") as file:
        taken: list[str] = []

        def lines() -> Iterator[str]:
            for line in file:
                taken.append(line)
                yield line

        next(csv.reader(lines()), None)
    return "".join(taken).encode()
