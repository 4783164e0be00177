"""Variables of the pipeline and of source files: their values are found before those who read them run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from clinker_spark.cxl.system import Context
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.nodes.base import PlanNode
from clinker_spark.spark.operators.build import Builder
from clinker_spark.spark.operators.values import last_values


@dataclass
class Values:
    """What is known so far. `files` has the values of `$source.x` by document."""

    pipeline: dict[str, Any] = field(default_factory=dict)
    files: dict[str, dict[int, Any]] = field(default_factory=dict)


def with_defaults(plan: Plan, context: Context) -> Context:
    """The context with the declared variables as they are before anybody writes them."""
    scopes: dict[str, dict[str, Any]] = {"pipeline": {}, "source": {}, "record": {}}
    for (scope, name), value in plan.facts.variable_defaults.items():
        scopes[scope][name] = value
    return replace(
        context,
        pipeline={**context.pipeline, **scopes["pipeline"]},
        source={**context.source, **scopes["source"]},
        record={**context.record, **scopes["record"]},
    )


def with_values(context: Context, values: Mapping[str, Any]) -> Context:
    return replace(context, pipeline={**context.pipeline, **values})


def settle_values(plan: Plan, build: Callable[[], Builder]) -> Values:
    """The values of all variables, for those who run no stages. `build` makes builders."""
    values = Values()
    for name in plan.facts.variable_writers:
        builder = build()
        give_values(builder, values)
        find_values(builder, plan[name], values)
    return values


def give_values(builder: Builder, values: Values) -> None:
    """Let the programs of a pass read what is known."""
    builder.contexts = {name: with_values(context, values.pipeline) for name, context in builder.contexts.items()}
    builder.file_values = values.files


def find_values(builder: Builder, node: PlanNode, known: Values) -> None:
    """Run the pipeline up to a transform and keep the last value that each of its variables got."""
    of_pipeline, of_files = last_values(builder, node)
    known.pipeline |= of_pipeline
    known.files |= of_files
