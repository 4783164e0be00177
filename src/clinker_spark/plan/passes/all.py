"""All passes in their order. Each reads the plan and the facts of those before it, and adds its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from clinker_spark.plan.facts import Facts
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.passes.balance import find_components
from clinker_spark.plan.passes.bounds import find_bounds
from clinker_spark.plan.passes.buffers import find_buffers
from clinker_spark.plan.passes.correlation import find_keys
from clinker_spark.plan.passes.documents import find_documents
from clinker_spark.plan.passes.effects import find_idle_keys
from clinker_spark.plan.passes.estimates import find_estimates
from clinker_spark.plan.passes.exchanges import find_exchanges
from clinker_spark.plan.passes.fallibility import find_fallible
from clinker_spark.plan.passes.fragments import find_fragments
from clinker_spark.plan.passes.judgement import find_judgement
from clinker_spark.plan.passes.materialized import find_materialized
from clinker_spark.plan.passes.order import find_order
from clinker_spark.plan.passes.pass_through import find_cells
from clinker_spark.plan.passes.predictions import find_predictions
from clinker_spark.plan.passes.python_rows import find_python
from clinker_spark.plan.passes.required_columns import find_required
from clinker_spark.plan.passes.row_groups import find_row_groups
from clinker_spark.plan.passes.scheduling import find_launch_order
from clinker_spark.plan.passes.sides import find_sides
from clinker_spark.plan.passes.sorting import find_sorting
from clinker_spark.plan.passes.stages import find_stages
from clinker_spark.plan.passes.variables import find_variables

Pass = Callable[[Plan, Facts], Facts]

PASSES: tuple[Pass, ...] = (
    find_fallible,
    find_python,
    find_exchanges,
    find_order,
    find_sorting,
    find_required,
    find_bounds,
    find_documents,
    find_estimates,
    find_keys,
    find_judgement,
    find_row_groups,
    find_cells,
    find_fragments,
    find_materialized,
    find_buffers,
    find_predictions,
    find_launch_order,
    find_components,
    find_sides,
    find_variables,
    find_idle_keys,
    find_stages,
)


def with_facts(plan: Plan) -> Plan:
    """The plan with all facts about it. Whoever changes the nodes of a plan asks for them again."""
    facts = Facts()
    for find in PASSES:
        facts = find(plan, facts)
    return replace(plan, facts=facts)
