"""How a run ends early."""

from __future__ import annotations

from clinker_spark.core.errors import ClinkerError


class DataError(ClinkerError):
    """Records failed, and the pipeline does not allow that (or not so many)."""

    exit_code = 3


class IoError(ClinkerError):
    """A file cannot be read or written, or Spark failed for an outside reason."""

    exit_code = 4


class AccountingError(IoError):
    """The numbers of a run do not agree: a record may be lost, so nothing is published."""


class PathError(ClinkerError):
    """The pipeline, or what the command line adds to it, names paths that cannot be used together. Nothing ran."""
