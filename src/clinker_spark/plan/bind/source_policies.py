"""Policies of sources that only make sense with those of the pipeline."""

from __future__ import annotations

from collections.abc import Iterator

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.plan.graph import Plan


def check_policies(plan: Plan) -> Iterator[Diagnostic]:
    """What sources ask for, and the pipeline does not allow."""
    for node in plan.sources:
        if node.config.files.on_bad_file == "skip" and plan.file.error_handling.strategy == "fail_fast":
            message = "a file that is skipped becomes a dead letter, and 'fail_fast' has none"
            help_text = "write error_handling: { strategy: continue, dlq: { path: dead-letters.csv } }"
            yield node.diagnostic("E438", message, "config", "files", "on_bad_file", help=help_text)
        if node.by_document and plan.file.error_handling.strategy == "fail_fast":
            message = "a file is set aside as dead letters, and 'fail_fast' has none"
            help_text = "write error_handling: { strategy: continue, dlq: { path: dead-letters.csv } }"
            yield node.diagnostic("E344", message, "config", "dlq_granularity", help=help_text)
