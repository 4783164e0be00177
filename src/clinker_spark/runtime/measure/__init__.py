"""What a run used: the memory of its processes over time, and time, memory and spill of its nodes."""
