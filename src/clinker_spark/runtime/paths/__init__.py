"""Every place that a run writes: named, checked before the first job, and asked for at the commit module."""
