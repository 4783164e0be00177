"""A file seam that fails, or dies, at one chosen call; and the six kinds of runs that are tried on it.

The runs are made of files that Python writes, so that a thousand of them take seconds: what is published, and how, is
the product's own code.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from clinker_spark.runtime.commit.attempt import Attempt
from clinker_spark.runtime.commit.claims import Claim
from clinker_spark.runtime.commit.seam import Info, Lock, PosixFiles
from clinker_spark.runtime.commit.staging import Provenance


class Crash(BaseException):
    """The process is dead: whoever catches this cannot do anything any more."""


@dataclass
class FaultyFiles:
    """Counts calls; at call `at` it raises an error or dies, before anything happened or, for some, half-way."""

    at: int | None = None
    crash: bool = False
    number: int = errno.EIO
    again: int | None = None
    """A second call that fails, after the first."""
    calls: int = 0
    dead: bool = False
    log: list[str] = field(default_factory=list)
    locks: list[Lock] = field(default_factory=list)
    real: PosixFiles = field(default_factory=PosixFiles)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            return self._call(name, *args, **options)

        return call

    def _call(self, name: str, *args: Any, **options: Any) -> Any:
        if self.dead:
            raise Crash
        self.calls += 1
        self.log.append(f"{name} {' '.join(str(a)[-60:] for a in args)[:160]}")
        if self.calls in (self.at, self.again):
            self._half(name, *args)
            if self.crash:
                self.dead = True
                for lock in self.locks:  # the system lets go of them
                    if lock.handle is not None:
                        os.close(lock.handle)
                        lock.handle = None
                raise Crash
            raise OSError(self.number, os.strerror(self.number), str(args[0]) if args else None)
        found = getattr(self.real, name)(*args, **options)
        if isinstance(found, Lock):
            self.locks.append(found)
        return found

    def _half(self, name: str, *args: Any) -> None:
        if name == "write":
            self.real.write(args[0], args[1][: len(args[1]) // 2])
        if name == "append":
            self.real.append(args[0], args[1][: len(args[1]) // 2])
        if name == "close":  # the system has let go all the same
            self.real.close(args[0])
        if name == "share":
            self.real.unlock(args[0], remove=False)
        if name == "unlock":  # the file could not be removed; the system has let go all the same
            self.real.unlock(args[0], remove=False)
        if name == "copy" and args[0].is_file():
            args[1].write_bytes(args[0].read_bytes()[:3])

    def stat(self, path: Path) -> Info | None:
        found: Info | None = self._call("stat", path)
        return found


@dataclass(frozen=True)
class Kind:
    """A kind of run. `publish` makes generation `n`; `expected` is what is visible after it."""

    name: str
    publish: Callable[[Path, int, Any], Attempt]
    expected: Callable[[int], dict[str, str]]
    foreign: tuple[str, ...] = ("out/users.txt", "users.txt")
    """Files of the user that nobody may touch."""


def attempt(files: Any, n: int, **options: Any) -> Attempt:
    return Attempt(f"run{n}", pipeline="test", files=files, wait=0, **options)


def make(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


LETTERS = "_cxl_dlq_source_file,_cxl_dlq_source_name,_cxl_dlq_source_row,_cxl_dlq_stage\n"


def text(what: str, n: int) -> str:
    return f"{what} of run {n}\n" * (n + 1)


# ------------------------------------------------------------------ the kinds


def single(root: Path, n: int, files: Any) -> Attempt:
    run = attempt(files, n)
    try:
        place = root / "out" / "o.csv"
        run.claim([Claim("o", place)])
        made = make(run.folder(place, "o"), "final", text("o", n))
        run.put(made, place, "o")
        run.publish()
        return run
    finally:
        run.clean()


def split(root: Path, n: int, files: Any) -> Attempt:
    """Generation 1 has four parts, generation 2 two."""
    run = attempt(files, n)
    try:
        place = root / "out" / "o.csv"
        run.claim([Claim("o", place, several=True)])
        folder = run.folder(place, "o")
        for i in range(parts(n)):
            run.put(make(folder, f"final-{i}", text(f"part {i}", n)), root / "out" / f"o_{i}.csv", "o")
        run.publish()
        return run
    finally:
        run.clean()


def parts(n: int) -> int:
    return 4 if n % 2 else 2


def folder(root: Path, n: int, files: Any) -> Attempt:
    run = attempt(files, n)
    try:
        place = root / "out" / "parts"
        run.claim([Claim("o", place, folder=True)])
        final = run.folder(place, "o") / "final"
        final.mkdir()
        for i in range(parts(n)):
            make(final, f"part-{i}", text(f"part {i}", n))
        run.put(final, place, "o")
        run.publish()
        return run
    finally:
        run.clean()


def several(root: Path, n: int, files: Any) -> Attempt:
    """Outputs in several folders, one of them new in every run, a meta file, and dead letters in odd runs only."""
    run = attempt(files, n)
    try:
        a, b, dead = root / "out" / "a.csv", root / "other" / "b.csv", root / "dead" / "dead.csv"
        c = root / "out" / f"c{n}" / "deep" / "c.csv"
        claims = [Claim("a", a), Claim("b", b), Claim("c", c, home=root / "out"), Claim("dead", dead, letters=True)]
        run.claim(claims)
        run.put(make(run.folder(a, "a"), "final", text("a", n)), a, "a")
        run.put(make(run.folder(a, "a"), "meta", text("meta", n)), root / "out" / "a.csv.meta.json", "a")
        run.put(make(run.folder(b, "b"), "final", text("b", n)), b, "b")
        run.put(make(run.folder(c, "c"), "final", text("c", n)), c, "c")
        if n % 2:
            run.put(make(run.folder(dead, "d"), "final", LETTERS + text("dead", n)), dead, "dead")
        else:
            run.remove(dead, "dead")
        run.publish()
        return run
    finally:
        run.clean()


def several_files(n: int) -> dict[str, str]:
    found = {
        "out/a.csv": text("a", n),
        "out/a.csv.meta.json": text("meta", n),
        "other/b.csv": text("b", n),
        **{f"out/c{i}/deep/c.csv": text("c", i) for i in range(1, n + 1)},
    }
    return found | ({"dead/dead.csv": LETTERS + text("dead", n)} if n % 2 else {})


def query(root: Path, n: int, files: Any) -> Attempt:
    """The code that writes results of queries; its attempt is made with the given files."""
    from clinker_spark.query.failures import Failed
    from clinker_spark.runtime.query import files as query_files

    made: list[Attempt] = []

    def new_attempt(execution_id: str, **options: Any) -> Attempt:
        made.append(Attempt(f"run{n}", **{**options, "files": files, "wait": 0}))
        return made[0]

    original = query_files.Attempt
    query_files.Attempt = new_attempt  # type: ignore[assignment, misc]
    try:
        rows = [{"n": n, "i": i} for i in range(n + 1)]
        query_files.write_list(rows, str(root / "out" / "result.csv"), "csv", {})
    except Failed as failed:
        from clinker_spark.core.diagnostics import Diagnostic
        from clinker_spark.runtime.errors import IoError

        raise IoError([Diagnostic(failed.code, failed.message, help=failed.help)]) from failed
    finally:
        query_files.Attempt = original  # type: ignore[misc]
    return made[0]


def query_result(n: int) -> dict[str, str]:
    return {"out/result.csv": "n,i\n" + "".join(f"{n},{i}\n" for i in range(n + 1))}


def replay(root: Path, n: int, files: Any) -> Attempt:
    """Records are added to an output, what fails again lies beside, and the manifest knows what was replayed."""
    if n == 1:
        return single(root, 1, files)
    run = attempt(files, n, provenance=Provenance(replayed=[f"letter-{n}"]))
    try:
        place, dead = root / "out" / "o.csv", root / "out" / "dead-replay.csv"
        run.claim([Claim("o", place), Claim("dead", dead, letters=True)])
        run.put(make(run.folder(place, "o"), "final", place.read_text() + text("more", n)), place, "o")
        run.put(make(run.folder(dead, "d"), "final", LETTERS + text("dead", n)), dead, "dead")
        run.publish()
        return run
    finally:
        run.clean()


def replayed(n: int) -> dict[str, str]:
    if n == 1:
        return {"out/o.csv": text("o", 1)}
    more = "".join(text("more", i) for i in range(2, n + 1))
    return {"out/o.csv": text("o", 1) + more, "out/dead-replay.csv": LETTERS + text("dead", n)}


KINDS = [
    Kind("single", single, lambda n: {"out/o.csv": text("o", n)}),
    Kind("split", split, lambda n: {f"out/o_{i}.csv": text(f"part {i}", n) for i in range(parts(n))}),
    Kind("folder", folder, lambda n: {f"out/parts/part-{i}": text(f"part {i}", n) for i in range(parts(n))}),
    Kind("several", several, several_files),
    Kind("query", query, query_result),
    Kind("replay", replay, replayed),
]


# ------------------------------------------------------------------ what is there


@dataclass
class Place:
    """A folder with the outputs of generation 1 and files of the user, copied for each trial."""

    kind: Kind
    template: Path
    trials: Path
    count: int = 0

    @classmethod
    def prepared(cls, kind: Kind, base: Path) -> Place:
        template = base / "template"
        for name in kind.foreign:
            (template / name).parent.mkdir(parents=True, exist_ok=True)
            (template / name).write_text("of the user\n")
        kind.publish(template, 1, PosixFiles())
        place = cls(kind, template, base)
        assert place.visible(template) == place.all(1) and not place.left_over(template)
        return place

    def fresh(self) -> Path:
        self.count += 1
        root = self.trials / f"trial-{self.count}"
        shutil.copytree(self.template, root, symlinks=True)
        return root

    def visible(self, root: Path) -> dict[str, str]:
        """All files that have no hidden name."""
        found = {}
        for path in sorted(root.rglob("*")):
            name = path.relative_to(root)
            if path.is_file() and not any(part.startswith(".") for part in name.parts):
                found[str(name)] = path.read_text()
        return found

    def all(self, n: int) -> dict[str, str]:
        return dict(sorted({**self.kind.expected(n), **dict.fromkeys(self.kind.foreign, "of the user\n")}.items()))

    def state(self, root: Path) -> str:
        found = self.visible(root)
        return "old" if found == self.all(1) else "new" if found == self.all(2) else f"mixed: {sorted(found)}"

    def left_over(self, root: Path) -> list[str]:
        return [str(p) for p in root.rglob(".clinker-*") if not p.name.startswith(".clinker-manifest-")]

    def homes(self, root: Path) -> list[Path]:
        return [root / "out", root / "out" / "c2" / "deep", root / "other", root / "dead"]
