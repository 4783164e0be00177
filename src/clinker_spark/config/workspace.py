"""The workspace of a pipeline: the nearest folder above it with a `clinker.toml`, and what that says."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from clinker_spark.config.errors import ConfigError
from clinker_spark.config.files import read_source
from clinker_spark.config.findings.shape import keys
from clinker_spark.config.findings.translate import validate, value_span
from clinker_spark.config.model.documents.workspace import WorkspaceConfig
from clinker_spark.config.tree.toml import parse_toml
from clinker_spark.config.tree.yaml import Document, KeyPath, Mapping
from clinker_spark.core.diagnostics import Diagnostic, Severity
from clinker_spark.core.diagnostics.suggest import nearest
from clinker_spark.core.span import Source

FILE_NAME = "clinker.toml"
DEFAULT_RULES = "rules"


@dataclass(frozen=True)
class Workspace:
    """`root` is the folder of clinker.toml; without one, that of the pipeline, and `path` is None."""

    root: Path
    config: WorkspaceConfig = field(default_factory=WorkspaceConfig)
    path: Path | None = None
    warnings: tuple[Diagnostic, ...] = ()
    document: Document | None = None
    """The file with the places of its keys."""

    def diagnostic(self, code: str, message: str, path: KeyPath, help_text: str | None = None) -> Diagnostic:
        """A finding about a key of clinker.toml."""
        severity = Severity.WARNING if code.startswith("W") else Severity.ERROR
        if self.document is None:
            return Diagnostic(code, message, help=help_text, severity=severity)
        span = value_span(self.document, path)
        return Diagnostic(code, message, self.document.source, span, help_text, severity=severity)

    def rules_folder(self, given: str | Path | None, from_pipeline: str | None, folder: Path) -> Path:
        """Where CXL modules are: the command line, then the pipeline, then the catalog, then `rules/`."""
        if given is not None:
            return Path(given)
        if from_pipeline is not None:
            return folder / from_pipeline
        return self.root / (self.config.catalog.rules_root or DEFAULT_RULES)


def find_workspace(pipeline: str | Path) -> Workspace:
    """The workspace of a pipeline file (or of a folder). Raises `ConfigError` when its file is wrong."""
    start = Path(pipeline).absolute()
    folder = start if start.is_dir() else start.parent
    for candidate in (folder, *folder.parents):
        if (candidate / FILE_NAME).is_file():
            return load_workspace(candidate / FILE_NAME)
    return Workspace(folder)


def load_workspace(path: str | Path) -> Workspace:
    """Read and check a clinker.toml."""
    return parse_workspace(read_source(path), Path(path))


def parse_workspace(source: Source, path: Path) -> Workspace:
    """The same, from its text."""
    document = parse_toml(source)
    found: list[Diagnostic] = []
    root = document.root
    assert isinstance(root, Mapping)
    known = keys(WorkspaceConfig)
    for name in [name for name in root.entries if name not in known]:
        # Tables of other tools and of other versions are left alone; a slip of the pen is not.
        entry = root.entries.pop(name)
        close = nearest(name, known)
        if close is not None or not isinstance(entry.value, Mapping):
            help_text = f"did you mean '{close}'?" if close else f"the tables are {', '.join(known)}"
            what = "table" if isinstance(entry.value, Mapping) else "key"
            found.append(Diagnostic("E005", f"unknown {what} '{name}'", source, entry.key.span, help_text))
        elif entry.value.entries:
            message = f"the table [{name}] has no effect"
            help_text = f"the tables are {', '.join(known)}"
            found.append(Diagnostic("W005", message, source, entry.key.span, help_text, severity=Severity.WARNING))
    config = validate(WorkspaceConfig, document, (), found)
    if config is None or any(d.severity is Severity.ERROR for d in found):
        raise ConfigError(sorted(found, key=lambda d: d.span.start if d.span else 0))
    return Workspace(path.absolute().parent, config, path, tuple(found), document)
