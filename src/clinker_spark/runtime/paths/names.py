"""Can a file be written at a place: is its name one that a file system holds, and do its folders let us in?"""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path

from clinker_spark.runtime.commit.recovery import PREFIX
from clinker_spark.runtime.errors import IoError, PathError
from clinker_spark.runtime.paths.outputs import character_problem
from clinker_spark.runtime.paths.place import Place

_HOME = re.compile(r"~[^/]*(/|$)")
_LONGEST_NAME = 255
_LONGEST_PATH = 4096
_OUR_SHARE = 320
"""What an attempt adds to the path of a folder: its own name, that of the node, and Spark's parts in it."""


class Folders:
    """What was found out about folders. Many files may be written to one."""

    def __init__(self) -> None:
        self._real: dict[str, str] = {}
        self._obstacles: dict[str, str | None] = {}

    def real(self, path: Path) -> str:
        """The path without links."""
        return os.path.realpath(path) if os.path.islink(path) else self.in_real_folder(path)

    def in_real_folder(self, path: Path) -> str:
        """The path without links, except that it may be one itself."""
        folder, name = os.path.split(path)
        if name in ("", ".", ".."):
            return os.path.realpath(path)
        if folder not in self._real:
            self._real[folder] = os.path.realpath(folder)
        return os.path.join(self._real[folder], name)

    def obstacle(self, path: Path) -> str | None:
        """Why no file can be made in the folder of a path."""
        folder = os.path.dirname(path)
        if folder not in self._obstacles:
            self._obstacles[folder] = _folder_obstacle(path)
        return self._obstacles[folder]


def check_writable(place: Place, text: str, folders: Folders, *, is_file: bool = False) -> None:
    """Raises `PathError` or `IoError` when nothing can be written there. `text` is the path as it is written."""
    for found in (_name_problem(place, text, is_file=is_file), _leaving(place, folders)):
        if found is not None:
            code, message, help_text = found
            raise PathError([place.diagnostic(code, message, help_text)])
    if "://" in text:
        message = f"'{text}' is on a remote storage, which outputs and dead letters cannot be written to"
        help_text = "mount the storage and give that path, or copy the files afterwards"
        raise IoError([place.diagnostic("E248", message, help_text)])
    reason = _obstacle(place.path, folders)
    if reason is None and is_file and place.path.is_dir():
        reason = f"'{text}' is a folder"
    if reason is not None:
        help_text = "name another place, or make this one writable"
        raise IoError([place.diagnostic("E401", f"cannot write '{text}': {reason}", help_text)])


def _name_problem(place: Place, text: str, *, is_file: bool) -> tuple[str, str, str] | None:
    """A code, a message and help; None for a path that a file can have."""
    spelled = str(place.path)
    problem = None if spelled.isascii() and spelled.isprintable() else character_problem(spelled)
    if problem is not None:
        return "E433", f"the path of {place.writer} {problem[0]}", problem[1]
    if _HOME.match(text) or "~" in place.path.parts:
        return "E433", f"'{text}': a '~' does not stand for a home folder here", "write the whole path"
    if text.endswith(("/.", "/..")) or text in (".", ".."):
        help_text = "write the name of the file, or end the path with / for a folder of parts"
        return "E433", f"'{text}' names a folder, and no file in it", help_text
    if is_file and text.endswith("/"):
        return "E433", f"'{text}' is a folder, and {place.writer} are one file", "write the name of a file"
    if own := next((part for part in place.path.parts if part.startswith(PREFIX)), None):
        message = f"'{own}' is a name that clinker gives to files of its own, and removes"
        return "E433", message, f"choose a name that does not begin with '{PREFIX}'"
    for part in place.path.parts if len(os.fsencode(spelled)) > _LONGEST_NAME else ():
        size = len(os.fsencode(part))
        if size > _LONGEST_NAME:
            message = f"'{part[:40]}…' is longer than a name can be: {size} bytes, and {_LONGEST_NAME} at most"
            return "E433", message, "shorten the path, or the value of a token in it"
    whole = len(os.fsencode(os.path.abspath(place.path)))
    if whole + _OUR_SHARE > _LONGEST_PATH:
        message = f"the path of {place.writer} is too long: {whole} bytes, and {_LONGEST_PATH - _OUR_SHARE} at most"
        return "E433", message, "shorten the path, or the value of a token in it"
    if place.path.name != place.path.name.rstrip():
        return "E433", f"'{place.path.name}' ends with a blank", "remove the blank"
    return None


def _leaving(place: Place, folders: Folders) -> tuple[str, str, str] | None:
    """Does a token lead out of the folder that is written before it?"""
    if place.root is None:
        return None
    spelled = os.path.abspath(place.path), os.path.abspath(place.root)
    real = folders.real(place.path), folders.real(place.root)
    for (path, root), how in ((spelled, "the value of a token leads"), (real, "a link, named by a token, leads")):
        if not path.startswith(root.rstrip("/") + "/"):
            message = f"{how} out of the folder '{place.root}', to '{place.path}'"
            if place.made_of is not None:
                message = f"{message}, for the input '{place.made_of.name}'"
            return (
                "E432",
                message,
                "only what the pipeline itself says may lead elsewhere; {source_file} is a bare name",
            )
    return None


def _obstacle(path: Path, folders: Folders) -> str | None:
    """Why a file cannot be made at a place that it has a name for; None when it can, as far as can be seen."""
    try:
        os.stat(path)
    except FileNotFoundError:
        pass
    except OSError as error:
        if error.errno == errno.ENOTDIR:
            return f"'{_existing(path)}' is a file, and no folder"
        if error.errno == errno.ELOOP:
            return "its links lead in a circle"
        return (error.strerror or str(error)).lower()
    return _folder_obstacle(path) if os.path.islink(path) else folders.obstacle(path)


def _folder_obstacle(path: Path) -> str | None:
    for above in path.parents:
        if above.is_symlink() and not above.exists():
            return f"'{above}' is a link that leads nowhere"
    folder = _existing(Path(os.path.realpath(path)).parent)
    if not folder.is_dir():
        return f"'{folder}' is a file, and no folder"
    if not os.access(folder, os.W_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids):
        return f"there is no permission to write in '{folder}'"
    return None


def _existing(path: Path) -> Path:
    """The innermost part of a path that is there."""
    for at in (path, *path.parents):
        if os.path.lexists(at) and not (at.is_symlink() and not at.exists()):
            return at
    return Path("/")
