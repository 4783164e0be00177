"""The architecture, checked: who may import whom, and that planning never loads pyspark."""

from __future__ import annotations

import ast
import itertools
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import clinker_spark
from clinker_spark.config.node_types import NODE_TYPES
from clinker_spark.plan.passes.all import PASSES

ROOT = Path(clinker_spark.__file__).parent
PACKAGE = "clinker_spark"

RANK = {
    "core": 0,
    "sql": 1,
    "dataset": 1,  # reads recordings without Spark; neither of the two may import the other
    "cxl": 2,
    "config": 3,
    "query": 4,
    "plan": 5,
    "spark": 6,
    "runtime": 7,
    "streaming": 8,
    "report": 9,
    "cli": 10,
}

CXL_RANK = {
    **dict.fromkeys(
        ("errors", "limits", "values", "system", "regex", "dates", "builtins", "ir", "construction", "hidden"), 0
    ),
    "syntax": 1,
    "check": 2,
    **dict.fromkeys(("format", "interpret", "lower", "vector"), 3),  # none of these knows the others
    "program": 4,
    "conditions": 5,
}
"""The order inside of cxl: a part imports from parts of lower rank. Those of rank 0 may import each other."""

HANDOVERS: dict[tuple[str, str], str] = {
    ("cxl.program", "spark"): "Program.apply(df) is the language's public face; pyspark loads only when it is called",
}
"""(module, imported layer) -> why it may look down the stack. Only for a function that hands over to the engine."""


