"""How chunks come into bounded memory: the budget, the threads that fetch, and the worker that takes their chunks."""
