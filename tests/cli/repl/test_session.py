"""`cxl repl`: a session driven line by line, its commands, its completion, and one real terminal."""

from __future__ import annotations

import os
import pty
import select
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from clinker_spark.cli.cxl.repl import fields
from clinker_spark.cli.repl.commands import respond
from clinker_spark.cli.repl.completion import complete, needs_more, receiver_text
from clinker_spark.cli.repl.help import topic, topics
from clinker_spark.cli.repl.session import Session
from clinker_spark.cli.repl.terminal import state_file
from clinker_spark.core.errors import InputError
from clinker_spark.cxl.builtins import all_builtins
from clinker_spark.cxl.builtins.families.collections import HIGHER_ORDER, HigherOrderMethod
from clinker_spark.cxl.builtins.table import Builtin

RECORD = '{"price": 2.5, "qty": 4, "tags": ["new", "blue"], "who": {"name": "Ada"}, "note": null}'


@pytest.fixture
def session() -> Session:
    return Session(fields(None, RECORD))


def words(session: Session, before: str) -> list[str]:
    return [item.text for item in complete(session, before)]


# --------------------------------------------------------------------- values


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("1 + 2", "3 : Int"),
        ("price * qty", "10.0 : Float"),
        ("null", "null : Null"),
        ("tags[0]", '"new" : Nullable(Any)'),
        ("#2024-03-15#", '"2024-03-15" : Date'),
        ("let n = qty / 3", "n = 1 : Int"),
        ("emit total = price", "total = 2.5 : Float"),
        ("emit $record.x = 1", "$record.x = 1 : Int"),
        ("filter qty > 3", "true : Bool  (the record stays)"),
        ("filter qty > 4", "false : Bool  (the record would be dropped)"),
        ("distinct", "the record stays: it is the first one"),
        ("trace info 'hi'", "trace[info]: hi"),
        ("qty.debug('q') + 1", "debug[q]: 4\n5 : Int"),
        ("emit each t in tags { emit tag = t }", '2 rows\n{"tag": "new"}\n{"tag": "blue"}'),
        ("emit each t in [1] { emit tag = t }", '1 row\n{"tag": 1}'),
        ("let a = 1 let b = a + 1", "a = 1 : Int\nb = 2 : Int"),
        ("", ""),
        ("   ", ""),
        ("# a comment", ""),
    ],
)
def test_answers(session: Session, text: str, answer: str) -> None:
    assert respond(session, text) == answer


def test_lets_and_emits_persist(session: Session) -> None:
    respond(session, "let net = price * qty")
    respond(session, "emit total = net + 1.0")
    assert respond(session, "total * 2") == "22.0 : Float"
    respond(session, "let net = 1")
    assert respond(session, "net") == "1 : Int"
    assert respond(session, "emit each t in tags { emit n = total }").startswith("2 rows")
    assert respond(session, "filter false").endswith("(the record would be dropped)")
    assert respond(session, "net") == "1 : Int"  # neither of the two was kept


def test_what_is_kept_does_not_trace_again(session: Session) -> None:
    assert respond(session, "let a = qty.debug()") == "debug: 4\na = 4 : Int"
    assert respond(session, "a") == "4 : Int"


def test_a_constant_let_can_be_a_pattern(session: Session) -> None:
    respond(session, 'let p = "b.*"')
    assert respond(session, '"blue".matches(p)') == "true : Bool"


def test_modules(tmp_path: Path) -> None:
    (tmp_path / "m.cxl").write_text("let RATE = 3\nfn double(x) = x * 2\n")
    session = Session(rules=str(tmp_path))
    assert respond(session, "let a = 1") == "a = 1 : Int"
    assert respond(session, "use m") == ""
    assert respond(session, "m.double(m.RATE) + a") == "7 : Int"
    assert "E227" in respond(session, "use nowhere")
    assert respond(session, "m.RATE") == "3 : Int"


# --------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("text", "code", "place"),
    [
        ("1 +", "E202", "<repl>:1"),
        ("prise", "E203", "<repl>:1:1"),
        ("1 + 'x'", "E200", "<repl>:1:1"),
        ("1 / 0", "X002", "<repl>:1:1"),
        ("let y = nope", "E203", "<repl>:1:9"),
        ("let y = 1 / 0", "X002", "<repl>:1:9"),
        ("a = 5", "E202", "<repl>:1"),
    ],
)
def test_errors_are_shown_at_their_place_in_the_input(session: Session, text: str, code: str, place: str) -> None:
    respond(session, "let before = 1")
    answer = respond(session, text)
    assert f"error[{code}]" in answer and place in answer
    assert "before" not in answer.split("help")[0]
    assert session.kept == ["let before = 1"]


