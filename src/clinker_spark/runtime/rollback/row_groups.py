"""Groups to hold back where every record goes its own way: one source, no totals, joins or windows.

Then a group can be looked at without the rest. The failures are found in a pass without texts; a second one reads
only the records of their groups, and makes the dead letters. The outputs were written already: where each record is
a line, the lines of the groups are cut out of them, and only otherwise they are written again without the groups.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from clinker_spark.core.fast_paths import taken
from clinker_spark.plan.columns import CK_PREFIX
from clinker_spark.plan.passes.correlation import MOST_FAILURES
from clinker_spark.runtime.errors import DataError
from clinker_spark.runtime.reject.saved_letters import Saved, last_clean_row, save
from clinker_spark.runtime.reject.source_letters import SourceLetters
from clinker_spark.runtime.run.progress import FINDING
from clinker_spark.spark.build.passes import Find, Pass, Retraction
from clinker_spark.spark.columns.python_calls import arrow_type
from clinker_spark.spark.operators.output import prepare_output
from clinker_spark.spark.rejects import correlated as ops
from clinker_spark.spark.rejects.letters import letters
from clinker_spark.spark.scan.row_filter import RowFilter, save_row_filter
from clinker_spark.spark.session.sessions import is_local

if TYPE_CHECKING:
    from clinker_spark.runtime.run.outputs import Outputs
    from clinker_spark.runtime.run.state import RunState
    from clinker_spark.spark.build.builder import Builder


MOST_LINES = 4_000_000
"""Up to so many lines are cut out of an output."""


def can_roll_back_rows(state: RunState, kept_bad: SourceLetters | None) -> bool:
    """Is this the simple case? The readers must have seen all bad records, and be able to choose records."""
    if not taken("row_groups") or not is_local(state.spark):
        return False
    if kept_bad is None or not state.plan.facts.correlation.by_rows:
        return False
    if state.inputs.unsorted:  # the lines of the output do not stand as the records do in the file
        return False
    return state.failed() + sum(count.count for count in kept_bad.kept) <= MOST_FAILURES


class RowGroups:
    """The groups of one run."""

    def __init__(self, state: RunState, outputs: Outputs) -> None:
        self.state = state
        self.outputs = outputs
        self.plan = state.plan
        self.source = state.plan.sources[0]
        self.folder = state.attempt.folder(outputs.targets[state.plan.outputs[0].name].path, "correlation")
        self.counters: Counter[str] = Counter()

    def roll_back(self) -> Saved:
        """Withhold what must be; gives all dead letters. See `Groups.roll_back`; no group is too large here."""
        failed = self._failures()
        save_row_filter(self.folder / "row-filter", failed)
        places = failed.select(["file", "row"]).group_by(["file", "row"]).aggregate([])
        self.counters.update(iterations=1, output_rows_retracted_total=places.num_rows)
        found = self._letters()
        self.state.outcome.again = "cut" if self._cut(found) else "groups"
        if self.state.outcome.again == "groups" and self.outputs.write_again(
            Retraction(), self._row_filter(keep=False)
        ):
            raise DataError([self.plan.outputs[0].diagnostic("E411", "records fail that did not fail before")])
        return found

    def cursors(self, stored: Saved) -> dict[str, int]:
        """The last record of the source that is no dead letter."""
        row = last_clean_row(stored, self.source.index, self.offsets, self.state.source_records(self.source.name))
        return {self.source.name: row} if row > 0 else {}

    # ------------------------------------------------------------ passes

    def _failures(self) -> pa.Table:
        """Where the failed records stand, and their keys."""
        builder = self._letters_builder(texts=False)
        self.offsets = builder.scans[self.source.name].row_offsets
        with self.state.passing(FINDING):
            saved = save(ops.failed_places(builder.rejects.failures, self.source.key_columns), self.folder / "failures")
        fields = [("file", pa.int32()), ("row", pa.int64())]
        fields += [(f"k{i}", kind) for i, kind in enumerate(self._key_types())]
        schema = pa.schema(fields)
        return pa.Table.from_batches([batch.cast(schema) for batch in saved.batches(*schema.names)], schema)

    def _letters(self) -> Saved:
        """The records of the groups, those that failed and those that reach an output."""
        builder = self._letters_builder(texts=True, filtered=True)
        triggers, held = letters(builder), ops.held_records(builder)
        assert triggers is not None and held is not None
        if len(self.plan.outputs) > 1 or any(node.multiplies for node in self.plan.nodes):
            held = ops.once_each(held, triggers)
        try:
            with self.state.passing("finding what is withheld"):
                return save(triggers.unionByName(held), self.folder / "letters")
        finally:
            builder.memo.let_go()

    def _letters_builder(self, *, texts: bool, filtered: bool = False) -> Builder:
        task = Find(texts=texts, all_held=filtered)
        builder = self.state.new_builder(Pass(task, row_filters=self._row_filter(keep=True) if filtered else {}))
        for node in self.plan.outputs:
            prepare_output(builder, node)
        return builder

    def _row_filter(self, *, keep: bool) -> dict[str, RowFilter]:
        names = tuple(name.removeprefix(CK_PREFIX) for name in self.source.key_columns)
        return {self.source.name: RowFilter(str(self.folder / "row-filter"), names, keep)}

    def _key_types(self) -> list[pa.DataType]:
        types = {column.name: column.data_type for column in self.source.columns}
        return [arrow_type(types[name.removeprefix(CK_PREFIX)]) for name in self.source.key_columns]

    # ------------------------------------------------------------ outputs

    def _cut(self, found: Saved) -> bool:
        """Cut the lines of the groups out of the output; False when that cannot be done."""
        if not self.plan.facts.correlation.writes_every_record:
            return False
        failed, held = self._marked(found)
        if len(held) > MOST_LINES:
            return False
        return self.outputs.cut_lines(self.plan.outputs[0], held - np.searchsorted(failed, held))

    def _marked(self, found: Saved) -> tuple[np.ndarray, np.ndarray]:
        """The places of failed and of held records, counted over all files from 0."""
        both: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
        for places, trigger in found.places(self.source.index, self.offsets):
            both[0].append(places[trigger])
            both[1].append(places[~trigger])
        failed, held = (np.unique(np.concatenate([np.empty(0, np.int64), *marked])) for marked in both)
        return failed, held
