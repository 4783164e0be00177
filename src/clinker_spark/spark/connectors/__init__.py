"""The outside ends of streams: message brokers and databases."""
