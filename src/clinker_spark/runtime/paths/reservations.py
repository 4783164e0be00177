"""What a run asks the commit module for: its outputs and its dead letters, and what must survive."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.errors import InputError
from clinker_spark.plan.bind.increments import incremental_outputs
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.nodes.output import OutputPlan
from clinker_spark.runtime.commit.attempt import Attempt
from clinker_spark.runtime.commit.claims import Claim, Refusal
from clinker_spark.runtime.commit.manifest import Unreadable, replayed_ids
from clinker_spark.runtime.commit.seam import SYSTEM
from clinker_spark.runtime.errors import IoError
from clinker_spark.runtime.paths.outputs import Target, letter_paths, output_folders, static_folder
from clinker_spark.runtime.paths.places import Files, letter_path, targets
from clinker_spark.runtime.reject.edited_letters import check_edited
from clinker_spark.runtime.reject.replay import replay_path
from clinker_spark.runtime.reject.replay_rounds import check_round
from clinker_spark.runtime.run.options import Options
from clinker_spark.spark.scan.files import SourceFile


class Asking(Protocol):
    """What claims are made of."""

    plan: Plan
    options: Options

    @property
    def base(self) -> Path: ...
    @property
    def files(self) -> dict[str, tuple[SourceFile, ...]]: ...


class Running(Asking, Protocol):
    """A `RunState`, which only Spark can make."""

    attempt: Attempt


@dataclass
class Review:
    """A run that is only checked."""

    plan: Plan
    options: Options
    base: Path
    files: dict[str, tuple[SourceFile, ...]]


def review(plan: Plan, options: Options, files: Files) -> None:
    """Would a run be refused its outputs: folders and dead-letter files that are somebody else's, or that somebody
    works on? For a dry run; raises `IoError`."""
    asking = Review(plan, options, options.base or plan.file.folder, dict(files))
    attempt = Attempt(options.execution_id, pipeline=plan.file.settings.name, force=options.force)
    with located(asking):
        attempt.review(_claims(asking, targets(plan, options, asking.base, files)), _protected(asking))
    _check_letters(asking)


def _claims(state: Asking, places: Mapping[str, Target]) -> list[Claim]:
    return [*(output_claim(state, node, places[node.name]) for node in state.plan.outputs), *letter_claims(state)]


def reserve(state: Running, places: Mapping[str, Target]) -> None:
    """Lock everything that the run writes, and make sure that it may. Raises `IoError` before the first job."""
    state.attempt.provenance.inputs = _inputs(state)
    with located(state):
        state.attempt.claim(_claims(state, places), _protected(state))
    _check_letters(state)
    check_round(state.plan, state.options, state.base)


def _check_letters(state: Asking) -> None:
    """Letters that a run would replace. A replay never does, and a run over new files keeps them."""
    options = state.options
    if options.force or options.replay is not None or (options.adds and incremental_outputs(state.plan)):
        return
    if state.plan.file.error_handling.strategy == "continue":
        check_edited(state.plan, state.base, letter_places(state).items())


def output_claim(state: Asking, node: OutputPlan, place: Target) -> Claim:
    """An output. Where its files lie is the same in every run, whatever the tokens of its path stand for."""
    config = node.config
    several = config.split is not None or place.template is not None
    appends = config.if_exists == "append" and state.options.adds
    replaces = not appends and config.if_exists in ("overwrite", "append")
    replaces = replaces or (config.if_exists == "error" and state.options.force)
    return Claim(
        node.name,
        place.path if place.template is None else state.base / place.template,
        home=static_folder(state.base, config.path) if "{" in config.path else None,
        folder=place.folder,
        several=several,
        replaces=replaces,
        fresh=not replaces and not appends and state.options.replay != "append",
        appends=appends,
        shown=config.path,
    )


def letter_claims(state: Asking) -> list[Claim]:
    """The files of dead letters, each once."""
    if state.plan.file.error_handling.strategy != "continue":
        return []
    paths = letter_places(state)
    return [Claim(letter_key(path), place, letters=True, shown=path) for path, place in paths.items()]


def letter_places(state: Asking) -> dict[str, Path]:
    """The paths of dead letters as they are written, and where they lead."""
    return {path: letter_place(state, path) for path in letter_paths(state.plan)}


def letter_place(state: Asking, path: str) -> Path:
    place = letter_path(state.base, path)
    return place if state.options.replay is None else replay_path(place, state.options.round)


def letter_key(path: str) -> str:
    """No node has such a name."""
    return f"dead letters: {path}"


def replayed_before(plan: Plan, base: Path) -> frozenset[str]:
    """The dead letters that were replayed into the outputs since their last whole run, by their ids."""
    name = plan.file.settings.name
    folders = [SYSTEM.resolve(folder) for folder in output_folders(plan, base)]
    try:
        return frozenset().union(*(replayed_ids(SYSTEM, folder, name) for folder in folders))
    except Unreadable as problem:
        help_text = "restore it, or remove it if no letter was added yet"
        raise InputError([Diagnostic("E459", str(problem), help=help_text)]) from None


@contextlib.contextmanager
def located(state: Asking) -> Iterator[None]:
    """A refusal with the line of the pipeline that names the path."""
    try:
        yield
    except Refusal as refusal:
        raise IoError([_located(state, refusal.claim, found) for found in refusal.diagnostics]) from None


def _located(state: Asking, claim: Claim, found: Diagnostic) -> Diagnostic:
    for node in state.plan.outputs:
        if node.name == claim.key:
            return node.diagnostic(found.code, found.message, "config", "path", help=found.help)
    return state.plan.file.diagnostic(found.code, found.message, _letter_path(state, claim), found.help)


def _letter_path(state: Asking, claim: Claim) -> tuple[str, ...]:
    dlq = state.plan.file.error_handling.dlq
    for name, own in dlq.per_source.items():
        if own.path == claim.shown and own.path != dlq.path:
            return ("error_handling", "dlq", "per_source", name, "path")
    return ("error_handling", "dlq", "path")


def _inputs(state: Running) -> list[dict[str, Any]]:
    found = []
    for files in state.files.values():
        for file in files:
            try:
                mtime = os.stat(file.path).st_mtime_ns
            except OSError:
                mtime = int(file.modified * 1e9)
            found.append({"name": file.name, "path": file.uri or file.path, "size": file.size, "mtime_ns": mtime})
    return found


def _protected(state: Asking) -> list[Path]:
    """What no folder that is replaced may have in it."""
    inputs = [file.path for files in state.files.values() for file in files]
    if state.options.feed is not None and state.options.feed.path is not None:
        inputs.append(str(state.options.feed.path))
    return [Path(os.path.realpath(path)) for path in (state.plan.file.path, *inputs)]
