"""Files as dead letters: one for each that could not be read. They are no records: rates and balances
leave them out."""

from __future__ import annotations

import pyarrow as pa

from clinker_spark.runtime.reject.letter_writer import BAD_FILE, write_letters
from clinker_spark.runtime.reject.saved_letters import Letters
from clinker_spark.runtime.run.report import LetterReport
from clinker_spark.runtime.run.state import RunState


class NoLetters(Letters):
    """No record failed."""

    ordered = True

    def batches(self, *columns: str) -> list[pa.RecordBatch]:  # type: ignore[override]
        return []


def note_files(state: RunState) -> None:
    """Say in the report which files were passed over."""
    for node in state.plan.sources:
        count = len(state.inputs.bad.get(node.name, ()))
        if count:
            state.report.letters.append(LetterReport(node.name, node.stage, BAD_FILE, count))


def deliver_files(state: RunState) -> None:
    """Where no record failed, files may be the only letters."""
    if state.inputs.bad:
        note_files(state)
        write_letters(state, NoLetters(), [])
