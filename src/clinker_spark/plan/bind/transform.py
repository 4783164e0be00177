"""Binding transforms: the program, its window, its logs and checks."""

from __future__ import annotations

from clinker_spark.config.model.transform import TransformNode
from clinker_spark.cxl import ir
from clinker_spark.cxl.program import Program
from clinker_spark.plan.bind.node import NodeBinder, Streams
from clinker_spark.plan.bind.transforms.record_logs import bind_logs
from clinker_spark.plan.bind.transforms.validations import bind_checks
from clinker_spark.plan.bind.transforms.windows import bind_window
from clinker_spark.plan.nodes.transform import TransformPlan


def bind_transform(binder: NodeBinder, node: TransformNode) -> Streams | None:
    """The streams of a transform; None when it is wrong, which is noted then."""
    schema = binder.inputs[0].schema
    config = node.config
    spec = config.analytic_window
    other = binder.inputs[1].schema if len(binder.inputs) > 1 else None
    program: Program | None = binder.compile(
        "config", "cxl", schema=schema, max_expansion=config.max_expansion, window_schema=other
    )
    if program is None:
        return None
    window = None
    if spec is not None:
        window = bind_window(binder, spec, schema, other, program)
        if window is None:
            return None
    elif _looks_through(program):
        help_text = "add analytic_window: { group_by: [..] }"
        binder.problem("E200", "$window needs an 'analytic_window'", "config", "cxl", help=help_text)
        return None
    logs = bind_logs(binder, node, schema)
    if logs is None:
        return None
    after = {**schema, **program.output}
    checks = bind_checks(binder, node, after)
    if checks is None:
        return None
    emitted = tuple(name for name in after if name in program.output)
    return binder.made(
        TransformPlan(
            **binder.common(after, emitted),
            program=program,
            window=window,
            checks=checks,
            declares=config.declares,
            phase=config.phase,
            log=config.log,
            record_logs=logs,
        )
    )


def _looks_through(program: Program) -> bool:
    """Does it look at other records?"""
    nodes = (node for e in program.typed.expressions() for node in e.walk())
    return any(isinstance(node, ir.WindowRef) for node in nodes)
