"""The graph of a pipeline as a tree for the terminal: each source, what reads it, and after a run how many records.

A node with several inputs is drawn under the first of them; the others point to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from clinker_spark.plan.graph import Plan
from clinker_spark.plan.nodes.base import PlanNode, StreamRef
from clinker_spark.report.explain import display
from clinker_spark.runtime.run.report import RunReport

if TYPE_CHECKING:
    from rich.tree import Tree


def picture(plan: Plan, report: RunReport | None = None) -> Tree:
    """The tree; with a report, the numbers of a run stand beside the nodes."""
    from rich.text import Text  # rich is for terminals; a run without one starts without it
    from rich.tree import Tree

    letters = _letters(report)
    root = Tree(Text(plan.file.settings.name, style="bold"), guide_style="dim")
    for source in plan.sources:
        _grow(root, plan, source, None, report, letters)
    return root


def _grow(
    tree: Tree, plan: Plan, node: PlanNode, port: str | None, report: RunReport | None, letters: dict[str, int]
) -> None:
    from rich.text import Text  # rich is for terminals; a run without one starts without it

    label = Text()
    if port is not None:
        label.append(f"{port}: ", style="cyan")
    if node.files_read is not None:
        label.append(f"{node.files_read} → ", style="green")
    label.append(display(node))
    if node.files_written is not None:
        label.append(f" → {node.files_written}", style="green")
    if said := _numbers(node, report):
        label.append(f"   {said}", style="dim")
    if failed := letters.get(node.name):
        label.append(f"   {failed:,} dead letter{'s' if failed > 1 else ''}", style="yellow")
    branch = tree.add(label)
    for reader in plan.nodes:
        for i, ref in enumerate(reader.inputs):
            if ref.node == node.name:
                _reader(branch, plan, reader, i, ref, report, letters)


def _reader(
    branch: Tree,
    plan: Plan,
    reader: PlanNode,
    position: int,
    ref: StreamRef,
    report: RunReport | None,
    letters: dict[str, int],
) -> None:
    from rich.text import Text  # rich is for terminals; a run without one starts without it

    if position == 0:
        _grow(branch, plan, reader, ref.port, report, letters)
    else:
        branch.add(Text(f"⤷ goes into {reader.name}, above", style="dim"))


def _letters(report: RunReport | None) -> dict[str, int]:
    """Dead letters by the node at which their records failed."""
    found: dict[str, int] = {}
    for letter in () if report is None else report.letters:
        name = letter.source if letter.stage == "source" else letter.stage.partition(":")[2] or letter.stage
        found[name] = found.get(name, 0) + letter.count
    return found


def _numbers(node: PlanNode, report: RunReport | None) -> str:
    """What was read, passed, left out or written."""
    found = None if report is None else next((each for each in report.nodes if each.name == node.name), None)
    if found is None:
        return ""
    number = found.passed if node.streams else found.took
    if not node.inputs and number is not None:
        number += found.failed  # they were read, too
    parts = [] if number is None else [f"{number:,} {node.verb}"]
    parts += [f"{count:,} left out ({reason})" for reason, count in found.dropped.items() if count]
    return ", ".join(parts)
