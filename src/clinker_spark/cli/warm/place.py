"""Where warm sessions listen: a socket for each user, environment, version and setting. Nothing here is slow to import.

The folder is for its owner alone (0700), and so is each socket (0600): who can connect could run anything as its owner.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
from collections.abc import Mapping
from pathlib import Path

import clinker_spark

SWITCH = "CLINKER_WARM"
"""`off` in the environment: neither use nor start a warm session."""
_LONGEST = 100
"""Addresses of sockets are cut off after 107 bytes."""
_OF_A_TERMINAL = (
    "_",
    "COLORTERM",
    "COLUMNS",
    "DISPLAY",
    "FORCE_COLOR",
    "LINES",
    "NO_COLOR",
    "OLDPWD",
    "PPID",
    "PS1",
    "PWD",
    "SHLVL",
    "STY",
    "TERM",
    "WINDOWID",
)
_OF_A_LOGIN = ("SSH_", "TMUX", "TERM_", "VTE_", "XDG_SESSION_", "WINDOW")


def is_off(environment: Mapping[str, str]) -> bool:
    return environment.get(SWITCH, "").lower() in ("off", "0", "false", "no")


def folder() -> Path | None:
    """The folder of the sockets that suit this process; None if there can be none. It may not be there yet."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    name = _key()
    usual = Path(cache) / "clinker-spark" / "warm" / name
    if os.path.isabs(cache) and len(os.fsencode(usual)) < _LONGEST - 12:
        return usual
    import tempfile  # it loads what packs and unpacks files, which a home with a long name alone is no reason for

    short = Path(tempfile.gettempdir()) / f"clinker-{os.getuid()}" / name
    return short if len(os.fsencode(short)) < _LONGEST - 12 else None


def is_ours(place: Path) -> bool:
    """Is a folder there that belongs to us, and that nobody else can enter?"""
    try:
        info = place.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(info.st_mode) and info.st_uid == os.getuid() and stat.S_IMODE(info.st_mode) & 0o077 == 0


def made_folder() -> Path | None:
    """The folder, made if need be; None if that cannot be, or if it is not ours alone."""
    found = folder()
    if found is None:
        return None
    try:
        found.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        found.mkdir(mode=0o700, exist_ok=True)
    except OSError:
        return None
    return found if is_ours(found) else None


def _key() -> str:
    """What must be the same for a session to suit: the program with its version, Python, limits, the environment."""
    parts = [clinker_spark.__version__, sys.executable, str(os.getuid()), _changed(), *_limits()]
    parts += [f"{name}={value}" for name, value in sorted(kept_environment(os.environ).items())]
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()[:16]


def kept_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that a session depends on: all but those of a terminal or a login.

    >>> kept_environment({"TZ": "UTC", "TERM": "xterm", "SSH_TTY": "/dev/pts/3"})
    {'TZ': 'UTC'}
    """
    return {
        name: value
        for name, value in environment.items()
        if name not in _OF_A_TERMINAL and not name.startswith(_OF_A_LOGIN) and name != SWITCH
    }


def _changed() -> str:
    """When the program was last changed: who works on it wants to run what was just written."""
    newest = 0
    for place, folders, names in os.walk(os.path.dirname(clinker_spark.__file__)):
        folders[:] = [name for name in folders if name != "__pycache__"]
        newest = max([newest, *(os.stat(os.path.join(place, name)).st_mtime_ns for name in names)])
    return str(newest)


def _limits() -> list[str]:
    try:
        import resource
    except ImportError:  # not on this system
        return []
    return [str(resource.getrlimit(kind)) for kind in (resource.RLIMIT_NOFILE, resource.RLIMIT_AS)]
