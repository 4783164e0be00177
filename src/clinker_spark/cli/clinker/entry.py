"""Where the command `clinker` begins: with a look for a warm session, before anything else is imported."""

from __future__ import annotations

import sys

from clinker_spark.cli.warm.client import served


def main() -> None:
    try:
        code = served(sys.argv[1:])
    except KeyboardInterrupt:
        print("clinker: interrupted", file=sys.stderr)
        code = 130
    if code is not None:
        sys.exit(code)
    from clinker_spark.cli.clinker.main import main as run  # all commands: a quarter of a second

    run()
