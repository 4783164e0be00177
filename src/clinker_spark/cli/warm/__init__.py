"""Warm sessions: one process keeps a Spark session, and commands hand their work to it."""
