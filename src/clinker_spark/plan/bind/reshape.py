"""Binding reshapes: the conditions and values of their rules."""

from __future__ import annotations

from clinker_spark.config.model.groups import ReshapeNode, ReshapeRule
from clinker_spark.core.diagnostics.suggest import did_you_mean
from clinker_spark.core.types import BOOL, Type, unify
from clinker_spark.cxl import ir
from clinker_spark.cxl.check.infer.overloads import widen
from clinker_spark.cxl.conditions import Condition, as_program
from clinker_spark.plan.bind.node import NodeBinder, Streams
from clinker_spark.plan.nodes.base import Schema
from clinker_spark.plan.nodes.reshape import ReshapePlan, Rule

Values = dict[tuple[int, str], tuple[str, ir.TExpr]]
"""By rule and hidden column: the column that it is a value for, and the value."""


def bind_reshape(binder: NodeBinder, node: ReshapeNode) -> Streams | None:
    """The streams of a reshape; None when it is wrong, which is noted then."""
    schema, config = binder.inputs[0].schema, node.config
    known = binder.known(schema, config.partition_by, "config", "partition_by")
    known &= binder.known(schema, [item.field for item in config.order_by], "config", "order_by")
    if not known:
        return None
    rules = [_rule(i, rule) for i, rule in enumerate(config.rules)]
    checked = [_check_columns(binder, node, rule, schema) for rule in rules]
    conditions = [
        binder.compile("config", "rules", rule.index, "when", schema=schema, condition=True) for rule in rules
    ]
    values = _values(binder, rules, schema)
    if not all(checked) or values is None or any(c is None for c in conditions):
        return None
    if not _distinct_writes(binder, rules, conditions):
        return None
    after = _schema_after(binder, schema, values)
    if after is None:
        return None
    flags = {rule.condition: BOOL.as_nullable() for rule in rules}
    return binder.made(
        ReshapePlan(
            **binder.common(after, tuple(after)),
            partition_by=tuple(config.partition_by),
            order_by=tuple(config.order_by),
            rules=tuple(rules),
            conditions=as_program(schema, [(r.condition, c.value) for r, c in zip(rules, conditions, strict=True)]),
            values=as_program(
                {**schema, **flags},
                [(name, _only_if(rules[i], value, after[column])) for (i, name), (column, value) in values.items()],
            ),
        )
    )


def _rule(index: int, rule: ReshapeRule) -> Rule:
    made = rule.synthesize
    return Rule(
        rule.name,
        index,
        tuple(rule.mutate.set_) if rule.mutate is not None else (),
        made is not None,
        tuple(made.overrides) if made is not None else (),
        made is not None and made.copy_from == "none",
    )


def _check_columns(binder: NodeBinder, node: ReshapeNode, rule: Rule, schema: Schema) -> bool:
    """Does a rule write columns that are there and may be written? Notes it if not."""
    before = len(binder.binder.found)
    at = ("config", "rules", rule.index)
    for keys, names in ((("mutate", "set"), rule.sets), (("synthesize", "overrides"), rule.overrides)):
        for name in names:
            if name not in schema:
                help_text = (
                    did_you_mean(name, schema) or f"the columns are {', '.join(schema)}; a transform can add one"
                )
                binder.problem("E203", f"there is no column '{name}'", *at, *keys, name, help=help_text, key=True)
    for name in rule.sets:
        if name in node.config.partition_by:
            message = f"rule '{rule.name}' changes '{name}', which decides about the group of a record"
            help_text = "change it in a transform before or after"
            binder.problem("E460", message, *at, "mutate", "set", name, help=help_text, key=True)
    missing = [name for name in schema if name not in rule.overrides]
    if rule.blank and missing:
        message = f"the record that rule '{rule.name}' adds has no value for {', '.join(missing)}"
        help_text = "write them into overrides, null if need be, or copy_from: trigger"
        binder.problem("E461", message, *at, "synthesize", "copy_from", help=help_text)
    return len(binder.binder.found) == before


def _values(binder: NodeBinder, rules: list[Rule], schema: Schema) -> Values | None:
    found: Values = {}
    fine = True
    for rule in rules:
        for keys, columns in (
            (("mutate", "set"), rule.set_columns),
            (("synthesize", "overrides"), rule.override_columns),
        ):
            for name, column in columns.items():
                value = binder.compile("config", "rules", rule.index, *keys, name, schema=schema, value=True)
                if value is None:
                    fine = False
                else:
                    found[rule.index, column] = (name, value.value)
    return found if fine else None


def _distinct_writes(binder: NodeBinder, rules: list[Rule], conditions: list[Condition]) -> bool:
    """Do no two rules change the same column of the same records for certain? Notes it if some do."""
    texts = [" ".join(c.program.typed.source.text.split()) for c in conditions]
    always = [isinstance(c.value, ir.Const) and c.value.value is True for c in conditions]
    fine = True
    for i, rule in enumerate(rules):
        for other in rules[:i]:
            shared = [name for name in rule.sets if name in other.sets]
            if shared and (texts[i] == texts[other.index] or (always[i] and always[other.index])):
                message = (
                    f"rules '{other.name}' and '{rule.name}' are about the same records, and both set '{shared[0]}'"
                )
                help_text = "every record of both would fail: set it in one of them, or let their conditions differ"
                at = ("config", "rules", i, "mutate", "set", shared[0])
                binder.problem("E462", message, *at, help=help_text, key=True)
                fine = False
    return fine


def _schema_after(binder: NodeBinder, schema: Schema, values: Values) -> dict[str, Type] | None:
    after = dict(schema)
    fine = True
    for (i, column), (name, value) in values.items():
        together = unify(after[name], value.type)
        if together is None:
            rule = binder.node.config.rules[i]  # type: ignore[attr-defined]
            number = int(column.rpartition(".")[2])
            sets = 0 if rule.mutate is None else len(rule.mutate.set_)
            keys = ("mutate", "set") if number < sets else ("synthesize", "overrides")
            message = f"'{name}' is {schema[name]}, and its new value is {value.type}"
            help_text = "convert the value: .to_int(), .to_string(), ..."
            binder.problem("E200", message, "config", "rules", i, *keys, name, help=help_text)
            fine = False
            continue
        after[name] = together
    return after if fine else None


def _only_if(rule: Rule, value: ir.TExpr, t: Type) -> ir.TExpr:
    """The value where the rule is true, as the column keeps it."""
    kind = t.as_nullable()
    condition = ir.Field(value.span, BOOL.as_nullable(), False, rule.condition)
    nothing = ir.Const(value.span, kind, False, None)
    widened = widen(value, kind)
    return ir.If(value.span, kind, widened.fallible, (condition,), (widened,), nothing)
