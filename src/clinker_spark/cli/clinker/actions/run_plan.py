"""What `clinker run` does before Spark starts: plan, explain, check files and folders."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from clinker_spark.cli.clinker.actions.planning import plan_of, show_warnings
from clinker_spark.cli.warm.fitting import wanted
from clinker_spark.cli.warm.start import handed_over
from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.streams import check_finite
from clinker_spark.report.explain import explain
from clinker_spark.report.explain_staging import staging_plan
from clinker_spark.runtime.arbitrate.spill_settings import check_spill, spill_warnings
from clinker_spark.runtime.paths.checks import check_paths, listed_files
from clinker_spark.runtime.paths.reservations import review
from clinker_spark.runtime.run.memory import check_limit
from clinker_spark.runtime.run.options import Options
from clinker_spark.runtime.staging.checks import check_staging


def run(pipeline: str, options: dict[str, Any]) -> int:
    """Run a pipeline, as far as the options ask for it."""
    code = handed_over(pipeline, lambda: wanted({"pipeline": pipeline, **options}))
    if code is not None:
        return code
    plan = None if options["machine"] else plan_of(pipeline, options)  # events tell of planning, too
    if plan is not None and options["explain"] is not None:
        folder = Path(options["base_dir"] or plan.file.folder)
        click.echo(explain(plan, options["explain"], staging_plan(plan, folder)), nl=False)
        return 0
    base = Path(options["base_dir"]) if options["base_dir"] else None
    run_options = Options(
        batch_id=options["batch_id"],
        force=options["force"],
        full=options["full"],
        base=base,
        spool=Path(options["metrics_spool_dir"]) if options["metrics_spool_dir"] else None,
        beside=_side_files(options),
        measure=options["report"] is not None,
    )
    if plan is not None and options["dry_run"]:
        check_limit(plan)
        check_finite(plan)
        check_spill(plan)
        show_warnings(_checked_paths(plan, run_options))
        if options["preview"] is None:
            click.echo(f"{pipeline}: {len(plan.nodes)} nodes, no errors")
            for node in plan.outputs:
                click.echo(f"  {node.name} -> {node.config.path}")
            return 0
    from clinker_spark.cli.clinker.actions.run_session import (
        run_on_spark,  # pyspark: a second, which a plan does not need
    )

    return run_on_spark(pipeline, plan, run_options, options)


def _side_files(options: dict[str, Any]) -> dict[str, Path]:
    given = {"--report": options["report"], "--dry-run-output": options["dry_run_output"]}
    return {name: Path(path) for name, path in given.items() if path is not None}


def _checked_paths(plan: Plan, options: Options) -> Sequence[Diagnostic]:
    """What is to be said about the files that a run would read and write. It lists files, and reads none."""
    files, warnings = listed_files(plan, options, options.base or plan.file.folder)
    warnings += check_paths(plan, options, files)
    check_staging(plan, files, options.base or plan.file.folder)
    review(plan, options, files)
    return [*warnings, *spill_warnings(plan)]
