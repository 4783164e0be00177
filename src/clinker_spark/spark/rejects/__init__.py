"""Failed records on Spark: as dead letters, and the records that belong to them."""
