"""`type: combine`: a join of two to eight streams."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

from pydantic import GetJsonSchemaHandler
from pydantic_core import CoreSchema

from clinker_spark.config.model.base import Also, Finding, Gone, Model
from clinker_spark.config.model.documents.pipeline import FanoutPolicy
from clinker_spark.config.model.documents.variable import NAME
from clinker_spark.config.model.node import NodeModel
from clinker_spark.config.values import Count, Text, Tolerance, Words, problem, shown
from clinker_spark.core.diagnostics.suggest import did_you_mean

RESERVED = ("pipeline", "window", "meta", "doc")
MIN_INPUTS, MAX_INPUTS = 2, 8


class PropagateCk(Model):
    """Which correlation keys the joined records carry."""

    keys: Literal["driver", "all", "named"]
    named: tuple[Words, ...] = ()


def _read_keys(value: Any) -> Any:
    if isinstance(value, str) and value in ("driver", "all"):
        return {"keys": value}
    if isinstance(value, dict) and set(value) == {"named"}:
        return {"keys": "named", **value}
    raise problem("E007", f"'{{key}}' must be driver, all or {{ named: [..] }}, not {shown(value)}", "driver is usual")


class _Keys(Also):
    """Only the written forms are for people; the model is not one of them."""

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        names = {"type": "array", "items": {"type": "string"}, "minItems": 1}
        named = {"type": "object", "properties": {"named": names}, "required": ["named"], "additionalProperties": False}
        return {"anyOf": [{"type": "string", "enum": ["driver", "all"]}, named]}


class CombineConfig(Model):
    """The condition, and what each pair becomes."""

    where: Words
    """The CXL condition of the join; columns are written input.column."""
    match: Literal["first", "all", "collect", "latest"] = "first"
    """The first match only, one record per match, all matches in an array, or the latest match as of a time."""
    tolerance: Tolerance | None = None
    """For match: latest: how far back the match may lie, as a duration (5m) or, for numbers, a number."""
    ties: Literal["first", "last"] | None = None
    """For match: latest: which of several records at the same time is taken; by default the last one."""
    on_miss: Literal["null_fields", "skip", "error"] = "null_fields"
    """What happens to a record without a match: nulls, leave it out, or fail."""
    cxl: Text
    """The program for each pair; empty when matches are collected."""
    drive: Words | None = None
    """The probe side: the input whose records are looked up in the others; by default the first."""
    strategy: Literal["auto", "grace_hash"] = "auto"
    """How the join is run."""
    propagate_ck: Annotated[PropagateCk, _Keys(_read_keys)]
    """Which correlation keys the result carries: driver, all, or { named: [..] }."""
    correlation_fanout_policy: FanoutPolicy | None = None
    """Which records of a failed group are withheld."""
    max_output_rows: Count | None = None
    """Fail when the join makes more records than this."""

    def check(self) -> Iterator[Finding]:
        if self.match == "collect" and self.cxl.strip():
            help_text = 'write cxl: "" here, and compute in a transform after this node'
            yield Finding("E311", "'match: collect' takes no program", ("cxl",), help_text, on_key=True)
        for key in ("tolerance", "ties"):
            if getattr(self, key) is not None and self.match != "latest":
                yield Finding("E007", f"'{key}' goes with match: latest", (key,), "remove it", on_key=True)
        if self.propagate_ck.keys == "named" and not self.propagate_ck.named:
            yield Finding("E007", "'named' lists no key", ("propagate_ck",), "write { named: [column] }, driver or all")


class CombineNode(NodeModel):
    """Joins the records of two to eight nodes."""

    input_keys: ClassVar[tuple[str, ...]] = ("input",)

    type: Literal["combine"]
    input: dict[str, Words]
    """The name of each input and the node it is; the first drives the join unless 'drive' says otherwise."""
    config: CombineConfig

    gone: ClassVar[dict[str, Gone]] = {
        "inputs": Gone(
            "a combine names its inputs", "write 'input:' with a mapping: { orders: orders, products: products }"
        )
    }

    def check(self) -> Iterator[Finding]:
        if not MIN_INPUTS <= len(self.input) <= MAX_INPUTS:
            message = f"a combine takes {MIN_INPUTS} to {MAX_INPUTS} inputs, not {len(self.input)}"
            yield Finding(
                "E300", message, ("input",), "write 'input: { orders: orders, products: products }'", on_key=True
            )
        for name in self.input:
            if name in RESERVED:
                message = f"'{name}' cannot name an input: programs use the word for something else"
                yield Finding("E301", message, ("input", name), "give the input another name", on_key=True)
            elif not NAME.fullmatch(name):
                help_text = "use letters, digits and '_': programs write input.column"
                yield Finding("E301", f"'{name}' cannot name an input", ("input", name), help_text, on_key=True)
        drive = self.config.drive
        if drive is not None and drive not in self.input:
            help_text = did_you_mean(drive, self.input) or f"the inputs are {', '.join(self.input)}"
            yield Finding("E306", f"there is no input '{drive}'", ("config", "drive"), help_text)

    @property
    def probe_name(self) -> str:
        """The probe side: the input whose records are looked up in the others."""
        return self.config.drive or next(iter(self.input))
