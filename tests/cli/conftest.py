"""The `cxl` command in this process: arguments in; exit code, output and errors out."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from typing import NamedTuple

import pytest

from clinker_spark.cli import app
from clinker_spark.cli.cxl.main import cxl as group


class Done(NamedTuple):
    code: int
    out: str
    err: str


Cxl = Callable[..., Done]


@pytest.fixture
def cxl(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cxl:
    """`cxl("check", path, stdin="...")`. Whatever goes wrong inside must not look like a Python error."""
    monkeypatch.delenv("CLINKER_DEBUG", raising=False)

    def run(*args: object, stdin: str | bytes = b"") -> Done:
        raw = stdin.encode() if isinstance(stdin, str) else stdin
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw), encoding="utf-8"))
        with pytest.raises(SystemExit) as caught:
            app.run(group, "cxl", [str(arg) for arg in args])
        out, err = capsys.readouterr()
        assert "Traceback" not in err and "internal error" not in err, err
        assert isinstance(caught.value.code, int)
        return Done(caught.value.code, out, err)

    return run
