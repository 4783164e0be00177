"""The parts of outputs become files."""
