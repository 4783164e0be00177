"""Pipelines with stream joins, made up: the finite run, and the stream that is drained in several calls and flushed,
must give the same records to every output, and as many dead letters.

A case is a seed. There are deep ones (a few joins, with transforms, routes, totals of windows and several outputs), and
wide ones: many joins of the same few sources, whose results are merged, in one query of Spark.
`python -m tests.streaming.generated --seeds 0:60 [--wide]` runs them one after the other in one session and says which
differ; `--keep` leaves their folders.
"""

from __future__ import annotations

import argparse
import csv
import datetime as dt
import json
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from clinker_spark.plan.prepare import prepare
from clinker_spark.runtime.run.pipeline import run
from clinker_spark.streaming.run import StreamOptions, run_stream
from tests.streaming.makers import Case, made


@dataclass(frozen=True)
class Outcome:
    """What came out of a case."""

    records: dict[str, Counter[str]]
    letters: int
    late: int = 0


Between = Callable[[int], None]


def finite(case: Case, folder: Path, spark: SparkSession) -> Outcome:
    """The run over all files."""
    (folder / "finite.yaml").write_text(case.text("finite"))
    case.write(folder)
    run(prepare(folder / "finite.yaml"), spark)
    return _outcome(case, folder / "finite", "", 0)


def streamed(case: Case, folder: Path, spark: SparkSession, between: Between = lambda call: None) -> Outcome:
    """The stream, in as many calls as the case says, and flushed in the last one."""
    for source in case.files:
        shutil.rmtree(folder / source, ignore_errors=True)
    (folder / "stream.yaml").write_text(case.text("stream"))
    late = 0
    for call in range(case.calls):
        case.write(folder, call)
        between(call)
        options = StreamOptions(once=True, flush=call == case.calls - 1)
        late += run_stream(prepare(folder / "stream.yaml"), spark, options, lambda event, details: None).late
    return _outcome(case, folder / "stream", "-[0-9]*", late)


def _outcome(case: Case, place: Path, more: str, late: int) -> Outcome:
    records = {}
    for output in case.outputs:
        stem, _, kind = output.partition(".")
        records[output] = Counter(
            line for path in sorted(place.glob(f"{stem}{more}.{kind}")) for line in _records(path, kind)
        )
    letters = sum(1 for path in place.glob("dead*.csv") for _ in _records(path, "csv"))
    return Outcome(records, letters, late)


def _records(path: Path, kind: str) -> Iterator[str]:
    if kind == "json":
        yield from (json.dumps(json.loads(line), sort_keys=True) for line in path.read_text().splitlines())
        return
    with open(path, newline="") as file:
        yield from (json.dumps(row, sort_keys=True) for row in csv.DictReader(file))


def difference(one: Outcome, other: Outcome) -> str:
    """What the finite run and the stream do not have in common; empty for nothing."""
    found = []
    for output, records in one.records.items():
        missing, extra = records - other.records[output], other.records[output] - records
        if missing or extra:
            shown = [*(f"  - {line}" for line in missing), *(f"  + {line}" for line in extra)]
            found.append(f"{output}: {missing.total()} missing, {extra.total()} too many of {records.total()}")
            found += shown[:6]
    if one.letters != other.letters:
        found.append(f"{one.letters} dead letters, and {other.letters} of the stream")
    if other.late:
        found.append(f"{other.late} late")
    return "\n".join(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default="0:20")
    parser.add_argument("--wide", action="store_true")
    parser.add_argument("--joins", type=int, default=10, help="of a wide case")
    parser.add_argument("--keep", action="store_true")
    given = parser.parse_args()
    from clinker_spark.spark.session.sessions import session
    from tests.conftest import QUICK_JVM

    spark = session("local[2]", app_name="generated", conf={"spark.driver.memory": "2g"}, java_options=QUICK_JVM)
    first, _, last = given.seeds.partition(":")
    different = pairs = 0
    for seed in range(int(first), int(last or int(first) + 1)):
        folder = Path(tempfile.mkdtemp(prefix=f"stream-case-{seed}-"))
        begin, said, case = dt.datetime.now(), "", made(seed, wide=given.wide, joins=given.joins)
        clock = time.perf_counter()
        try:
            one = finite(case, folder, spark)
            said = difference(one, streamed(case, folder, spark))
            rows = sum(records.total() for records in one.records.values())
            pairs += rows
        except Exception as error:
            rows, said = -1, f"{type(error).__name__}: {error}"[:3000]
        different += bool(said)
        print(
            f"{begin:%H:%M:%S} seed {seed}: {rows} records, {case.calls} call(s), {time.perf_counter() - clock:.1f} s"
            + (f"  DIFFERENT in {folder}\n{said}" if said else ""),
            flush=True,
        )
        if not said and not given.keep:
            shutil.rmtree(folder)
    print(f"{different} different, {pairs} records in all")


if __name__ == "__main__":
    main()
