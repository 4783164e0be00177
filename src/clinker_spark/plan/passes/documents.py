"""Which records belong to several files, and which to none because they were made of several."""

from __future__ import annotations

from dataclasses import replace

from clinker_spark.plan.facts import Facts, FileFacts
from clinker_spark.plan.graph import Plan


def find_documents(plan: Plan, facts: Facts) -> Facts:
    several: dict[str, bool] = {}
    mixes: dict[str, str] = {}
    for node in plan.nodes:
        several[node.name] = node.several_documents([several[ref.node] for ref in node.inputs])
        before = [mixes[ref.node] for ref in node.carried_from or node.inputs if ref.node in mixes]
        if node.mixes_files:
            mixes[node.name] = node.name
        elif before:
            mixes[node.name] = before[0]
    documents = frozenset(name for name, found in several.items() if found)
    return replace(facts, files=FileFacts(documents, mixes))
