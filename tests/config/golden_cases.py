"""Broken files and the exact text a user gets for them.

Each file in `golden/` is an input, a line of equal signs, and what is printed. `python -m tests.config.golden_cases`
writes the second part anew; read the difference before you commit it.
"""

from __future__ import annotations

from pathlib import Path

from clinker_spark.config.errors import ConfigError
from clinker_spark.config.load import parse_composition, parse_pipeline
from clinker_spark.config.workspace import parse_workspace
from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.diagnostics.render import render_all
from clinker_spark.core.span import Source

FOLDER = Path(__file__).parent / "golden"
RULE = "=" * 80 + "\n"


def cases() -> list[Path]:
    return sorted(FOLDER.glob("*.case"))


def split(path: Path) -> tuple[str, str]:
    """The input and the expected text."""
    given, _, expected = path.read_text(encoding="utf-8").partition(RULE)
    return given, expected


def findings(text: str, name: str) -> tuple[Diagnostic, ...]:
    """Everything that is said about a file; its name tells what kind it is."""
    source = Source(name, text)
    path = FOLDER / name
    try:
        if name.endswith(".toml"):
            return parse_workspace(source, path).warnings
        if name.endswith(".comp.yaml"):
            return parse_composition(source, path).warnings
        return parse_pipeline(source, path).warnings
    except ConfigError as error:
        return error.diagnostics


def kind(path: Path) -> str:
    prefixes = {"toml-": "clinker.toml", "comp-": "part.comp.yaml"}
    return next((name for prefix, name in prefixes.items() if path.name.startswith(prefix)), "pipeline.yaml")


def answer(path: Path) -> str:
    found = findings(split(path)[0], kind(path))
    return (render_all(found, color=False) or "no findings") + "\n"


def main() -> None:
    for path in cases():
        given, expected = split(path)
        text = answer(path)
        if text != expected:
            path.write_text(given + RULE + text, encoding="utf-8")
            print(f"written: {path.name}")


if __name__ == "__main__":
    main()
