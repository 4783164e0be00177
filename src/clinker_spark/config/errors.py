"""How a configuration can fail."""

from __future__ import annotations

from clinker_spark.core.errors import ClinkerError


class ConfigError(ClinkerError):
    """A pipeline, composition, schema or workspace file that cannot be used. Carries everything that is wrong."""

    exit_code = 1