def modules() -> list[tuple[str, Path]]:
    """(dotted name inside the package, file) of every module."""
    found = []
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found.append((".".join(parts[:-1] if parts[-1] == "__init__" else parts), path))
    return found


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imports(name: str, path: Path) -> Iterator[tuple[str, int]]:
    """(absolute name, line) of every import in a file: at the top, inside functions, by name with importlib.

    `from m import n` is `m.n`, whether n is a module or something in m."""
    tree = tree_of(path)
    package = [PACKAGE, *name.split(".")] if name else [PACKAGE]
    if path.name != "__init__.py":
        package = package[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield from ((f"{module}.{alias.name}", node.lineno) for alias in node.names)
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            function = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if function in ("import_module", "__import__"):
                yield str(node.args[0].value), node.lineno


@cache
def all_imports() -> list[tuple[str, Path, list[tuple[str, int]]]]:
    """(name, file, imports) of every module."""
    return [(name, path, list(imports(name, path))) for name, path in modules()]


def layer_of(module: str) -> str | None:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[0] == PACKAGE and parts[1] in RANK else None


def test_every_package_is_a_known_layer() -> None:
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert packages <= RANK.keys()


def test_a_layer_imports_only_from_layers_before_it() -> None:
    wrong = []
    for name, path, imported in all_imports():
        mine = name.split(".")[0]
        if mine not in RANK:  # the package's own __init__ and __main__
            continue
        for module, line in imported:
            theirs = layer_of(module)
            if theirs is None or theirs == mine or (name, theirs) in HANDOVERS:
                continue
            if RANK[theirs] >= RANK[mine]:
                wrong.append(f"{path.relative_to(ROOT)}:{line}: {mine} must not import {theirs} ({module})")
    assert not wrong, "\n".join(wrong)


def test_the_parts_of_cxl_import_only_from_parts_before_them() -> None:
    wrong = []
    for name, path, imported in all_imports():
        parts = name.split(".")
        if parts[0] != "cxl" or len(parts) == 1:
            continue
        for module, line in imported:
            mine, theirs = parts[1], module.split(".")[2] if module.startswith(f"{PACKAGE}.cxl.") else parts[1]
            if mine != theirs and CXL_RANK[theirs] >= max(CXL_RANK[mine], 1):
                wrong.append(f"{path.relative_to(ROOT)}:{line}: cxl.{mine} must not import cxl.{theirs}")
    assert not wrong, "\n".join(wrong)


def test_no_module_imports_itself_in_a_circle() -> None:
    found = cyclic(import_graph())
    assert not found, f"import cycles: {sorted(found)}"


def import_graph() -> dict[str, set[str]]:
    """What each module imports, wherever the import stands: at the top, for types only, inside a function."""
    names = {f"{PACKAGE}.{name}" for name, _ in modules()}
    graph = {}
    for name, _, imported in all_imports():
        found = {module for module, _ in imported if (name, layer_of(module)) not in HANDOVERS}
        targets = {module if module in names else module.rpartition(".")[0] for module in found} & names
        graph[name] = {target.removeprefix(f"{PACKAGE}.") for target in targets} - {name}
    return graph


def cyclic(graph: dict[str, set[str]]) -> set[str]:
    """The modules that reach themselves."""

    def reached(start: str) -> set[str]:
        seen: set[str] = set()
        waiting = list(graph[start])
        while waiting:
            if (name := waiting.pop()) not in seen:
                seen.add(name)
                waiting += graph[name]
        return seen

    return {name for name in graph if name in reached(name)}


FILES_OF_A_FOLDER, LINES_OF_A_MODULE = 15, 400

ROWS: dict[str, str] = {
    "config/model": "node types",
    "plan/nodes": "node types",
    "plan/bind": "node types",
    "spark/operators": "node types",
    "plan/passes": "passes",
}
"""Folders with a file for each row of a table: these files are not counted, as a table may have any number of rows."""


def rows_of(table: str) -> set[str]:
    """The names of the files that are rows of a table."""
    if table == "node types":
        return set(NODE_TYPES)
    return {function.__module__.rpartition(".")[2] for function in PASSES}


def test_a_folder_is_no_heap_of_files() -> None:
    """Somebody who opens a folder sees at once what there is. More than fifteen files are several subjects."""
    wrong = {}
    for folder in sorted({path.parent for path in ROOT.rglob("*.py")}):
        name = folder.relative_to(ROOT).as_posix()
        rows = rows_of(ROWS[name]) if name in ROWS else set()
        count = len([path for path in folder.glob("*.py") if path.stem not in rows])
        if count > FILES_OF_A_FOLDER:
            wrong[name] = count
    assert not wrong, f"too many files, find their subjects: {wrong}"


FIELDS_OF_A_CLASS = 12


def fields_of(made: ast.ClassDef) -> set[str]:
    """What an object of a class keeps: declared fields, and whatever its methods set."""
    declared = [node for node in made.body if isinstance(node, ast.AnnAssign)]
    found = {ast.unparse(node.target) for node in declared if "ClassVar" not in ast.unparse(node.annotation)}
    for node in ast.walk(made):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and ast.unparse(node.value) == "self":
            found.add(node.attr)
    return found


def is_value(made: ast.ClassDef) -> bool:
    """Is it data that is read, and not a thing that works: a model, or a dataclass of which no method sets anything?"""
    if any(ast.unparse(base) in ("Model", "BaseModel") for base in made.bases):
        return True
    is_data = any(ast.unparse(found).startswith("dataclass") for found in made.decorator_list)
    sets = any(isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) for node in ast.walk(made))
    return is_data and not sets


def test_what_works_keeps_little() -> None:
    """A class that does things and has many fields carries several subjects, and modes that know each other."""
    found = {
        f"{name}.{made.name}": len(fields_of(made))
        for name, path in modules()
        for made in ast.walk(tree_of(path))
        if isinstance(made, ast.ClassDef) and not is_value(made) and len(fields_of(made)) > FIELDS_OF_A_CLASS
    }
    assert not found, f"take apart by subject: {found}"


CALLED_FROM_OUTSIDE = {
    *("format_commands", "get_completions"),  # Click, prompt_toolkit
    *("initialOffset", "latestOffset", "prepareForTriggerAvailableNow", "streamReader"),  # Spark
    *("collect_command", "import_", "start_stream"),  # commands, and what Python programs call
    *("python_operations", "run_window", "ordered_text"),  # the reference, and the second voice of tests
}
"""What the package has for others, and does not use itself. Functions that a table names by text are found by it."""


