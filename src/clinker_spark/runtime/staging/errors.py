"""Why a file cannot be staged, before anybody knows where the pipeline names it."""

from __future__ import annotations

import errno


class NotStaged(Exception):
    """A code, a message and the way out. `about` is `source` or a key of [storage.staging]."""

    def __init__(self, code: str, message: str, help_text: str, about: str = "dir") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.help = help_text
        self.about = about


def unusable(folder: object, error: OSError) -> NotStaged:
    """Something went wrong in the staging folder."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        message = f"no space left for the copies in '{folder}'"
        return NotStaged("E405", message, "make room, stage fewer files ('patterns'), or name another folder")
    help_text = "check that it is a folder, its permissions and its disk, or name another one"
    return NotStaged("E426", f"cannot stage files in '{folder}': {reason(error)}", help_text)


def unreadable(name: str, error: OSError) -> NotStaged:
    """Something went wrong with the original."""
    return NotStaged("E229", f"cannot read '{name}': {reason(error)}", "check its permissions and its disk", "source")


def changed(name: str, what: str) -> NotStaged:
    """The original is no longer what it was when it was chosen."""
    help_text = "run again when nobody writes to it, or let writers rename finished files into place"
    return NotStaged("E434", f"'{name}' {what} while it was staged", help_text, "source")


def reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
