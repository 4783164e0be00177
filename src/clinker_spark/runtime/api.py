"""Pipelines from Python: `clinker_spark.load("p.yaml").run()`, or the DataFrame of any node in a notebook."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.errors import InputError
from clinker_spark.core.suggest import did_you_mean
from clinker_spark.cxl.lower.plan import quote
from clinker_spark.plan.nodes import OutputPlan, Plan, RoutePlan, StreamRef
from clinker_spark.plan.prepare import prepare
from clinker_spark.runtime.memory import memory_settings
from clinker_spark.runtime.options import Options, contexts
from clinker_spark.runtime.remote_copies import found_files
from clinker_spark.runtime.report import RunReport
from clinker_spark.runtime.run import run
from clinker_spark.runtime.source_order import with_known_order
from clinker_spark.runtime.spark_failures import explained
from clinker_spark.spark.operators.build import Builder
from clinker_spark.spark.session import SparkSession, session, working_session


@dataclass(frozen=True)
class Pipeline:
    """A checked pipeline. `plan` is what explain prints."""

    plan: Plan

    @classmethod
    def load(cls, path: str | Path, variables: Mapping[str, Any] | None = None) -> Pipeline:
        """Raises `ClinkerError` with everything that is wrong."""
        return cls(prepare(path, overrides=dict(variables or {})))

    def run(self, spark: SparkSession | None = None, **options: Any) -> RunReport:
        """Run it, in the given session, the active one, or an embedded one. `options` are those of `Options`."""
        return run(self.plan, spark or self._session(), Options(**options))

    def dataframe(self, node: str, spark: SparkSession | None = None) -> Any:
        """The records that leave a node (`node` or `node.port`), without those that fail, as a DataFrame."""
        ref = self._stream(node)
        options = Options()
        base = self.plan.file.folder
        with explained(self.plan):
            used = working_session(spark or self._session())
            files = found_files(used, self.plan, base, options.now)
            builder = with_known_order(self.plan, lambda plan: Builder(used, plan, contexts(plan, options), files))
            stream = builder.settle(self.plan[ref.node], builder.stream(ref))
        names = [name for name in stream.frame.columns if not name.startswith("$")]
        return stream.frame.select(*map(quote, names))

    def _session(self) -> SparkSession:
        return session(conf=memory_settings(self.plan, "local[*]", {}))

    def _stream(self, text: str) -> StreamRef:
        name, _, port = text.partition(".")
        nodes = {n.name: n for n in self.plan.nodes if not isinstance(n, OutputPlan)}
        found = nodes.get(name)
        if found is None:
            help_text = did_you_mean(name, nodes) or f"the nodes are {', '.join(nodes)}"
            raise InputError([Diagnostic("E004", f"there is no node '{name}' with records", help=help_text)])
        if isinstance(found, RoutePlan) and port not in found.ports:
            help_text = f"the branches are {', '.join(f'{name}.{p}' for p in found.ports)}"
            raise InputError([Diagnostic("E004", f"route '{name}' has no branch '{port}'", help=help_text)])
        return StreamRef(name, port or None)
