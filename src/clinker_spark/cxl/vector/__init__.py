"""The third engine: typed programs as Polars expressions over the batches of a split."""
