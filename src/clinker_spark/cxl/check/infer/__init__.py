"""The typing rules: every kind of expression gets its type."""
