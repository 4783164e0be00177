"""Kafka: topics as sources of streams, and as what they write to."""
