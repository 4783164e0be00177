"""Failures of the engine: no Java, too few files, memory that runs out, a JVM that is killed, Ctrl-C."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from py4j.java_gateway import GatewayParameters, JavaGateway, JavaObject
from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark import SparkContext, accumulators
from pyspark.errors import PySparkException

from clinker_spark.core.errors import ClinkerError
from clinker_spark.plan.prepare import prepare
from clinker_spark.runtime.run.engine_failures import engine_failure, explained
from clinker_spark.spark.session import jvm

PIPELINE = """
pipeline: { name: test }
nodes:
  - { type: source, name: s, config: { type: csv, path: a.csv, schema: { id: int, name: string } } }
  - { type: transform, name: t, input: s, config: { cxl: "emit n = 10 / id" } }
  - { type: output, name: out, input: t, config: { type: csv, path: out.csv } }
error_handling: { strategy: continue, dlq: { path: dead.csv } }
"""
HUNGRY = """
pipeline: { name: hungry, memory: { limit: 900M } }
nodes:
  - { type: source, name: s, config: { type: csv, path: a.csv, schema: { id: int, name: string } } }
  - { type: transform, name: wide, input: s, config: { cxl: "emit name = name.repeat(250000)" } }
  - { type: aggregate, name: all, input: wide, config: { group_by: [], cxl: "emit names = collect(name)" } }
  - { type: output, name: out, input: all, config: { type: json, path: out.json } }
"""
SCRIPT = """
import os, sys
import clinker_spark
from clinker_spark.core.errors import ClinkerError
from clinker_spark.runtime.run.pipeline import run
from pyspark import SparkContext

def kill(event, details):
    if event == "output_started":
        os.kill(SparkContext._gateway.proc.pid, 9)

def attempt(do):
    try:
        print("done", do().exit_code)
    except ClinkerError as error:
        print(type(error).__name__, error.exit_code, *[f"{d.code}: {d.message}" for d in error.diagnostics])
    print(sorted(name for name in os.listdir(".") if name.startswith((".", "out"))))

hungry, plain = clinker_spark.load("hungry.yaml"), clinker_spark.load("pipeline.yaml")
attempt(hungry.run)
attempt(lambda: run(plain.plan, plain.session(), listener=kill))
attempt(plain.run)
"""


WORKSPACE = """
[spark.conf]
"spark.driver.extraJavaOptions" = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""
"""Three JVMs start here, and none of them lives long."""


def command(folder: Path, *args: str, **options: Any) -> subprocess.Popen[str]:
    line = [sys.executable, "-m", "clinker_spark", "run", str(folder / "pipeline.yaml"), "--master", "local[2]", *args]
    return subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "pipeline.yaml").write_text(PIPELINE)
    (tmp_path / "hungry.yaml").write_text(HUNGRY)
    (tmp_path / "a.csv").write_text("id,name\n" + "".join(f"{i},{'x' * 40}\n" for i in range(1, 401)))
    return tmp_path


def test_the_next_run_after_a_lost_jvm_starts_a_new_one(folder: Path) -> None:
    """Memory runs out in the first run, the JVM of the second is killed, the third is as if nothing had been."""
    (folder / "clinker.toml").write_text(WORKSPACE)
    done = subprocess.run([sys.executable, "-c", SCRIPT], cwd=folder, capture_output=True, text=True, timeout=500)
    assert done.stderr == ""
    hungry, left, killed, also_left, third, outputs = done.stdout.splitlines()
    assert hungry.startswith("IoError 4 E310: 'all' needs more memory than the limit of 900M") and left == "[]"
    assert killed == "IoError 4 E410: the JVM of Spark was killed (SIGKILL); nothing was published"
    assert also_left == "[]"
    assert third == "done 0" and outputs == "['.clinker-manifest-test-9f86d081.json', 'out.csv']"


@pytest.mark.parametrize(
    ("error", "told"), [(EOFError(), False), (ConnectionResetError(), False), (ValueError("odd"), True)]
)
def test_what_tasks_have_counted_ends_with_the_jvm(
    error: Exception, told: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """PySpark would print a traceback when the JVM is gone: what is true is said once, by the run."""
    jvm.quiet()
    for kind in (accumulators.AccumulatorTCPServer, accumulators.AccumulatorUnixServer):
        server = kind.__new__(kind)
        try:
            raise error
        except Exception:
            server.handle_error(None, ("here", 1))
        assert ("odd" in capsys.readouterr().err) == told


def few_files() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        ({"preexec_fn": few_files}, "E025", "only 64 files may be open at once"),
        ({"env": {**os.environ, "JAVA_HOME": "/nowhere"}}, "E025", "there is no Java"),
    ],
    ids=["files", "java"],
)
def test_what_stops_spark_from_starting(folder: Path, options: dict[str, Any], code: str, words: str) -> None:
    process = command(folder, **options)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 4 and out == ""
    assert err.startswith(f"error[{code}]: ") and words in err and "= help: " in err
    assert "Traceback" not in err and len(err.splitlines()) < 8


