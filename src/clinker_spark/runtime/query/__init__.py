"""Running query programs: sources as rows on Spark, results as files."""
