"""`type: route`: records go different ways."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from clinker_spark.config.model.base import Finding, Model
from clinker_spark.config.model.node import InputNode, text_of
from clinker_spark.config.tree.yaml import Mapping
from clinker_spark.config.values import Text, Words

MAX_BRANCHES = 256


class RouteConfig(Model):
    """The conditions, each with the name of its port."""

    mode: Literal["exclusive", "inclusive"] = "exclusive"
    """Each record takes the first branch that matches, or all of them."""
    conditions: Annotated[dict[str, Text], Field(min_length=1, max_length=MAX_BRANCHES)]
    """The name of each branch and its CXL condition, in order. Other nodes read node.branch."""
    default: Words
    """The name of the branch for records that match none."""

    @property
    def ports(self) -> tuple[str, ...]:
        """All branches, the default last."""
        return (*self.conditions, self.default)

    def check(self) -> Iterator[Finding]:
        for name in self.conditions:
            if not name or "." in name:
                help_text = "name branches without dots: other nodes read them as node.branch"
                yield Finding("E010", f"'{name}' cannot name a branch", ("conditions", name), help_text, on_key=True)
        if "." in self.default:
            help_text = "name branches without dots: other nodes read them as node.branch"
            yield Finding("E010", f"'{self.default}' cannot name a branch", ("default",), help_text)
        if self.default in self.conditions:
            see = (("conditions", self.default), "also a condition")
            help_text = "give the default a name of its own; a merge can bring the two together"
            yield Finding("E007", f"'{self.default}' is a condition and the default", ("default",), help_text, see=see)


class RouteNode(InputNode):
    """Sends each record to one of several branches, or to all that match."""

    type: Literal["route"]
    config: RouteConfig

    @classmethod
    def ports_in(cls, node: Mapping) -> tuple[str, ...] | None:
        config = node.get("config")
        conditions = config.get("conditions") if isinstance(config, Mapping) else None
        names = list(conditions.entries) if isinstance(conditions, Mapping) else []
        default = text_of(config, "default")
        return tuple(dict.fromkeys([*names, *([default] if default else [])])) or None
