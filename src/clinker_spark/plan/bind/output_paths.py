"""Paths of outputs, as far as the plan alone can tell: whether `{source_name}` means exactly one source."""

from __future__ import annotations

from collections.abc import Iterator

from clinker_spark.config.paths.templates import Token, parse_template
from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.diagnostics.suggest import did_you_mean
from clinker_spark.core.span import Span
from clinker_spark.plan.graph import Plan


def check_paths(plan: Plan) -> Iterator[Diagnostic]:
    """`{source_name}` of an output with several sources, or of a source that does not feed it."""
    for output in plan.outputs:
        tokens = [token for token in parse_template(output.config.path) if isinstance(token, Token)]
        for token in tokens:
            if token.name != "source_name":
                continue
            sources = [source.name for source in plan.sources_of(output.name)]
            wanted = token.args[0] if token.args else None
            if sources == [wanted] or (wanted in sources) or (wanted is None and len(sources) == 1):
                continue
            written = [f"{{source_name:{name}}}" for name in sources]
            if wanted is None:
                message = f"'{{source_name}}' does not say which source: '{output.name}' has {', '.join(sources)}"
                help_text = f"write one of {', '.join(written)}"
            elif any(source.name == wanted for source in plan.sources):
                message = f"source '{wanted}' does not feed output '{output.name}'"
                help_text = f"write {' or '.join(written)}"
            else:
                message = f"there is no source '{wanted}'"
                help_text = did_you_mean(wanted, sources) or f"write {' or '.join(written)}"
            place = Diagnostic("E407", message, span=Span(token.start, token.end), help=help_text)
            yield output.file.text_of((*output.path, "config", "path")).relocate(place)
