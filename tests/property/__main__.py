"""python -m tests.property SEED [COUNT]: generated programs on both engines, with a seed of your own."""

from __future__ import annotations

import sys
import time

from clinker_spark.spark.session.sessions import session
from tests.property import campaign
from tests.support.sessions import quick


def main() -> int:
    seed, count = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 2000
    spark = quick(session("local[2]"))
    started = time.monotonic()
    findings, coverage = campaign.run(spark, seed, count)
    print(f"{count} programs in {time.monotonic() - started:.0f} s: {coverage}", flush=True)
    if findings and "--raw" in sys.argv:
        print(*findings, sep="\n\n")
    elif findings:
        print(campaign.report(spark, seed, findings, most=20))
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
