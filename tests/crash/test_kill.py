"""kill -9 of real runs, at named moments and at random ones: after `recover`, or the next run, all outputs are of one
run, and what is trusted of the copies of inputs is whole. A dozen kills; two hundred with CLINKER_CASES=all."""

from __future__ import annotations

import multiprocessing
import os
import random
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from clinker_spark.cli.clinker.main import clinker
from clinker_spark.plan.prepare import prepare
from clinker_spark.runtime.run.options import Options
from clinker_spark.runtime.run.pipeline import run
from clinker_spark.runtime.staging.entry import places, trusted
from tests.crash.killed_runs import run_pipeline
from tests.crash.staged import SYSTEM, aged, original
from tests.support.sessions import quick

EVERYTHING = os.environ.get("CLINKER_CASES") == "all"
PIPELINE = """
pipeline: { name: killed }
nodes:
  - { type: source, name: s, config: { type: csv, path: in.csv, schema: { generation: int, n: int } } }
  - { type: output, name: split, input: s, config: { type: csv, path: out/s.csv, split: { max_records: 2 } } }
  - { type: output, name: parts, input: s, config: { type: csv, path: parts/all/, write_meta: true } }
error_handling: { strategy: continue, dlq: { path: dead/dead.csv } }
"""
STAGING = """
[storage.staging]
enabled = true
dir = "%s"
patterns = ["*"]
on_existing = "reuse"
cleanup = "never"
"""
MOMENTS = (
    "before anything",
    "while an input is copied",
    "before a copy has its name",
    "before a copy is declared",
    "before the journal",
    "before the journal has its name",
    "before the first rename",
    "in the middle of the renames",
    "between the two renames of a folder",
    "before it is done",
    "while cleaning",
)


