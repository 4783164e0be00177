"""`stream:`: how a pipeline runs over sources that never end."""

from __future__ import annotations

import datetime as dt

from clinker_spark.config.model.base import Model
from clinker_spark.config.values import Count, Duration, PathText


class StreamSettings(Model):
    """How `clinker stream` runs the pipeline. `clinker run` does not look at it."""

    checkpoint: PathText | None = None
    """The folder that holds how far the stream has read, and its state; by default the name of the pipeline's file with
    .checkpoint at its end."""
    trigger: Duration = dt.timedelta(seconds=1)
    """How often it is looked for new records."""
    max_files: Count = 16
    """The most files of each source that one batch reads, in the order of their names."""
    partitions: Count | None = None
    """Into how many parts the state is cut; by default one per core. The first run decides."""
    hot_key: Count = 100_000
    """A warning is given when the records of one key that wait in a join are more than this."""
    restarts: Count = 100
    """How many finished batches of the checkpoint are kept to look at, or to go back to."""
