"""Reading Parquet files."""
