"""How reading a dataset fails."""

from __future__ import annotations

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.errors import InputError


class DatasetError(InputError):
    """The dataset, or what is asked of it, cannot be used."""

    def __init__(self, code: str, message: str, help_text: str | None = None) -> None:
        super().__init__([Diagnostic(code, message, help=help_text)])

    def __reduce__(self) -> tuple[type, tuple[str, str, str | None]]:  # workers send it to the driver
        [found] = self.diagnostics
        return type(self), (found.code, found.message, found.help)


class DatasetDamaged(DatasetError):
    """Bytes are not what the manifest says, or cannot be had."""

    exit_code = 4
