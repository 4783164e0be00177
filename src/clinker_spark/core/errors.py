"""The one tree of errors; each knows the exit code of the process that ends with it."""

from __future__ import annotations

from collections.abc import Sequence

from clinker_spark.core.diagnostics import Diagnostic


class ClinkerError(Exception):
    """Anything the user is told about. `diagnostics` say what, where and what to do."""

    exit_code = 1

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__("; ".join(d.message for d in self.diagnostics))


class InputError(ClinkerError):
    """A file, option or record given to a command cannot be used."""

    exit_code = 2
