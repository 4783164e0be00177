"""The files of an output, made of its parts and put where they become visible when the run is published."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from clinker_spark.config.model.schema import Column
from clinker_spark.config.model.schema import layout as field_layout
from clinker_spark.plan.nodes.output import OutputPlan
from clinker_spark.runtime.errors import DataError, IoError
from clinker_spark.runtime.paths.outputs import NO_FILE, Target, free_path, meta_path, per_file_path, split_name
from clinker_spark.runtime.paths.reservations import located
from clinker_spark.runtime.run.files import assemble
from clinker_spark.runtime.run.files.added import adds_to, before, check_schema, next_number, with_added
from clinker_spark.runtime.run.files.appended import Appended
from clinker_spark.runtime.run.files.parquet_files import SeveralParquet, one_parquet
from clinker_spark.runtime.run.report import OutputReport
from clinker_spark.runtime.run.state import RunState
from clinker_spark.spark.operators.output import Prepared


@dataclass(frozen=True)
class Unfinished:
    """An output whose records are written, in parts."""

    prepared: Prepared
    parts: Path
    folder: Path
    place: Target
    report: OutputReport
    appended: Appended | None = None
    """What is there already of its only file."""


FINAL = "final"
"""The name of a finished file in the folder of its output."""


class OutputFiles:
    """Makes the files of the outputs of a run."""

    def __init__(self, state: RunState) -> None:
        self.state = state

    def make(self, made_of: Unfinished) -> None:
        """The files of an output of which there are parts."""
        node, folder = made_of.prepared.node, made_of.folder
        place, report = made_of.place, made_of.report
        made = self._made(made_of, assemble.part_files(made_of.parts))
        report.bytes = sum(m.size for m in made)
        if node.config.write_meta and place.template is None:
            whole = assemble.Made(folder / "all", report.bytes, records=report.records)
            meta = meta_path(place.path)
            self._meta(node, meta if node.config.split is None else self._free(node, meta, None), folder, whole, None)

    def _made(self, made_of: Unfinished, found: list[Path]) -> list[assemble.Made]:
        prepared, folder, place, report = made_of.prepared, made_of.folder, made_of.place, made_of.report
        node, rendering = prepared.node, prepared.rendering
        several = node.config.split is not None or place.template is not None
        if rendering is None and not several:
            return self._parquet(node, found, made_of.parts, folder, place, report)
        if place.folder and rendering is not None:
            final = folder / "final"
            final.mkdir()
            adds = adds_to(node, self.state.options)
            first = next_number(place.path) if adds else 0
            made = assemble.part_folder(found, rendering, final, _suffix(node), first)
            self._put_folder(final, made if found else [], node, place, report)
            return made
        if several or rendering is None:
            return self._several(prepared, found, folder, place, report)
        there = before(node, place, self.state.options)
        whole = None if made_of.appended is None else made_of.appended.made(found)
        width = _record_bytes(node.declared)
        one = whole or assemble.one_file(found, rendering, folder / FINAL, width, there)
        self._put(one.path, place.path, node, report)
        return [one]

    def _put(self, made: Path, place: Path, node: OutputPlan, report: OutputReport, source: str | None = None) -> None:
        with located(self.state):
            self.state.attempt.put(made, place, node.name, source)
        report.paths.append(str(place))

    def _put_folder(
        self, final: Path, made: list[assemble.Made], node: OutputPlan, place: Target, report: OutputReport
    ) -> None:
        """A folder of parts, as a whole or, where it is added to, file by file."""
        if not (adds_to(node, self.state.options) and place.path.is_dir()):
            self._put(final, place.path, node, report)
            return
        report.paths.append(str(place.path))
        with located(self.state):
            for item in made:
                self.state.attempt.put(item.path, place.path / item.path.relative_to(final), node.name)

    def _parquet(
        self, node: OutputPlan, found: list[Path], parts: Path, folder: Path, place: Target, report: OutputReport
    ) -> list[assemble.Made]:
        if place.folder:
            final = folder / "final"
            final.mkdir()
            adds = adds_to(node, self.state.options)
            if adds and found:
                check_schema(node, found[0], place.path, self.state.options)
            files = []
            for inner, group in groupby(found, lambda part: part.parent.relative_to(parts)):
                (final / inner).mkdir(parents=True, exist_ok=True)
                first = next_number(place.path / inner) if adds else 0
                files += [part.rename(final / inner / f"part-{i:05}.parquet") for i, part in enumerate(group, first)]
            made_files = [assemble.Made(path, path.stat().st_size) for path in files]
            self._put_folder(final, made_files if report.records else [], node, place, report)
            return made_files
        made = one_parquet(found, folder / "final.parquet", node.config.options.compression)
        self._put(made.path, place.path, node, report)
        return [made]

    def _several(
        self, prepared: Prepared, found: list[Path], folder: Path, place: Target, report: OutputReport
    ) -> list[assemble.Made]:
        node, rendering = prepared.node, prepared.rendering
        split = node.config.split
        writer: SeveralParquet | assemble.SeveralFiles
        if rendering is None:
            writer = SeveralParquet(split, node.config.options.compression, lambda n, key: folder / f"final-{n}")
        else:
            writer = assemble.SeveralFiles(rendering, split, prepared.keyed, lambda n, key: folder / f"final-{n}")
        made = writer.write(found)
        taken: set[Path] = set()
        for number, item in enumerate(made, 1):

            def named(place: Target, number: int = number, item: assemble.Made = item) -> Path:
                if place.template is not None:
                    return per_file_path(self.state.base, place.template, self._file_name(item.key))
                assert split is not None
                return split_name(place.path, split.naming, number)

            path = named(place)
            if path in taken:  # the checks before the first job, and the order of the records, see to it
                message = f"two files of '{node.name}' would be written to '{path}'"
                help_text = "nothing was published; rename one of the inputs"
                raise IoError([node.diagnostic("E431", message, "config", "path", help=help_text)])
            taken.add(path)
            numbered = None if place.numbered is None else _path_of(place.numbered, named)
            source = None if item.key is None or place.template is None else self._file_name(item.key)
            path = self._free(node, path, numbered)
            self._put(item.path, path, node, report, source)
            if node.config.write_meta and place.template is not None:  # each file has its own
                self._meta(node, meta_path(path), folder, item, source)
        if writer.oversize and split is not None and split.oversize_group != "allow":
            shown = ", ".join(repr(key) for key in writer.oversize[:3])
            message = f"{len(writer.oversize)} group(s) do not fit one file: {shown}"
            code = "E408" if split.oversize_group == "error" else "W408"
            finding = node.diagnostic(code, message, "config", "split", help="allow larger files, or another group_key")
            if code == "E408":
                raise DataError([finding])
            self.state.report.warnings.append(finding)
        return made

    def _file_name(self, key: str | None) -> str:
        if key is None:
            return NO_FILE
        number = int(key)
        return self.state.files[self.state.plan.sources[number >> 32].name][number & 0xFFFFFFFF].name

    def _meta(self, node: OutputPlan, place: Path, folder: Path, made: assemble.Made, source: str | None) -> None:
        """What is to be known about an output, or about the one of its files that is made of one `source`."""
        mine = {name: [f.name for f in found] for name, found in self.state.files.items()}
        if source is not None:
            mine = {name: [source] for name, found in mine.items() if source in found}
        data = {
            "output": node.output_name,
            "pipeline": self.state.report.identity.pipeline,
            "execution_id": self.state.report.identity.execution_id,
            "batch_id": self.state.batch_id,
            "written_at": self.state.report.identity.started,
            "records": made.records,
            "bytes": made.size,
            "columns": [name for name, _ in node.columns],
            "sources": mine,
        }
        if adds_to(node, self.state.options) and place.exists():
            data |= with_added(place, made.records, None if self.state.options.replay else mine)
        draft = folder / f"{made.path.name}.meta.json"
        draft.write_text(json.dumps(data, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        with located(self.state):
            self.state.attempt.put(draft, place, node.name, source, replaces=True)

    def _free(self, node: OutputPlan, path: Path, numbered: Callable[[int], Path] | None) -> Path:
        """The path to write, by `if_exists`."""
        try:
            return free_path(node, path, self.state.options.force, numbered)
        except OSError as error:  # a name that is too long
            reason = (error.strerror or str(error)).lower()
            message, help_text = f"cannot write '{node.config.path}': {reason}", "choose another path"
            raise IoError([node.diagnostic("E401", message, "config", "path", help=help_text)]) from None


def _path_of(numbered: Callable[[int], Target], named: Callable[[Target], Path] | None = None) -> Callable[[int], Path]:
    """The path of the place with a number."""
    return lambda number: numbered(number).path if named is None else named(numbered(number))


def _suffix(node: OutputPlan) -> str:
    return {"csv": ".csv", "json": ".json", "xml": ".xml", "fixed_width": ".txt"}.get(node.config.type, "")


def _record_bytes(columns: tuple[Column, ...] | None) -> int | None:
    return max((end for _, end in field_layout(columns)), default=None) if columns else None
