"""`clinker query`: results for programs and for people, without Java for literals."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from clinker_spark.cli.clinker.main import clinker as command
from clinker_spark.query.failures import QueryError


def clinker(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "clinker_spark", "query", *args], capture_output=True, text=True)


def test_a_pipe_gets_one_json_document() -> None:
    done = clinker("-e", 'print("aside")\nfrom n in [3, 1] sort by n select {n: n, half: n / 2.0}')
    assert (done.returncode, json.loads(done.stdout)) == (0, [{"n": 1, "half": 0.5}, {"n": 3, "half": 1.5}])
    assert done.stderr == "aside\n"


def test_a_script_prints_what_it_prints(tmp_path: Path) -> None:
    (tmp_path / "s.mochi").write_text('let xs = [1, 2]\nprint("sum", sum(xs))\n')
    done = clinker(str(tmp_path / "s.mochi"))
    assert (done.returncode, done.stdout, done.stderr) == (0, "sum 3\n", "")


def test_a_program_that_ends_with_a_let_shows_it() -> None:
    assert clinker("-e", "let a = 1\nlet b = [a, 2]").stdout == "[\n  1,\n  2\n]\n"


def test_mistakes_end_with_1_and_say_where() -> None:
    done = clinker("-e", "from p in [{a: 1}] select p.b")
    assert (done.returncode, done.stdout) == (1, "")
    assert "error[E701]: unknown field 'b'\n  --> query:1:29" in done.stderr


def test_literals_start_no_java_and_load_no_pyspark() -> None:
    code = (
        "import sys; from clinker_spark.query.program import compile_query, run;"
        "assert run(compile_query('sum([1, 2])')) == 3; print('pyspark' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"


def test_output_of_a_literal_program(tmp_path: Path) -> None:
    target = tmp_path / "out" / "r.csv"
    done = clinker("-e", 'from n in [1, 2] select {n: n, t: "a,b"}', "--output", str(target))
    assert (done.returncode, done.stderr) == (0, "")
    assert target.read_text() == 'n,t\n1,"a,b"\n2,"a,b"\n'


def test_explain_without_java(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("a,b\n1,x\n")
    done = clinker("-e", f'from p in load "{tmp_path / "p.csv"}" where p.a > 0 select p.b', "--explain")
    assert done.returncode == 0
    assert "|> WHERE" in done.stdout and "rows: String" in done.stdout


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("a\n1\n")
    done = clinker("-e", f'load "{tmp_path / "poeple.csv"}"')
    assert done.returncode == 1
    assert "E707" in done.stderr and "did you mean 'people.csv'?" in done.stderr


@pytest.mark.parametrize("name", ["in.csv", "./x/../in.csv", "link.csv", "hard.csv"])
def test_what_a_program_loads_is_not_replaced(tmp_path: Path, name: str) -> None:
    """Neither by `save` nor by --output; that is known before Java starts."""
    place, content = tmp_path / "in.csv", "a,b\n1,2\n"
    place.write_text(content)
    (tmp_path / "x").mkdir()
    (tmp_path / "link.csv").symlink_to("in.csv")
    (tmp_path / "hard.csv").hardlink_to(place)
    query = f'from r in load "{place}" select {{a: r.a}}'
    for args in ([query, "--output", f"{tmp_path}/{name}"], [f'save ({query}) to "{tmp_path}/{name}"']):
        found = CliRunner().invoke(command, ["query", "-e", *args], standalone_mode=False).exception
        assert isinstance(found, QueryError) and found.diagnostics[0].code == "E430", args
    assert place.read_text() == content and (tmp_path / "link.csv").is_symlink()