def test_nothing_is_there_that_nobody_uses() -> None:
    """A function, method or class whose name stands nowhere but where it is made."""
    texts = [path.read_text(encoding="utf-8") for _, path in modules()]
    words = Counter(word for text in texts for word in re.findall(r"\w+", text))
    kinds = ast.FunctionDef | ast.ClassDef
    made = Counter(node.name for _, path in modules() for node in ast.walk(tree_of(path)) if isinstance(node, kinds))
    by_table = {row.bind.rpartition(":")[2] for row in NODE_TYPES.values()}
    unused = {name for name, count in made.items() if words[name] <= count and not name.startswith("__")} - by_table
    assert unused == CALLED_FROM_OUTSIDE, f"delete it, or say who uses it: {unused ^ CALLED_FROM_OUTSIDE}"


LINES_OF_A_FUNCTION, WAYS_THROUGH_A_FUNCTION = 60, 15

KNOTTED: dict[str, int] = {
    # Chains of plain cases, one after the other: a type, a kind of step, something that may be wrong.
    "runtime.commit.journal._backward": 18,
    "runtime.dataset.component_types._common": 19,
    "runtime.dataset.component_types.kept": 16,
    "runtime.paths.names._name_problem": 18,
    "runtime.profile.shapes._json": 16,
    "runtime.profile.types._of_present": 21,
    "runtime.profile.types._of_values": 21,
    "runtime.profile.types.cleaning_for": 16,
    "runtime.profile.types.guess_texts": 17,
    "runtime.reject.replay_records._value": 16,
    "runtime.reject.thresholds.check": 16,
    "spark.scan.csv.header.read_header": 18,
    "spark.scan.csv.stretches.cells_between": 19,
    "spark.scan.json.values._whole": 21,
    "spark.scan.json.whole._alike": 20,
    "spark.scan.text.values.convert": 20,
    # Mostly comprehensions.
    "runtime.dataset.tables.table_events": 16,
    "runtime.discover.sources.discover": 18,
    "runtime.measure.spool._counts": 23,
    "runtime.paths.checks.nothing_read": 18,
    "runtime.paths.checks.one_writer": 18,
    "runtime.reject.replay_files._chosen": 16,
    "runtime.reject.replay_files.replay_files": 20,
    "runtime.run.accounting._balance": 18,
    "runtime.run.accounting._node": 17,
    "runtime.run.accounting.job_done": 16,
    "runtime.staging.purge._reap": 16,
    "spark.fragments.joins.fetch._table": 16,
    "spark.fragments.joins.index.__init__": 19,
    "spark.fragments.joins.lookup._pairs": 28,
    "spark.operators.reshape._become": 23,
    "spark.scan.kinds.lines._rows": 20,
}
"""Functions of `spark` and `runtime` with more ways through them. They may have fewer, and none may join them."""

LONG = {"spark.scan.xml.records._handlers"}
"""Functions with more lines: this one is a set of functions over what they share, called for each tag of a file."""


def ways_through(function: ast.AST) -> int:
    """The cyclomatic complexity of a function, without functions inside of it."""
    count = 1
    for node in ast.iter_child_nodes(function):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            continue
        if isinstance(node, ast.If | ast.For | ast.While | ast.IfExp | ast.ExceptHandler | ast.match_case):
            count += 1
        elif isinstance(node, ast.BoolOp):
            count += len(node.values) - 1
        elif isinstance(node, ast.comprehension):
            count += 1 + len(node.ifs)
        count += ways_through(node) - 1
    return count


def test_a_function_fits_on_a_screen() -> None:
    functions = [
        (f"{name}.{node.name}", node)
        for name, path in modules()
        if name.split(".")[0] in ("spark", "runtime")
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.FunctionDef)
    ]
    sizes = {name: (node.end_lineno or 0) - node.lineno + 1 for name, node in functions}
    long = {name for name, size in sizes.items() if size > LINES_OF_A_FUNCTION}
    assert long == LONG, f"too long, or no longer to be listed: {long ^ LONG}"
    knotted = {name: ways for name, node in functions if (ways := ways_through(node)) > WAYS_THROUGH_A_FUNCTION}
    assert knotted.keys() <= KNOTTED.keys(), f"take apart: {knotted.keys() - KNOTTED.keys()}"
    assert not (grown := {name for name, ways in knotted.items() if ways > KNOTTED[name]}), f"grew: {grown}"
    assert not (plain := KNOTTED.keys() - knotted.keys()), f"no longer to be listed: {plain}"


