"""What README and the first steps tell a new user to type, typed: every snippet, in order, in an empty folder."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
import yaml

from clinker_spark import cxl
from clinker_spark.cli import app
from clinker_spark.cli.clinker.main import clinker as clinker_command
from clinker_spark.cli.cxl.main import cxl as cxl_command

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
_FENCE = re.compile(r"^( *)```(\w+)(?: (\S+))?\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
_SAVED = re.compile(r"Save this as `([^`]+)`")
COMMANDS = {"clinker": clinker_command, "cxl": cxl_command}
FINE = {("clinker", "run"): (0, 2), ("clinker", "dlq"): (0, 2)}
"""Ways to end that are no failure: 2 says that there are dead letters."""


@dataclass(frozen=True)
class Snippet:
    language: str
    file: str | None
    """What the reader is told to save it as."""
    text: str


def snippets(document: str) -> list[Snippet]:
    """The blocks of code of a document, in order."""
    text = (ROOT / document).read_text(encoding="utf-8")
    found, last = [], 0
    for match in _FENCE.finditer(text):
        saved = _SAVED.findall(text[last : match.start()])
        name = match[3] or (saved[-1] if saved else None)
        found.append(Snippet(match[2], name, re.sub(rf"^{match[1]}", "", match[4], flags=re.MULTILINE)))
        last = match.end()
    return found


def commands(text: str) -> list[list[str]]:
    """The lines behind a prompt, without remarks."""
    return [shlex.split(line[2:], comments=True) for line in text.splitlines() if line.startswith("$ ")]


def test_all_kinds_of_snippets_are_known() -> None:
    for document in ("README.md", "docs/getting-started.md"):
        found = snippets(document)
        assert {snippet.language for snippet in found} <= {"console", "cxl", "yaml", "python", "text"}
        assert sum(len(commands(s.text)) for s in found if s.language == "console") >= 5
        assert any(snippet.file for snippet in found) and any(snippet.language == "python" for snippet in found)


def test_programs_and_files_can_be_read() -> None:
    for document in ("README.md", "docs/getting-started.md"):
        for snippet in snippets(document):
            if snippet.language == "cxl":
                cxl.compile(snippet.text)
            elif snippet.language == "yaml":
                assert yaml.safe_load(snippet.text)


Type = Callable[[list[str]], None]


@pytest.fixture
def type_in(tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> Type:
    """Commands in this process, and in the session that is there."""
    monkeypatch.chdir(tmp_path)

    def run(words: list[str]) -> None:
        program, *args = words
        if program == "make":
            assert re.search(rf"^{args[0]}:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
            return
        with pytest.raises(SystemExit) as ended:
            app.run(COMMANDS[program], program, args)
        out, err = capfd.readouterr()
        assert ended.value.code in FINE.get((program, args[0]), (0,)), f"{shlex.join(words)}\n{out}\n{err}"
        assert "Traceback" not in err and "internal error" not in err

    return run


def follow(document: str, type_in: Type, names: dict[str, Any]) -> None:
    """Do what a document says, from its beginning to its end."""
    for snippet in snippets(document):
        if snippet.file is not None:
            Path(snippet.file).write_text(snippet.text, encoding="utf-8")
        if snippet.language == "console":
            for words in commands(snippet.text):
                type_in(words)
        elif snippet.language == "python":
            exec(compile(snippet.text, document, "exec"), names)


def test_getting_started(type_in: Type) -> None:
    names: dict[str, Any] = {}
    follow("docs/getting-started.md", type_in, names)
    assert [row["label"] for row in names["good"].collect()] == ["BOLT x200", "NUT x40"]
    assert names["dead_letters"].columns[-1] == "$error" and names["dead_letters"].count() == 0


def test_readme(type_in: Type, spark: SparkSession) -> None:
    Path("orders.csv").write_text("id,customer,amount\n1,ann,2.5\n2,bob,many\n3,ann,4\n")
    frame = spark.createDataFrame([("Oslo", 2.5, 4), ("Rome", 1.0, 1)], "city string, price double, quantity bigint")
    parquet.write_table(pa.table({"city": ["Oslo", "Rome"], "price": [2.5, 1.0]}), "orders.parquet")
    event = '{"segment": "run1", "entity": "/arm", "frame": 10, "v": 100}\n'
    Path("events.jsonl").write_text(event + event.replace("10,", "20,").replace('"v": 100', '"w": 1'))
    names: dict[str, Any] = {"df": frame}
    follow("README.md", type_in, names)
    assert "<svg" in Path("run.html").read_text()
    assert [json.loads(line)["/arm:v"] for line in Path("table.jsonl").read_text().splitlines()] == [100, 100]
    assert Path("totals.csv").read_text() == "customer,total\nann,6.5\n"
    assert "many" in Path("dead-letters.csv").read_text()
    assert names["p"].apply(frame).columns == ["city", "price", "quantity", "total", "$error"]
