"""The plan of a pipeline: checked nodes with their schemas, and the stages that run them. No Spark, no data."""
