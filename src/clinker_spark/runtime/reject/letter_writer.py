"""The one writer of dead letters, whatever way found them."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from clinker_spark.core.fast_paths import taken
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.nodes.source import SourcePlan
from clinker_spark.runtime.paths.reservations import letter_key, letter_place, located
from clinker_spark.runtime.reject.letter_files import with_earlier
from clinker_spark.runtime.reject.replay_files import Feed
from clinker_spark.runtime.reject.saved_letters import FEW_LETTERS, Letters, Saved
from clinker_spark.runtime.run.files import assemble
from clinker_spark.runtime.run.state import RunState
from clinker_spark.spark.parts import part_writer
from clinker_spark.spark.rejects.letter_lines import SHOWN, Fed, LetterLines, LetterSource, sorted_lines
from clinker_spark.spark.rejects.letters import LetterCount, in_order, layout, of_sources

BAD_FILE = "bad_file"
"""The category of a file that could not be read."""


@dataclass(frozen=True)
class LetterFile:
    """Whose letters go to a file: those of some sources or, in the common file, of all others and of none."""

    path: str
    sources: tuple[int, ...]
    others: bool
    counts: tuple[LetterCount, ...]


def letter_files(plan: Plan, counts: Sequence[LetterCount]) -> list[LetterFile]:
    """The files that letters go to: sources may have their own. Some may go nowhere."""
    dlq = plan.file.error_handling.dlq
    positions = {node.name: node.index for node in plan.sources}
    own = {positions[name]: setting.path for name, setting in dlq.per_source.items() if setting.path is not None}
    found = []
    for source, path in own.items():
        mine = tuple(count for count in counts if count.source == source)
        if mine:
            found.append(LetterFile(path, (source,), False, mine))
    rest = tuple(count for count in counts if count.source not in own)
    if (dlq.path is not None or dlq.topic is not None) and rest:  # a topic has no path
        found.append(LetterFile(dlq.path or "", tuple(own), True, rest))
    return found


def write_letters(state: RunState, letters: Letters, counts: Sequence[LetterCount]) -> None:
    """Make the files of all letters, ready to be published."""
    sources = tuple(_source(state, node) for node in state.plan.sources)
    dlq = state.handling.dlq
    for i, file in enumerate(letter_files(state.plan, [*counts, *file_counts(state)])):
        place = letter_place(state, file.path)
        folder = state.attempt.folder(place, f"dead-letters-{i}")
        lines = LetterLines(
            tuple(layout(state.plan, file.counts)),
            sources,
            tuple(node.stage for node in state.plan.nodes),
            state.options.now,
            dlq.include_reason,
            dlq.include_source_row,
        )
        made = folder / "final"
        with open(made, "wb") as out:
            out.write(lines.header)
            for batch in _bad_files(state, file):
                out.write("".join(f"{line}\n" for line in lines.lines(batch).to_pylist()).encode())
            if isinstance(letters, Saved) and state.options.feed is None and not _is_few(letters):
                for part in _by_spark(letters, file, lines, folder / "parts"):
                    with open(part, "rb") as source:
                        shutil.copyfileobj(source, out, 1 << 20)
            else:
                for batch in source_batches(letters, file):
                    fed = None if state.options.feed is None else _fed(state.plan, state.options.feed, batch)
                    out.write("".join(f"{line}\n" for line in lines.lines(batch, fed).to_pylist()).encode())
        if state.inputs.earlier.any:
            made = with_earlier(place, made, folder / "all")
        with located(state):
            state.attempt.put(made, place, letter_key(file.path))
        state.report.letter_paths.append(str(place))


def _is_few(letters: Saved) -> bool:
    return letters.rows() <= FEW_LETTERS and taken("few_letters")


def _source(state: RunState, node: SourcePlan) -> LetterSource:
    """A source with all of its files, and those behind them that could not be read."""
    files, bad = state.files[node.name], state.inputs.bad.get(node.name, ())
    scan = state.builder.scans.get(node.name)
    headers = () if scan is None or not scan.headers else (*scan.headers, *("" for _ in bad))
    return LetterSource(node.source_name, tuple(f.name for f in (*files, *(b.file for b in bad))), headers)


def file_counts(state: RunState) -> list[LetterCount]:
    """The files that could not be read."""
    found = []
    for node in state.plan.sources:
        if bad := state.inputs.bad.get(node.name):
            found.append(LetterCount(node.index, state.plan.nodes.index(node), BAD_FILE, len(bad)))
    return found


def _bad_files(state: RunState, file: LetterFile) -> Iterator[pa.RecordBatch]:
    """The letters of files: without a record, and without a row."""
    for count in file_counts(state):
        if count not in file.counts:
            continue
        assert count.source is not None
        node = state.plan.sources[count.source]
        bad, first = state.inputs.bad[node.name], len(state.files[node.name])
        columns = {
            "source": pa.array([count.source] * len(bad), pa.int32()),
            "file": pa.array(range(first, first + len(bad)), pa.int32()),
            "row": pa.nulls(len(bad), pa.int64()),
            "stage": pa.array([count.stage] * len(bad), pa.int32()),
            "category": pa.array([BAD_FILE] * len(bad), pa.string()),
            "message": pa.array([f"{b.problem.code}: {b.problem.message}" for b in bad], pa.string()),
            "trigger": pa.array([True] * len(bad)),
            "letter": pa.nulls(len(bad), pa.map_(pa.string(), pa.string())),
        }
        nothing = pa.nulls(len(bad), pa.string())
        yield pa.RecordBatch.from_arrays([columns.get(name, nothing) for name in SHOWN], list(SHOWN))


def source_batches(letters: Letters, file: LetterFile) -> Iterator[pa.RecordBatch]:
    """The letters of a file in source and row order, what was made of several records last."""
    batches: Iterable[pa.RecordBatch] = letters.batches(*SHOWN)
    if not letters.ordered:
        batches = letters.in_order(*SHOWN).to_batches()
    for batch in batches:
        mine = pc.is_in(batch["source"], value_set=pa.array(file.sources, batch["source"].type))
        chosen = batch.filter(pc.invert(mine) if file.others else mine)
        if chosen.num_rows:
            yield chosen


def _by_spark(letters: Saved, file: LetterFile, lines: LetterLines, folder: Path) -> list[Path]:
    """The parts of a file whose letters a job sorts."""
    chosen = in_order(of_sources(letters.frame, file.sources, others=file.others))
    part_writer(sorted_lines(chosen, lines), str(folder)).text(str(folder))
    return assemble.part_files(folder)


def _fed(plan: Plan, feed: Feed, batch: pa.RecordBatch) -> Fed:
    """What the letters of a replay said before about the records of these."""
    found = []
    for source, file, row, stage in zip(*(batch[name].to_pylist() for name in SHOWN[:4]), strict=True):
        fed = None if source is None else feed.of(plan.sources[source].name, file, row)
        found.append(None if fed is None else fed.letter(plan.nodes[stage].stage))
    return found
