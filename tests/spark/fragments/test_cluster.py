"""Fragments on a cluster: a master and a worker of Spark's own, on loopback, give the bytes of a local run."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

from tests.spark.fragments.engines import letters
from tests.spark.fragments.pipelines import ROUTED, pipeline, write_files
from tests.support.shell import Shell

pytestmark = pytest.mark.skipif(os.environ.get("CLINKER_CASES") != "all", reason="a cluster: CLINKER_CASES=all")

HEAD = """
pipeline: { name: p, engine: vector }
nodes:
  - type: source
    name: s
    config: { type: csv, path: in.csv, schema: { id: int, name: string, qty: int, price: "nullable(float)" } }
"""
END = """
error_handling: { strategy: continue, dlq: { path: dead.csv } }
"""
JOINED = f"""{HEAD}
  - {{ type: source, name: prices, config: {{ type: csv, path: prices.csv, schema: {{ code: int, rate: float }} }} }}
  - type: combine
    name: j
    input: {{ s: s, p: prices }}
    config:
      where: s.qty == p.code
      match: all
      on_miss: skip
      propagate_ck: driver
      cxl: |
        emit id = s.id
        emit rate = p.rate * 2.0
        emit part = 100 / (s.id % 7)
  - {{ type: output, name: out, input: j, config: {{ type: csv, path: out.csv }} }}
{END}"""
TOTALS = f"""{HEAD}
  - type: aggregate
    name: t
    input: s
    config: {{ group_by: [name], cxl: "emit n = count(*)\\nemit total = sum(price)\\nemit most = max(qty)" }}
  - {{ type: output, name: out, input: t, config: {{ type: csv, path: out.csv }} }}
{END}"""
PIPELINES = {"routed": pipeline("csv", ROUTED, "mixed", "vector"), "joined": JOINED, "totals": TOTALS}


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _listens(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    home, work = Path(pyspark.__file__).parent, tmp_path_factory.mktemp("cluster")
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": os.pathsep.join(sys.path)}
    environment |= {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_WORKER_DIR": str(work)}
    ports = [_free_port() for _ in range(4)]
    url = f"spark://127.0.0.1:{ports[0]}"

    def start(kind: str, *args: object) -> subprocess.Popen[bytes]:
        name = f"org.apache.spark.deploy.{kind}"
        command = [str(home / "bin" / "spark-class"), name, "--host", "127.0.0.1", *map(str, args)]
        with open(work / f"{kind}.log", "wb") as log:
            return subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=work)

    found = [start("master.Master", "--port", ports[0], "--webui-port", ports[1])]
    try:
        until = time.monotonic() + 60
        while not _listens(ports[0]):
            assert time.monotonic() < until and found[0].poll() is None
            time.sleep(0.1)
        found.append(start("worker.Worker", "--cores", 2, "--memory", "1g", "--webui-port", ports[2], url))
        yield url
    finally:
        for process in reversed(found):
            process.terminate()
            process.wait(30)


@pytest.mark.parametrize("name", PIPELINES)
def test_a_cluster_writes_the_bytes_of_a_local_run(name: str, master: str, tmp_path: Path) -> None:
    """Small inputs, which one task has, are none here: every split is a task of the worker."""
    found = []
    small = ("--conf", "spark.clinker.smallInputBytes=0", "--conf", "spark.executor.memory=512m")
    for place, where in (("local[2]", "local"), (master, "cluster")):
        folder = tmp_path / where
        folder.mkdir()
        write_files(folder, 5, 30_000)
        (folder / "prices.csv").write_text("code,rate\n1,0.5\n5,1.5\n-7,2.5\n5,3.5\n")
        (folder / "p.yaml").write_text(PIPELINES[name])
        shell = Shell(folder, tmp_path / "c")
        code, _, err = shell.run("run", "p.yaml", "--master", place, *small)
        assert code == 2, err
        given = ("in.csv", "in.json", "prices.csv", "p.yaml", "dead.csv")
        files = {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file() and p.name[0] != "."}
        counts = [line.strip() for line in err.splitlines() if " read = " in line]
        found.append(({n: c for n, c in files.items() if n not in given}, letters(folder / "dead.csv"), counts))
    assert found[0][0] and found[0][1] and found[1] == found[0]
    shutil.rmtree(tmp_path)
