"""Memory that runs short: who is asked to give way, when, and what happens if that does not help."""
