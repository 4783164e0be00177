"""Types as a schema spells them, for tests that write schemas."""

from __future__ import annotations

from clinker_spark.core.types import Kind, Type


def type_keyword(t: Type) -> str:
    """The schema spelling of a type, the inverse of `parse_type`."""
    if t.nullable:
        return f"nullable({type_keyword(t.unwrap())})"
    if t.kind is Kind.DATETIME:
        return "date_time"
    if t.kind is Kind.DECIMAL and t.scale is not None:
        return f"decimal({t.scale})"
    if t.element is not None and t.element.kind is not Kind.ANY:
        return f"{str(t.kind.value).lower()}({type_keyword(t.element)})"
    return str(t.kind.value).lower()
