"""Connections to a database, and what it says when something is wrong."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from clinker_spark.core.errors import InputError
from clinker_spark.spark.connectors.failures import failure, package

_PATIENCE = 20
_UNREACHABLE = ("08", "28", "57P", "53", "3D")
"""Classes of SQLSTATE: no connection, not let in, shut down, out of resources, no such database."""
_MISFIT = ("42", "3F")
_WRONG_SETTING = re.compile(r"invalid (?:connection option|sslmode|integer value)|missing \"=\" after", re.I)


@dataclass(frozen=True)
class Database:
    """Where a database is. It goes to tasks, with its password: nothing prints it."""

    url: str
    """Without a password."""
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Of libpq, the password among them."""

    @contextmanager
    def connected(self, doing: str) -> Iterator[Any]:
        """A connection; its transaction is committed at the end, or rolled back. Raises `InputError`."""
        client = package("psycopg", "postgres")
        try:
            given = {"connect_timeout": _PATIENCE, "application_name": "clinker", **self.settings}
            connection = client.connect(self.url, **given)
        except client.Error as error:
            raise self._unconnected(error) from None
        try:
            with connection:
                yield connection
        except client.Error as error:
            raise explained(error, doing, self.url) from None

    def _unconnected(self, error: Exception) -> InputError:
        text = _words(error)
        if _WRONG_SETTING.search(text):
            return failure("E521", f"the PostgreSQL client does not take its settings: {text}")
        return failure("E530", f"cannot connect to {self.url}: {text}")


def explained(error: Any, doing: str, url: str) -> InputError:
    """An error of the database in words."""
    state = getattr(error, "sqlstate", None)
    text = _words(error)
    if state is None or state.startswith(_UNREACHABLE):
        return failure("E530", f"{doing} failed: {url} is gone: {text}")
    if state.startswith(_MISFIT):
        return failure("E531", f"{doing} failed: {text}")
    return failure("E532", f"{doing} failed: {text}")


def _words(error: Any) -> str:
    """What the server says, and of which row; the rest of the message is for programs."""
    found = getattr(error, "diag", None)
    if found is not None and found.message_primary:
        detail = f" ({found.message_detail})" if found.message_detail else ""
        return f"{found.message_primary}{detail}"
    text = str(error).strip()
    said = re.findall(r"(?:failed: |FATAL: |ERROR: )+([^\n]+)", text)
    return (said[0] if said else text.partition("\n")[0] or type(error).__name__).strip()


def password_of(environment: Mapping[str, str] = os.environ) -> str | None:
    """What libpq would use by itself; on other machines it would not find it."""
    return environment.get("PGPASSWORD")
