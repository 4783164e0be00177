"""Which dead letters were added to outputs already: replaying them again must not add them twice.

Their identifiers lie in a file beside the outputs, which is published together with them.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.errors import InputError
from clinker_spark.plan.nodes import Plan
from clinker_spark.runtime.publish import Attempt


@dataclass(frozen=True)
class ReplayedIds:
    """The letters of one pipeline that replays with `append` added to its outputs."""

    path: Path

    @classmethod
    def of(cls, plan: Plan, base: Path) -> ReplayedIds:
        name = re.sub(r"[^\w.-]", "_", plan.file.settings.name)
        folder = os.path.dirname(plan.outputs[0].config.path.split("{")[0])
        return cls(base / folder / f".clinker-replayed-{name}.json")

    def known(self) -> frozenset[str]:
        try:
            found = json.loads(self.path.read_text(encoding="utf-8"))
            return frozenset(str(letter) for letter in found["replayed"])
        except FileNotFoundError:
            return frozenset()
        except (OSError, ValueError, KeyError, TypeError) as error:
            message = f"'{self.path}' does not say which dead letters were replayed: {error}"
            help_text = "restore it, or remove it if no letter was added twice"
            raise InputError([Diagnostic("E459", message, help=help_text)]) from None

    def add(self, letters: Iterable[str], attempt: Attempt) -> None:
        """Note more letters, in what the attempt publishes."""
        everything = sorted(self.known() | set(letters))
        made = attempt.folder(self.path, "replayed") / "letters.json"
        made.write_text(json.dumps({"replayed": everything}, indent=0) + "\n", encoding="utf-8")
        attempt.rename(made, self.path)
