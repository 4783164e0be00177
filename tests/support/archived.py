"""Archives of the JVM's classes, which halve the work of a start, for the commands that tests start.

`make unit` leaves one in the cache of the tests, once for each Java and Spark (`python -m tests.support.archived`). The
session of a test process does without: its memory is looked at. Where there is none, commands that are
started dozens of times, one after the other, share one of their own (`archived`), and the others go without.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from clinker_spark.spark.session.class_archive import SETTING, archive_options

KEPT = Path.home() / ".cache" / "clinker-spark-tests" / "classes"
_PATIENCE = 300.0
_PIPELINE = """
pipeline: { name: classes }
nodes:
  - { type: source, name: orders, config: { type: csv, path: orders.csv, schema: { id: int, name: string } } }
  - { type: transform, name: ratio, input: orders, config: { cxl: "emit ratio = 100 / id" } }
  - { type: aggregate, name: totals, input: ratio, config: { group_by: [name], cxl: "emit total = sum(ratio)" } }
  - { type: output, name: records, input: ratio, config: { type: csv, path: records.csv } }
  - { type: output, name: out, input: totals, config: { type: json, path: out.json } }
error_handling: { strategy: continue, dlq: { path: dead.csv } }
"""


def setting() -> str:
    """The value of `CLINKER_CLASS_ARCHIVE` for a test run: where an archive was kept, or that there is none."""
    return str(KEPT) if _is_there() else "off"


def archived(folder: Path) -> dict[str, str]:
    """What such a command finds in its environment. If none was kept, the first of them leaves one below `folder`."""
    known = os.environ.get(SETTING, "off")
    return {SETTING: str(folder / "classes") if known == "off" else known, "PYTHONPATH": os.pathsep.join(sys.path)}


def _is_there() -> bool:
    if not KEPT.is_dir():
        return False
    before = os.environ.get(SETTING)
    os.environ[SETTING] = str(KEPT)
    try:
        return bool(archive_options(make=False))
    finally:
        if before is None:
            del os.environ[SETTING]
        else:
            os.environ[SETTING] = before


def make() -> None:
    """A session, a run with a dead letter, and an archive of what that has loaded."""
    from clinker_spark.plan.prepare import prepare
    from clinker_spark.runtime.run.pipeline import run
    from clinker_spark.spark.session.sessions import session

    os.environ[SETTING] = str(KEPT)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["XDG_CACHE_HOME"] = name
        (folder / "orders.csv").write_text("id,name\n1,a\n0,b\n2,a\n")
        (folder / "p.yaml").write_text(_PIPELINE)
        conf = {"spark.sql.warehouse.dir": str(folder / "tables")}
        options = f"{archive_options(make=True)} -XX:TieredStopAtLevel=1"
        spark = session("local[2]", app_name="classes", conf=conf, java_options=options)
        assert run(prepare(folder / "p.yaml"), spark).exit_code == 2
        gateway = spark.sparkContext._gateway
        spark.stop()
        gateway.shutdown()
        gateway.proc.stdin.close()  # the JVM ends, and leaves the archive before it does
        gateway.proc.wait(_PATIENCE)
        for left in KEPT.glob(f"*.{os.getpid()}.new"):
            os.utime(left, (0, 0))  # it is complete: the next look takes it
        assert _is_there()


if __name__ == "__main__" and not _is_there():
    make()
