"""The commands of streams: to run one, and to look at its state."""
