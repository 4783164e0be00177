"""PostgreSQL: a table as an output."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import Field

from clinker_spark.config.model.base import ONE_OR_MORE, Finding, Model, without_effect
from clinker_spark.config.model.connectors.settings import FromEnvironment, Settings, check_settings
from clinker_spark.config.values import Words
from clinker_spark.core.diagnostics.suggest import did_you_mean
from clinker_spark.core.types import Kind, Type

_ENV = "write the URL without it, and password: { env: NAME }"
_NAME_BYTES = 63
_UNORDERED = (Kind.ARRAY, Kind.MAP, Kind.ANY, Kind.NUMERIC)


class TableWrite(Model):
    """A table that is written."""

    url: Words
    """The database: postgresql://user@host:5432/database, without a password."""
    password: FromEnvironment | None = None
    """Where the password stands: { env: NAME }; by default PGPASSWORD, or what libpq finds."""
    table: Words
    """The table, with or without its schema: paid, or shop.paid."""
    mode: Literal["append", "upsert"] = "append"
    """Add rows, or replace those with the same keys."""
    keys: Annotated[tuple[Words, ...], Field(min_length=1), ONE_OR_MORE] | None = None
    """upsert: the columns that tell rows apart. None of them may be null."""
    latest_by: Words | None = None
    """upsert: of rows with the same keys the one with the greatest value stays, whichever comes first."""
    if_missing: Literal["create", "error"] = "create"
    """What happens when there is no such table."""
    settings: Settings = Field(default_factory=dict)
    """Settings of the connection by the names of libpq, such as sslmode and sslrootcert; secrets as { env: NAME }."""

    def check_table(self) -> Iterator[Finding]:
        yield from self._check_url()
        yield from check_settings("settings", self.settings, ("host", "port", "dbname", "user", "password"))
        parts = self.table.split(".")
        if len(parts) > 2 or not all(parts) or any(len(part.encode()) > _NAME_BYTES for part in parts):
            yield Finding("E007", f"'{self.table}' is no name of a table", ("table",), "write name, or schema.name")
        if self.mode == "upsert" and self.keys is None:
            yield Finding("E529", "an upsert needs keys", ("mode",), "add keys: [column], or write mode: append")
        if self.mode == "append":
            yield from without_effect(self, ("keys", "latest_by"), "rows are only added")

    def _check_url(self) -> Iterator[Finding]:
        help_text = "write postgresql://user@host:5432/database"
        try:
            parts = urlsplit(self.url)
            known = parts.scheme in ("postgresql", "postgres") and parts.port is not False
        except ValueError:
            known = False
        if not known:
            yield Finding("E007", "'url' is no address of a database", ("url",), help_text)
        elif parts.password is not None or re.search(r"[?&]password=", self.url):
            yield Finding("E528", "the password of the database stands in the file", ("url",), _ENV)

    def check_columns(self, types: Mapping[str, Type]) -> Iterator[Finding]:
        if not types:
            yield Finding("E529", "no column is left to write", ("table",), "write include_unmapped: true")
        for name in types:
            if len(name.encode()) > _NAME_BYTES:
                message = f"'{name}' is too long for the name of a column"
                yield Finding("E529", message, ("table",), f"rename it with 'mapping'; {_NAME_BYTES} bytes fit")
        if self.mode != "upsert":
            return
        for i, name in enumerate(self.keys or ()):
            if name not in types:
                help_text = did_you_mean(name, types) or f"the columns are {', '.join(types)}"
                yield Finding("E529", f"there is no column '{name}'", ("keys", i), help_text)
            elif types[name].nullable:
                help_text = f"leave such records out before, or give them a value: emit {name} = {name} ?? ..."
                yield Finding("E529", f"the key '{name}' may be null", ("keys", i), help_text)
            elif types[name].kind in _UNORDERED or types[name].is_dynamic:
                yield Finding(
                    "E529", f"'{name}' is {types[name]}, which is no key", ("keys", i), "choose another column"
                )
        if self.latest_by is not None:
            if self.latest_by not in types:
                help_text = did_you_mean(self.latest_by, types) or f"the columns are {', '.join(types)}"
                yield Finding("E529", f"there is no column '{self.latest_by}'", ("latest_by",), help_text)
            elif types[self.latest_by].kind in _UNORDERED or types[self.latest_by].is_dynamic:
                message = f"values of type {types[self.latest_by]} have no order"
                yield Finding("E529", message, ("latest_by",), "choose another column")

    @property
    def place(self) -> str:
        return f"{self.url}/{self.table}"
