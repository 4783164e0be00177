"""What sources and outputs that are no files share: secrets, and errors that stand at a place in the pipeline."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from clinker_spark.config.findings.translate import finding_at
from clinker_spark.config.model.base import Finding
from clinker_spark.config.model.connectors.settings import FromEnvironment
from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.errors import InputError
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.nodes.base import PlanNode
from clinker_spark.runtime.errors import IoError

Place = Callable[[str, str, tuple[str, ...], str | None], Diagnostic]
"""Code, message, keys and help as a diagnostic at these keys."""


def of_node(node: PlanNode) -> Place:
    """Places in the configuration of a node."""
    return lambda code, message, at, help_text: node.diagnostic(code, message, "config", *at, help=help_text)


def of_letters(plan: Plan) -> Place:
    """Places in what is said about the topic of dead letters."""

    def place(code: str, message: str, at: tuple[str, ...], help_text: str | None) -> Diagnostic:
        finding = Finding(code, message, ("error_handling", "dlq", "topic", *at), help_text)
        return finding_at(finding, plan.file.document, ())

    return place


def resolved(
    place: Place, key: str, settings: Mapping[str, str | FromEnvironment], environment: Mapping[str, str] = os.environ
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
            raise IoError([place("E522", message, (key,) if key == name else (key, name), help_text)])
        found[name] = environment[value.env]
    return found


@contextmanager
def placed(place: Place, *at: str) -> Iterator[None]:
    """Errors of clients at these keys."""
    try:
        yield
    except InputError as error:
        raise IoError([place(found.code, found.message, at, found.help) for found in error.diagnostics]) from error
