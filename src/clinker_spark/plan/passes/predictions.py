"""How much memory each node is expected to hold, by the sizes of the files that are there before the run.

A source of one file brings the bytes of that file, and they are handed on: what nodes make of them is not known. Behind
a source of several files, or of a file that is not there, nothing is known.
"""

from __future__ import annotations

from dataclasses import replace

from clinker_spark.plan.facts import Facts, Predicted
from clinker_spark.plan.graph import Plan


def find_predictions(plan: Plan, facts: Facts) -> Facts:
    found: dict[str, Predicted] = {}
    known: dict[str, bool] = {}
    for node in plan.nodes:
        before = [found[ref.node].peak for ref in node.inputs]
        known[node.name] = all(known[ref.node] for ref in node.inputs) if before else node.name in plan.file_sizes
        if not known[node.name]:
            found[node.name] = Predicted()
        elif before:
            # What it does with memory is a fact: an output may have to sort.
            freed = sum(before) if node.name in facts.order.sorts else node.held(before)
            found[node.name] = Predicted(sum(before), freed)
        else:
            found[node.name] = Predicted(plan.file_sizes[node.name])
    reclaim: dict[str, int] = {}
    for node in reversed(plan.nodes):
        # Where chains meet, what comes after belongs to none of them.
        chain = [reader for reader in plan.readers(node.name) if len({ref.node for ref in reader.inputs}) == 1]
        reclaim[node.name] = max([found[node.name].freed, *(reclaim[reader.name] for reader in chain)])
    predicted = {name: replace(made, subtree_reclaim=reclaim[name]) for name, made in found.items()}
    return replace(facts, resources=replace(facts.resources, predicted=predicted, input_bytes=_input_bytes(plan)))


def _input_bytes(plan: Plan) -> int | None:
    sizes = [(source, plan.file_sizes.get(source.name)) for source in plan.sources]
    known = [source.unpacked(str(source.config.path), size) for source, size in sizes if size is not None]
    return sum(known) if len(known) == len(sizes) else None