# ------------------------------------------------------------------- commands


def test_help(session: Session) -> None:
    overview = respond(session, ":help")
    for name in (":type EXPR", ":fields", ":set NAME=VALUE", ":load FILE", ":save FILE", ":reset", ":quit"):
        assert name in overview
    assert respond(session, ":help keys").startswith("Map.keys() -> Array(String)\n")
    assert '{a: 1, b: 2}.keys()  =>  ["a", "b"]' in respond(session, ":help keys")
    both = respond(session, ":help filter")
    assert "filter CONDITION" in both and "Array.filter(it => ...)" in both
    assert "$window.lag" in respond(session, ":help lag") and "aggregate" in respond(session, ":help sum")
    assert respond(session, ":help kys") == "no help on 'kys'; did you mean 'keys'?"


@pytest.mark.parametrize("word", topics())
def test_every_topic_has_a_page(word: str) -> None:
    assert "no help" not in topic(word)


@pytest.mark.parametrize("row", [*all_builtins(), *HIGHER_ORDER.values()], ids=lambda row: row.name)
def test_what_help_promises_is_what_the_session_answers(row: Builtin | HigherOrderMethod) -> None:
    for expression, value in row.examples:
        assert respond(Session(), expression).splitlines()[-1].rpartition(" : ")[0] == value


def test_type(session: Session) -> None:
    assert respond(session, ":type price * qty") == "Float  (can fail)"
    assert respond(session, ":type price * 0.5") == "Float"
    assert respond(session, ":type 10 / qty") == "Int  (can fail)"
    assert respond(session, ":t note") == "Any"
    assert "E203" in respond(session, ":type nope")
    assert "takes an expression" in respond(session, ":type let a = 1")
    assert respond(session, ":type") == "usage: :type EXPR"
    assert session.kept == []


def test_fields(session: Session) -> None:
    respond(session, "let net = 1")
    assert respond(session, ":fields").splitlines() == [
        "price : Float  2.5",
        "qty   : Int    4",
        'tags  : Array  ["new", "blue"]',
        'who   : Map    {"name": "Ada"}',
        "note  : Any    null",
        "net   : Int",
    ]
    assert respond(Session(), ":fields") == "no fields; :set name=value makes one"


@pytest.mark.parametrize(
    ("argument", "answer"),
    [
        ("x=5", "x = 5 : Int"),
        ("x = 2.50", "x = 2.5 : Float"),
        ('x="5"', 'x = "5" : String'),
        ("x=Ada Lovelace", 'x = "Ada Lovelace" : String'),
        ("x=#2024-03-15#", 'x = "2024-03-15" : Date'),
        ("x=[1, 2]", "x = [1, 2] : Array(Int)"),
        ("x={a: 1}", 'x = {"a": 1} : Map(Int)'),
        ("x=null", "x = null : Any"),
        ("x=", 'x = "" : String'),
        ("x", "usage: :set NAME=VALUE"),
        ("=5", "usage: :set NAME=VALUE"),
        ("a.b=5", "usage: :set NAME=VALUE"),
        ("let=5", "'let' is a keyword and cannot name a field"),
    ],
)
def test_set(session: Session, argument: str, answer: str) -> None:
    assert respond(session, f":set {argument}") == answer


def test_set_moves_what_depends_on_it(session: Session) -> None:
    respond(session, "let double = qty * 2")
    assert respond(session, ":set qty=5") == "qty = 5 : Int"
    assert respond(session, "double") == "10 : Int"
    refused = respond(session, ":set qty=many")
    assert refused.startswith("not set: ") and "E200" in refused
    assert respond(session, "double") == "10 : Int"


def test_a_declared_field_keeps_its_type() -> None:
    session = Session(fields("price: decimal(2), on: date", None))
    assert respond(session, ":set price=2.5") == 'price = "2.50" : Decimal'
    assert respond(session, ":set on=2024-03-15") == 'on = "2024-03-15" : Date'
    assert respond(session, ":set on=#2024-03-16#") == 'on = "2024-03-16" : Date'
    assert respond(session, ":set on=soon") == "not set: 'soon' is not a date; write it as 2024-03-15"
    assert respond(session, "on") == '"2024-03-16" : Date'