def test_a_function_that_imports_says_why() -> None:
    """Imports stand at the top of a module. Inside of a function they save start-up time, or a cycle, or need what may
    not be there: a comment says which, at the import or above it."""
    silent = []
    for _, path in modules():
        name, text = path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")
        lines = text.splitlines()
        for function in ast.walk(tree_of(path)):
            if isinstance(function, ast.FunctionDef):
                found = [node for node in function.body if isinstance(node, ast.Import | ast.ImportFrom)]
                if found and "#" not in "".join(lines[function.lineno - 1 : found[0].end_lineno]):
                    silent.append(f"{name}:{found[0].lineno}")
                every = [node for node in ast.walk(function) if isinstance(node, ast.Import | ast.ImportFrom)]
                for node in every:  # in a branch, where only it needs something
                    if node not in found and "#" not in "".join(lines[node.lineno - 3 : node.lineno + 1]):
                        silent.append(f"{name}:{node.lineno}")
    assert not silent, "say why: " + ", ".join(silent)


MAKES_SQL = ("sql/", "cxl/lower/", "query/lower/", "plan/query/", "cxl/builtins/floatsums.py")
CUTS = {"replace", "removeprefix", "removesuffix", "startswith", "endswith", "partition", "rpartition", "strip"}


def test_text_of_sql_is_not_cut() -> None:
    """What makes SQL asks trees and values, and prints once: a text that is cut or asked may be a user's literal."""
    wrong = [
        f"{name}:{node.lineno}"
        for path in sorted(ROOT.rglob("*.py"))
        if (name := path.relative_to(ROOT).as_posix()).startswith(MAKES_SQL) and name != "sql/quoting.py"
        for node in ast.walk(tree_of(path))
        if (isinstance(node, ast.Attribute) and node.attr in CUTS)
        or (isinstance(node, ast.Compare) and isinstance(node.left, ast.Constant) and node.left.value == "\n")
    ]
    assert not wrong, "find it in the tree, before it is text: " + ", ".join(wrong)


def test_names_are_quoted_in_one_place() -> None:
    """A name in backticks that nobody looked at is a name that cannot have one."""
    wrong = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in sorted(ROOT.rglob("*.py"))
        if path.relative_to(ROOT).parts[0] in ("sql", "cxl", "query", "plan", "spark", "runtime", "streaming")
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.JoinedStr)
        for before, value in itertools.pairwise(node.values)
        if isinstance(before, ast.Constant) and isinstance(value, ast.FormattedValue)
        if str(before.value).endswith("`") and "String" not in str(before.value)  # that is documentation
    ]
    assert not wrong, "use sql.quoting.identifier: " + ", ".join(wrong)


def test_a_module_is_one_room() -> None:
    lines = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8").count("\n") for _, path in modules()}
    assert not (long := {name: n for name, n in lines.items() if n > LINES_OF_A_MODULE}), f"too long: {long}"


def test_only_spark_imports_pyspark() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: imports {module}"
        for name, path, imported in all_imports()
        if name.split(".")[0] != "spark"
        for module, line in imported
        if module.split(".")[0] in ("pyspark", "py4j")
    ]
    assert not wrong, "\n".join(wrong)


def test_handovers_are_still_needed() -> None:
    used = {(name, layer_of(module)) for name, _, imported in all_imports() for module, _ in imported}
    assert set(HANDOVERS) <= used


def test_the_checks_see_what_they_should(tmp_path: Path) -> None:
    file = tmp_path / "m.py"
    file.write_text(
        "import pyspark.sql as s\nfrom ..spark import session\ndef f():\n    from clinker_spark import plan\n"
        "    import importlib; importlib.import_module('clinker_spark.runtime.run.pipeline')\n"
    )
    found = {module for module, _ in imports("cxl.m", file)}
    assert {
        "pyspark.sql",
        "clinker_spark.spark.session",
        "clinker_spark.plan",
        "clinker_spark.runtime.run.pipeline",
    } <= found


@pytest.mark.parametrize("module", ["clinker_spark", "clinker_spark.cxl", "clinker_spark.cli.clinker.main"])
def test_import_does_not_load_heavy_packages(module: str) -> None:
    heavy = ("pyspark", "py4j", "pandas", "pyarrow", "pydantic", "rich")
    code = f"import sys, {module}; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
