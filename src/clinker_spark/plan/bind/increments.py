"""Sources that read only new files (`files.only_new`): can what is made of the new ones be added to what is there?"""

from __future__ import annotations

from collections.abc import Iterator

from clinker_spark.config.paths.templates import Token, parse_template
from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.nodes.base import PlanNode
from clinker_spark.plan.nodes.output import OutputPlan

_WHOLE = "remove 'only_new', so that every run reads all files"


def incremental_outputs(plan: Plan) -> list[OutputPlan]:
    """The outputs that a source with `only_new` leads to."""
    return [node for node in plan.outputs if any(source.only_new for source in plan.sources_of(node.name))]


def check_increments(plan: Plan) -> Iterator[Diagnostic]:
    """What would not be the same as after one run over all files."""
    new = {source.name for source in plan.sources if source.only_new}
    for node in plan.nodes:
        if any(before.name in new for before in _with_itself(plan, node)):
            yield from _looked_up(plan, node, new)
            yield from _not_added(node)
    for output in incremental_outputs(plan):
        yield from _replaced(output)
        yield from _added_again(plan, output, new)


def warn_of_increments(plan: Plan) -> Iterator[Diagnostic]:
    """What holds within one run only."""
    for output in incremental_outputs(plan):
        if output.config.if_exists == "append" and output.config.sort_order:
            message = "the records of each run are sorted by themselves: the output as a whole is not"
            help_text = "remove 'sort_order', or 'only_new' of its source"
            yield output.diagnostic("W442", message, "config", "sort_order", help=help_text)
    for source in plan.sources:
        if source.only_new and source.config.correlation_key:
            message = "groups are held together within one run: what an earlier run wrote of a group stays"
            help_text = "make sure that all records of a group come with the files of one run"
            yield source.diagnostic("W442", message, "config", "correlation_key", help=help_text)


def _with_itself(plan: Plan, node: PlanNode) -> list[PlanNode]:
    return [*plan.upstream(node.name), node]


def _looked_up(plan: Plan, node: PlanNode, new: set[str]) -> Iterator[Diagnostic]:
    """Records are looked up in all others, not in the new ones."""
    for i, ref in enumerate(node.inputs):
        sources = [before for before in _with_itself(plan, plan[ref.node]) if before.name in new]
        if node.is_build_side(i) and sources:
            message = f"'{node.name}' looks records up in '{ref.node}', and would find only those of new files"
            yield sources[0].diagnostic("E440", message, "config", "files", "only_new", help=_WHOLE)


def _not_added(node: PlanNode) -> Iterator[Diagnostic]:
    if not node.adds_up:
        what = "totals" if node.totals else "records"
        message = f"the {what} of '{node.name}' are made of the records of several files, old and new ones"
        help_text = "let totals be of one file each, or remove 'only_new', so that every run reads all files"
        yield node.diagnostic("E440", message, "name", help=help_text)
    if any(scope == "pipeline" for scope, _ in node.written_variables):
        message = f"the variables that '{node.name}' writes would be those of the new files alone"
        yield node.diagnostic("E440", message, "name", help=_WHOLE)


def _replaced(output: OutputPlan) -> Iterator[Diagnostic]:
    tokens = {token.name for token in parse_template(output.config.path) if isinstance(token, Token)}
    if output.config.if_exists == "overwrite" and not output.per_file and "execution_id" not in tokens:
        message = f"'{output.config.path}' would be replaced by the records of the new files alone"
        help_text = "write if_exists: append, or unique_suffix for a new file in each run"
        yield output.diagnostic("E440", message, "config", "path", help=help_text)


def _added_again(plan: Plan, output: OutputPlan, new: set[str]) -> Iterator[Diagnostic]:
    """Sources that are read whole, and whose records come to the output beside new ones."""
    todo, seen = [output.name], set[str]()
    while todo:
        node = plan[todo.pop()]
        if node.name in seen:
            continue
        seen.add(node.name)
        if not node.inputs and node.name not in new:
            message = f"every run would add all records of '{node.name}' to '{output.config.path}' again"
            help_text = f"write files: {{ only_new: true }} for '{node.name}', or give it an output of its own"
            yield output.diagnostic("E440", message, "config", "path", help=help_text)
        todo += [ref.node for i, ref in enumerate(node.inputs) if not node.is_build_side(i)]
