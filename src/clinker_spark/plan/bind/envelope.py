"""Binding envelopes, and the outputs that write them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from clinker_spark.config.model.envelope_node import EnvelopeNode
from clinker_spark.config.model.sources.envelope import value_of
from clinker_spark.core.diagnostics.suggest import did_you_mean
from clinker_spark.core.types import INT, Kind, Type
from clinker_spark.cxl import ir
from clinker_spark.cxl.check.infer.groups import SCALE_HELP
from clinker_spark.cxl.conditions import as_program, compile_value
from clinker_spark.plan.bind.node import NodeBinder, Streams
from clinker_spark.plan.nodes.envelope import EnvelopePlan
from clinker_spark.plan.nodes.framing import WIRED, Framing, Sections, Total, envelope_column

_TOTAL = re.compile(r"\s*(\w+)\s*\(\s*(\*|\w+)?\s*\)\s*")
_NUMBERS = (Kind.INT, Kind.FLOAT, Kind.DECIMAL)
_TOTALS = ("count", "sum", "avg", "min", "max")

Headers = Mapping[str, Mapping[str, ir.TExpr]]
"""By section: its fields, and what gives them their values."""


def bind_envelope(binder: NodeBinder, node: EnvelopeNode) -> Streams | None:
    """The streams of an envelope; None when it is wrong, which is noted then."""
    config, schema = node.config, binder.inputs[0].schema
    made: dict[str, dict[str, ir.TExpr]] = {}
    fine = True
    for section, fields in config.header.items():
        for name in fields:
            value = binder.compile("config", "header", section, name, schema={}, value=True, codes={"E203": "E353"})
            fine &= value is not None
            if value is not None:
                made.setdefault(section, {})[name] = value.value
    footers: dict[str, dict[str, Total]] = {}
    for section, fields in config.footer.items():
        for name, text in fields.items():
            total = _total(binder, schema, text, "config", "footer", section, name)
            fine &= total is not None
            if total is not None:
                footers.setdefault(section, {})[name] = total
    wired = _wired(binder, made) if len(binder.inputs) > 1 else {}
    if not fine or wired is None:
        return None
    sections = Sections(config.strategy, {**wired, **_types(made)}, footers, wired=node.header)
    return binder.made(_plan(binder, made, sections))


def _wired(binder: NodeBinder, made: Headers) -> dict[str, dict[str, Type]] | None:
    """The section of the records that are headers; None if they cannot be, which is noted then."""
    body, header = binder.inputs
    if WIRED in made:
        message = f"a section '{WIRED}' is made here, and that is what the records of '{header.ref}' are"
        binder.problem("E347", message, "config", "header", WIRED, help="give the section another name", key=True)
        return None
    if binder.node.config.strategy == "preserve":  # type: ignore[attr-defined]
        help_text = "make the headers of records of the same files, or write strategy: concat"
        for bound, key in ((body, "body"), (header, "header")):
            maker = binder.made_of_several(bound.ref.node)
            if maker is not None:
                message = f"the records of '{bound.ref}' belong to no file: '{maker.name}' makes them of several"
                binder.problem("E351", message, key, help=help_text)
                return None
        if not binder.sources_of(body.ref.node) & binder.sources_of(header.ref.node):
            message = f"the records of '{header.ref}' and those of '{body.ref}' come from different sources"
            binder.problem("E351", message, "header", help=help_text)
            return None
    return {WIRED: {name: header.schema[name].as_nullable() for name in header.emitted}}


def _types(headers: Headers) -> dict[str, dict[str, Type]]:
    return {section: {name: value.type for name, value in fields.items()} for section, fields in headers.items()}


def _plan(binder: NodeBinder, headers: Headers, sections: Sections) -> EnvelopePlan:
    """A node that computes these headers, and then knows these sections."""
    stream = binder.inputs[0]
    columns = [
        (envelope_column(section, name), value) for section, fields in headers.items() for name, value in fields.items()
    ]
    return EnvelopePlan(
        **binder.common(stream.schema, stream.emitted),
        program=as_program(stream.schema, columns),
        made_sections=sections,
    )


def _of_files(binder: NodeBinder) -> dict[str, dict[str, ir.TExpr]]:
    """What the files of the sources say about all of their records: `$doc`, section by section."""
    found: dict[str, dict[str, ir.TExpr]] = {}
    for path in binder.scope.declares.get("doc", {}):
        section, _, name = path.partition(".")
        value = compile_value(value_of(path), {}, name=binder.name, declares=binder.scope.declares)
        found.setdefault(section, {})[name] = value.value
    return found


def _total(binder: NodeBinder, schema: Mapping[str, Type], text: str, *at: str | int) -> Total | None:
    """A field of a footer. Notes it if it is no total."""
    help_text = "write count(), or sum, avg, min or max of a column; make others in a transform or an aggregate"
    found = _TOTAL.fullmatch(text)
    if found is None or found[1] not in _TOTALS or ((found[2] or "*") == "*" and found[1] != "count"):
        binder.problem("E354", f"'{text}' is no total that a footer can have", *at, help=help_text)
        return None
    function, column = found[1], None if found[2] in (None, "*") else found[2]
    if column is None:
        return Total("count", None, INT)
    if column not in schema:
        known = did_you_mean(column, schema) or f"the columns are {', '.join(schema)}"
        binder.problem("E354", f"there is no column '{column}'", *at, help=known)
        return None
    t = schema[column]
    if function in ("sum", "avg") and (t.is_dynamic or t.kind not in _NUMBERS):
        binder.problem("E354", f"'{column}' is of type {t}, which has no {function}", *at, help=help_text)
        return None
    if function in ("min", "max") and (t.is_dynamic or t.kind in (Kind.ARRAY, Kind.MAP)):
        binder.problem("E354", f"'{column}' is of type {t}, which has no order", *at, help=help_text)
        return None
    if function != "count" and t.kind is Kind.DECIMAL and t.scale is None:
        message = f"{function} of '{column}', a Decimal whose scale is not known"
        binder.problem("E354", message, *at, help=SCALE_HELP)
        return None
    if function == "count":
        t = INT
    elif function == "avg" and t.kind is Kind.INT:
        t = Type(Kind.FLOAT)
    return Total(function, column, t.as_nullable())


def framing_of(binder: NodeBinder, config: Any) -> Framing | None:
    """What an output writes around its records; None if nothing, or if it is wrong, which is noted then."""
    known = binder.binder.by_name[binder.inputs[0].ref.node].envelope
    if not config.reconstruct_envelope or known is None:
        return None
    written = config.options.envelope
    at = ("config", "options", "envelope")
    fine = True
    for key in ("header_from_doc", "footer_from_doc"):
        name = getattr(written, key)
        there = known.headers if key == "header_from_doc" else {**known.headers, **known.footers}
        if name is not None and name not in there:
            help_text = did_you_mean(name, there) or (f"the sections are {', '.join(there)}" if there else None)
            message = f"there is no section '{name}': no source has it in its 'envelope', and no envelope node makes it"
            binder.problem("E347", message, *at, key, help=help_text or "add it to the envelope of the source")
            fine = False
    if not fine:
        return None
    header = None
    if written.header_from_doc is not None:
        header = tuple(known.fields(written.header_from_doc))
    footer: tuple[tuple[str, str | Total, Type], ...] | None = None
    if written.footer_from_doc is not None:
        totals = known.footers.get(written.footer_from_doc)
        if totals is not None:
            footer = tuple((name, total, total.type) for name, total in totals.items())
        else:
            footer = tuple(known.fields(written.footer_from_doc))
    if written.footer_record_count_field is not None:
        footer = (*(footer or ()), (written.footer_record_count_field, Total("count", None, INT), INT))
    echoed = {column for section in known.echoed for _, column, _ in known.fields(section)}
    return Framing(known.strategy == "preserve", header, footer, frozenset(echoed))


def with_envelope(binder: NodeBinder, config: Any) -> None:
    """What files say about their records is read where an output writes it, and nowhere else: a node of its own before
    the output gets it. It is there as well if no envelope node is."""
    if not config.reconstruct_envelope:
        return
    own = binder.binder.by_name[binder.inputs[0].ref.node].envelope
    known = {} if own is None else {**own.headers, **own.footers}
    written = config.options.envelope
    named = {written.header_from_doc, written.footer_from_doc} - set(known)
    found = {section: fields for section, fields in _of_files(binder).items() if section in named}
    if own is not None and own.wired is not None and written.header_from_doc in found:
        message = f"the header of these documents is a record of '{own.wired}', and not what the files say"
        help_text = f"write header_from_doc: {WIRED}"
        binder.problem("E347", message, "config", "options", "envelope", "header_from_doc", help=help_text)
        return
    if own is not None and not found:
        return
    sections = own or Sections("preserve", {}, {})
    sections = replace(sections, headers={**sections.headers, **_types(found)}, echoed=frozenset(found))
    made = replace(_plan(binder, found, sections), name=f"{binder.name}.envelope")
    [stream] = binder.made(made).values()
    binder.inputs = [stream]


def check_reader(binder: NodeBinder) -> None:
    """Documents are what outputs write: other nodes read the records before they are framed. Notes it if not."""
    for bound in binder.inputs:
        before = binder.binder.by_name.get(bound.ref.node)
        if before is not None and before.envelope is not None and binder.node.kind != "output":
            message = f"'{before.name}' makes documents for outputs, and '{binder.node.name}' is none"
            help_text = f"read what '{before.name}' reads, or put the envelope behind '{binder.node.name}'"
            binder.problem("E347", message, "input", help=help_text)
