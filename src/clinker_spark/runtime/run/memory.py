"""The memory of the Spark that is started for a pipeline."""

from __future__ import annotations

from collections.abc import Mapping

from clinker_spark.core.errors import ClinkerError
from clinker_spark.plan.graph import Plan

LEAST_MEMORY = 512 << 20
"""Spark keeps 300 MB for itself, and wants half as much again."""


def memory_settings(plan: Plan, master: str, conf: Mapping[str, str]) -> dict[str, str]:
    """What a declared `memory.limit` means for Spark: the heap of the driver, where the tasks run in it, or else that
    of each executor. A setting that is given wins. Raises `ClinkerError` for a limit that no JVM can start with."""
    settings = plan.file.settings
    key = "spark.driver.memory" if master.startswith("local") else "spark.executor.memory"
    declared = "memory" in settings.model_fields_set and "limit" in settings.memory.model_fields_set
    if not declared or key in conf:
        return {}
    limit = settings.memory.limit
    if limit < LEAST_MEMORY:
        message = f"Spark cannot start with {limit:,} bytes of memory"
        help_text = f"write at least {LEAST_MEMORY >> 20}M"
        path = ("pipeline", "memory", "limit")
        raise ClinkerError([plan.file.diagnostic("E312", message, path, help_text)])
    return {key: f"{limit >> 20}m"}
