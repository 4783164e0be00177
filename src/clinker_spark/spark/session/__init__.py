"""The Spark session: how it starts, what it can do, and what happens when its JVM is gone."""
