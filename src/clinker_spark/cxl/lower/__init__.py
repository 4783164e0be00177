"""Lowering: typed programs become steps of Spark SQL, as data."""
