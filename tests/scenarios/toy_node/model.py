"""What can be written."""

from __future__ import annotations

from typing import Literal

from clinker_spark.config.model.base import Model
from clinker_spark.config.model.node import InputNode
from clinker_spark.config.values import Count, Words


class MaskConfig(Model):
    """What is hidden."""

    column: Words
    """The column whose text is hidden."""
    keep: Count = 4
    """How many characters at the end stay readable."""


class MaskNode(InputNode):
    """Hides all but the last characters of a text."""

    type: Literal["mask"]
    config: MaskConfig