def test_save_load_and_reset(session: Session, tmp_path: Path) -> None:
    file = tmp_path / "saved.cxl"
    respond(session, "let  net=price*qty")
    respond(session, "net")
    respond(session, "emit total=net")
    assert respond(session, f":save {file}") == f"saved 2 statements to {file}"
    assert file.read_text() == "let net = price * qty\nemit total = net\n"
    assert "already there" in respond(session, f":save {file}")
    assert respond(session, f":save! {file}").startswith("saved 2")
    respond(session, ":set qty=1")
    assert respond(session, ":reset") == "forgotten"
    assert "E203" in respond(session, "net") and respond(session, "qty") == "4 : Int"
    assert respond(session, f":load {file}") == "net = 10.0 : Float\ntotal = 10.0 : Float"
    assert respond(session, "total") == "10.0 : Float"


def test_files_that_cannot_be_used(session: Session, tmp_path: Path) -> None:
    assert "E224" in respond(session, f":load {tmp_path}/none.cxl")
    assert "E224" in respond(session, f":load {tmp_path}")
    assert respond(session, ":load") == "usage: :load FILE"
    assert respond(session, ":save") == "usage: :save FILE"
    assert "cannot write" in respond(session, f":save {tmp_path}/no/folder.cxl")


def test_quit_and_unknown_commands(session: Session) -> None:
    assert respond(session, ":quti") == "no command ':quti'; did you mean ':quit'?"
    assert not session.done
    assert respond(session, ":q") == "" and session.done


# ----------------------------------------------------------- more than one line


@pytest.mark.parametrize(
    ("text", "open_"),
    [
        ("1 +", True),
        ("a and", True),
        ("f(1,", True),
        ("[1", True),
        ("match x {", True),
        ("let x =", True),
        ("if a then", True),
        ("1 + # comment", True),
        ("1", False),
        ("x.", True),
        ("x.not", False),
        ("'(", False),
        ("(1))", False),
        ("[1\n", False),
        ("[1,\n2", True),
        (":help (", False),
        ("", False),
    ],
)
def test_needs_more(text: str, open_: bool) -> None:
    assert needs_more(text) is open_


# ------------------------------------------------------------------ completion


def test_words(session: Session) -> None:
    respond(session, "let pricing = 1")
    assert words(session, "emit x = pr") == ["price", "pricing"]
    assert words(session, "em") == ["emit"]
    assert words(session, "'pr") == [] and words(session, "1 # pr") == [] and words(session, "") == []


def test_namespaces(session: Session) -> None:
    session.vars["rate"] = 1
    assert words(session, "$so") == ["source"]
    assert words(session, "1 + $pipeline.st") == ["start_time"]
    assert words(session, "$vars.") == ["rate"]
    assert "lag" in words(session, "$window.")
    assert words(session, "$nothing.") == []


def test_commands_complete(session: Session, tmp_path: Path) -> None:
    assert words(session, ":q") == ["quit"]
    assert words(session, ":help key") == ["keys"]
    (tmp_path / "a.cxl").touch()
    (tmp_path / "sub").mkdir()
    assert words(session, f":load {tmp_path}/") == ["a.cxl", "sub/"]
    assert words(session, ":load /no/such/") == []


def test_methods_fit_the_receiver(session: Session) -> None:
    found = words(session, "emit x = tags.")
    assert {"map", "flat_map", "remove", "catch"} <= set(found) and "keys" not in found
    assert {"keys", "merge", "name"} <= set(words(session, "who."))
    assert "map" not in words(session, "who.")
    assert {"keys", "map"} <= set(words(session, "note."))  # any type: every method
    assert {"keys", "map"} <= set(words(session, "tags.map(it => it."))
    assert words(session, "who.ke") == ["keys"]
    assert complete(session, "who.ke")[0].typed == 2


def test_methods_of_literals_and_results(session: Session) -> None:
    assert "upper" in words(session, '"x".') and "abs" not in words(session, '"x".')
    assert "abs" in words(session, "(price * 2).") and "upper" not in words(session, "(price * 2).")
    assert "upper" in words(session, '"a".lower().') and "year" in words(session, "now.")


