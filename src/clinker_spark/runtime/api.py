"""Pipelines from Python: `clinker_spark.load("p.yaml").run()`, or the DataFrame of any node in a notebook."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from clinker_spark.config.model.output import ParquetOutput
from clinker_spark.config.workspace import find_workspace
from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.diagnostics.suggest import did_you_mean
from clinker_spark.core.errors import InputError
from clinker_spark.cxl.lower.plan import quote
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.nodes.base import StreamRef
from clinker_spark.plan.nodes.output import OutputPlan
from clinker_spark.plan.passes.all import with_facts
from clinker_spark.plan.prepare import prepare
from clinker_spark.runtime.discover.remote_copies import found_files
from clinker_spark.runtime.discover.source_order import with_known_order
from clinker_spark.runtime.run.engine_failures import explained
from clinker_spark.runtime.run.memory import few_arenas, session_memory, with_spill_folder
from clinker_spark.runtime.run.options import Options, contexts
from clinker_spark.runtime.run.pipeline import run
from clinker_spark.runtime.run.report import RunReport
from clinker_spark.runtime.run.variables import with_found_values
from clinker_spark.spark.build.builder import Builder
from clinker_spark.spark.build.passes import RunContext
from clinker_spark.spark.session.sessions import SparkSession, active_session, session, working_session


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
        return run(self.plan, spark or self.session(), Options(**options))

    def dataframe(self, node: str, spark: SparkSession | None = None) -> Any:
        """The records that leave a node (`node` or `node.port`), without those that fail, as a DataFrame."""
        ref = self._stream(node)
        options = Options()
        base = self.plan.file.folder
        with explained(self.plan):
            used = working_session(spark or self.session())
            plan = _showing(self.plan, ref)
            files = found_files(used, plan, base, options.now)
            context = with_known_order(RunContext(used, plan, contexts(plan, options), files))
            builder = Builder(with_found_values(context))
            stream = builder.divert(plan[ref.node], builder.stream(ref))
        return stream.frame.select(*[quote(name) for name in plan[ref.node].schema])

    def session(self, usual: Mapping[str, str] = MappingProxyType({})) -> SparkSession:
        """The active session, or one as clinker.toml and the pipeline ask for it; `usual` are settings that they may
        say otherwise."""
        active = active_session()
        if active is not None:
            return active
        settings = find_workspace(self.plan.file.path).config.spark
        if settings.remote is not None:
            return session(conf=settings.conf, remote=settings.remote)
        memory = session_memory(self.plan, settings.master, settings.conf)
        few_arenas()
        conf = with_spill_folder({**usual, **memory.conf, **settings.conf})
        return session(memory.master, conf=conf, java_options=memory.java_options)

    def _stream(self, text: str) -> StreamRef:
        name, _, port = text.partition(".")
        nodes = {n.name: n for n in self.plan.nodes if n.streams}
        found = nodes.get(name)
        if found is None:
            help_text = did_you_mean(name, nodes) or f"the nodes are {', '.join(nodes)}"
            raise InputError([Diagnostic("E004", f"there is no node '{name}' with records", help=help_text)])
        if found.ports and (port or None) not in found.streams:
            help_text = f"the streams are {', '.join(str(StreamRef(name, p)) for p in found.streams)}"
            raise InputError([Diagnostic("E004", f"{found.kind} '{name}' has no branch '{port}'", help=help_text)])
        return StreamRef(name, port or None)


def _showing(plan: Plan, ref: StreamRef) -> Plan:
    """The plan with one more reader, which wants all columns of a stream: only what somebody wants is read."""
    node = plan[ref.node]
    reader = OutputPlan(
        name=f"$shown/{ref}",
        inputs=(ref,),
        schema=node.schema,
        emitted=tuple(node.schema),
        file=node.file,
        path=node.path,
        config=ParquetOutput.model_validate({"type": "parquet", "path": "-", "order": "any"}),
        columns=tuple((name, name) for name in node.schema),
        declared=None,
        output_name="-",
    )
    wider = replace(plan, nodes=(*plan.nodes, reader))
    return with_facts(wider)
