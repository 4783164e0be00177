"""What processes of their own do in the tests of staging: they are killed, or race for one source."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from clinker_spark.runtime.commit.seam import PosixFiles
from tests.crash.staged import held, stage


class StoppingFiles:
    """Counts calls, and stops the process at one of them, for somebody to kill it; or half-way through it."""

    def __init__(self, at: int) -> None:
        self.at = at
        self.calls = 0
        self.real = PosixFiles()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            self.calls += 1
            if self.calls == self.at:
                if name == "append":
                    half = len(args[1]) // 2
                    self.real.append(args[0], args[1][:half])
                    args = (args[0], args[1][half:])
                os.kill(os.getpid(), signal.SIGSTOP)
            return getattr(self.real, name)(*args, **options)

        return call


def stage_and_stop(folder: str, source: str, at: int, policy: dict[str, Any]) -> None:
    """Stage a source, up to a call."""
    stage(Path(folder), Path(source), StoppingFiles(at), run=f"process-{os.getpid()}", **policy)


def stage_again_and_again(folder: str, source: str, ready: Any, policy: dict[str, Any]) -> None:
    """Stage a source until somebody kills the process."""
    ready.set()
    while True:
        stage(Path(folder), Path(source), run=f"process-{os.getpid()}", **policy)


class AskingFiles:
    """Lets all others ask for a source, too, before anybody goes on: to ask is to look at its manifest."""

    def __init__(self, barrier: Any) -> None:
        self.barrier = barrier
        self.real = PosixFiles()
        self.asked = False

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            found = getattr(self.real, name)(*args, **options)
            if name == "stat" and not self.asked:
                self.asked = True
                self.barrier.wait()
            return found

        return call


def race(folder: str, source: str, barrier: Any, results: Any, policy: dict[str, Any]) -> None:
    """Stage a source at the same moment as others, and read all of it, slowly."""
    expected = Path(source).read_bytes()
    try:
        with held(Path(folder), Path(source), AskingFiles(barrier), run=f"process-{os.getpid()}", **policy) as found:
            with open(found.path, "rb") as file:
                content = file.read(1000)
                time.sleep(0.05)
                content += file.read()
            again = found.path.read_bytes()
            results.put((found.action, content == expected and again == expected))
    except BaseException as error:
        results.put((f"{type(error).__name__}: {error}", False))
