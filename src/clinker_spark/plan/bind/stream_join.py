"""Binding stream joins: both sides have a time and keys that can be equal, and all names of the result differ."""

from __future__ import annotations

from clinker_spark.config.model.stream_join import SIDES, StreamJoinNode
from clinker_spark.core.types import Kind, Type
from clinker_spark.cxl.conditions import Condition
from clinker_spark.plan.bind.node import NodeBinder, Streams
from clinker_spark.plan.nodes.stream_join import JoinedColumn, StreamJoinPlan


def bind_stream_join(binder: NodeBinder, node: StreamJoinNode) -> Streams | None:
    """The plan of a join; None when something is wrong, which is noted then."""
    return _Binder(binder, node).bind()


class _Binder:
    def __init__(self, binder: NodeBinder, node: StreamJoinNode) -> None:
        self.binder = binder
        self.node = node
        self.config = node.config
        # The inputs are bound in the order in which they are written.
        bound = dict(zip(node.input, binder.inputs, strict=True))
        self.inputs = [bound[side] for side in SIDES]
        binder.inputs = self.inputs

    def bind(self) -> Streams | None:
        keys = self._keys()
        events = [self._event(i) for i in range(2)]
        columns = self._columns()
        condition = self._condition()
        wrong = self.config.where is not None and condition is None
        if not keys or columns is None or wrong or events[0] is None or events[1] is None:
            return None
        schema = {c.name: self._type(c) for c in columns}
        plan = StreamJoinPlan(
            **self.binder.common(schema, tuple(schema)),
            config=self.config,
            schemas=(self.inputs[0].schema, self.inputs[1].schema),
            events=(events[0], events[1]),
            columns=columns,
            condition=condition,
        )
        return self.binder.made(plan)

    def _type(self, column: JoinedColumn) -> Type:
        """Of a record without a match the other side is null."""
        t = self.inputs[column.side].schema[column.source]
        missing = self.config.kind in ("full", ("right", "left")[column.side])
        return t.as_nullable() if missing else t

    def _keys(self) -> bool:
        fine = True
        for i, side in enumerate(SIDES):
            names = (self.config.left_keys, self.config.right_keys)[i]
            fine &= self.binder.known(self.inputs[i].schema, names, "config", f"{side}_keys")
        if not fine:
            return False
        for i, pair in enumerate(zip(self.config.left_keys, self.config.right_keys, strict=True)):
            left, right = (self.inputs[side].schema[name] for side, name in enumerate(pair))
            if left.is_dynamic or right.is_dynamic or left.kind is not right.kind:
                message = f"a key of type {left} cannot be compared with one of type {right}"
                help_text = "convert one of them in a transform before the join"
                self.binder.problem("E500", message, "config", "right_keys", i, help=help_text)
                fine = False
            elif left.kind in (Kind.ARRAY, Kind.MAP):
                message = f"values of type {left} cannot be keys"
                self.binder.problem("E500", message, "config", "left_keys", i, help="join by one of their values")
                fine = False
        return fine

    def _event(self, i: int) -> str | None:
        """The column with the time of an input's records."""
        bound, side = self.inputs[i], SIDES[i]
        name = self.binder.binder.known.events[bound.ref.node]
        if name is None:
            message = f"the records of the {side} input '{bound.ref}' have no time"
            help_text = "add 'watermark: { column: .., delay: .. }' to its source, and leave that column as it is; "
            help_text += "a full join can only be the last one"
            self.binder.problem("E501", message, "input", side, help=help_text)
        elif bound.schema[name].nullable:
            message = f"the time of the {side} input '{bound.ref}', '{name}', may be null"
            help_text = f"declare '{name}' as date_time; records without a time are dead letters then"
            self.binder.problem("E501", message, "input", side, help=help_text)
            return None
        return name

    def _columns(self) -> tuple[JoinedColumn, ...] | None:
        found: dict[str, JoinedColumn] = {}
        fine = True
        for i, side in enumerate(SIDES):
            asked = (self.config.left_columns, self.config.right_columns)[i]
            prefix = (self.config.left_prefix, self.config.right_prefix)[i]
            schema = self.inputs[i].schema
            if asked is not None and not self.binder.known(schema, asked, "config", f"{side}_columns"):
                fine = False
                continue
            for name in schema if asked is None else asked:
                column = JoinedColumn(prefix + name, i, name)
                if column.name in found:
                    other = found[column.name]
                    message = f"{side}.{name} and {SIDES[other.side]}.{other.source} would both be '{column.name}'"
                    help_text = "give the sides different prefixes, or leave one of the columns out"
                    key = f"{side}_prefix" if f"{side}_prefix" in self.config.model_fields_set else "kind"
                    place = ("config", key) if key in self.config.model_fields_set else ("config",)
                    self.binder.problem("E502", message, *place, help=help_text)
                    fine = False
                    break
                found[column.name] = column
        if fine and not found:
            self.binder.problem("E502", "the join has no column", "config", help="name at least one column")
            fine = False
        return tuple(found.values()) if fine else None

    def _condition(self) -> Condition | None:
        if self.config.where is None:
            return None
        schema = {
            f"{side}.{n}": t for side, bound in zip(SIDES, self.inputs, strict=True) for n, t in bound.schema.items()
        }
        found: Condition | None = self.binder.compile("config", "where", schema=schema, condition=True, code="E303")
        if found is not None and found.value.fallible:
            message = "the condition of a stream join must not be able to fail"
            help_text = "compute what can fail in a transform before the join, or test the pairs after it"
            self.binder.problem("E507", message, "config", "where", help=help_text)
            return None
        return found
