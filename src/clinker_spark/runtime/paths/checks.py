"""Paths, checked before the first job: does every file that is written have one writer, and is it none that is read?

What a run would do is compared with itself here, and with the files that were found. It needs no Spark, so that
`--dry-run` finds the same.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from clinker_spark.config.tree.yaml import KeyPath
from clinker_spark.config.workspace import find_workspace
from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.errors import ClinkerError
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.nodes.source import SourcePlan
from clinker_spark.runtime.discover.file_identity import Identities, Identity
from clinker_spark.runtime.discover.new_files import earlier_runs
from clinker_spark.runtime.discover.searches import search_of
from clinker_spark.runtime.discover.sources import NoFiles, discover, is_remote
from clinker_spark.runtime.errors import IoError, PathError
from clinker_spark.runtime.paths.names import Folders
from clinker_spark.runtime.paths.outputs import PartNames, source_path
from clinker_spark.runtime.paths.place import Place
from clinker_spark.runtime.paths.places import Files, places
from clinker_spark.runtime.run.options import Options
from clinker_spark.spark.scan.files import SourceFile

_OF_THE_SYSTEM = ("E020", "E248", "E401", "E406")
"""Findings that end with the exit code of files that cannot be used; after all others the pipeline is wrong."""
_MOST = 10


def listed_files(plan: Plan, options: Options, base: Path) -> tuple[Files, list[Diagnostic]]:
    """The files of the sources and the warnings about them, for a dry run. Sources whose files are not there are left
    out: only a run has to mind. Raises `IoError` for those that are there and cannot be read."""
    found: dict[str, tuple[SourceFile, ...]] = dict(options.files or {})
    warnings: list[Diagnostic] = []
    problems: list[Diagnostic] = []
    earlier = earlier_runs(plan, options, base)
    for node in plan.sources if options.files is None else ():
        try:
            result = discover(node, base, options.now, left=earlier.left)
            found[node.name] = result.files
            warnings += result.warnings
        except NoFiles:
            pass
        except ClinkerError as error:
            problems += error.diagnostics
    if problems:
        raise IoError(problems[:_MOST])
    return found, warnings


def check_paths(plan: Plan, options: Options, files: Files) -> tuple[Diagnostic, ...]:
    """Warnings. Raises `PathError` or `IoError` with all that is wrong, as far as the files of sources are known."""
    base = options.base or plan.file.folder
    found, problems = places(plan, options, base, files)
    problems += _without_file(plan)
    checks = _Checks(plan, options, base, files, found)
    problems += [*checks.one_writer(), *checks.nothing_read()]
    if problems:
        few = problems[:_MOST]
        raise (IoError if any(d.code in _OF_THE_SYSTEM for d in few) else PathError)(few)
    return tuple(checks.read_next_time())


def _without_file(plan: Plan) -> Iterator[Diagnostic]:
    """Outputs for each input file, or with a document of each, of records that belong to none."""
    for node in plan.outputs:
        by_file = node.framing is not None and node.framing.by_file
        blocking = plan.facts.files.mixes_files.get(node.name) if node.per_file or by_file else None
        if blocking is not None and by_file:
            message = (
                f"the records of '{blocking}' are made of several files, and '{node.name}' makes a document of each"
            )
            help_text = "put an envelope with strategy: concat before it"
            yield node.diagnostic("E436", message, "config", "reconstruct_envelope", help=help_text)
        elif blocking is not None:
            message = f"the records of '{blocking}' are made of several files, and '{node.name}' wants one of each"
            help_text = "write a path without {source_file} and {source_path}"
            yield node.diagnostic("E436", message, "config", "path", help=help_text)


class _Checks:
    """The places of one run, compared with each other and with what it reads."""

    def __init__(self, plan: Plan, options: Options, base: Path, files: Files, found: list[Place]) -> None:
        self.plan = plan
        self.options = options
        self.base = base
        self.files = files
        self.places = found
        self.identities = Identities()
        self.folders: dict[str, list[Identity]] = {}
        self.known = [self.identities.of(place.path) for place in found]

    # ------------------------------------------------------------ against each other

    def one_writer(self) -> Iterator[Diagnostic]:
        """No two writers of one file, and none inside of what another one replaces as a whole."""
        taken: dict[object, list[int]] = {}
        told: set[tuple[str, str]] = set()
        for i, (place, identity) in enumerate(zip(self.places, self.known, strict=True)):
            before = taken.setdefault(identity.folded, [])
            for first in (self.places[k] for k in before if self.identities.same(identity, self.known[k])):
                yield from _once(told, place, first, self._same_file(place, first))
            before.append(i)
        for place in self.places:
            for outer in self._around(place):
                for first in (self.places[k] for k in taken.get(outer.folded, ()) if self._is(k, outer)):
                    how = "is replaced as a whole" if first.folder else "is a file"
                    message = f"{place.writer} would lie in '{first.path}', which {how}: {first.writer} would be there"
                    finding = place.diagnostic("E322", message, "write it to another folder", first)
                    yield from _once(told, place, first, finding)
        for i, place in enumerate(self.places):
            for j, other in enumerate(self.places) if place.parts is not None else ():
                if (place.at != other.at or place.file is not other.file) and self._meets(place, i, other, j):
                    message = f"{place.writer} may be called as {other.writer}"
                    finding = place.diagnostic("E322", message, "give each output a path of its own", other)
                    yield from _once(told, place, other, finding)
        if self.options.replay == "beside":
            yield from self._beside(told)

    def _around(self, place: Place) -> list[Identity]:
        """The folders that a place lies in. Many places share them."""
        folder = os.path.dirname(os.path.realpath(place.path) if place.path.is_symlink() else place.path)
        if folder not in self.folders:
            self.folders[folder] = list(self.identities.around(Path(folder, "x")))
        return self.folders[folder]

    def _is(self, k: int, identity: Identity) -> bool:
        return self.identities.same(self.known[k], identity)

    def _same_file(self, place: Place, other: Place) -> Diagnostic:
        if place.made_of is not None and other.made_of is not None and place.at == other.at:
            left, right = other.made_of.name, place.made_of.name
            message = f"the records of '{left}' and '{right}' would go to one file, '{place.path}'"
            return place.diagnostic("E431", message, _other_names(left, right))
        message = f"{place.writer} and {other.writer} write the same file, '{place.path}'"
        return place.diagnostic("E322", message, "give each output a path of its own", other)

    def _meets(self, place: Place, i: int, other: Place, j: int) -> bool:
        """Can a part of a split have the name of another file, or of a part of another split?"""
        assert place.parts is not None
        here, there = self.known[i], self.known[j]
        if (here.device, here.inode, here.names[:-1]) != (there.device, there.inode, there.names[:-1]):
            return False
        if other.parts is None:
            return not other.folder and place.parts.number(there.names[-1]) is not None
        return i < j and _may_meet(place.parts, other.parts)

    def _beside(self, told: set[tuple[str, str]]) -> Iterator[Diagnostic]:
        """A replay writes `out-replay.csv`; an output of the pipeline may have that name."""
        usual, _ = places(self.plan, dataclasses.replace(self.options, replay=None, force=True), self.base, self.files)
        for place, identity in zip(self.places, self.known, strict=True):
            for other in usual:
                if self.identities.same(identity, self.identities.of(other.path)):
                    message = f"the replay of {place.writer} would replace {other.writer}, '{other.path}'"
                    finding = place.diagnostic("E322", message, "rename one of the two outputs", other)
                    yield from _once(told, place, other, finding)

    # ------------------------------------------------------------ against what is read

    def nothing_read(self) -> Iterator[Diagnostic]:
        """Nothing that the pipeline reads, or is made of, is written."""
        inputs: dict[tuple[int, int], str] = {}
        folders: dict[str, tuple[SourcePlan, list[str]]] = {}
        for node in self.plan.sources:
            for file in self.files.get(node.name, ()):
                for stamp in file.stamps:
                    inputs[stamp.identity] = f"'{file.name}', an input of '{node.name}'"
                    folder, name = os.path.split(stamp.path)
                    folders.setdefault(folder, (node, []))[1].append(name)
        own = [(path, self.identities.of(path), _stat(path), what) for path, what in self._own_files()]
        for place, identity in zip(self.places, self.known, strict=True):
            info = _stat(place.path)
            what = next(
                (what for _, one, its, what in own if self.identities.same(one, identity) or _one(its, info)), None
            )
            if what is None and info is not None:
                what = inputs.get((info.st_dev, info.st_ino))
            if what is None and place.folder:
                what = self._held_in(place, [(path, what) for path, _, _, what in own], folders)
            if what is None and place.parts is not None:
                what = self._part_is_read(place, place.parts, folders)
            if what is not None:
                help_text = _AWAY if "an input of" in what else "write it somewhere else"
                yield place.diagnostic("E430", f"{place.writer} would replace {what}", help_text)

    def _held_in(
        self, place: Place, own: Sequence[tuple[Path, str]], folders: dict[str, tuple[SourcePlan, list[str]]]
    ) -> str | None:
        """What stands below a folder that would be replaced."""
        held = [what for path, what in own if self.identities.inside(path, place.path)]
        held += [
            f"'{names[0]}', an input of '{node.name}'"
            for folder, (node, names) in folders.items()
            if self.identities.inside(Path(folder, "x"), place.path)
        ]
        return f"a folder that holds {held[0]}" if held else None

    def _part_is_read(
        self, place: Place, parts: PartNames, folders: dict[str, tuple[SourcePlan, list[str]]]
    ) -> str | None:
        mine = _stat(place.path.parent)
        for folder, (node, names) in folders.items():
            if _one(_stat(Path(folder)), mine):
                for name in names:
                    if parts.number(name) is not None:
                        return f"'{name}', an input of '{node.name}'"
        return None

    def _own_files(self) -> Iterator[tuple[Path, str]]:
        """The files that the pipeline is made of."""
        seen: set[str] = set()

        def new(path: Path) -> bool:
            key = os.path.abspath(path)
            return key not in seen and not seen.add(key)  # type: ignore[func-returns-value]

        loaded = [self.plan.file, *(node.file for node in self.plan.nodes)]
        for file in loaded:
            if new(file.path):
                what = "the pipeline itself" if file is self.plan.file else f"the composition '{file.path.name}'"
                yield file.path, what
            for schema in file.schemas.values():
                if schema.document is not file.document and new(Path(schema.source.name)):
                    yield Path(schema.source.name), f"the schema '{Path(schema.source.name).name}'"
        workspace = find_workspace(self.plan.file.path).path
        if workspace is not None:
            yield workspace, "'clinker.toml'"
        rules = self.plan.rules
        if rules is not None and rules.is_dir():
            for path in sorted(rules.rglob("*.cxl")):
                yield path, f"the module '{path.relative_to(rules)}'"

    # ------------------------------------------------------------ warnings

    def read_next_time(self) -> Iterator[Diagnostic]:
        """What is written where the next run looks for its inputs."""
        for node in self.plan.sources:
            would_read = _reader(node, self.base)
            told: set[object] = set()
            for place in self.places:
                key = (place.file.path, place.at)
                if key not in told and would_read(place):
                    told.add(key)
                    message = (
                        f"{place.writer} would be where '{node.name}' looks for files: the next run reads what is there"
                    )
                    help_text = "write it to another folder, or leave it out with 'exclude'"
                    yield place.diagnostic("W430", message, help_text)


def check_not_read(
    plan: Plan, base: Path, written: Mapping[str, Path], letters: Sequence[tuple[KeyPath, Path]] = ()
) -> None:
    """Raises `PathError` when a stream would read the files that it writes itself, batch after batch. `written` has a
    file of each output that writes some, `letters` files of dead letters with the keys that say so."""
    for source in plan.sources:
        if source.config.stream_only:  # no files
            continue
        would_read = _reader(source, base)
        for name, path in written.items():
            node = plan.output(name)
            if would_read(Place(path, f"output '{name}'", node.file, None)):
                message = f"output '{name}' would be where '{source.name}' looks for files: the stream would never end"
                help_text = "write it to another folder, or leave it out with 'exclude'"
                raise PathError([node.diagnostic("E446", message, "config", "path", help=help_text)])
        for at, path in letters:
            place = Place(path, "the dead letters", plan.file, at)
            if would_read(place):
                message = f"dead letters, '{path.name}', would be where '{source.name}' looks for files"
                help_text = "write them to another folder, or leave them out with 'exclude'"
                raise PathError([place.diagnostic("E446", f"{message}: the stream would never end", help_text)])


def _reader(node: SourcePlan, base: Path) -> Callable[[Place], bool]:
    """Would a source read what is written at a place?"""
    config = node.config

    def within(place: Place) -> Path:
        return place.path / f"part-00000.{config.type}" if place.folder else place.path

    if config.glob is not None or config.regex is not None:
        if is_remote(config.glob or ""):
            return lambda place: False
        search, seen = search_of(config, base), Folders()
        return lambda place: search.would_find(seen.in_real_folder(within(place)))
    given = [config.path] if config.path is not None else list(config.paths)
    folders = [_stat(base / name) for name in given if config.type == "parquet" and not is_remote(name)]
    return lambda place: (
        within(place).suffix == ".parquet" and any(_one(folder, _stat(within(place).parent)) for folder in folders)
    )


_AWAY = "write it somewhere else; 'exclude' keeps a pattern from finding what an earlier run wrote"


def _once(told: set[tuple[str, str]], left: Place, right: Place, finding: Diagnostic) -> Iterator[Diagnostic]:
    """One finding for each pair of writers."""
    pair = (left.writer, right.writer) if left.writer < right.writer else (right.writer, left.writer)
    if pair not in told:
        told.add(pair)
        yield finding


def _other_names(left: str, right: str) -> str:
    """How the two could have different outputs."""
    if left == right:
        return "list the file once"
    with_path = {source_path(name) for name in (left, right)}
    if len(with_path) == 2 and not any(name.startswith("..") for name in with_path):
        return "write {source_path} instead of {source_file}: it has the folders of the input, too"
    return "rename one of the files"


def _may_meet(left: PartNames, right: PartNames) -> bool:
    """Can two splits give a part the same name?"""
    if len(left.before) > len(right.before):
        left, right = right, left
    if not right.before.startswith(left.before):
        return False
    more = right.before[len(left.before) :]
    if more and not (more.isascii() and more.isdigit()):
        return False
    for size in range(1, left.width + right.width + len(more) + len(left.after) + len(right.after) + 3):
        for digits in ("1".ljust(size, "0"), "1".rjust(size, "0"), "1" * size):
            name = f"{right.before}{digits}{right.after}"
            if right.number(name) is not None and left.number(name) is not None:
                return True
            if not left.after.endswith(right.after):
                continue
            # The number of the one may go on in what comes after that of the other.
            name = f"{right.before}{digits}{left.after}"
            if right.number(name) is not None and left.number(name) is not None:
                return True
    return False


def _stat(path: Path) -> os.stat_result | None:
    try:
        return os.stat(path)
    except (OSError, ValueError):
        return None


def _one(left: os.stat_result | None, right: os.stat_result | None) -> bool:
    """Are they one file, or one folder?"""
    return left is not None and right is not None and os.path.samestat(left, right)
