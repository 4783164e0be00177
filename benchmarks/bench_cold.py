"""From the prompt to the end of the process: `clinker run` against the script one would write by hand, and small runs.

Each run is a process of its own, started anew, in turns: CSV in, a filter, five derived columns, CSV out, as in
`bench_pipeline`. Before anything is timed each is run once on a few records, so that caches of the system, and the
archive of classes (decision 0008), are as on a machine where both have run before. Then small runs with a warm session
(`clinker serve`): the prompt to the end, for a pipeline that is clean and for the example of a retraction.

    python benchmarks/bench_cold.py [--rows 5000000] [--runs 3]
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import bench_pipeline as base

ROOT = Path(__file__).resolve().parents[1]
CLINKER = (sys.executable, "-m", "clinker_spark")
SCRIPT = """
import sys
from pathlib import Path
sys.path.insert(0, {here!r})
from bench_pipeline import script
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[*]").config("spark.ui.enabled", "false").getOrCreate()
spark.sparkContext.setLogLevel("ERROR")
script(spark, Path(sys.argv[1]), Path(sys.argv[2]))
spark.stop()
"""
SMALL = ("01-first-look", "21-retraction")
ENDED = (0, 2)
"""Done, without and with dead letters."""


def timed(*command: str, cwd: Path) -> tuple[float, float]:
    """Seconds by the clock, and of the processor in all processes that have ended since."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYSPARK_PYTHON": sys.executable}
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)
    seconds, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in ENDED:
        raise SystemExit(f"{' '.join(command)}\n{done.stdout}\n{done.stderr}")
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def cold(folder: Path, rows: int, runs: int) -> None:
    data, few = folder / "orders.csv", folder / "few.csv"
    base.generate(data, rows, 0.0)
    base.generate(few, 1_000, 0.0)
    (folder / "script.py").write_text(SCRIPT.format(here=str(Path(__file__).parent)))

    def by_hand(source: Path) -> tuple[float, float]:
        return timed(sys.executable, "script.py", str(source), str(folder / "out.script"), cwd=folder)

    def clinker(source: Path) -> tuple[float, float]:
        (folder / "p.yaml").write_text(
            base.PIPELINE.format(data=source.name, out=f"{source.stem}.out.csv", letters="letters.csv")
        )
        return timed(*CLINKER, "run", "p.yaml", cwd=folder)

    for run in (by_hand, clinker):
        run(few)
    found: dict[str, list[tuple[float, float]]] = {"script": [], "clinker": []}
    for _ in range(runs):
        found["script"].append(by_hand(data))
        found["clinker"].append(clinker(data))
    print(f"{data.stat().st_size / 2**20:.0f} MiB, {rows:,} records, each run a process of its own, best of {runs}")
    best = {name: [min(column) for column in zip(*times, strict=True)] for name, times in found.items()}
    for name, (clock, processor) in best.items():
        shown = " ".join(f"{seconds:.1f}" for seconds, _ in found[name])
        print(f"  {name:8} {clock:6.1f} s   CPU {processor:6.1f} s   ({shown})")
    ratios = [mine / other for mine, other in zip(best["clinker"], best["script"], strict=True)]
    print(f"  ratio    {ratios[0]:6.2f}     CPU {ratios[1]:6.2f}")


def small(folder: Path, runs: int) -> None:
    """With a session that is kept (`[session] warm`), from the third run on: the first ones warm it up."""
    print("small runs with a warm session, from the prompt to the end")
    for name in SMALL:
        work = folder / name
        shutil.copytree(ROOT / "examples" / name, work)
        (work / "clinker.toml").write_text('[session]\nwarm = "2m"\n')
        times = [timed(*CLINKER, "run", "pipeline.yaml", "--force", cwd=work)[0] for _ in range(runs + 3)]
        print(f"  {name:16} best {min(times[3:]):5.2f} s   ({' '.join(f'{t:.2f}' for t in times)})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="clinker-bench-"))
    try:
        subprocess.run([*CLINKER, "serve", "--stop"], capture_output=True)  # a session that waits would take the work
        cold(folder, options.rows, options.runs)
        small(folder, options.runs + 4)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