def interrupt(process: subprocess.Popen[str]) -> None:
    """Ctrl-C in a terminal reaches the whole group: Java and the Python workers as well. Twice."""
    os.killpg(process.pid, signal.SIGINT)
    time.sleep(0.3)
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGINT)


def test_ctrl_c_during_a_job(folder: Path) -> None:
    rows = "".join(f"{i},{'x' * 40}\n" for i in range(1, 1_500_000))
    (folder / "a.csv").write_text("id,name\n" + rows)
    process = command(folder, "--machine", "ndjson-v1", start_new_session=True)
    assert process.stdout is not None and process.stderr is not None
    family: list[psutil.Process] = []
    for line in process.stdout:
        if json.loads(line).get("step") == "output_started":
            time.sleep(0.3)
            family = psutil.Process(process.pid).children(recursive=True)
            interrupt(process)
    assert process.wait(timeout=120) == 130
    assert process.stderr.read() == "clinker: interrupted\n"
    assert not [p for p in folder.iterdir() if p.name.startswith((".", "out"))]
    _, alive = psutil.wait_procs(family, timeout=60)
    assert family and not alive


def test_ctrl_c_while_planning(folder: Path) -> None:
    names = ["s", *(f"t{i}" for i in range(4000))]
    chain = "".join(
        f"  - {{ type: transform, name: t{i}, input: {names[i]}, config: {{ cxl: 'emit v{i} = id + 1' }} }}\n"
        for i in range(4000)
    )
    text = PIPELINE.replace("input: t,", "input: t3999,").replace("  - { type: transform, name: t, input", "#")
    (folder / "pipeline.yaml").write_text(text.replace("  - { type: output", f"{chain}  - {{ type: output"))
    process = command(folder, "--dry-run", start_new_session=True)
    # By its own clock: on a machine that is busy, two seconds may not even be enough for its imports.
    planning = psutil.Process(process.pid)
    while sum(planning.cpu_times()[:2]) < 2 and process.poll() is None:
        time.sleep(0.02)
    interrupt(process)
    _, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (130, "clinker: interrupted\n")


def words_are_gone() -> Exception:
    """What a JVM threw before it ended: Py4J would ask it what that says."""
    nobody = JavaGateway(gateway_parameters=GatewayParameters(port=1))
    return Py4JJavaError("An error occurred while calling o37.text.\n", JavaObject("o38", nobody._gateway_client))