class Killing:
    """A folder with the outputs of generation 1, copied for each kill, and what is known about generation 2. Inputs are
    read from copies in `stage`, which all runs share."""

    def __init__(self, base: Path, spark: Any, stage: Path) -> None:
        self.base = base
        self.stage = stage
        self.spark = spark
        self.processes = multiprocessing.get_context("forkserver")
        self.processes.set_forkserver_preload(["tests.crash.killed_runs", "clinker_spark.runtime.run.pipeline"])
        self.count = 0
        data = base / "template" / "data"
        (data / "out").mkdir(parents=True)
        (data / "out" / "users.txt").write_text("of the user")
        (data / "pipeline.yaml").write_text(PIPELINE)
        (data / "clinker.toml").write_text(STAGING % stage)
        self.generation(data, 1)
        run(prepare(data / "pipeline.yaml"), spark, Options())
        self.calls, self.seconds = self.rehearsal()

    def generation(self, data: Path, n: int) -> None:
        """Generation 1 has five good records and a bad one, the others three good ones."""
        rows = [f"{n},{i}" for i in range(5)] + ["1,bad"] if n == 1 else [f"{n},{i}" for i in range(3)]
        (data / "in.csv").write_text("generation,n\n" + "\n".join(rows) + "\n")

    def fresh(self) -> Path:
        self.count += 1
        folder = self.base / f"kill-{self.count}"
        shutil.copytree(self.base / "template", folder)
        self.generation(folder / "data", 2)
        return folder

    def start(self, folder: Path, at: int | None) -> Any:
        given = self.spark.sparkContext._gateway.gateway_parameters
        process = self.processes.Process(target=run_pipeline, args=(str(folder), given.port, given.auth_token, at))
        process.start()
        return process

    def rehearsal(self) -> tuple[list[str], float]:
        """A run that nobody kills: the calls it makes, and how long it takes from its beginning."""
        for _ in range(2):  # the first one warms up
            folder = self.fresh()
            process = self.start(folder, None)
            self.wait_for(folder, "BEGIN", process)
            began = time.monotonic()
            process.join(120)
            assert process.exitcode == 0 and self.of_one_run(folder / "data") == 2
        return [line for line in (folder / "log").read_text().splitlines() if line != "BEGIN"], time.monotonic() - began

    def wait_for(self, folder: Path, word: str, process: Any) -> None:
        until = time.monotonic() + 120
        log = folder / "log"
        while not (log.exists() and word in log.read_text()):
            assert time.monotonic() < until, "it never came"
            assert process.is_alive() or (log.exists() and word in log.read_text()), "it ended before"
            time.sleep(0.005)

    def kill_at_call(self, at: int) -> Path:
        folder = self.fresh()
        process = self.start(folder, at)
        self.wait_for(folder, "STOPPED", process)
        return self.kill(process, folder)

    def kill_after(self, seconds: float) -> Path:
        folder = self.fresh()
        process = self.start(folder, None)
        self.wait_for(folder, "BEGIN", process)
        time.sleep(seconds)
        return self.kill(process, folder)

    def kill(self, process: Any, folder: Path) -> Path:
        process.kill()  # SIGKILL; nothing, if it was faster
        process.join()
        self.spark.sparkContext.cancelAllJobs()  # a JVM of its own would be gone
        return folder / "data"

    def moment(self, name: str) -> int:
        """The number of the call at which it is."""
        lines = [line.replace(str(self.base), "") for line in self.calls]
        renames = [i for i, line in enumerate(lines, 1) if line.startswith("rename")]
        journal = next(i for i in renames if lines[i - 1].endswith("/journal"))
        done = next(i for i in renames if lines[i - 1].endswith("/done"))
        between = [i for i in renames if journal < i < done]
        draft = next(i for i, x in enumerate(lines, 1) if x.startswith("write") and "journal.new" in x)
        aside = next(i for i in between if "/parts/all" in lines[i - 1].split()[1])
        return {
            "before anything": 1,
            "while an input is copied": next(i for i, x in enumerate(lines, 1) if x.startswith("append")),
            "before a copy has its name": next(i for i in renames if lines[i - 1].endswith(".staged")),
            "before a copy is declared": next(i for i in renames if lines[i - 1].endswith(".manifest.json")),
            "before the journal": draft,
            "before the journal has its name": journal,
            "before the first rename": between[0],
            "in the middle of the renames": between[len(between) // 2],
            "between the two renames of a folder": aside + 1,
            "before it is done": done,
            "while cleaning": next(i for i, x in enumerate(lines, 1) if i > done + 3 and x.startswith("unlink")),
        }[name]

    def recover(self, data: Path) -> str:
        self.check_copies(data)
        aged(self.stage)
        return CliRunner().invoke(clinker, ["recover", str(data / "pipeline.yaml")], standalone_mode=False).output

    def check_copies(self, data: Path) -> None:
        """What a run would trust is whole, and what the input was when it was copied."""
        at = places(self.stage, os.path.realpath(data / "in.csv"))
        entry = trusted(SYSTEM, at)
        if entry is not None:
            assert SYSTEM.digest(at.copy) == entry.blake3
            assert not entry.is_of(original(data / "in.csv")) or at.copy.read_bytes() == (data / "in.csv").read_bytes()

    def of_one_run(self, data: Path) -> int:
        """The generation that all outputs are of. Fails when there are several, or when something is left over."""
        assert (data / "out" / "users.txt").read_text() == "of the user"
        lines = {}
        for path in [*data.glob("out/*.csv"), *data.glob("parts/all/*.csv")]:
            for line in path.read_text().splitlines()[1:]:
                lines.setdefault(path.parent.name, []).append(line)
        letters = (data / "dead" / "dead.csv").exists()
        generations = {line.split(",")[0] for found in lines.values() for line in found}
        assert len(generations) == 1, (generations, lines)
        generation = int(generations.pop())
        expected = [f"{generation},{i}" for i in range(5 if generation == 1 else 3)]
        assert {name: sorted(found) for name, found in lines.items()} == {"out": expected, "all": expected}
        assert letters == (generation == 1) and (data / "parts" / "all.meta.json").exists()
        left = [p for p in data.rglob(".clinker-*") if not p.name.startswith(".clinker-manifest-")]
        # The JVM is that of the tests and lives on: its job may make a folder again that was removed, or go on writing
        # there. Nothing of it is published, and whoever comes later removes it.
        for orphan in left:
            assert not any((orphan / name).exists() for name in ("journal", "done"))
            os.utime(orphan, (1, 1))
        if left:
            self.recover(data)
        assert not any(orphan.exists() for orphan in left)
        return generation


@pytest.fixture(scope="module")
def killing(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Killing]:
    with tempfile.TemporaryDirectory(prefix="clinker-test-", dir="/dev/shm") as stage:
        yield Killing(tmp_path_factory.mktemp("kill"), quick(spark), Path(stage))


@pytest.mark.parametrize("name", MOMENTS)
def test_killed_at_a_named_moment(name: str, killing: Killing) -> None:
    data = killing.kill_at_call(killing.moment(name))
    said = killing.recover(data)
    new = MOMENTS.index(name) >= MOMENTS.index("before the first rename")
    assert killing.of_one_run(data) == (2 if new else 1), said
    assert "nothing to recover" in killing.recover(data)


@pytest.mark.parametrize("number", range(192 if EVERYTHING else 2))
def test_killed_at_a_random_moment(number: int, killing: Killing) -> None:
    random_number = random.Random(number)
    if number % 2:
        data = killing.kill_at_call(random_number.randint(1, len(killing.calls)))
    else:
        data = killing.kill_after(random_number.random() * killing.seconds * 1.1)
    if number % 10 == 0:  # the next run does the same
        killing.generation(data, 3)
        run(prepare(data / "pipeline.yaml"), killing.spark, Options())
        assert killing.of_one_run(data) == 3
    else:
        killing.recover(data)
        assert killing.of_one_run(data) in (1, 2)
    shutil.rmtree(data.parent)
