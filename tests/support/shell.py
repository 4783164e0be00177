"""Commands as a shell would start them, and the warm sessions that they find."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path

import psutil


class Shell:
    """A folder, and commands as a shell would start them there."""

    def __init__(self, folder: Path, cache: Path) -> None:
        self.folder = folder
        self.cache = cache
        self.environment = {
            **os.environ,
            "XDG_CACHE_HOME": str(cache),
            "PYTHONPATH": os.pathsep.join(sys.path),
        }
        for name in ("CLINKER_WARM", "PYTEST_CURRENT_TEST"):  # the latter is another one in each test
            self.environment.pop(name, None)

    def start(self, *args: str, **more: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "clinker_spark", *args],
            cwd=self.folder,
            env={**self.environment, **more},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
        )

    def run_without_java(self, *args: str, **more: str) -> tuple[int, str, str]:
        """A command that must leave the work to a session: it starts no Java of its own."""
        process = self.start(*args, **more)
        started: set[str] = set()
        while process.poll() is None:
            with contextlib.suppress(psutil.Error):
                started |= {child.name() for child in psutil.Process(process.pid).children(recursive=True)}
            time.sleep(0.005)
        out, err = process.communicate(timeout=300)
        assert not any(name.startswith("java") for name in started), f"no session took it: {err}"
        return process.returncode, out, err

    def run(self, *args: str, **more: str) -> tuple[int, str, str]:
        process = self.start(*args, **more)
        out, err = process.communicate(timeout=300)
        return process.returncode, out, err

    def sockets(self) -> Path:
        """The folder in which commands look for sessions; it is made if need be."""
        script = "from clinker_spark.cli.warm import place; print(place.made_folder())"
        done = subprocess.run([sys.executable, "-c", script], env=self.environment, capture_output=True, text=True)
        return Path(done.stdout.strip())

    def servers(self) -> list[psutil.Process]:
        """Processes that keep a session of ours, and no others: the forks that work are their children."""
        found = []
        for process in psutil.process_iter(["cmdline"]):
            with contextlib.suppress(psutil.Error):
                line = process.info["cmdline"] or []
                ours = process.environ().get("XDG_CACHE_HOME") == self.environment["XDG_CACHE_HOME"]
                if "clinker_spark.cli.warm.server" in line and ours and process.ppid() not in [p.pid for p in found]:
                    found.append(process)
        return found
