"""What a run loads before it starts Java: the rest is loaded while it waits for that."""

from __future__ import annotations

import subprocess
import sys

_BEFORE = """
import sys
import clinker_spark.cli.clinker.actions.run_session as of_runs
print([name for name in (*of_runs.AFTER_THE_START, "polars", "pandas") if name in sys.modules])
of_runs._load()
print([name for name in of_runs.AFTER_THE_START if name not in sys.modules])
"""


def test_what_spark_is_not_started_with_comes_later() -> None:
    done = subprocess.run([sys.executable, "-c", _BEFORE], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n[]\n"
