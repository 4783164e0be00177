"""Variables that transforms declare and write: who may write and read them, and of which source."""

from __future__ import annotations

from collections.abc import Iterator

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.diagnostics.suggest import did_you_mean
from clinker_spark.cxl import ir
from clinker_spark.cxl.hidden import variable_column
from clinker_spark.cxl.system import SOURCE_MEMBERS
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.nodes.base import PlanNode
from clinker_spark.plan.variables import SHARED, record_sources, sources_by_name, writers


def check_scopes(plan: Plan) -> Iterator[Diagnostic]:
    """A variable can only be read after it was written: by its writer, downstream of it, or after an init. It has one
    writer, and after several sources meet, one of theirs must be named."""
    yield from _check_writers(plan)
    known = writers(plan)
    for node in plan.nodes:
        told: set[tuple[str, ...]] = set()
        for ref in _system_refs(node):
            if (ref.namespace, *ref.path) in told or not ref.path:
                continue
            told.add((ref.namespace, *ref.path))
            scope, name = ref.namespace, ref.path[-1]
            if scope == "meta" and not any(before.audits for before in plan.upstream(node.name)):
                message = f"nothing before '{node.name}' writes $meta.{name}"
                yield _at(node, ref, "E171", message, "read it after a reshape")
                continue
            if scope == "doc" and (maker := _mixer(plan, node)) is not None:
                message = f"'{maker.name}' makes records of several files: no envelope is that of such a record"
                yield _at(node, ref, "E172", message, f"emit the value as a column before '{maker.name}'")
                continue
            if scope == "source" and (found := _check_source(plan, node, ref)) is not None:
                yield found
                continue
            writer = known.get((scope, name))
            if writer is None:
                continue
            if node.phase == "init" and writer.phase != "init" and scope in SHARED:
                message = f"'{node.name}' has 'phase: init', and '{writer.name}' writes ${scope}.{name} later"
                help_text = f"give '{writer.name}' phase: init, too, or remove it here"
                yield _at(node, ref, "E175", message, help_text)
            elif writer.phase != "init" and writer not in (node, *plan.upstream(node.name)):
                message = f"'{node.name}' reads ${scope}.{name}, which '{writer.name}' writes elsewhere"
                help_text = f"read it downstream of '{writer.name}', or write it in a transform with phase: init"
                yield _at(node, ref, "E171", message, help_text)


def _mixer(plan: Plan, node: PlanNode) -> PlanNode | None:
    """The node before which the records of another one still belonged to files."""
    todo = [ref.node for ref in node.carried_from or node.inputs]
    while todo:
        before = plan[todo.pop()]
        if before.inputs and before.mixes_files:
            return before
        todo += [ref.node for ref in before.carried_from]
    return None


def _check_writers(plan: Plan) -> Iterator[Diagnostic]:
    """Who declares a variable writes it, and nobody else. Within one file the loader has seen to the first."""
    first: dict[tuple[str, str], PlanNode] = {}
    for node in plan.nodes:
        for i, declared in enumerate(node.declares):
            other = first.setdefault((declared.scope, declared.name), node)
            if other is not node and declared.scope in SHARED:
                message = f"${declared.scope}.{declared.name} is declared by '{other.name}' and by '{node.name}'"
                help_text = "a variable has one writer in a run: give one of them another name"
                yield node.diagnostic("E014", message, "config", "declares", i, "name", help=help_text)
        own = {(declared.scope, declared.name) for declared in node.declares}
        for scope, name in dict.fromkeys(node.written_variables):
            if (scope, name) not in own:
                message = f"'{node.name}' writes ${scope}.{name}, which it does not declare"
                help_text = f"add declares: [{{ name: {name}, scope: {scope}, type: ... }}] to this transform"
                yield node.diagnostic("E203", message, "config", "cxl", help=help_text)


def _check_source(plan: Plan, node: PlanNode, ref: ir.SystemRef) -> Diagnostic | None:
    """`$source.x` and `$source.orders.x`: is it clear whose variable is meant?"""
    *input_name, name = ref.path
    if not input_name and name in SOURCE_MEMBERS:
        return None
    sources = record_sources(plan, node)
    names = ", ".join(source.name for source in sources)
    if not input_name:
        if len(sources) < 2:
            return None
        message = f"'{node.name}' has records of several sources, and $source.{name} does not say of which"
        help_text = f"write one of {', '.join(variable_column('source', source.name, name) for source in sources)}"
        return _at(node, ref, "E172", message, help_text)
    known = sources_by_name(plan, node)
    meant = known.get(input_name[0])
    if meant is None:
        message = f"'{node.name}' has no records of a source '{input_name[0]}'"
        return _at(node, ref, "E203", message, did_you_mean(input_name[0], known) or f"the sources are {names}")
    if name in SOURCE_MEMBERS:
        message = f"'{name}' belongs to each record: it has no value for a source"
        return _at(node, ref, "E172", message, f"write $source.{name}, or emit it as a column before")
    if len(meant) > 1:
        message = f"input '{input_name[0]}' has records of several sources"
        help_text = f"write one of {', '.join(variable_column('source', source.name, name) for source in meant)}"
        return _at(node, ref, "E172", message, help_text)
    return None


def _system_refs(node: PlanNode) -> Iterator[ir.SystemRef]:
    for expression in node.expressions():
        yield from (part for part in expression.walk() if isinstance(part, ir.SystemRef))


def _at(node: PlanNode, ref: ir.SystemRef, code: str, message: str, help_text: str) -> Diagnostic:
    """The finding where the variable stands in the program; at the node's config when it came from elsewhere."""
    spelled = variable_column(ref.namespace, *ref.path)
    for path in _texts(node):
        text = node.file.document.text_at(path)
        if text is not None and text.text[ref.span.start : ref.span.end] == spelled:
            return text.relocate(Diagnostic(code, message, span=ref.span, help=help_text))
    return node.diagnostic(code, message, "config", help=help_text)


def _texts(node: PlanNode) -> Iterator[tuple[str | int, ...]]:
    """Where the programs of a node stand."""
    config = (*node.path, "config")
    yield from ((*config, key) for key in ("cxl", "where"))
    for section, key in (("validations", "check"), ("log", "condition")):
        found = node.file.document.node((*config, section))
        count = len(found.data()) if found is not None and isinstance(found.data(), list) else 0
        yield from ((*config, section, i, key) for i in range(count))
    rules = node.file.document.node((*config, "rules"))
    for i in range(len(rules.data()) if rules is not None and isinstance(rules.data(), list) else 0):
        yield from ((*config, "rules", i, key) for key in ("when", "drop_group_when"))
    branches = node.file.document.node((*config, "conditions"))
    names = branches.data() if branches is not None and isinstance(branches.data(), dict) else {}
    yield from ((*config, "conditions", name) for name in names)