@pytest.mark.parametrize(
    ("before", "receiver"),
    [
        ("a", "a"),
        ("1 + a", "a"),
        ("a.b.c", "a.b.c"),
        ("x + a.f(1, g)[0]", "a.f(1, g)[0]"),
        ("(a + b)", "(a + b)"),
        ("[1, 2]", "[1, 2]"),
        ("x = {a: 1}", "{a: 1}"),
        ("a.filter(it => it > 1)", "a.filter(it => it > 1)"),
        ("$vars.x", "$vars.x"),
        ("'text'", "'text'"),
        ("a.not", "a.not"),
        ("not a", "a"),
        ("a +", None),
        (")", None),
        ("", None),
    ],
)
def test_receivers(before: str, receiver: str | None) -> None:
    assert receiver_text(before) == receiver


# ------------------------------------------------------------------ the command


def test_lines_from_a_pipe(cxl: Callable[..., Any]) -> None:
    done = cxl("repl", "--record", '{"x": 2}', stdin="let y = x *\n  21\n\ny\nnope\n:quit\n1\n")
    assert done.code == 0
    assert done.out.startswith("y = 42 : Int\n42 : Int\nerror[E203]") and not done.out.endswith("1 : Int\n")


def test_bytes_that_are_no_text(cxl: Callable[..., Any]) -> None:
    assert "E202" in cxl("repl", stdin=b"1 + \xff\n").out
    assert cxl("repl", stdin='"é"\n').out == '"é" : String\n'


def test_variables_schema_and_wrong_options(cxl: Callable[..., Any]) -> None:
    assert cxl("repl", "--vars", "n=3", stdin="$vars.n + 1").out == "4 : Int\n"
    assert cxl("repl", "--schema", "d: date", stdin=":type d").out == "Date\n"
    assert cxl("repl", "--record", "-").code == 2
    assert cxl("repl", "--record", "{}{}").code == 2
    assert cxl("repl", "--schema", "d: dat").code == 2
    with pytest.raises(InputError):
        fields("x: int", '{"x": "y"}')


def test_a_mistake_of_ours_does_not_end_the_session(cxl: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: Session, text: str) -> str:
        raise ValueError("boom")

    monkeypatch.setattr(Session, "run", broken)
    assert "ValueError: boom" in cxl("repl", stdin="1\n").out


def test_the_state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert state_file("h") == str(tmp_path / "state" / "clinker" / "h")
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert state_file("h") == str(tmp_path / "home" / ".local" / "state" / "clinker" / "h")
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    assert state_file("h") is None


# ------------------------------------------------------------- a real terminal


PATIENCE = 60.0
"""Seconds, on a machine that has other things to do."""


class Terminal:
    """A process on a pseudo-terminal. It is ended if it does not answer in time."""

    def __init__(self, command: list[str], env: dict[str, str]) -> None:
        self.seen = b""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execve(command[0], command, env)

    def _read(self, end: float) -> bool:
        """More output, or False at the end of it."""
        if time.monotonic() > end:
            os.kill(self.pid, signal.SIGKILL)
            pytest.fail(f"no answer; seen so far: {self.seen!r}")
        if not select.select([self.fd], [], [], 0.2)[0]:
            return True
        try:
            read = os.read(self.fd, 65536)
        except OSError:  # Linux: the other side is closed
            return False
        if b"\x1b[6n" in read:  # where is the cursor?
            os.write(self.fd, b"\x1b[1;1R")
        self.seen += read
        return bool(read)

    def expect(self, *texts: bytes) -> None:
        """Wait until the texts have come, one after the other."""
        end = time.monotonic() + PATIENCE
        for text in texts:
            while text not in self.seen:
                assert self._read(end), self.seen
            self.seen = self.seen.partition(text)[2]

    def send(self, keys: bytes, *expected: bytes) -> None:
        os.write(self.fd, keys)
        self.expect(*expected)

    def exit_code(self) -> int:
        end = time.monotonic() + PATIENCE
        while self._read(end):
            pass
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def test_a_real_terminal(tmp_path: Path) -> None:
    pytest.importorskip("prompt_toolkit")
    env = {**os.environ, "TERM": "xterm", "XDG_STATE_HOME": str(tmp_path), "NO_COLOR": "1"}
    terminal = Terminal([sys.executable, "-m", "clinker_spark.cli.cxl.main", "repl", "--record", RECORD], env)
    terminal.expect(b"cxl>")
    terminal.send(b"qty * (2 +\r", b"...>")
    terminal.send(b"3)\r", b"20 : Int", b"cxl>")
    terminal.send(b"nonsense\r", b"E203", b"cxl>")
    terminal.send(b"\x04")
    assert terminal.exit_code() == 0
    assert "+3)" in (tmp_path / "clinker" / "cxl_history").read_text()
