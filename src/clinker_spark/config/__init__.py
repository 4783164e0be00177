"""From YAML and TOML files to checked models, with every key's place kept for diagnostics.

>>> from clinker_spark import config
>>> config.load_pipeline.__name__
'load_pipeline'
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clinker_spark.config.errors import ConfigError
    from clinker_spark.config.load import CompositionFile, PipelineFile, load_composition, load_pipeline
    from clinker_spark.config.tree.scalar_text import ScalarText
    from clinker_spark.config.workspace import Workspace, find_workspace

__all__ = [
    "CompositionFile",
    "ConfigError",
    "PipelineFile",
    "ScalarText",
    "Workspace",
    "find_workspace",
    "load_composition",
    "load_pipeline",
]

_HOME = {
    "CompositionFile": "load",
    "ConfigError": "errors",
    "PipelineFile": "load",
    "ScalarText": "tree.scalar_text",
    "Workspace": "workspace",
    "find_workspace": "workspace",
    "load_composition": "load",
    "load_pipeline": "load",
}


def __getattr__(name: str) -> Any:
    # Loaded on first use: pydantic takes longer to import than most commands take to run.
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
