"""What counted for a run: the limit, the policy, options of the pipeline and of clinker.toml, and what was done about
memory."""

from __future__ import annotations

from typing import Any

from clinker_spark.config.workspace import find_workspace
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.memory import shown_size
from clinker_spark.report.page.html import Html, element, number, table
from clinker_spark.runtime.measure.used import Used

_KINDS = {"limit_bytes": "bytes", "spilled_slot_bytes": "bytes", "peak_spill_bytes": "bytes"}
_SECONDS = ("paused_seconds", "held_back_seconds")
_WORDS = {
    "limit_bytes": "limit that was watched",
    "pauses": "times that readers were made to wait",
    "paused_seconds": "time that they waited",
    "held_back_jobs": "jobs that began later",
    "held_back_seconds": "time that they waited",
    "spilled_slots": "kept results that went to disk",
    "spilled_slot_bytes": "their size",
    "collections": "collections of garbage that were asked for",
    "peak_spill_bytes": "most on disk at once, where there is a cap",
}


def settings_table(plan: Plan) -> Html:
    """What the pipeline says about its run, and what stands for what it does not say."""
    settings = plan.file.settings
    memory = settings.memory
    limit = "60 % of the machine (default)" if plan.memory_limit is None else shown_size(plan.memory_limit)
    threads, batch = settings.concurrency.threads, settings.batch_size
    rows: list[tuple[str, Any]] = [
        ("memory limit", limit),
        ("backpressure", memory.backpressure),
        ("resume_threshold", f"{memory.resume_threshold:.0%}"),
        ("engine", settings.engine),
        ("threads", "one for each core (default)" if threads is None else threads),
        ("batch_size", "as the readers like (default)" if batch is None else batch),
        ("errors", plan.file.error_handling.strategy),
        *((f"variable {name}", value) for name, value in plan.vars.items()),
    ]
    return table(["setting", "value"], [[name, element("code", value)] for name, value in rows])


def arbitration_table(used: Used | None) -> Html:
    """What was done when memory ran short; nothing where nobody watched a limit."""
    if used is None or used.arbitration is None:
        return Html("")
    rows = []
    for name, word in _WORDS.items():
        value = used.arbitration.get(name)
        if value is not None:
            kind = "seconds" if name in _SECONDS else _KINDS.get(name, "count")
            rows.append([word, number(value, f"used.arbitration.{name}", kind)])
    return table(["memory", ""], rows, (1,))


def workspace_text(plan: Plan) -> Html:
    """clinker.toml, where there is one."""
    document = find_workspace(plan.file.path).document
    if document is None:
        return Html("")
    return element("details", element("summary", "clinker.toml"), element("pre", document.source.text))
