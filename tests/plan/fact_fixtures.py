"""Fixtures of passes: one text file with a pipeline and what the passes find out about it, side by side.

A file is `fixtures/<pass>/<case>.txt`: the pipeline with a comment about the case, input files (`==== orders.csv`, and
what is in them) where their sizes matter, a line `----`, and the fields of `Facts` that the pass owns.
`python -m tests.plan.fact_fixtures` writes the facts as they are now into all of them.
"""

from __future__ import annotations

import ast
import inspect
import re
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from clinker_spark.config.model.order import SortField
from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.types import Type
from clinker_spark.plan.facts import Facts, Required
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.memory import Holder
from clinker_spark.plan.passes.all import PASSES
from clinker_spark.plan.prepare import prepare
from clinker_spark.plan.stages import sort_words

FOLDER = Path(__file__).parent / "fixtures"
LINE = "----\n"
_FILE = re.compile(r"^==== (.+)\n", re.MULTILINE)


def cases() -> list[Path]:
    return sorted(FOLDER.rglob("*.txt"))


def owner(path: Path) -> str:
    """The pass that a fixture is about."""
    return path.parent.name


def owned(name: str) -> list[str]:
    """The facts that a pass owns."""
    return _OWNED[name]


def rewritten(path: Path) -> str:
    """The fixture with the facts as they are now."""
    head = path.read_text(encoding="utf-8").split(LINE)[0]
    plan = planned(head)
    known = dict(facts_of(plan.facts))
    return head + LINE + "".join(shown(name.rpartition(".")[2], known[name]) for name in owned(owner(path)))


def facts_of(facts: Any, within: str = "") -> Iterator[tuple[str, Any]]:
    """All facts, by name; those of a group after its name: `order.sorting`."""
    for field in fields(facts):
        value = getattr(facts, field.name)
        if is_dataclass(value):
            yield from facts_of(value, f"{field.name}.")
        else:
            yield f"{within}{field.name}", value


def planned(text: str) -> Plan:
    """The plan of a fixture. Nothing is known about the sizes of files that are not in it."""
    pipeline, *files = _FILE.split(text)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pipeline.yaml"
        path.write_text(pipeline, encoding="utf-8")
        for name, content in zip(files[::2], files[1::2], strict=True):
            Path(folder, name).write_text(content, encoding="utf-8")
        return prepare(path)


def shown(name: str, value: Any) -> str:
    """A fact as lines: its name, and one line for each thing that it says."""
    lines = list(_lines(value))
    return f"{name}: {lines[0]}\n" if len(lines) == 1 and not lines[0].startswith("  ") else _block(name, lines)


def _block(name: str, lines: list[str]) -> str:
    return f"{name}:\n" + "".join(f"{line}\n" for line in lines)


def _lines(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        yield from (f"  {_key(key)}: {_text(item)}" for key, item in value.items())
        if not value:
            yield "nothing"
    elif isinstance(value, tuple) and any(is_dataclass(item) for item in value):
        yield from (f"  {_text(item)}" for item in value)
    else:
        yield _text(value)


def _key(key: Any) -> str:
    return ".".join(key) if isinstance(key, tuple) else str(key)


def _text(value: Any) -> str:
    match value:
        case None:
            return "unknown"
        case bool():
            return "yes" if value else "no"
        case Type():
            return str(value)
        case SortField():
            return sort_words(value)
        case Holder():
            return f"{value.words} ({value})"
        case Diagnostic():
            return f"{value.code} {value.message}"
        case frozenset():
            return ", ".join(sorted(value)) or "nothing"
        case tuple():
            return (
                ", ".join(f"({_text(item)})" if isinstance(item, tuple) else _text(item) for item in value) or "nothing"
            )
        case Mapping():
            return ", ".join(f"{key}: {_text(item)}" for key, item in value.items()) or "nothing"
        case _ if is_dataclass(value):
            parts = ((field.name, getattr(value, field.name)) for field in fields(value))
            said = "; ".join(f"{name} {_text(item)}" for name, item in parts if not _goes_without_saying(value, item))
            return f"{type(value).__name__}: {said}" if type(value).__module__.endswith("stages") else said or "nothing"
        case _:
            return str(value)


def _goes_without_saying(value: Any, item: Any) -> bool:
    """Nothing at all, and what a node need not provide."""
    return item in ((), frozenset(), {}) or (isinstance(value, Required) and item is False)


def _ownership() -> dict[str, list[str]]:
    """By pass: the fields of `Facts`, and of its groups, whose docstrings name it."""
    nothing = Facts()
    found: dict[str, list[str]] = {}
    for prefix, group in [("", nothing), *((f"{f.name}.", getattr(nothing, f.name)) for f in fields(Facts))]:
        if not is_dataclass(group):
            continue
        [cls] = ast.parse(inspect.getsource(type(group))).body
        assert isinstance(cls, ast.ClassDef)
        for field, doc in zip(cls.body, cls.body[1:], strict=False):
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(doc, ast.Expr):
                assert isinstance(doc.value, ast.Constant)
                name = str(doc.value.value).rstrip("`").rpartition("`passes.")[2]
                found.setdefault(name, []).append(prefix + field.target.id)
    return found


_OWNED = _ownership()


def pass_names() -> list[str]:
    """All passes, by the names of their files."""
    return [find.__module__.rpartition(".")[2] for find in PASSES]


if __name__ == "__main__":
    for case in cases():
        case.write_text(rewritten(case), encoding="utf-8")
