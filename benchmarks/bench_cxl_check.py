"""How long `cxl check` takes on a program of 500 lines: process time (user + system) of the whole command.

    python benchmarks/bench_cxl_check.py [--lines 500] [--runs 15]

The goal is 300 ms. An empty Python process and a program of one line are measured beside it, so that the number says
something on any machine: the first is what no command can go below, the second is the cost of the imports. Modules are
compiled ahead, as in an installed package.
"""

from __future__ import annotations

import argparse
import compileall
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import clinker_spark

GOAL_MS = 300

BLOCK = """
# block {i}
let amount_{i} = price_{k}.try_float() ?? 0.0
let qty_{i} = (quantity_{k} ?? 1).clamp(0, 10000)
let net_{i} = amount_{i} * qty_{i}
let tax_{i} = if country_{k} == "DE" then net_{i} * 0.19 else if country_{k} == "FR" then net_{i} * 0.2 else 0.0
emit total_{i} = (net_{i} + tax_{i}).round(2)
emit band_{i} = match {{ net_{i} > 10000.0 => "large", net_{i} > 1000.0 => "medium", _ => "small" }}
emit ordered_{i} = ordered_at_{k}.to_date()
emit due_{i} = ordered_{i}.add_days(30)
emit age_{i} = ordered_{i}.diff_days(#2024-01-01#)
emit label_{i} = "order " + id_{k}.to_string() + " of " + ordered_{i}.to_string()
emit valid_{i} = id_{k} != null and qty_{i} > 0 and not cancelled_{k}
emit share_{i} = if total_{i} != 0.0 then tax_{i} / total_{i} else null
emit skus_{i} = items_{k}.filter(it => it["qty"] != null).map(it => it["sku"])
emit kind_{i} = match status_{k} {{ "A" => "active", "C" => "closed", _ => status_{k} ?? "unknown" }}
emit city_{i} = customer_{k}.address.city ?? "n/a"
emit name_{i} = first_{k}.trim().upper() + " " + last_{k}.trim().upper()
emit email_{i} = email_{k}.lower().trim()
emit domain_{i} = email_{i}.split("@")[1]
emit known_{i} = email_{i}.matches("[a-z0-9.]+@[a-z0-9.-]+")
emit zip_{i} = zip_{k}.trim().pad_left(5, "0").left(5)
filter qty_{i} >= 0 or band_{i} == "large"
trace info if net_{i} > 100000.0 "large order"
"""


def program(lines: int) -> str:
    """A clean-up of orders, as long as asked for."""
    text: list[str] = []
    while len(text) < lines:
        i = len(text)
        text += BLOCK.format(i=i, k=i % 7).splitlines()
    return "\n".join(text[:lines]) + "\n"


def process_ms(command: list[str], runs: int) -> list[float]:
    """User and system time of each run, in milliseconds."""
    times = []
    for _ in range(runs):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append((after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime) * 1000)
    return times


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    options.add_argument("--lines", type=int, default=500)
    options.add_argument("--runs", type=int, default=15)
    args = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        # A cache of our own: the source tree stays as it is, whatever PYTHONDONTWRITEBYTECODE says.
        os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix = str(Path(folder, "cache"))
        compileall.compile_dir(Path(clinker_spark.__file__).parent, quiet=1)
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # the first run fills the cache for the standard library
        check = [sys.executable, "-c", "from clinker_spark.cli.cxl.main import main; main()", "check"]
        long, short = Path(folder, "long.cxl"), Path(folder, "short.cxl")
        long.write_text(program(args.lines))
        short.write_text("emit a = 1\n")
        process_ms([*check, str(long)], 1)
        rows = {
            "python -c pass": process_ms([sys.executable, "-c", "pass"], args.runs),
            "cxl check, 1 line": process_ms([*check, str(short)], args.runs),
            f"cxl check, {args.lines} lines": process_ms([*check, str(long)], args.runs),
        }
    print(f"{'process time':<22} {'best':>8} {'median':>8}")
    for name, times in rows.items():
        print(f"{name:<22} {min(times):>5.0f} ms {statistics.median(times):>5.0f} ms")
    print(f"goal: {GOAL_MS} ms")
    return 0


if __name__ == "__main__":
    sys.exit(main())
