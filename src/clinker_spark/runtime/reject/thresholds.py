"""How many failures are too many, and the first one in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.plan.graph import Plan
from clinker_spark.runtime.errors import DataError
from clinker_spark.spark.rejects.letters import LetterCount
from clinker_spark.spark.scan.request import SourceFile

TYPE_FAILURES = ("type_coercion_failure", "missing_required_field")


def check(plan: Plan, counts: Sequence[LetterCount], records: Callable[[str | None], int]) -> None:
    """Raises `DataError` when a rate is reached. `records` counts what a source (None: all of them) has."""
    handling = plan.file.error_handling
    dlq = handling.dlq
    found: list[Diagnostic] = []
    total = sum(count.count for count in counts)
    if dlq.max_rate is not None:
        found += _rate("E315", "the pipeline", total, records(None), dlq.max_rate, dlq.min_records)
    for node in plan.sources:
        own = dlq.per_source.get(node.name)
        if own is None or own.max_rate is None:
            continue
        mine = sum(count.count for count in counts if count.source == node.index)
        least = dlq.min_records if own.min_records is None else own.min_records
        found += _rate("E316", f"source '{node.name}'", mine, records(node.name), own.max_rate, least)
    if handling.type_error_threshold is not None:
        typed = sum(c.count for c in counts if not plan.nodes[c.stage].inputs and c.category in TYPE_FAILURES)
        seen = records(None)
        if seen and typed / seen > handling.type_error_threshold:
            limit = f"{handling.type_error_threshold:.2%}"
            message = f"{typed} of {seen} records have values of the wrong type, more than {limit}"
            found.append(Diagnostic("E368", message, help="correct the schema, or the files"))
    if found:
        raise DataError(found)


def first_miss(plan: Plan, row: Mapping[str, Any], files: Mapping[str, tuple[SourceFile, ...]]) -> Diagnostic:
    """The first record without a match, where that is an error: nothing is written then."""
    help_text = "add the missing record, or write on_miss: null_fields or skip"
    message = f"{_where(plan, row, files)}{row['message']}"
    return plan.nodes[row["stage"]].diagnostic("E319", message, "config", "on_miss", help=help_text)


def check_output_rows(plan: Plan, pairs: Callable[[str], int]) -> None:
    """Raises `DataError` when a combine made more records than it may."""
    for node in plan.nodes:
        most = node.max_output_rows
        found = pairs(node.name) if most is not None else 0
        if most is not None and found > most:
            message = f"the join makes {found:,} records, more than {most:,}"
            help_text = "look for keys that many records share, or raise max_output_rows"
            raise DataError([node.diagnostic("E325", message, "config", "max_output_rows", help=help_text)])


def _rate(code: str, what: str, failed: int, seen: int, limit: float, least: int) -> list[Diagnostic]:
    if not seen or seen < least or failed / seen < limit:
        return []
    message = f"{failed} of {seen} records of {what} failed: {failed / seen:.2%}, the limit is {limit:.2%}"
    return [Diagnostic(code, message, help="nothing was written; look at the records with a higher max_rate")]


def first_failure(
    plan: Plan, row: Mapping[str, Any], files: Mapping[str, tuple[SourceFile, ...]], counts: Sequence[LetterCount]
) -> Diagnostic:
    """The first record that failed, in source and row order (`row`), in words."""
    node = plan.nodes[row["stage"]]
    field = f"field '{row['field']}': " if row["field"] else ""
    total = sum(count.count for count in counts)
    others = f" ({total} records fail in all)" if total > 1 else ""
    message = f"{_where(plan, row, files)}{field}{row['message']}{others}"
    help_text = "correct the record, or write error_handling: { strategy: continue, dlq: { path: dead-letters.csv } }"
    return node.diagnostic("E409", message, *node.failure_key, help=help_text)


def _where(plan: Plan, row: Mapping[str, Any], files: Mapping[str, tuple[SourceFile, ...]]) -> str:
    """Where a record was read; what was made of several was read nowhere."""
    if row["source"] is None:
        return ""
    return f"{files[plan.sources[row['source']].name][row['file']].name}, row {row['row']}: "
