"""A place that a run writes, and the key of the pipeline that says so."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from clinker_spark.config.load import LoadedFile
from clinker_spark.config.tree.yaml import KeyPath
from clinker_spark.core.diagnostics import Diagnostic, Label
from clinker_spark.runtime.paths.outputs import PartNames
from clinker_spark.spark.scan.files import SourceFile


@dataclass(frozen=True)
class Place:
    """A file that is written, or a folder, or the parts of a split."""

    path: Path
    writer: str
    """Who writes it, in words: one or several, so messages about it have verbs that fit both."""
    file: LoadedFile
    at: KeyPath | None
    """The key that says so; None when it is an option of the command."""
    folder: bool = False
    parts: PartNames | None = None
    """For the parts of a split, whose number nobody knows yet: how they are called. `path` is the first one."""
    made_of: SourceFile | None = None
    """The input file whose records go there, and no others."""
    root: Path | None = None
    """The folder that the file must lie in, whatever tokens stand for."""

    def diagnostic(self, code: str, message: str, help_text: str, see: Place | None = None) -> Diagnostic:
        if self.at is None:
            return Diagnostic(code, message, help=help_text)
        found = self.file.diagnostic(code, message, self.at, help_text)
        if see is None or see.file is not self.file or see.at is None or see.at == self.at:
            return found
        label = Label(see.file.span_of(see.at), f"this is the path of {see.writer}")
        return Diagnostic(
            found.code, found.message, found.source, found.span, found.help, found.severity, labels=(label,)
        )
