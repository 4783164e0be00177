"""What sources and outputs outside of the file system share: their errors stand at a place in the pipeline."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from clinker_spark.config.model.connectors.settings import FromEnvironment
from clinker_spark.core.errors import InputError
from clinker_spark.plan.nodes.base import PlanNode
from clinker_spark.runtime.errors import IoError


def resolved(
    node: PlanNode, key: str, settings: Mapping[str, str | FromEnvironment], environment: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """Settings with what `{ env: NAME }` stands for. Tasks get what the driver found."""
    found: dict[str, str] = {}
    for name, value in settings.items():
        if isinstance(value, str):
            found[name] = value
            continue
        if value.env not in environment:
            message = f"the environment has no variable '{value.env}', which '{name}' is to be read from"
            help_text = f"set it before the stream is started: export {value.env}=..."
            at = (key,) if key == name else (key, name)
            raise IoError([node.diagnostic("E522", message, "config", *at, help=help_text)])
        found[name] = environment[value.env]
    return found


@contextmanager
def placed(node: PlanNode, *at: str) -> Iterator[None]:
    """Errors of clients at a key of the node's configuration."""
    try:
        yield
    except InputError as error:
        found = [node.diagnostic(d.code, d.message, "config", *at, help=d.help) for d in error.diagnostics]
        raise IoError(found) from error
