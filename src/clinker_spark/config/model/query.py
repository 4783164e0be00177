"""`type: query`: a query over the records of other nodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from clinker_spark.config.model.base import Finding, Gone, Model
from clinker_spark.config.model.node import NodeModel
from clinker_spark.config.values import Text, Words


class QueryConfig(Model):
    """What is asked."""

    query: Text
    """The program, such as: from o in orders where o.total > 100 select {id: o.id}"""


class QueryNode(NodeModel):
    """Asks a query of the records of one or more nodes. Its result must be rows."""

    input_keys: ClassVar[tuple[str, ...]] = ("inputs",)

    type: Literal["query"]
    inputs: Annotated[tuple[Words, ...], Field(min_length=1)]
    """The nodes that are read, or node.port. In the query they go by their last word."""
    config: QueryConfig

    gone: ClassVar[dict[str, Gone]] = {"input": Gone("a query may read several nodes", "write 'inputs: [a]'")}

    def check(self) -> Iterator[Finding]:
        names = [query_name(text) for text in self.inputs]
        for i, name in enumerate(names):
            if not name.isidentifier():
                help_text = "rename the node: letters, digits and '_' only"
                yield Finding("E007", f"'{name}' cannot be a name in a query", ("inputs", i), help_text)
            if name in names[:i]:
                help_text = "put a transform in between, to give it another name"
                yield Finding("E007", f"two inputs are called '{name}'", ("inputs", i), help_text)


def query_name(text: str) -> str:
    """What an input is called in the query.

    >>> query_name("size.large")
    'large'
    """
    return text.rpartition(".")[2]
