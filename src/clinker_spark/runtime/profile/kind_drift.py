"""What text files with several kinds of records hold now, compared with the kinds that are declared for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from clinker_spark.config.model.sources.record_kinds import RecordKind
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.nodes.source import SourcePlan
from clinker_spark.runtime.profile.samples import Sample
from clinker_spark.runtime.profile.shapes import record_file
from clinker_spark.spark.build.source_columns import conventions_of
from clinker_spark.spark.scan.files import SourceFile
from clinker_spark.spark.scan.kinds.lines import DelimitedKind, KindReader, structure_problem
from clinker_spark.spark.scan.kinds.source import kind_reader
from clinker_spark.spark.scan.record_plan import RecordFile, RecordPlan, RecordSplit
from clinker_spark.spark.scan.request import ReadRequest

Line = tuple[bytes, RecordKind | None]


def kinds_of(plan: Plan, node: SourcePlan, file: SourceFile, most: int) -> KindSample:
    """What the first `most` lines of a file are, and what is wrong with the file as a whole."""
    formats = tuple(plan.file.settings.date_formats)
    request = ReadRequest(
        source=node.name,
        files=(file,),
        columns=node.columns,
        options=node.config.options,
        conventions=conventions_of(node, node.config.on_unmapped.mode, formats),
    )
    reader = kind_reader(request)
    found = record_file(Path(file.path), node.config.compression, file.name)
    return KindSample(reader, found, most)


class KindSample:
    """The first lines of a file, by kind."""

    def __init__(self, reader: KindReader, file: RecordFile, most: int) -> None:
        self._reader = reader
        self._lines: dict[str, list[bytes]] = {}
        self.tags: Counter[str] = Counter()
        """Tags that no kind has, and how many lines have them."""
        self.records = 0
        for line, kind in islice(self._each(file), most):
            self.records += 1
            if kind is None:
                self.tags[reader.tag(line)] += 1
            else:
                self._lines.setdefault(kind.id, []).append(line)
        self.problem = structure_problem(reader, file) if reader.planned.spec.structure else None

    def _each(self, file: RecordFile) -> Iterator[Line]:
        for lines, kinds in self._reader.lines(file, RecordSplit(0)):
            yield from zip(lines, kinds, strict=True)

    def samples(self) -> Iterator[tuple[RecordKind, Sample]]:
        """The texts of each kind that is there, column by column."""
        for kind in self._reader.planned.spec.records:
            lines = self._lines.get(kind.id, [])
            if not lines:
                continue
            [mine] = [found for found in self._reader.kinds if found.id == kind.id]
            fields = tuple((column.name, str(column.data_type)) for column in kind.columns)
            rows = mine.rows(RecordPlan((), (), fields, None, record=True), lines)
            broken = {row for row, error in rows.errors.items() if error["kind"] == "structural_validation"}
            sample = Sample(records=len(lines) - len(broken), broken=len(broken))
            own = mine.columns if isinstance(mine, DelimitedKind) else [column.text for column in mine.reader.columns]
            sample.converters = {f"{kind.id}.{column.name}": column for column in own}
            for name, texts in rows.texts.items():
                values = texts.to_pylist()
                sample.columns[name] = [
                    None if text is None else mine.value_text(name, text)
                    for row, text in enumerate(values)
                    if row not in broken
                ]
            yield kind, sample
