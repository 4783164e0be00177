"""python -m tests.conformance FILE.jsonl [--engine interpreter|spark|both]"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.conformance.cases import read_cases
from tests.conformance.engines import Failures, run_interpreter, run_spark


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--engine", choices=("interpreter", "spark", "both"), default="both")
    options = parser.parse_args()
    cases = read_cases(options.file)
    failures: Failures = []
    if options.engine in ("interpreter", "both"):
        failures += [(f"{i} [interpreter]", d) for i, d in run_interpreter(cases)]
    if options.engine in ("spark", "both"):
        from clinker_spark.spark.session.sessions import session

        failures += [(f"{i} [spark]", d) for i, d in run_spark(cases, session("local[2]"))]
    for name, problem in failures:
        print(f"{name}: {problem}")
    failed = len({name.split()[0] for name, _ in failures})
    print(f"{len(cases) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
