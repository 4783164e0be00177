"""`--report`: the page of a run."""

from __future__ import annotations

from pathlib import Path

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.plan.graph import Plan
from clinker_spark.runtime.commit.small_files import replace_file
from clinker_spark.runtime.errors import IoError
from clinker_spark.runtime.run.report import RunReport


def write_page(place: Path, plan: Plan, report: RunReport) -> None:
    """Write it; the outputs of the run are published by then. Raises `IoError`."""
    # Only runs with a page pay for these.
    from clinker_spark.report.explain import explain
    from clinker_spark.report.page.run_page import RunPage
    from clinker_spark.runtime.reject.letter_files import read_letters, reasons

    found = [reason for path in report.letter_paths for reason in reasons(read_letters(path))]
    page = RunPage(plan, report, explain(plan, "text"), found)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        replace_file(place, page.html().encode())
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        help_text = "the run itself is done, and its outputs are published"
        raise IoError([Diagnostic("E401", f"cannot write '{place}': {reason}", help=help_text)]) from None
