"""Every place that a run writes: outputs, what goes beside them, and dead letters. Needs no Spark."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

from clinker_spark.config.tree.yaml import KeyPath
from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.errors import ClinkerError
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.nodes.output import OutputPlan
from clinker_spark.runtime.errors import IoError, PathError
from clinker_spark.runtime.paths.names import Folders, check_writable
from clinker_spark.runtime.paths.outputs import (
    NO_FILE,
    Names,
    Target,
    character_problem,
    free_path,
    local_path,
    meta_path,
    part_names,
    per_file_path,
    settled,
    target,
)
from clinker_spark.runtime.paths.place import Place
from clinker_spark.runtime.reject.replay import appendable, replay_path
from clinker_spark.runtime.run.options import Options, spool_folder
from clinker_spark.spark.scan.files import SourceFile

Files = Mapping[str, tuple[SourceFile, ...]]
_LONGEST_NAME = 200
_BESIDE = "replay without --append"


def names_of(plan: Plan, options: Options) -> Names:
    """What the tokens of paths stand for in a run."""
    digest = hashlib.sha256(plan.file.source.text.encode()).hexdigest()
    stamp = options.now.strftime("%Y-%m-%dT%H-%M-%SZ")
    return Names(options.execution_id, options.batch_id or options.execution_id, stamp, digest)


def output_target(
    plan: Plan, node: OutputPlan, options: Options, base: Path, names: Names, files: Files, folders: Folders
) -> Target:
    """Where the files of an output go. Raises `PathError` and `IoError`."""
    _check_name(node)
    known = {name: tuple(f.name for f in found) for name, found in files.items()}
    place = target(plan, node, base, names, known)
    if options.replay == "append":
        reason = appendable(plan, node)
        if reason is not None:
            message = f"cannot add to '{node.config.path}': {reason}"
            raise IoError([node.diagnostic("E020", message, "config", "path", help=_BESIDE)])
        if not place.path.exists():  # a new file would have the replayed records alone, and look whole
            message = f"cannot add to '{node.config.path}': there is no file '{place.path.name}'"
            raise IoError([node.diagnostic("E020", message, "config", "path", help=_BESIDE)])
    elif options.replay is not None:
        beside = None if place.template is None else str(replay_path(Path(place.template), options.round))
        place = Target(replay_path(place.path, options.round), place.folder, beside, root=place.root)
    if place.template is None:
        check_writable(_output(node, place.path, place), local_path(node.config.path), folders)
    if place.template is None and node.config.split is None and options.replay != "append":
        given = place.numbered
        numbered = None if given is None else lambda number: given(number).path
        place = Target(free_path(node, place.path, options.force, numbered), place.folder, root=place.root)
    return place


def _check_name(node: OutputPlan) -> None:
    """Parts are made in a folder that is called as the node."""
    problem = character_problem(node.name)
    if problem is None and len(os.fsencode(node.name)) > _LONGEST_NAME:
        problem = f"is longer than {_LONGEST_NAME} bytes", "shorten it"
    if problem is not None:
        raise PathError([node.diagnostic("E433", f"the name of the node {problem[0]}", "name", help=problem[1])])


def targets(plan: Plan, options: Options, base: Path, files: Files) -> dict[str, Target]:
    """Where the files of each output go."""
    names = names_of(plan, options)
    folders = Folders()
    return {node.name: output_target(plan, node, options, base, names, files, folders) for node in plan.outputs}


def places(plan: Plan, options: Options, base: Path, files: Files) -> tuple[list[Place], list[Diagnostic]]:
    """All places of a run, and what is wrong with those that cannot be one."""
    found: list[Place] = []
    problems: list[Diagnostic] = []
    names, folders = names_of(plan, options), Folders()
    for node in plan.outputs:
        try:
            place = output_target(plan, node, options, base, names, files, folders)
            for each in _of_output(plan, node, options, base, place, files):
                check_writable(each, str(each.path), folders)
                found.append(each)
        except ClinkerError as error:
            problems += error.diagnostics
    for each, given in _letters(plan, options, base):
        try:
            check_writable(each, local_path(given), folders, is_file=True)
            found.append(each)
        except ClinkerError as error:
            problems += error.diagnostics
    for option, path in options.beside.items():
        each = Place(settled(path), f"'{option}'", plan.file, None)
        try:
            check_writable(each, str(path), folders, is_file=True)
            found.append(each)
        except ClinkerError as error:
            problems += error.diagnostics
    spool = spool_folder(plan, options)
    if spool is not None:  # one that cannot be written is only a warning, after the run
        at: KeyPath | None = None if options.spool else ("pipeline", "metrics", "spool_dir")
        written = "'--metrics-spool-dir'" if at is None else "'metrics.spool_dir'"
        name = f"{options.execution_id}.json"
        found.append(Place(settled(spool / name), f"the file with the numbers, by {written},", plan.file, at))
    return found, problems


def _output(node: OutputPlan, path: Path, place: Target, writer: str | None = None, **more: object) -> Place:
    at = (*node.path, "config", "path")
    return Place(path, writer or f"output '{node.name}'", node.file, at, root=place.root, **more)  # type: ignore[arg-type]


def _of_output(
    plan: Plan, node: OutputPlan, options: Options, base: Path, place: Target, files: Files
) -> Iterator[Place]:
    split = node.config.split
    if place.template is not None:
        without = per_file_path(base, place.template, NO_FILE)
        taken = set()
        for source in plan.sources_of(node.name):
            for file in files.get(source.name, ()):
                if "{source_file" in node.config.path and PurePosixPath(file.name).name.startswith("."):
                    message = f"'{file.name}' has nothing before its ending that '{{source_file}}' could stand for"
                    problem = node.diagnostic("E433", message, "config", "path", help="rename the file")
                    raise PathError([problem])
                path = per_file_path(base, place.template, file.name)
                _refuse_existing(node, path, options)
                taken.add(path)
                yield _output(node, path, place, made_of=file)
                if node.config.write_meta:
                    yield _output(node, meta_path(path), place, f"the .meta.json of output '{node.name}'", made_of=file)
        if without not in taken:
            yield _output(node, without, place, f"output '{node.name}' without records")
    elif split is not None:
        parts = part_names(place.path, split.naming)
        first = place.path.with_name(parts.name(1))
        _refuse_existing(node, first, options)
        yield _output(node, first, place, f"a part of output '{node.name}'", parts=parts)
    else:
        yield _output(node, place.path, place, folder=place.folder)
    if node.config.write_meta and place.template is None:
        if split is not None:
            _refuse_existing(node, meta_path(place.path), options)
        yield _output(node, meta_path(place.path), place, f"the .meta.json of output '{node.name}'")


def _refuse_existing(node: OutputPlan, path: Path, options: Options) -> None:
    """One of several files: `if_exists: error` is no matter for after the job."""
    if node.config.if_exists == "error" or path.is_dir():
        free_path(node, path, options.force)


def _letters(plan: Plan, options: Options, base: Path) -> Iterator[tuple[Place, str]]:
    dlq = plan.file.error_handling.dlq
    at: KeyPath = ("error_handling", "dlq")
    given = [(dlq.path, "the dead letters", (*at, "path"))]
    for name, own in dlq.per_source.items():
        given.append((own.path, f"the dead letters of '{name}'", (*at, "per_source", name, "path")))
    for text, writer, key in given:
        if text is not None:
            path = letter_path(base, text)
            place = path if options.replay is None else replay_path(path, options.round)
            yield Place(place, writer, plan.file, key), text


def letter_path(base: Path, text: str) -> Path:
    """The file of dead letters."""
    return settled(base / local_path(text))
