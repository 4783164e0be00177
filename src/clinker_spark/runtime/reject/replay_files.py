"""The files of a replay: the records of dead letters, each once, in place of what their sources name."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.errors import InputError
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.nodes.source import SourcePlan
from clinker_spark.runtime.reject.letter_files import Letter
from clinker_spark.runtime.reject.replay import check_parts
from clinker_spark.runtime.reject.replay_records import Fed, Writer, writer_of
from clinker_spark.spark.scan.request import SourceFile

MOST_TOLD = 5


@dataclass
class Feed:
    """What a replay reads."""

    files: dict[str, tuple[SourceFile, ...]] = field(default_factory=dict)
    """The files of the sources that do not read their own."""
    records: dict[tuple[str, int], list[Fed]] = field(default_factory=dict)
    """By source and file, what their records are, in order."""
    path: Path | None = None
    """The file of the letters."""
    known: frozenset[str] = frozenset()
    """The letters that were added by earlier replays."""
    skipped: int = 0
    """Those of them that are in the file."""
    left: int = 0
    """Letters of sources that are read from their own files."""
    plan: Plan | None = None
    """The plan of the pipeline, if its programs read `$doc`."""
    origins: dict[str, tuple[SourceFile, ...]] = field(default_factory=dict)
    """For each of `files`, the file that the records came from, which still says what `$doc` is."""

    def of(self, source: str, file: int | None, row: int | None) -> Fed | None:
        """What is known of a record that was read; None for one of a source that read its own files."""
        mine = self.records.get((source, file)) if file is not None else None
        return mine[row - 1] if mine is not None and row is not None and row <= len(mine) else None

    @property
    def fed(self) -> int:
        return sum(map(len, self.records.values()))

    @property
    def ids(self) -> set[str]:
        """The letters whose records are fed."""
        return {known for records in self.records.values() for fed in records for known in fed.ids}


def replay_files(
    plan: Plan,
    letters: Iterable[Letter],
    folder: Path,
    known: frozenset[str] = frozenset(),
    path: Path | None = None,
    *,
    once: bool = False,
) -> Feed:
    """The records of the letters as files, each record once; without those that are `known` to have been added. With
    `once`, nothing is fed that could not be known the next time. Raises `InputError` for letters that cannot be fed.
    `plan` is that of the pipeline, `path` where the letters are."""
    check_parts(plan)
    flowing = {name for name, sides in plan.facts.flow.sides.items() if sides.probe}
    feed = Feed(path=path, known=known)
    problems: list[Diagnostic] = []
    writers: dict[tuple[str, str, str], Writer] = {}
    for node, letter, fed in _chosen(plan, letters, flowing, feed, problems):
        if known & fed.ids:
            feed.skipped += 1
            continue
        if once and not fed.ids:
            message = f"dead letter {letter.number} has no '_cxl_dlq_id': nobody could tell that it was added"
            problems.append(Diagnostic("E019", message, help="replay the file that the run wrote, or without --append"))
        key = (node.name, letter.engine["source_file"], letter.engine.get("source_header", ""))
        if key not in writers:
            writers[key] = writer_of(node, key[2], folder / str(len(writers)))
        try:
            writers[key].add(letter, fed)
        except ValueError as error:
            problems.append(_conflict(letter, str(error)))
    made: dict[str, list[tuple[SourceFile, list[Fed]]]] = {
        node.name: [] for node in plan.sources if node.name in flowing
    }
    for (name, file, _), writer in writers.items():
        made[name] += writer.done(file)
    if problems:
        more = [] if len(problems) <= MOST_TOLD else [Diagnostic("E456", f"{len(problems) - MOST_TOLD} more letters")]
        raise InputError([*problems[:MOST_TOLD], *more])
    for name, mine in made.items():
        feed.files[name] = tuple(file for file, _ in mine)
        feed.records |= {(name, i): fed for i, (_, fed) in enumerate(mine)}
    if any(space == "doc" for node in plan.nodes for space, _ in node.system_members()):
        feed.plan = plan
        feed.origins = _origins(plan, feed)
    return feed


def _origins(plan: Plan, feed: Feed) -> dict[str, tuple[SourceFile, ...]]:
    """The files that the records came from. Raises `InputError` for those that are gone."""
    found: dict[str, tuple[SourceFile, ...]] = {}
    problems: list[Diagnostic] = []
    for name, files in feed.files.items():
        if plan.source(name).config.envelope is None:
            continue
        found[name] = tuple(SourceFile(str(plan.file.folder / file.name), file.name) for file in files)
        for name_in_letters in dict.fromkeys(file.name for file in found[name] if not os.path.isfile(file.path)):
            message = f"the records of '{name_in_letters}' cannot be replayed: programs read $doc, and it is gone"
            help_text = "put the file back; only what it says about all of its records is read"
            problems.append(plan.source(name).diagnostic("E458", message, help=help_text))
    if problems:
        raise InputError(problems)
    return found


def _chosen(
    plan: Plan, letters: Iterable[Letter], flowing: set[str], feed: Feed, problems: list[Diagnostic]
) -> list[tuple[SourcePlan, Letter, Fed]]:
    """The records that are fed: each with the letter that says what it is, the edited one if there are several."""
    by_name = {node.source_name: node for node in plan.sources}
    found: dict[tuple[str, ...], tuple[SourcePlan, Letter, Fed]] = {}
    for letter in letters:
        node = by_name.get(letter.engine["source_name"])
        if node is None:
            continue  # a group: it comes again from its records
        if letter.engine.get("error_category") == "bad_file":
            problems.append(_whole_file(letter))
            continue
        if not letter.record:
            message = "the dead letters do not have the records themselves"
            help_text = "they can only be replayed when the run wrote them with dlq.include_source_row: true"
            raise InputError([Diagnostic("E019", message, help=help_text)])
        if node.name not in flowing:
            feed.left += 1
            problems += _edited_in_vain(node, letter)
            continue
        said = [letter.engine.get(name, "") for name in ("source_file", "source_row", "source_hash")]
        identity = (node.name, *said, *(() if said[-1] else letter.record.values()))
        _, before, fed = found.setdefault(identity, (node, letter, Fed.of(letter)))
        fed.add(letter)
        if before is not letter and any(letter.edited):
            if any(before.edited) and not before.says(letter):
                other = f"dead letter {before.number} of the same record was edited differently"
                problems.append(_conflict(letter, other))
            found[identity] = (node, letter, fed)
    if not found and not feed.left and not problems:
        help_text = f"the sources are {', '.join(by_name)}"
        raise InputError([Diagnostic("E019", "no dead letter belongs to a source of this pipeline", help=help_text)])
    return list(found.values())


def _edited_in_vain(node: SourcePlan, letter: Letter) -> list[Diagnostic]:
    """What is wrong with an edited letter of a source that is read from its own files."""
    if not any(letter.edited) or not letter.engine.get("source_hash"):
        return []
    message = f"dead letter {letter.number} was edited, but '{node.name}' is read from its own files"
    return [node.diagnostic("E458", message, help="others are looked up in it: correct its input file")]


def _whole_file(letter: Letter) -> Diagnostic:
    name = letter.engine["source_file"]
    message = f"dead letter {letter.number} is the whole file '{name}', and has no record to replay"
    return Diagnostic(
        "E439", message, help="mend the file and run the pipeline again; take the letter out to replay the others"
    )


def _conflict(letter: Letter, reason: str) -> Diagnostic:
    help_text = "edit the cells of a letter, or its line; where both are edited they must say the same"
    return Diagnostic("E456", f"dead letter {letter.number} cannot be replayed: {reason}", help=help_text)
