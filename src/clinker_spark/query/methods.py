"""CXL's methods as seen from queries: which signature takes arguments of these types, and what it gives."""

from __future__ import annotations

from collections.abc import Sequence

from clinker_spark.core.span import NO_SPAN
from clinker_spark.core.types import Kind, Type
from clinker_spark.cxl.builtins import methods
from clinker_spark.cxl.builtins.table import Builtin, Overload
from clinker_spark.cxl.check.infer.overloads import candidates
from clinker_spark.cxl.ir import Slot
from clinker_spark.query.types import QType, to_core

OTHER_NAMES = {"padStart": "pad_left", "substr": "substring"}
"""Functions of the query language that are methods of CXL under another name."""


def method(name: str) -> Builtin | None:
    """The method of CXL that a name stands for; None when there is none.

    >>> method("upper").name, method("padStart").name, method("count")
    ('upper', 'pad_left', None)
    """
    return methods().get(OTHER_NAMES.get(name, name))


def choose(builtin: Builtin, args: Sequence[QType]) -> tuple[Overload, Type] | None:
    """The nearest signature and its result; None when none takes the arguments.

    >>> from clinker_spark.core.types import INT, STRING
    >>> str(choose(methods()["left"], [STRING, INT])[1]), choose(methods()["left"], [INT, INT])
    ('Nullable(String)', None)
    """
    types = [to_core(t) for t in args]
    found = candidates(builtin, [Slot(NO_SPAN, t, False, "") for t in types])
    if not found:
        return None
    _, overload, _ = found[0]
    bare = [t.unwrap() for t in types]
    result = overload.result_type(bare)
    if any(t.nullable for t in types) and builtin.nulls.name != "PASS":
        result = result.as_nullable()
    dynamic = any(t.kind is Kind.ANY for t in types)
    return overload, (result.as_dynamic() if dynamic and len(found) > 1 else result)
