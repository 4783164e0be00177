"""The examples on the pages of diagnostic codes: a file, and below it what is said about it.

`python -m tests.config.page_examples` writes the second part anew.
"""

from __future__ import annotations

import re
from pathlib import Path

import clinker_spark
from clinker_spark.core.diagnostics.render import render_all
from tests.config.golden_cases import findings

CODES = Path(clinker_spark.__file__).parent / "core" / "diagnostics" / "codes"
_LINES = r"((?:(?!```)[^\n]*\n)*)"
_EXAMPLE = re.compile(rf"^```(?:yaml|toml) (\S+)\n{_LINES}```\n\n```text\n{_LINES}```$", re.MULTILINE)


def pages() -> list[Path]:
    return [path for path in sorted(CODES.glob("*.md")) if _EXAMPLE.search(path.read_text(encoding="utf-8"))]


def with_answers(text: str) -> str:
    """A page whose examples have the answers that they get now."""

    def replace(match: re.Match[str]) -> str:
        name, given, _ = match.groups()
        language = "toml" if name.endswith(".toml") else "yaml"
        said = render_all(findings(given, name), color=False).rsplit("\n\n", 1)[0]
        return f"```{language} {name}\n{given}```\n\n```text\n{said}\n```"

    return _EXAMPLE.sub(replace, text)


def main() -> None:
    for path in pages():
        text = path.read_text(encoding="utf-8")
        if with_answers(text) != text:
            path.write_text(with_answers(text), encoding="utf-8")
            print(f"written: {path.name}")


if __name__ == "__main__":
    main()
