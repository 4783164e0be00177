"""Variables of the pipeline and of source files: their values are found before those who read them run."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from clinker_spark.cxl.system import Context
from clinker_spark.plan.graph import Plan
from clinker_spark.runtime.discover.envelopes import envelope_values
from clinker_spark.spark.build.builder import Builder
from clinker_spark.spark.build.passes import Pass, RunContext, Show
from clinker_spark.spark.operators.values import last_values


@dataclass
class Values:
    """What is known so far. `files` has the values of `$source.x` by document."""

    pipeline: dict[str, Any] = field(default_factory=dict)
    files: dict[str, dict[int, Any]] = field(default_factory=dict)


def with_defaults(plan: Plan, context: Context) -> Context:
    """The context with the declared variables as they are before anybody writes them."""
    scopes: dict[str, dict[str, Any]] = {"pipeline": {}, "source": {}, "record": {}}
    for (scope, name), value in plan.facts.variables.defaults.items():
        scopes[scope][name] = value
    return replace(
        context,
        pipeline={**context.pipeline, **scopes["pipeline"]},
        source={**context.source, **scopes["source"]},
        record={**context.record, **scopes["record"]},
    )


def with_values(context: RunContext, values: Values) -> RunContext:
    """Let the programs of passes read what is known."""
    known = {
        name: replace(of_node, pipeline={**of_node.pipeline, **values.pipeline})
        for name, of_node in context.contexts.items()
    }
    return replace(context, contexts=known, found=replace(context.found, values=values.files))


def with_found_values(context: RunContext, limit: int | None = None) -> RunContext:
    """The same with the values of all variables, for those who run no stages. They are found in at most `limit` records
    of each source."""
    values = Values(files=envelope_values(context.plan, context.files))
    for name in context.plan.facts.variables.writers:
        find_values(Builder(with_values(context, values), Pass(Show(values_of=name), limit)), values)
    return with_values(context, values)


def find_values(builder: Builder, known: Values) -> None:
    """Run the pipeline up to the transform whose values a pass shows, and keep the last value that each got."""
    of_pipeline, of_files = last_values(builder)
    known.pipeline |= of_pipeline
    known.files |= of_files
