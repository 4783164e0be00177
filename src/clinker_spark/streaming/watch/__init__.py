"""What is watched while a stream runs: its progress, sources that fall silent, keys of which most waits."""
