"""Failed records: kept, counted against thresholds, written as dead letters and replayed."""