@pytest.mark.parametrize(
    "error",
    [
        Py4JError("An error occurred while calling o37.sc"),
        Py4JNetworkError("Answer from Java side is empty"),
        ConnectionRefusedError(111, "Connection refused"),
        EOFError(),
        words_are_gone(),
    ],
    ids=["no answer", "network", "refused", "end", "words"],
)
def test_a_jvm_that_dies_is_told_whatever_the_call_that_meets_it(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection breaks before, in or after a question: each way is an error of its own, a moment before the
    process is gone."""
    process = subprocess.Popen(["sleep", "60"])
    monkeypatch.setattr(jvm, "_process", lambda: process)
    monkeypatch.setattr(jvm, "forget", lambda: None)
    monkeypatch.setattr(jvm, "last_words", lambda: "")
    threading.Timer(0.2, process.kill).start()
    found = engine_failure(error)
    assert found is not None
    assert (found.code, found.message) == (
        "E410",
        "the JVM of Spark was killed (SIGKILL); nothing was published",
    )


def test_a_jvm_that_ends_because_memory_ran_out_in_a_task_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark tells of the task first, and ends the JVM then: the next run must not take the one that is ending."""
    forgotten = []
    process = subprocess.Popen(["sh", "-c", "sleep 0.3; exit 52"])
    monkeypatch.setattr(jvm, "_process", lambda: process)
    monkeypatch.setattr(SparkContext, "_active_spark_context", SimpleNamespace(master="local[2]"))
    monkeypatch.setattr(jvm, "forget", lambda: forgotten.append(process.poll()))
    text = "Job aborted due to stage failure: Task 0 failed: java.lang.OutOfMemoryError: Java heap space\n\tat x"
    found = engine_failure(PySparkException(text))
    assert found is not None and found.message == "Spark ran out of memory (Java heap space)"
    assert forgotten == [52]


@pytest.mark.parametrize(
    ("master", "error"),
    [
        ("local[2]", "org.apache.spark.memory.SparkOutOfMemoryError: [UNABLE_TO_ACQUIRE_MEMORY] 9 bytes"),
        ("spark://127.0.0.1:7077", "java.lang.OutOfMemoryError: Java heap space"),
    ],
    ids=["refused", "of an executor"],
)
def test_other_shortages_do_not_end_the_jvm(master: str, error: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for that: this would take a minute."""
    process = subprocess.Popen(["sleep", "30"])
    monkeypatch.setattr(jvm, "_process", lambda: process)
    monkeypatch.setattr(SparkContext, "_active_spark_context", SimpleNamespace(master=master))
    try:
        text = f"Job aborted due to stage failure: {error}\n\tat x"
        found = engine_failure(PySparkException(text))
        assert found is not None and found.message.startswith("Spark ran out of memory")
        assert process.poll() is None
    finally:
        process.kill()
        process.wait()


IN_WORDS: dict[str, tuple[Exception, str, str, str]] = {
    "a worker that ended": (
        PySparkException("Caused by: SparkException: Python worker exited unexpectedly (crashed)"),
        "E410",
        "a Python process of Spark ended unexpectedly",
        "memory ran out",
    ),
    "memory of the JVM": (
        PySparkException("java.lang.OutOfMemoryError: Java heap space\n\tat x"),
        "E410",
        "Spark ran out of memory",
        "",
    ),
    "memory of Python": (MemoryError(), "E410", "Spark ran out of memory", ""),
    "files of the JVM": (
        PySparkException("java.io.FileNotFoundException: /tmp/x (Too many open files)"),
        "E025",
        "too many files were open at once",
        "ulimit",
    ),
    "files of Python": (OSError(24, "Too many open files", "/tmp/x"), "E025", "too many open files '/tmp/x'", "ulimit"),
    "the disk of the JVM": (
        PySparkException("java.io.IOException: No space left on device"),
        "E405",
        "no space left on the disk",
        "free some space",
    ),
    "the disk of Python": (
        OSError(28, "No space left on device", "/out/a.csv"),
        "E405",
        "cannot write '/out/a.csv': no space left on device",
        "free some space",
    ),
    "another error of files": (
        PermissionError(13, "Permission denied", "/out/a.csv"),
        "E401",
        "cannot write '/out/a.csv': permission denied",
        "nothing was published",
    ),
    "an error of a reader in a task": (
        PySparkException("PythonException: ...\nclinker_spark.core.errors.InputError: E216: b.csv is broken\n"),
        "E216",
        "b.csv is broken",
        "",
    ),
    "the last cause of many": (
        PySparkException("SparkException: aborted\nCaused by: java.lang.IllegalStateException: odd state\n\tat y"),
        "E402",
        "Spark failed: IllegalStateException: odd state",
        "CLINKER_DEBUG",
    ),
}


@pytest.mark.parametrize("name", IN_WORDS)
def test_what_spark_and_the_system_throw_in_words(folder: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jvm, "is_gone", lambda patience: False)
    monkeypatch.delenv("CLINKER_DEBUG", raising=False)
    error, code, message, help_text = IN_WORDS[name]
    with pytest.raises(ClinkerError) as caught, explained(prepare(folder / "pipeline.yaml")):
        raise error
    [said] = caught.value.diagnostics
    assert caught.value.exit_code == 4 and said.code == code
    assert said.message.startswith(message) and help_text in (said.help or "")


def test_a_defect_of_ours_stays_what_it_is(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a message happens to read like one of Spark's."""
    monkeypatch.setattr(jvm, "is_gone", lambda patience: False)
    with pytest.raises(KeyError, match="OutOfMemoryError"), explained(prepare(folder / "pipeline.yaml")):
        raise KeyError("java.lang.OutOfMemoryError: Java heap space")


@pytest.mark.parametrize("kind", ["InputError", "clinker_spark.runtime.errors.IoError", "PlanError", "DataError"])
def test_a_coded_error_of_another_process_keeps_its_code(tmp_path: Path, kind: str) -> None:
    """As when a source of a stream looks for files and finds a link that leads nowhere."""
    (tmp_path / "p.yaml").write_text(PIPELINE)
    text = f"[PYTHON_STREAMING_DATA_SOURCE_RUNTIME_ERROR] latestOffset\n  File x\n{kind}: E229: cannot read 'a'\n"
    with pytest.raises(ClinkerError) as caught, explained(prepare(tmp_path / "p.yaml")):
        raise PySparkException(message=text)
    [found] = caught.value.diagnostics
    assert (found.code, found.message) == ("E229", "cannot read 'a'") and found.help
